//! The block structure of a note's body: headings, tasks, block ids, footnotes and reference definitions
//! (docs/spec/obsidian.md 2.11, 3.6, 3.7, 7).
//!
//! The only user of pulldown-cmark. Leaf blocks are passed to the inline scanner.

mod anchors;
mod blocks;
mod footnotes;
mod html;
pub(super) mod html_attributes;
mod html_tags;
mod ignore_comments;
mod nesting;
mod parser_input;

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

pub use self::anchors::{PagePlace, page_places};
pub use self::blocks::blocks;
pub use self::html::{EmbedHtml, LinkPages, LinkTarget, heading_id, heading_ids, html};
pub use self::html_tags::{escape_attribute, escape_text};
pub use self::ignore_comments::{IgnoreComment, IgnoreRange, has_ignore_comment, ignore_comments};
use self::nesting::{LeafKind, trimmed};
use self::parser_input::{DEEPEST, parser_input};
use crate::commonmark::nesting::{ContainerKind, ContainerStack};
use crate::inline::{InlineRun, LeafBlock, MdKind, MdLink, RunKind, Scanner};
use crate::line::Lines;
use crate::link::LinkContext;
use crate::link_syntax;
use crate::link_syntax::Destination;
use crate::note::{Block, BlockKind, Footnote, Heading, Note, ParseProblem, PieceKind, Separator, Task};
use crate::span::Span;
use crate::whole_link::label_end;

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_FOOTNOTES).union(Options::ENABLE_STRIKETHROUGH);

/// What the parser finds in a body beside the parts of the note.
pub(super) struct BodyReading {
    /// The raw HTML, without scripts and style sheets, in order.
    pub(super) html: Vec<Span>,
    /// The work of the inline scanner.
    pub(super) work: usize,
}

/// Parses the body of a note from `body_start` on, and adds the result to `note`.
///
/// The parser's own extensions for math and tasks are not used, because it knows neither Obsidian's task statuses nor
/// that a wikilink takes precedence over math (docs/spec/obsidian.md 2.11).
pub(super) fn read(text: &str, body_start: usize, lines: &Lines, note: &mut Note) -> BodyReading {
    let input = parser_input(text, body_start, lines);
    if let Some(at) = input.too_deep {
        let span = Some(Span::new(at, at + 1));
        let message = format!(
            "lists, quotes and footnotes that begin beyond byte {DEEPEST} of a line are read as plain text"
        );
        note.problems.push(ParseProblem { code: "nested-too-deep", message, span });
    }
    let mut reader = BodyReader::new(text, body_start, lines, note);
    for (event, range) in Parser::new_ext(&input.body, OPTIONS).into_offset_iter() {
        let span = from_marker(text, &event, shifted(range, body_start));
        reader.event(&event, span);
    }
    reader.finish()
}

/// Returns the span of a block without line ends before it: below a tab, the parser lets a list and its first item begin
/// with the end of the line above.
fn from_marker(text: &str, event: &Event<'_>, span: Span) -> Span {
    let is_block = match event {
        Event::Start(tag) => matches!(
            tag,
            Tag::List(_)
                | Tag::Item
                | Tag::BlockQuote(_)
                | Tag::CodeBlock(_)
                | Tag::Paragraph
                | Tag::Heading { .. }
        ),
        Event::End(tag) => matches!(
            tag,
            TagEnd::List(_)
                | TagEnd::Item
                | TagEnd::BlockQuote(_)
                | TagEnd::CodeBlock
                | TagEnd::Paragraph
                | TagEnd::Heading(_)
        ),
        _ => false,
    };
    let raw = span.of(text);
    if !is_block || !raw.starts_with(['\n', '\r']) {
        return span;
    }
    Span::new(span.start + raw.len() - raw.trim_start_matches(['\n', '\r']).len(), span.end)
}

fn shifted(range: Range<usize>, by: usize) -> Span {
    Span::new(range.start + by, range.end + by)
}

/// The kind of raw block that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RawBlock {
    None,
    Code,
    Html(HtmlState),
}

/// The state of the HTML scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HtmlState {
    Text,
    /// In a tag, and in the value of an attribute in these quotes.
    Tag(Option<u8>),
    Comment,
    /// In a script or a style sheet, until its block ends.
    Hidden,
}

struct BodyReader<'a, 'n> {
    text: &'a str,
    lines: &'a Lines,
    note: &'n mut Note,
    scan: Scanner<'a>,
    nesting: ContainerStack<'a>,
    leaf: Option<(LeafKind, Span)>,
    raw: RawBlock,
    /// The indexes of the open Markdown links of the leaf.
    open: Vec<usize>,
    /// The end of the last inline event.
    inner: usize,
    /// The end of the last block, after which reference definitions can be.
    seen: usize,
    /// The raw HTML so far.
    raw_html: Vec<Span>,
}

impl<'a, 'n> BodyReader<'a, 'n> {
    fn new(text: &'a str, body_start: usize, lines: &'a Lines, note: &'n mut Note) -> Self {
        Self {
            text,
            lines,
            note,
            scan: Scanner::new(text),
            nesting: ContainerStack::new(text, body_start),
            leaf: None,
            raw: RawBlock::None,
            open: Vec::new(),
            inner: body_start,
            seen: body_start,
            raw_html: Vec::new(),
        }
    }

    fn event(&mut self, event: &Event<'_>, span: Span) {
        match event {
            Event::Start(tag) => self.start(tag, span),
            Event::End(end) => self.end(*end, span),
            Event::Text(_) if self.raw == RawBlock::Code => {
                let visible = Span::new(span.start.max(self.scan.opaque), span.end);
                self.scan.piece(PieceKind::Code, visible);
                self.scan.part();
            }
            Event::Html(_) => {
                if self.raw != RawBlock::Html(HtmlState::Hidden) {
                    self.add_raw_html(span);
                }
                self.html(span);
            }
            Event::Text(value) => {
                self.inline(span);
                let raw = span.of(self.text);
                if raw.starts_with('&') && raw.ends_with(';') && **value != *raw {
                    let word = value.chars().all(char::is_alphanumeric);
                    self.run(RunKind::Entity(word), span);
                } else if !span.is_empty() {
                    self.scan.add_text(span);
                }
            }
            Event::Code(_) => self.run(RunKind::Code, span),
            Event::InlineHtml(_) => {
                self.add_raw_html(span);
                self.run(RunKind::Html, span);
            }
            Event::FootnoteReference(_) => self.run(RunKind::Footref, span),
            Event::SoftBreak | Event::HardBreak => self.run(RunKind::Break, span),
            Event::Rule => {
                self.block(span);
                self.nesting.ended(BlockKind::Other, span);
                self.seen = span.end;
            }
            Event::InlineMath(_) | Event::DisplayMath(_) | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>, span: Span) {
        match tag {
            Tag::Paragraph => self.begin(LeafKind::Paragraph, span),
            Tag::Heading { level, .. } => self.begin(LeafKind::Heading(*level as u8), span),
            Tag::TableCell => self.begin(LeafKind::Cell, span),
            Tag::BlockQuote(_) => self.open_container(ContainerKind::Quote, span),
            Tag::List(_) => self.open_container(ContainerKind::List, span),
            Tag::Item => self.open_container(ContainerKind::Item, span),
            Tag::Table(_) => self.open_container(ContainerKind::Table, span),
            Tag::FootnoteDefinition(_) => {
                self.open_container(ContainerKind::Footnote, span);
                let id = span.of(self.text).strip_prefix("[^").and_then(|rest| rest.split_once("]:"));
                if let Some((id, _)) = id.filter(|_| span.start >= self.scan.opaque) {
                    let span = trimmed(self.text, span);
                    self.note.footnotes.push(Footnote { id: id.to_owned(), span });
                }
            }
            Tag::CodeBlock(kind) => {
                self.block(span);
                self.raw = RawBlock::Code;
                if let CodeBlockKind::Fenced(_) = kind {
                    self.language(span);
                }
            }
            Tag::HtmlBlock => {
                self.block(span);
                let opening = span.of(self.text).get(..7).unwrap_or("").to_ascii_lowercase();
                let hidden = opening.starts_with("<script") || opening.starts_with("<style");
                self.raw = RawBlock::Html(if hidden { HtmlState::Hidden } else { HtmlState::Text });
            }
            Tag::Link { link_type, .. } => self.link(*link_type, false, span),
            Tag::Image { link_type, .. } => self.link(*link_type, true, span),
            // The signs of emphasis are between the runs of text.
            _ => self.implicit_leaf(span),
        }
    }

    fn end(&mut self, tag: TagEnd, span: Span) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::TableCell => {
                self.close_leaf();
                self.seen = self.seen.max(span.end);
            }
            TagEnd::BlockQuote(_)
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::FootnoteDefinition
            | TagEnd::Table => {
                self.close_container(span);
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                self.raw = RawBlock::None;
                let code = tag == TagEnd::CodeBlock;
                self.nesting.ended(if code { BlockKind::Code } else { BlockKind::Other }, span);
                self.seen = span.end;
            }
            TagEnd::Link | TagEnd::Image => self.close_link(span),
            _ => self.inner = self.inner.max(span.end),
        }
    }

    /// Remembers raw HTML. A block comes in one piece a line.
    fn add_raw_html(&mut self, span: Span) {
        match self.raw_html.last_mut() {
            Some(last) if last.end == span.start => last.end = span.end,
            _ => self.raw_html.push(span),
        }
    }

    /// Adds the results to the note.
    fn finish(mut self) -> BodyReading {
        self.close_leaf();
        self.definitions(self.text.len());
        let work = self.scan.work();
        let Scanner { mut links, tags, pieces, comments, .. } = self.scan;
        if !links.is_sorted_by_key(|link| link.span.start) {
            links.sort_by_key(|link| link.span.start);
        }
        for link in &mut links {
            link.line = self.lines.of(link.span.start);
        }
        self.note.links.append(&mut links);
        self.note.tags.extend(tags);
        self.note.pieces = pieces;
        self.note.comments = comments;
        BodyReading { html: self.raw_html, work }
    }

    // Blocks.

    /// Ends the leaf before a block that starts at `span`, and reads the definitions between the two.
    fn block(&mut self, span: Span) {
        self.close_leaf();
        self.definitions(span.start);
        self.scan.separator = Separator::Block;
        self.nesting.begin(span.start, self.lines);
    }

    fn open_container(&mut self, holder: ContainerKind, span: Span) {
        self.block(span);
        self.nesting.push(holder, span);
    }

    fn close_container(&mut self, span: Span) {
        self.close_leaf();
        if self.nesting.innermost().holder != ContainerKind::Table {
            self.definitions(span.end);
        }
        self.seen = self.seen.max(span.end);
        self.nesting.pop(span);
    }

    /// Adds the language of a fenced code block as a piece of its code.
    fn language(&mut self, span: Span) {
        let line = span.of(self.text).lines().next().unwrap_or("");
        let info = line.trim_start_matches(['`', '~']).trim_start();
        let word = info.split_whitespace().next().unwrap_or("");
        let start = span.start + line.len() - info.len();
        if start >= self.scan.opaque {
            self.scan.piece(PieceKind::Code, Span::new(start, start + word.len()));
            self.scan.separator = Separator::Block;
        }
    }

    /// Adds the text between the tags of one line of an HTML block.
    fn html(&mut self, line: Span) {
        let RawBlock::Html(mut markup) = self.raw else { return };
        let bytes = self.text.as_bytes();
        let mut text_from = line.start.max(self.scan.opaque);
        let mut at = text_from;
        while at < line.end {
            let rest = bytes.get(at..line.end).unwrap_or_default();
            let (Some(&byte), next) = (rest.first(), rest.get(1).copied()) else {
                break;
            };
            let mut step = 1;
            match markup {
                HtmlState::Hidden => break,
                HtmlState::Text => {
                    let tag = next
                        .is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?'));
                    if byte == b'<' && tag {
                        self.words(Span::new(text_from, at));
                        let comment = rest.starts_with(b"<!--");
                        markup = if comment { HtmlState::Comment } else { HtmlState::Tag(None) };
                        step = if comment { 4 } else { 2 };
                    }
                }
                HtmlState::Comment if rest.starts_with(b"-->") => {
                    (markup, step) = (HtmlState::Text, 3);
                    text_from = at + step;
                }
                HtmlState::Tag(None) if byte == b'>' => {
                    markup = HtmlState::Text;
                    text_from = at + step;
                }
                HtmlState::Tag(None) if matches!(byte, b'"' | b'\'') => markup = HtmlState::Tag(Some(byte)),
                HtmlState::Tag(Some(quote)) if byte == quote => markup = HtmlState::Tag(None),
                HtmlState::Comment | HtmlState::Tag(_) => {}
            }
            at += step;
        }
        if markup == HtmlState::Text {
            self.words(Span::new(text_from, line.end));
        }
        self.raw = RawBlock::Html(markup);
    }

    /// Adds prose without the white space around it.
    fn words(&mut self, span: Span) {
        let raw = span.of(self.text);
        let start = span.start + raw.len() - raw.trim_start().len();
        self.scan.piece(PieceKind::Prose, Span::new(start, start + raw.trim().len()));
        self.scan.part();
    }

    // Leaf blocks.

    fn begin(&mut self, kind: LeafKind, span: Span) {
        if kind == LeafKind::Cell {
            self.close_leaf();
        } else {
            self.block(span);
        }
        self.leaf = Some((kind, span));
        self.inner = span.start;
    }

    /// Begins the text of an item that has no paragraph, unless a leaf is open.
    fn implicit_leaf(&mut self, span: Span) {
        let inline = !matches!(self.nesting.innermost().holder, ContainerKind::Table | ContainerKind::List);
        if self.leaf.is_none() && inline {
            self.begin(LeafKind::Paragraph, span);
        }
    }

    /// Prepares for an inline event.
    fn inline(&mut self, span: Span) {
        self.implicit_leaf(span);
        if let Some((_, leaf)) = &mut self.leaf {
            leaf.end = leaf.end.max(span.end);
        }
        self.inner = self.inner.max(span.end);
    }

    fn run(&mut self, kind: RunKind, span: Span) {
        self.inline(span);
        self.scan.runs.push(InlineRun { kind, span });
    }

    fn link(&mut self, link_type: LinkType, embed: bool, span: Span) {
        let number = self.scan.mds.len();
        self.implicit_leaf(span);
        self.scan.runs.push(InlineRun { kind: RunKind::Open(number), span });
        let kind = match link_type {
            LinkType::Inline => MdKind::Inline,
            LinkType::Autolink | LinkType::Email => MdKind::Auto,
            _ => MdKind::Reference,
        };
        let start = span.start + 1 + usize::from(embed);
        self.inner = start;
        // Each image repeats the labels of the images in it, so deeply nested images are not read completely.
        let dead = self.open.len() > 16;
        self.scan.mds.push(MdLink { span, label: Span::new(start, span.end - 1), kind, embed, dead });
        self.open.push(number);
    }

    fn close_link(&mut self, span: Span) {
        let inner = self.inner;
        self.inline(span);
        let Some(number) = self.open.pop() else { return };
        let Some(md) = self.scan.mds.get_mut(number) else {
            return;
        };
        if md.kind != MdKind::Auto {
            md.label.end = label_end(self.text, inner, span.end).unwrap_or(span.end);
        }
        let tail = Span::new(md.label.end, span.end);
        self.scan.runs.push(InlineRun { kind: RunKind::Close(number), span: tail });
    }

    /// Scans the leaf that ends here, and records its block.
    fn close_leaf(&mut self) {
        let Some((kind, span)) = self.leaf.take() else {
            return;
        };
        self.open.clear();
        self.seen = self.seen.max(span.end);
        let top = self.nesting.innermost().holder == ContainerKind::Note;
        let own_heading = top && matches!(kind, LeafKind::Heading(_));
        let from = self.after_marker(kind, span);
        let id = self.trailing_id(kind, span);
        let leaf = LeafBlock {
            end: span.end,
            from,
            kind: if own_heading { PieceKind::Heading } else { PieceKind::Prose },
            place: self.nesting.place(kind),
        };
        let visible = self.is_visible(span.start);
        let behind = self.scan.scan(&leaf);
        // A comment or block math that begins with a block and extends beyond it hides the block.
        let (comment, opaque) = (self.scan.comment, self.scan.opaque);
        let hidden = !visible || opaque >= span.end || comment.start == span.start && comment.end >= span.end;
        if !hidden
            && own_heading
            && let LeafKind::Heading(level) = kind
        {
            self.heading(level, span);
        }
        let id = id.filter(|id| !hidden && behind < id.start);
        // The block above an id on its own line remains the one that the id names. A table cell is not a block.
        if visible && kind != LeafKind::Cell && id.is_none_or(|id| id.start > span.start + 1) {
            let (kind, span) = self.block_of(own_heading, span);
            self.nesting.ended(kind, span);
        }
        if let Some(id) = id {
            self.name_block(kind, span, id);
        }
    }

    /// Determines the kind of the leaf that was just scanned. A paragraph that contains only math is a math block.
    fn block_of(&self, own_heading: bool, span: Span) -> (BlockKind, Span) {
        let len = trimmed(self.text, span).len();
        let math = self.scan.pieces.last().is_some_and(|last| {
            last.kind == PieceKind::Math && last.span.start <= span.start + 2 && last.span.len() + 4 >= len
        });
        match (own_heading, math) {
            (true, _) => (BlockKind::Heading, span),
            (_, true) => (BlockKind::Math, Span::new(span.start, span.end.max(self.scan.opaque))),
            _ => (BlockKind::Paragraph, span),
        }
    }

    fn heading(&mut self, level: u8, span: Span) {
        let raw = span.of(self.text).trim();
        let text = match raw.strip_prefix('#') {
            Some(_) => {
                let text = raw.trim_start_matches('#');
                let open = text.trim_end_matches('#');
                if open.is_empty() || open.ends_with([' ', '\t']) { open } else { text }
            }
            // The text above the underline of a setext heading.
            None => raw.rfind(['\n', '\r']).and_then(|end| raw.get(..end)).unwrap_or(raw),
        };
        if !text.trim().is_empty() {
            let line = self.lines.of(span.start);
            let text = text.trim().to_owned();
            self.note.headings.push(Heading { level, text, line, span: trimmed(self.text, span) });
        }
    }

    /// Parses the marker of a callout or a task at the start of a container, and returns the offset after it.
    fn after_marker(&mut self, kind: LeafKind, span: Span) -> usize {
        let inside = self.nesting.innermost_mut();
        if kind != LeafKind::Paragraph || inside.last.is_some() {
            return span.start;
        }
        let rest = self.text.get(span.start..).unwrap_or("");
        let line = rest.split(['\n', '\r']).next().unwrap_or("");
        let len = match inside.holder {
            ContainerKind::Quote => callout_marker(line).inspect(|_| inside.holder = ContainerKind::Callout),
            ContainerKind::Item => task_marker(line).map(|(status, len)| {
                self.task(span.start, line, status, len);
                len
            }),
            _ => None,
        };
        let Some(len) = len else { return span.start };
        let blanks = line.bytes().skip(len).take_while(|byte| matches!(byte, b' ' | b'\t'));
        span.start + len + blanks.count()
    }

    fn task(&mut self, at: usize, line: &str, status: char, marker: usize) {
        let mut items = self.nesting.item_markers();
        let (Some(start), parent) = (items.next(), items.next()) else {
            return;
        };
        let own_line = self.lines.of(start);
        if own_line == self.lines.of(at) && self.is_visible(at) {
            let text = line.get(marker..).unwrap_or("").trim().to_owned();
            let parent = parent.map(|parent| self.lines.of(parent));
            let span = Span::new(start, at + line.len());
            self.note.tasks.push(Task { status, text, line: own_line, parent, span });
        }
    }

    // Block ids (docs/spec/obsidian.md 3.7).

    /// Finds a block id at the end of the leaf, and removes it from the text of the leaf.
    fn trailing_id(&mut self, kind: LeafKind, leaf: Span) -> Option<Span> {
        let (&last, before) = self.scan.runs.split_last()?;
        let bytes = last.span.of(self.text).trim_end().as_bytes();
        let len =
            bytes.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
        let caret = bytes.len().checked_sub(len + 1)?;
        if last.kind != RunKind::Text || len == 0 || bytes.get(caret) != Some(&b'^') {
            return None;
        }
        let caret = last.span.start + caret;
        let spaced = self.text.get(..caret)?.ends_with(char::is_whitespace);
        let first = caret == last.span.start && before.last().is_none_or(|run| run.kind == RunKind::Break);
        let alone = kind != LeafKind::Cell || self.nesting.ends_table(caret, leaf);
        if !(spaced || first) || !alone {
            return None;
        }
        let end = last.span.start + self.text.get(last.span.start..caret)?.trim_end().len();
        if let Some(last) = self.scan.runs.last_mut() {
            last.span.end = end;
        }
        Some(Span::new(caret + 1, caret + 1 + len))
    }

    fn name_block(&mut self, kind: LeafKind, leaf: Span, id: Span) {
        let caret = id.start - 1;
        let (kind, span) = self.nesting.named_block(kind, leaf, caret);
        let span = trimmed(self.text, span);
        let last = span.end.saturating_sub(1).max(span.start);
        self.note.blocks.push(Block {
            id: id.of(self.text).to_owned(),
            kind,
            span,
            id_span: id,
            lines: (self.lines.of(span.start), self.lines.of(last)),
        });
    }

    // Reference definitions (docs/spec/obsidian.md 2.5).

    /// Parses the reference definitions between the last block and `end`, for which the parser gives no events.
    fn definitions(&mut self, end: usize) {
        let mut at = self.seen.max(self.scan.opaque);
        self.seen = self.seen.max(end);
        while at + 4 < end {
            let rest = self.text.as_bytes().get(at..end).unwrap_or_default();
            // Only white space and markers of containers can be next to definitions.
            let Some(skip) = rest.iter().position(|&byte| byte == b'[') else {
                return;
            };
            at += skip;
            at = match link_syntax::definition(self.text, Span::new(at, end)) {
                Some(found) => {
                    self.define(&found);
                    found.span.end
                }
                None => at + 1,
            };
        }
    }

    fn define(&mut self, found: &Destination) {
        match link_syntax::from_destination(self.text, found) {
            Some(mut link) => {
                link.in_comment = self.scan.in_comment(found.span.start);
                link.place = if link.in_comment {
                    LinkContext::Comment
                } else {
                    self.nesting.place(LeafKind::Paragraph)
                };
                self.scan.links.push(link);
            }
            None => {
                self.scan.separator = Separator::Block;
                self.scan.piece(PieceKind::Url, found.dest);
            }
        }
    }

    /// Returns whether a block that starts at `at` is outside of comments and block math.
    fn is_visible(&self, at: usize) -> bool {
        at >= self.scan.opaque && !self.scan.in_comment(at)
    }
}

/// Returns the length of a callout's marker, `[!type]` or `[!type|meta]` with an optional fold sign, at the start of
/// `line`.
fn callout_marker(line: &str) -> Option<usize> {
    let inner = line.strip_prefix("[!")?;
    let close = inner.find([']', '['])?;
    let fold = inner.get(close..)?.strip_prefix(']')?.starts_with(['+', '-']);
    let named = !inner.starts_with([']', '|']);
    named.then_some(close + 3 + usize::from(fold))
}

/// Parses a checkbox at the start of `line`, and returns its sign and the marker's length.
fn task_marker(line: &str) -> Option<(char, usize)> {
    let mut chars = line.strip_prefix('[')?.chars();
    let status = chars.next()?;
    let rest = chars.as_str().strip_prefix(']')?;
    rest.starts_with([' ', '\t']).then_some((status, line.len() - rest.len() + 1))
}
