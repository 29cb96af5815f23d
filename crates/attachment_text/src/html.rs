//! Web pages: their visible text. The tokenizer of a browser reads them; a tree, which could be deep, is not built.

use std::borrow::Cow;
use std::cell::RefCell;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use crate::writer::Writer;
use crate::{AttachmentText, PlaceKind, Unreadable};

/// How far the encoding may be stated from the beginning. Browsers look at 1,024 bytes.
const ENCODING_WITHIN: usize = 1024;

/// Reads a web page: a place for each heading.
pub(crate) fn read(bytes: &[u8]) -> Result<AttachmentText, Unreadable> {
    let (writer, shown) = write(bytes, Writer::new(PlaceKind::Chapter), true);
    Ok(AttachmentText {
        title: shown.title,
        authors: shown.author.into_iter().collect(),
        places: writer.finish()?,
        ..AttachmentText::default()
    })
}

/// What a page says besides its text.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) title: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) first_heading: Option<String>,
}

/// Writes the text of a page; with `chapters`, headings begin places.
pub(crate) fn write(bytes: &[u8], writer: Writer, chapters: bool) -> (Writer, Shown) {
    let text = decoded(bytes);
    let page = Page {
        writer,
        chapters,
        shown: Shown::default(),
        heading: None,
        title: None,
        skipped: None,
        preformatted: 0,
    };
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(&text));
    let tokenizer = Tokenizer::new(Sink(RefCell::new(page)), TokenizerOpts::default());
    // A script would only be a reason to pause; none is run.
    while !matches!(tokenizer.feed(&input), html5ever::TokenizerResult::Done) {}
    tokenizer.end();
    let mut page = tokenizer.sink.0.into_inner();
    page.end_heading();
    (page.writer, page.shown)
}

/// Decodes a page by its byte order mark, by the encoding that it states, or as UTF-8 or Windows 1252.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[length..]).0;
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(ENCODING_WITHIN)]).to_lowercase();
    let stated = ["charset=", "encoding="].iter().find_map(|key| {
        let rest = head.split_once(key)?.1.trim_start_matches(['"', '\'', ' ']);
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(rest.len());
        Encoding::for_label(&rest.as_bytes()[..end])
    });
    let encoding = match stated {
        Some(encoding) if encoding.is_ascii_compatible() => encoding,
        _ if std::str::from_utf8(bytes).is_ok() => UTF_8,
        // A page that could be read so far does not have two bytes for each letter.
        Some(_) => UTF_8,
        None => WINDOWS_1252,
    };
    encoding.decode_without_bom_handling(bytes).0
}

struct Sink(RefCell<Page>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => return page.tag(&tag),
            Token::CharacterTokens(text) => page.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

struct Page {
    writer: Writer,
    chapters: bool,
    shown: Shown,
    /// The text of the heading that is open.
    heading: Option<String>,
    /// The text of the title that is open.
    title: Option<String>,
    /// The element whose content is not shown.
    skipped: Option<String>,
    preformatted: usize,
}

impl Page {
    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        let is_start = tag.kind == TagKind::StartTag;
        if let Some(skipped) = &self.skipped {
            if !is_start && skipped == name {
                self.skipped = None;
            }
            return TokenSinkResult::Continue;
        }
        // Elements that close themselves occur in XHTML, where a script may be one.
        if is_start && !tag.self_closing {
            match name {
                "script" | "style" | "noscript" | "template" | "iframe" | "noframes" => {
                    self.skipped = Some(name.to_owned());
                    return match name {
                        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                        "template" | "noscript" => TokenSinkResult::Continue,
                        _ => TokenSinkResult::RawData(RawKind::Rawtext),
                    };
                }
                "title" => {
                    self.title = Some(String::new());
                    return TokenSinkResult::RawData(RawKind::Rcdata);
                }
                "textarea" => return TokenSinkResult::RawData(RawKind::Rcdata),
                _ => {}
            }
        }
        match name {
            "title" => self.end_title(),
            "meta" => self.meta(tag),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_heading();
                if is_start {
                    self.heading = Some(String::new());
                }
            }
            "br" => self.writer.line(),
            "td" | "th" if is_start => self.writer.cell(),
            "tr" | "li" | "dt" | "dd" | "option" => self.writer.line(),
            "pre" => {
                self.writer.paragraph();
                self.preformatted =
                    if is_start { self.preformatted + 1 } else { self.preformatted.saturating_sub(1) };
            }
            "p" | "div" | "section" | "article" | "header" | "footer" | "nav" | "aside" | "main"
            | "table" | "ul" | "ol" | "dl" | "blockquote" | "figure" | "figcaption" | "form" | "fieldset"
            | "hr" | "body" | "address" | "details" | "summary" | "caption" => self.writer.paragraph(),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if let Some(open) = self.title.as_mut().or(self.heading.as_mut()) {
            open.push_str(text);
        } else if self.preformatted > 0 {
            self.writer.push(text);
        } else {
            self.writer.push_collapsed(text);
        }
    }

    fn meta(&mut self, tag: &Tag) {
        let value = |name: &str| {
            let mut attributes = tag.attrs.iter();
            attributes
                .find(|attribute| &*attribute.name.local == name)
                .map(|attribute| attribute.value.to_string())
        };
        if value("name").is_some_and(|name| name.eq_ignore_ascii_case("author")) {
            self.shown.author =
                value("content").map(|author| author.trim().to_owned()).filter(|author| !author.is_empty());
        }
    }

    fn end_title(&mut self) {
        if let Some(title) = self.title.take().map(|title| words(&title)).filter(|title| !title.is_empty()) {
            self.shown.title.get_or_insert(title);
        }
    }

    fn end_heading(&mut self) {
        let Some(heading) =
            self.heading.take().map(|heading| words(&heading)).filter(|heading| !heading.is_empty())
        else {
            return;
        };
        self.writer.paragraph();
        if self.chapters {
            self.writer.begin(Some(heading.clone()));
        }
        self.writer.push(&heading);
        self.writer.paragraph();
        self.shown.first_heading.get_or_insert(heading);
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
