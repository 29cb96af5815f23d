//! Owns [`Note`]: everything one file says, with the byte span of each thing said.
//!
//! Nothing here reads a file. Parsing never fails: what cannot be understood becomes a [`Problem`].

use std::borrow::Cow;

use serde::Serialize;

use crate::text::frontmatter::{self, Frontmatter};
use crate::text::link::Link;
use crate::text::subpath::Parts;
use crate::text::unlinked_reference;
use crate::text::unlinked_reference::Mention;
use crate::text::{Span, markdown};

/// Everything that one Markdown note or canvas says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Note {
    /// The YAML block at the top, where there is one.
    pub frontmatter: Option<Frontmatter>,
    /// Offset of the first byte behind the frontmatter (and behind a byte order mark).
    pub body_start: usize,
    /// Headings of the note itself, in order; those inside quotes, callouts and lists are not among them.
    pub headings: Vec<Heading>,
    /// Blocks that carry an id, in order of the ids.
    pub blocks: Vec<Block>,
    /// List items with a checkbox.
    pub tasks: Vec<Task>,
    /// Every occurrence of a tag: those of the frontmatter first, then the body's, each in order.
    pub tags: Vec<Tag>,
    /// Every reference: those of the frontmatter first, then the body's, each in order.
    pub links: Vec<Link>,
    /// What names a file and is no link, in order.
    pub mentions: Vec<Mention>,
    /// Footnote definitions.
    pub footnotes: Vec<Footnote>,
    /// The searchable text of the body, in order, without markup.
    pub pieces: Vec<Piece>,
    /// What we could not read, or would not touch.
    pub problems: Vec<Problem>,
}

/// A heading, ATX or setext.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// The raw source between the opening and closing signs, trimmed (spec/obsidian.md 3.6).
    pub text: String,
    /// Line of its first byte, counted from 1.
    pub line: usize,
    /// The whole heading without its line end.
    pub span: Span,
}

/// What kind of block an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockKind {
    /// A paragraph.
    Paragraph,
    /// One list item.
    ListItem,
    /// A whole list.
    List,
    /// A block quote.
    Quote,
    /// A callout.
    Callout,
    /// A table.
    Table,
    /// A code block.
    Code,
    /// Display math.
    Math,
    /// A heading line that carries an id.
    Heading,
    /// Anything else.
    Other,
}

/// A block with an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The id as written, without `^`.
    pub id: String,
    /// What it names.
    pub kind: BlockKind,
    /// The block's bytes, trailing line end excluded.
    pub span: Span,
    /// The id's bytes, without `^`.
    pub id_span: Span,
    /// First and last line of the block, counted from 1.
    pub lines: (usize, usize),
}

/// A list item with a checkbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// The character between the brackets; a space means open.
    pub status: char,
    /// The item's own text on its first line, behind the checkbox, trimmed.
    pub text: String,
    /// Line of the item, counted from 1.
    pub line: usize,
    /// Line of the item that this one is nested in, counted from 1.
    pub parent: Option<usize>,
    /// The item from its marker to the end of its first line.
    pub span: Span,
}

/// One occurrence of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tag {
    /// The tag as written, without `#` and without a trailing slash.
    pub name: String,
    /// The bytes that carry it: `#` included in a body, as written in frontmatter.
    pub span: Span,
    /// Whether it stands in the frontmatter.
    pub in_frontmatter: bool,
}

/// A footnote's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Footnote {
    /// The id as written, without `[^` and `]`.
    pub id: String,
    /// The definition's bytes.
    pub span: Span,
}

/// What a piece of searchable text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PieceKind {
    /// Running text, list items, quotes, table cells, labels, footnotes, displayed aliases.
    Prose,
    /// The text of a heading of the note itself.
    Heading,
    /// Code spans and code blocks.
    Code,
    /// Math.
    Math,
    /// Addresses of external links.
    Url,
    /// Text inside `%% … %%`: dropped from search unless asked for.
    Comment,
}

/// A run of searchable bytes without markup between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Its bytes in the file. Line ends, quote markers and list markers lie between pieces, never inside prose.
    pub span: Span,
    /// What stands between this piece and the one before it.
    pub joint: Joint,
}

/// What separates a piece from the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Joint {
    /// Nothing but markup: the two are one word where no white space stands at the seam.
    None,
    /// A line end inside one block.
    Line,
    /// The end of a block, list item or cell.
    Block,
}

/// Something in a file that could not be read as meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable code, such as `invalid-utf8` or `yaml-unparsable`.
    pub code: &'static str,
    /// One sentence for a person.
    pub message: String,
    /// Where, as far as known.
    pub span: Option<Span>,
}

/// A file's bytes decoded so that every offset in the text is an offset in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text; each byte that is not UTF-8 became one U+001A, so that lengths agree.
    pub text: Cow<'a, str>,
    /// What was wrong with the bytes, if anything.
    pub problem: Option<Problem>,
}

impl Note {
    /// Reads a Markdown note: its frontmatter, then its body (spec/obsidian.md 2, 3.6, 3.7, 5–7).
    pub fn parse(text: &str) -> Self {
        let (frontmatter, body_start) = frontmatter::read(text);
        let lines = Lines::new(text);
        let mut note = Self { body_start, ..Self::default() };
        if let Some(frontmatter) = &frontmatter {
            note.tags.clone_from(&frontmatter.tags);
            note.links.clone_from(&frontmatter.links);
            for link in &mut note.links {
                link.line = lines.of(link.span.start);
            }
            note.problems.extend(frontmatter.error.as_ref().map(|reason| Problem {
                code: "yaml-unparsable",
                message: reason.clone(),
                span: Some(frontmatter.span),
            }));
        }
        note.frontmatter = frontmatter;
        markdown::read(text, body_start, &lines, &mut note);
        note.mentions = unlinked_reference::in_note(text, &note, &lines);
        note
    }

    /// Gives where each section begins: at every heading, and before the first where something stands there
    /// (spec/obsidian.md 8.2). Each ends where the next begins. `text` is what the note was parsed from.
    pub fn sections(&self, text: &str) -> Vec<usize> {
        let headings = self.headings.iter().map(|heading| heading.span.start);
        let is_preceded = headings.clone().next().is_none_or(|first| {
            let before = Span::new(self.body_start, first);
            !before.of(text).trim().is_empty()
        });
        is_preceded.then_some(self.body_start).into_iter().chain(headings).collect()
    }

    /// Finds what a subpath names: a block (`#^id`), a footnote (`#[^id]`) or a heading, each segment below the one
    /// before (spec/obsidian.md 3.6, 3.7). [`Parts`] answers for many links at once.
    pub fn subpath(&self, subpath: &str) -> Option<Target> {
        Parts::new(self).find(subpath)
    }

    /// Gives the section of a heading: from the heading to the next one of the same or a higher level.
    pub fn section_span(&self, text: &str, heading: usize) -> Option<Span> {
        let own = self.headings.get(heading)?;
        let next = self.headings.iter().skip(heading + 1).find(|other| other.level <= own.level);
        Some(Span::new(own.span.start, next.map_or(text.len(), |next| next.span.start)))
    }
}

/// What a subpath names in a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The heading of this index.
    Heading(usize),
    /// The block of this index.
    Block(usize),
    /// The footnote of this index.
    Footnote(usize),
}

/// Gives the form that headings and subpath segments are compared by (spec/obsidian.md 3.6, *hkey*).
pub fn heading_key(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    let kept = |c: char| !c.is_whitespace() && (!c.is_ascii_punctuation() || matches!(c, '\'' | '-' | '_'));
    for word in text.split(|c| !kept(c)).filter(|word| !word.is_empty()) {
        if !key.is_empty() {
            key.push(' ');
        }
        key.push_str(word);
    }
    key.to_lowercase()
}

/// Decodes a file's bytes so that every offset in the text is an offset in the file (spec/obsidian.md 1.8).
///
/// UTF-16 gives an empty text and the problem `utf-16`; bytes that are no UTF-8 give `invalid-utf8`.
pub fn decode(bytes: &[u8]) -> Decoded<'_> {
    let problem = |code, message: &str, span| Some(Problem { code, message: message.to_owned(), span });
    if is_utf16(bytes) {
        let message = "the file is UTF-16, which is not read; save it as UTF-8";
        return Decoded { text: Cow::Borrowed(""), problem: problem("utf-16", message, None) };
    }
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => {
            return Decoded { text: Cow::Borrowed(text), problem: None };
        }
        Err(error) => error,
    };
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(std::iter::repeat_n('\u{1A}', chunk.invalid().len()));
    }
    let at = error.valid_up_to();
    let span = Some(Span::new(at, at + error.error_len().unwrap_or(bytes.len() - at)));
    let message = "the file holds bytes that are no UTF-8; it is searched but never rewritten";
    Decoded { text: Cow::Owned(text), problem: problem("invalid-utf8", message, span) }
}

/// Decodes like [`decode`], into a text of its own: bytes that are given away become the text as they are.
pub fn decode_whole(bytes: Cow<'_, [u8]>) -> (String, Option<Problem>) {
    let bytes = match bytes {
        Cow::Owned(bytes) if !is_utf16(&bytes) => match String::from_utf8(bytes) {
            Ok(text) => return (text, None),
            Err(error) => Cow::Owned(error.into_bytes()),
        },
        bytes => bytes,
    };
    let Decoded { text, problem } = decode(&bytes);
    (text.into_owned(), problem)
}

/// Recognises UTF-16 by its byte order mark, or by NUL in one half of the byte pairs only.
fn is_utf16(bytes: &[u8]) -> bool {
    let sample = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
    let (mut nuls, mut pairs) = ([0usize; 2], 0usize);
    for pair in sample.chunks_exact(2) {
        pairs += 1;
        for (count, byte) in nuls.iter_mut().zip(pair) {
            *count += usize::from(*byte == 0);
        }
    }
    let [even, odd] = nuls;
    let (few, many) = (even.min(odd), even.max(odd));
    bytes.starts_with(&[0xFF, 0xFE])
        || bytes.starts_with(&[0xFE, 0xFF])
        || pairs >= 4 && few == 0 && many * 2 > pairs
}

/// The starts of a text's lines, so that offsets turn into line numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// Offset behind each line end.
    starts: Vec<usize>,
}

impl Lines {
    /// Finds the lines of `text`; a line ends with a line feed.
    pub fn new(text: &str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        // Counting first is far faster than growing.
        let mut starts = Vec::with_capacity(ends.clone().count());
        starts.extend(ends.map(|at| at + 1));
        Self { starts }
    }

    /// Lists the lines of a text of `len` bytes, line ends included.
    pub fn spans(&self, len: usize) -> impl Iterator<Item = Span> + '_ {
        let starts = std::iter::once(0).chain(self.starts.iter().copied());
        starts.zip(self.starts.iter().copied().chain([len])).map(|(start, end)| Span::new(start, end))
    }

    /// Gives the line of `offset`, counted from 1.
    pub fn of(&self, offset: usize) -> usize {
        1 + self.starts.partition_point(|&start| start <= offset)
    }

    /// Gives the offset of the first byte of a line, counted from 1; behind the last line, one past every offset.
    pub fn start(&self, line: usize) -> usize {
        match line.checked_sub(2) {
            None => 0,
            Some(before) => self.starts.get(before).copied().unwrap_or(usize::MAX),
        }
    }
}
