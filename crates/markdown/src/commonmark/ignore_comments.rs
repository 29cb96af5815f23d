//! HTML comments that turn problem codes off: `<!-- sidenote-ignore CODE… -->` for the next block, and
//! `<!-- sidenote-ignore-file CODE… -->` for the whole note.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::nesting::trimmed;
use super::parser_input::parser_input;
use super::{OPTIONS, from_marker, shifted};
use crate::line::Lines;
use crate::span::Span;

/// The word that such a comment begins with.
const WORD: &str = "sidenote-ignore";
/// What follows the word in a comment for the whole note.
const FILE: &str = "-file";

/// A comment that turns problem codes off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoreComment {
    /// The bytes of the comment.
    pub span: Span,
    /// The codes as written, each with its bytes.
    pub codes: Vec<(String, Span)>,
    /// Where the codes are turned off.
    pub range: IgnoreRange,
}

/// The part of a note in which codes are turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreRange {
    /// The whole note.
    File,
    /// The next block: from the end of the comment to the end of the block.
    Block(Span),
    /// Nothing, because no block follows in the same list item, quote or note.
    NoBlock,
    /// Nothing, because the comment is in the middle of a line.
    InLine,
}

/// Returns whether a text has the word that such a comment begins with.
pub fn has_ignore_comment(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), WORD.as_bytes()).is_some()
}

/// Finds the comments in a body that begins at `body_start`, in order. Comments in code are text.
///
/// The next block is a paragraph, heading, list, table, quote, code block or rule at the level of the comment. Other
/// comments of this kind, and link definitions, may precede it.
pub fn ignore_comments(text: &str, body_start: usize) -> Vec<IgnoreComment> {
    // Few notes have such a comment, and the others are not parsed again.
    if !has_ignore_comment(text.get(body_start..).unwrap_or("")) {
        return Vec::new();
    }
    let lines = Lines::new(text);
    let input = parser_input(text, body_start, &lines);
    let mut walk = CommentWalk { text, found: Vec::new(), waiting: Vec::new(), open: None, depth: 0 };
    for (event, range) in Parser::new_ext(&input.body, OPTIONS).into_offset_iter() {
        let span = from_marker(text, &event, shifted(range, body_start));
        walk.event(&event, span);
    }
    walk.leave(text.len());
    walk.found
}

/// A block without events of its own: the text of an item of a tight list.
struct ImplicitBlock {
    /// The comments before it, as indexes of the found ones.
    comments: Vec<usize>,
    depth: usize,
}

struct CommentWalk<'t> {
    text: &'t str,
    found: Vec<IgnoreComment>,
    /// The comments whose block has not begun yet: their indexes in `found`, and their depths.
    waiting: Vec<(usize, usize)>,
    open: Option<ImplicitBlock>,
    /// The number of open blocks.
    depth: usize,
}

impl CommentWalk<'_> {
    fn event(&mut self, event: &Event<'_>, span: Span) {
        match event {
            Event::Start(Tag::HtmlBlock) => {
                self.close_implicit(span.start);
                let comments = comments_in(self.text, span, IgnoreRange::NoBlock);
                if comments.is_empty() {
                    self.assign(span);
                }
                for comment in comments {
                    if comment.range == IgnoreRange::NoBlock {
                        self.waiting.push((self.found.len(), self.depth));
                    }
                    self.found.push(comment);
                }
                self.depth += 1;
            }
            Event::Start(tag) if is_block(tag) => {
                self.close_implicit(span.start);
                self.assign(span);
                self.depth += 1;
            }
            Event::End(end) if is_end_of_block(*end) => {
                self.depth = self.depth.saturating_sub(1);
                self.leave(span.end);
            }
            Event::Rule => {
                self.close_implicit(span.start);
                self.assign(span);
            }
            Event::Html(_) | Event::End(_) => {}
            inline => {
                self.open_implicit();
                if matches!(inline, Event::InlineHtml(_)) {
                    self.found.extend(comments_in(self.text, span, IgnoreRange::InLine));
                }
            }
        }
    }

    /// Gives the waiting comments of the current depth the block that begins.
    fn assign(&mut self, block: Span) {
        let depth = self.depth;
        let end = trimmed(self.text, block).end;
        for (at, _) in self.waiting.extract_if(.., |(_, waiting)| *waiting == depth) {
            if let Some(comment) = self.found.get_mut(at) {
                comment.range = IgnoreRange::Block(Span::new(comment.span.end, end));
            }
        }
    }

    /// Begins a block without events of its own, if comments wait at the current depth.
    fn open_implicit(&mut self) {
        let depth = self.depth;
        let comments: Vec<usize> =
            self.waiting.extract_if(.., |(_, waiting)| *waiting == depth).map(|(at, _)| at).collect();
        if !comments.is_empty() {
            self.open = Some(ImplicitBlock { comments, depth });
        }
    }

    /// Ends the block without events of its own at `end`, if one is open at the current depth or below.
    fn close_implicit(&mut self, end: usize) {
        let depth = self.depth;
        for at in self.open.take_if(|open| open.depth >= depth).into_iter().flat_map(|open| open.comments) {
            if let Some(comment) = self.found.get_mut(at) {
                comment.range = IgnoreRange::Block(Span::new(comment.span.end, end.max(comment.span.end)));
            }
        }
    }

    /// Ends the containers deeper than the current depth, or the note, at `end`. A comment that still waits in them is
    /// followed by link definitions, which have no events, or by nothing.
    fn leave(&mut self, end: usize) {
        let depth = self.depth;
        let is_left = |inner: usize| inner > depth || depth == 0 && end == self.text.len();
        if self.open.as_ref().is_some_and(|open| is_left(open.depth)) {
            let open = self.depth;
            self.depth = 0;
            self.close_implicit(end);
            self.depth = open;
        }
        for (at, _) in self.waiting.extract_if(.., |(_, waiting)| is_left(*waiting)) {
            if let Some(comment) = self.found.get_mut(at)
                && !Span::new(comment.span.end, end).of(self.text).trim().is_empty()
            {
                comment.range = IgnoreRange::Block(Span::new(comment.span.end, end));
            }
        }
    }
}

/// Returns whether a tag opens a block that can follow a comment, or hold one.
fn is_block(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Paragraph
            | Tag::Heading { .. }
            | Tag::BlockQuote(_)
            | Tag::CodeBlock(_)
            | Tag::List(_)
            | Tag::Item
            | Tag::FootnoteDefinition(_)
            | Tag::Table(_)
    )
}

/// Returns whether a tag closes a block that [`is_block`] accepts, or an HTML block.
fn is_end_of_block(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::BlockQuote(_)
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::FootnoteDefinition
            | TagEnd::Table
    )
}

/// Reads the comments in a stretch of HTML. Those for the next block get `range`.
fn comments_in(text: &str, html: Span, range: IgnoreRange) -> Vec<IgnoreComment> {
    let mut found = Vec::new();
    let mut at = html.start;
    while let Some(start) = Span::new(at, html.end).of(text).find("<!--").map(|start| at + start) {
        let inner = start + "<!--".len();
        let Some(len) = Span::new(inner, html.end).of(text).find("-->") else { break };
        at = inner + len + "-->".len();
        let content = Span::new(inner, inner + len);
        let mut words = words_of(text, content);
        let word = words.next().map(|word| word.of(text));
        let range = match word.and_then(|word| word.strip_prefix(WORD)) {
            Some("") => range,
            Some(FILE) => IgnoreRange::File,
            _ => continue,
        };
        let codes = words.map(|word| (word.of(text).to_owned(), word)).collect();
        found.push(IgnoreComment { span: Span::new(start, at), codes, range });
    }
    found
}

/// Lists the words of a span, which white space and commas separate.
fn words_of(text: &str, span: Span) -> impl Iterator<Item = Span> + '_ {
    let is_separator = |c: char| c.is_whitespace() || c == ',';
    let mut at = span.start;
    std::iter::from_fn(move || {
        let rest = Span::new(at, span.end).of(text);
        let start = at + rest.find(|c| !is_separator(c))?;
        let rest = Span::new(start, span.end).of(text);
        at = start + rest.find(is_separator).unwrap_or(rest.len());
        Some(Span::new(start, at))
    })
}
