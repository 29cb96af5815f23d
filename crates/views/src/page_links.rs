//! Where the links of a rendered note lead on the page, and what its embeds show.

use std::cell::Cell;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sidenote_base::error::Result;
use sidenote_catalog::FileKind;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::canvas;
use sidenote_markdown::commonmark::{
    EmbedHtml, LinkPages, LinkTarget, escape_attribute, escape_text, heading_id, html,
};
use sidenote_markdown::link::Link;
use sidenote_markdown::media_type::media_type;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;
use sidenote_markdown::subpath::SubpathTarget;
use sidenote_open_vault::Core;
use sidenote_query::read::Reads;

/// The most notes within each other.
const DEEPEST: usize = 3;
/// The most bytes of the HTML of all notes that one page embeds.
const MOST_EMBEDDED: usize = 2_000_000;
/// The most bytes of notes that are read for the embeds of one page: what is parsed in about a second.
const MOST_READ: u64 = 64_000_000;
/// The schemes of links that a page may have.
const SCHEMES: [&str; 4] = ["http", "https", "mailto", "obsidian"];
/// The characters that stand for themselves in a part of an address.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The same, with the slash between the parts of a path.
const PATH: &AsciiSet = &PART.remove(b'/');

/// Returns the address of a file of the vault on the page.
pub fn note_address(path: &str) -> String {
    format!("/note/{}", utf8_percent_encode(path, PATH))
}

/// Returns the address of the bytes of a file.
pub(crate) fn raw_address(path: &str) -> String {
    format!("/api/v1/raw/{}", utf8_percent_encode(path, PATH))
}

/// Returns the address of a search.
pub(crate) fn search_address(query: &str) -> String {
    format!("/search?q={}", utf8_percent_encode(query, PART))
}

/// Returns an address of the web, if it has one of the schemes that a page may link to.
pub(crate) fn web_address(url: &str) -> Option<String> {
    let (scheme, _) = url.split_once(':')?;
    let is_known = SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (is_known && !url.contains(|c: char| c.is_control())).then(|| url.to_owned())
}

/// The links of one note that is being rendered.
pub(crate) struct PageLinks<'a> {
    core: &'a Core,
    path: NotePath,
    /// The target of each link.
    targets: Vec<Option<String>>,
    /// The notes around this one, the page's own first.
    around: Vec<NotePath>,
    /// What the embeds of the page may still take.
    room: &'a EmbedRoom,
}

/// What the embeds of one page may still take.
#[derive(Debug)]
pub(crate) struct EmbedRoom {
    /// The bytes of HTML.
    html: Cell<usize>,
    /// The bytes of notes that are read for it: an embed of a short part reads the whole note.
    read: Cell<u64>,
}

impl Default for EmbedRoom {
    fn default() -> Self {
        Self { html: Cell::new(MOST_EMBEDDED), read: Cell::new(MOST_READ) }
    }
}

impl EmbedRoom {
    /// Takes the bytes of a note that is to be read. Returns `false` if there is no room for it.
    fn takes_note(&self, bytes: u64) -> bool {
        let left = self.read.get().checked_sub(bytes).filter(|_| self.html.get() > 0);
        left.inspect(|left| self.read.set(*left)).is_some()
    }

    /// Takes the bytes of a rendered embed. Returns `false`, and takes all that is left, if there is no room for it.
    fn takes_html(&self, bytes: usize) -> bool {
        let left = self.html.get().checked_sub(bytes);
        self.html.set(left.unwrap_or(0));
        left.is_some()
    }
}

impl<'a> PageLinks<'a> {
    /// Prepares the links of a note, or of a note that others embed, from the files that they lead to.
    pub(crate) fn of(
        core: &'a Core,
        path: NotePath,
        targets: Vec<Option<String>>,
        around: Vec<NotePath>,
        room: &'a EmbedRoom,
    ) -> Self {
        Self { core, path, targets, around, room }
    }

    /// Returns the path that a link leads to.
    fn path_of(&self, number: usize, link: &Link) -> Option<String> {
        if link.path.is_empty() {
            return Some(self.path.as_str().to_owned());
        }
        self.targets.get(number).cloned().flatten()
    }

    /// Shows a note, or the part of it that the link names.
    fn embedded_note(&self, path: &str, link: &Link) -> Result<Option<String>> {
        let row = self.core.index.catalog().row_at(path)?;
        let Some(row) = row.filter(|row| row.kind != FileKind::Attachment) else { return Ok(None) };
        let is_too_deep = self.around.len() >= DEEPEST || self.around.contains(&row.path);
        if is_too_deep || !self.room.takes_note(row.size) {
            return Ok(None);
        }
        let parsed = ParsedNote::new(&row.path, self.core.read_bytes(&row.path)?);
        let part = match link.looked_up_subpath() {
            subpath if subpath.is_empty() => None,
            subpath => match part_of(&parsed, &subpath) {
                Some(part) => Some(part),
                None => return Ok(None),
            },
        };
        let mut around = self.around.clone();
        around.push(row.path.clone());
        let targets = Reads::of(self.core).resolved_links(&row, &parsed.note)?;
        let inner = PageLinks::of(self.core, row.path.clone(), targets, around, self.room);
        let shown = if parsed.is_canvas() {
            canvas::texts(&parsed.text).iter().map(|text| format!("<p>{}</p>\n", escape_text(text))).collect()
        } else {
            html(&parsed.text, &parsed.note, part, &inner)
        };
        if !self.room.takes_html(shown.len()) {
            return Ok(None);
        }
        let (address, path) = (escape_attribute(&self.address(&row.path, link)), escape_attribute(path));
        let title = escape_text(&parsed.title);
        Ok(Some(format!(
            "<div class=\"embed\" data-path=\"{path}\"><a class=\"embed-title internal\" href=\"{address}\" data-path=\"{path}\">{title}</a>\n{shown}</div>\n"
        )))
    }

    /// Returns the address that a link leads to, with the part of the note.
    fn address(&self, path: &NotePath, link: &Link) -> String {
        let subpath = link.looked_up_subpath();
        let last = subpath.rsplit('#').next().unwrap_or("").trim();
        let anchor = match last {
            "" => String::new(),
            last if last.starts_with('^') => format!("#{last}"),
            // A footnote has another number on the page.
            last if last.starts_with("[^") => String::new(),
            last => format!("#{}", heading_id(last)),
        };
        format!("{}{anchor}", note_address(path.as_str()))
    }

    /// Shows a file that is not a note.
    fn embedded_file(&self, path: &str, link: &Link) -> EmbedHtml {
        let kind = media_type(path);
        let (raw, shown) = (escape_attribute(&raw_address(path)), path.rsplit('/').next().unwrap_or(path));
        let name = escape_attribute(link.display.as_deref().filter(|_| link.size.is_none()).unwrap_or(shown));
        let size = |which: &str, number: Option<u32>| {
            number.map_or_else(String::new, |number| format!(" {which}=\"{number}\""))
        };
        let (width, height) = link.size.map_or((None, None), |(width, height)| (Some(width), height));
        let sizes = format!("{}{}", size("width", width), size("height", height));
        let (html, is_block) = match kind.split('/').next().unwrap_or("") {
            "image" => (format!("<img src=\"{raw}\" alt=\"{name}\"{sizes} loading=\"lazy\">"), false),
            "audio" => (format!("<audio controls preload=\"metadata\" src=\"{raw}\"></audio>"), false),
            "video" => (format!("<video controls preload=\"metadata\" src=\"{raw}\"{sizes}></video>"), false),
            _ if kind == "application/pdf" => {
                (format!("<iframe class=\"pdf\" src=\"{raw}\" title=\"{name}\"></iframe>"), true)
            }
            _ => {
                let (address, path) = (escape_attribute(&note_address(path)), escape_attribute(path));
                let text = escape_text(shown);
                (
                    format!(
                        "<a class=\"internal attachment\" href=\"{address}\" data-path=\"{path}\">{text}</a>"
                    ),
                    false,
                )
            }
        };
        EmbedHtml { html, is_block }
    }
}

impl LinkPages for PageLinks<'_> {
    fn target(&self, number: usize, link: &Link) -> LinkTarget {
        match self.path_of(number, link).and_then(|path| NotePath::from_disk(&path)) {
            Some(path) => {
                LinkTarget::File { address: self.address(&path, link), path: path.as_str().to_owned() }
            }
            None => LinkTarget::Nowhere,
        }
    }

    fn embed(&self, number: usize, link: &Link) -> EmbedHtml {
        let shown = escape_text(link.display.as_deref().unwrap_or(&link.path));
        let inline = |html: String| EmbedHtml { html, is_block: false };
        if let Some(address) = web_address(&link.path).filter(|_| link.is_external()) {
            let address = escape_attribute(&address);
            return inline(format!(
                "<a class=\"external remote-image\" href=\"{address}\" rel=\"noopener noreferrer\" target=\"_blank\">{shown}</a>"
            ));
        }
        let Some(path) = self.path_of(number, link) else {
            let written = escape_attribute(&format!("{}{}", link.path, link.subpath));
            return inline(format!("<a class=\"internal unresolved\" data-link=\"{written}\">{shown}</a>"));
        };
        let is_text = NotePath::from_disk(&path).is_some_and(|path| path.is_note() || path.is_canvas());
        if !is_text {
            return self.embedded_file(&path, link);
        }
        match self.embedded_note(&path, link) {
            Ok(Some(html)) => EmbedHtml { html, is_block: true },
            embedded => {
                if let Err(error) = embedded {
                    self.core.warn_unless_gone(&error);
                }
                let address =
                    NotePath::from_disk(&path).map(|path| self.address(&path, link)).unwrap_or_default();
                let (address, path) = (escape_attribute(&address), escape_attribute(&path));
                inline(format!("<a class=\"internal\" href=\"{address}\" data-path=\"{path}\">{shown}</a>"))
            }
        }
    }

    fn tag_address(&self, tag: &str) -> String {
        search_address(&format!("tag:#{tag}"))
    }

    fn web_address(&self, url: &str) -> Option<String> {
        web_address(url)
    }

    fn has_ids(&self) -> bool {
        self.around.len() == 1
    }
}

/// Finds the part of a note that a subpath names.
fn part_of(parsed: &ParsedNote, subpath: &str) -> Option<Span> {
    match parsed.note.subpath(subpath)? {
        SubpathTarget::Heading(at) => parsed.note.section_span(&parsed.text, at),
        SubpathTarget::Block(at) => parsed.note.blocks.get(at).map(|block| block.span),
        SubpathTarget::Footnote(at) => parsed.note.footnotes.get(at).map(|footnote| footnote.span),
    }
}
