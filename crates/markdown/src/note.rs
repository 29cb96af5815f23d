//! The parsed form of a Markdown note or canvas: [`Note`] and its parts, each with its byte span.
//!
//! Data types only. `markdown/parse` and `markdown/canvas` fill them.

use serde::Serialize;

use crate::frontmatter::Frontmatter;
use crate::link::Link;
use crate::path::clean;
use crate::span::Span;
use crate::tag::Tag;
use crate::unlinked_reference::UnlinkedReference;

/// A parsed Markdown note or canvas.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Note {
    /// The YAML block at the top, if there is one.
    pub frontmatter: Option<Frontmatter>,
    /// Offset of the first byte after the frontmatter (and after a byte order mark).
    pub body_start: usize,
    /// The headings in order, except those inside quotes, callouts and lists.
    pub headings: Vec<Heading>,
    /// The blocks with an id, in order of the ids.
    pub blocks: Vec<Block>,
    /// The list items with a checkbox.
    pub tasks: Vec<Task>,
    /// Every occurrence of a tag: those of the frontmatter first, then the body's, each in order.
    pub tags: Vec<Tag>,
    /// Every reference: those of the frontmatter first, then the body's, each in order.
    pub links: Vec<Link>,
    /// The unlinked references, in order.
    pub mentions: Vec<UnlinkedReference>,
    /// Footnote definitions.
    pub footnotes: Vec<Footnote>,
    /// The searchable text of the body, in order, without markup.
    pub pieces: Vec<Piece>,
    /// The comments `%% … %%` of the body, with their signs, in order.
    pub comments: Vec<Span>,
    /// The problems of the file.
    pub problems: Vec<ParseProblem>,
}

/// A heading, ATX or setext.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heading {
    /// The level, 1 to 6; 0 is a place of an attachment.
    pub level: u8,
    /// The raw source between the opening and closing signs, trimmed (docs/spec/obsidian.md 3.6).
    pub text: String,
    /// The line of the first byte, counted from 1.
    pub line: usize,
    /// The whole heading without its line end.
    pub span: Span,
}

/// The kind of a block with an id.
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
    /// A heading with an id.
    Heading,
    /// Another kind of block.
    Other,
}

/// A block with an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The id as written, without `^`.
    pub id: String,
    /// The kind of the block.
    pub kind: BlockKind,
    /// The block's bytes, trailing line end excluded.
    pub span: Span,
    /// The id's bytes, without `^`.
    pub id_span: Span,
    /// The first and last line of the block, counted from 1.
    pub lines: (usize, usize),
}

/// A list item with a checkbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// The character between the brackets; a space means open.
    pub status: char,
    /// The item's own text on its first line, after the checkbox, trimmed.
    pub text: String,
    /// The line of the item, counted from 1.
    pub line: usize,
    /// The line of the item that this one is nested in, counted from 1.
    pub parent: Option<usize>,
    /// The item from its marker to the end of its first line.
    pub span: Span,
}

/// A footnote's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Footnote {
    /// The id as written, without `[^` and `]`.
    pub id: String,
    /// The definition's bytes.
    pub span: Span,
}

/// The kind of a piece of searchable text.
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
    /// Text inside `%% … %%`, which is searched only on request.
    Comment,
}

/// A run of searchable bytes without markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The kind of the piece.
    pub kind: PieceKind,
    /// Its bytes in the file. Line ends, quote markers and list markers lie between pieces, never inside prose.
    pub span: Span,
    /// The separator between this piece and the one before it.
    pub separator: Separator,
}

/// The separator between two pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Separator {
    /// Only markup: the pieces form one word if there is no white space between them.
    None,
    /// A line end inside one block.
    Line,
    /// The end of a block, list item or cell.
    Block,
}

/// A problem in a file, such as invalid YAML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParseProblem {
    /// A stable code, such as `invalid-utf8` or `yaml-unparsable`.
    pub code: &'static str,
    /// The message for the user.
    pub message: String,
    /// The bytes that it refers to, if known.
    pub span: Option<Span>,
}

impl Note {
    /// Returns the offset of each section: at every heading, and before the first one if there is text
    /// (docs/spec/obsidian.md 8.2). Each section ends where the next begins. `text` is the text of the note.
    pub fn sections(&self, text: &str) -> Vec<usize> {
        let headings = self.headings.iter().map(|heading| heading.span.start);
        let is_preceded = headings.clone().next().is_none_or(|first| {
            let before = Span::new(self.body_start, first);
            !before.of(text).trim().is_empty()
        });
        is_preceded.then_some(self.body_start).into_iter().chain(headings).collect()
    }

    /// Returns the section of a heading: from the heading to the next one of the same or a higher level.
    pub fn section_span(&self, text: &str, heading: usize) -> Option<Span> {
        let own = self.headings.get(heading)?;
        let next = self.headings.iter().skip(heading + 1).find(|other| other.level <= own.level);
        Some(Span::new(own.span.start, next.map_or(text.len(), |next| next.span.start)))
    }
}

/// Returns the form that headings and subpath segments are compared by (docs/spec/obsidian.md 3.6, *hkey*).
pub fn heading_key(text: &str) -> String {
    // Two Unicode forms of one text look the same, and programs and systems write either.
    let text = clean(text);
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
