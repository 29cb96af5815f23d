//! The stack of open container blocks, and the choice of the block that an id names (spec/obsidian.md 3.7).

use crate::text::line::Lines;
use crate::text::link::LinkContext;
use crate::text::note::BlockKind;
use crate::text::span::Span;

/// The kind of a container block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerKind {
    Note,
    Quote,
    Callout,
    List,
    Item,
    Footnote,
    Table,
}

impl ContainerKind {
    fn kind(self) -> BlockKind {
        match self {
            Self::Quote => BlockKind::Quote,
            Self::Callout => BlockKind::Callout,
            Self::List => BlockKind::List,
            Self::Item => BlockKind::ListItem,
            Self::Table => BlockKind::Table,
            Self::Note | Self::Footnote => BlockKind::Other,
        }
    }
}

/// The kind of a leaf block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafKind {
    /// A paragraph, or the text of an item without one.
    Paragraph,
    Heading(u8),
    Cell,
}

/// An open container block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container {
    pub(super) holder: ContainerKind,
    span: Span,
    /// The block in it that ended last.
    pub(super) last: Option<(BlockKind, Span)>,
    /// Where the text of an item begins, counted from its marker.
    indent: usize,
    /// Whether a block in it has begun.
    begun: bool,
}

impl Container {
    fn new(holder: ContainerKind, span: Span) -> Self {
        Self { holder, span, last: None, indent: 0, begun: false }
    }
}

/// The stack of open containers, with the note itself at the bottom.
#[derive(Debug)]
pub(super) struct ContainerStack<'a> {
    text: &'a str,
    root: Container,
    stack: Vec<Container>,
}

impl<'a> ContainerStack<'a> {
    pub(super) fn new(text: &'a str, body_start: usize) -> Self {
        let root = Container::new(ContainerKind::Note, Span::new(body_start, text.len()));
        Self { text, root, stack: Vec::new() }
    }

    /// Returns the innermost open block.
    pub(super) fn inside(&self) -> &Container {
        self.stack.last().unwrap_or(&self.root)
    }

    pub(super) fn inside_mut(&mut self) -> &mut Container {
        self.stack.last_mut().unwrap_or(&mut self.root)
    }

    pub(super) fn push(&mut self, holder: ContainerKind, span: Span) {
        self.stack.push(Container::new(holder, span));
    }

    /// Closes the innermost block, whose whole span is `span`.
    pub(super) fn pop(&mut self, span: Span) {
        if let Some(ended) = self.stack.pop() {
            self.ended(ended.holder.kind(), span);
        }
    }

    /// Notes that a block begins at `at` in the innermost one.
    pub(super) fn begin(&mut self, at: usize, lines: &Lines) {
        let text = self.text;
        let inside = self.inside_mut();
        if !inside.begun {
            inside.begun = true;
            let marker = marker_start(text, inside.span);
            // Text on the line below its marker stands behind the narrowest marker's width.
            inside.indent = if lines.of(marker) == lines.of(at) { at.saturating_sub(marker) } else { 2 };
        }
    }

    /// Notes that a block in the innermost one has ended.
    pub(super) fn ended(&mut self, kind: BlockKind, span: Span) {
        self.inside_mut().last = Some((kind, span));
    }

    /// Returns the markers of the open list items, the innermost first.
    pub(super) fn item_markers(&self) -> impl Iterator<Item = usize> + '_ {
        let items = self.stack.iter().rev().filter(|inside| inside.holder == ContainerKind::Item);
        items.map(|inside| marker_start(self.text, inside.span))
    }

    pub(super) fn place(&self, kind: LeafKind) -> LinkContext {
        match (kind, self.inside().holder) {
            (LeafKind::Heading(_), _) => LinkContext::Heading,
            (LeafKind::Cell, _) | (_, ContainerKind::Table) => LinkContext::Table,
            (_, ContainerKind::List | ContainerKind::Item) => LinkContext::List,
            (_, ContainerKind::Quote) => LinkContext::Quote,
            (_, ContainerKind::Callout) => LinkContext::Callout,
            (_, ContainerKind::Footnote) => LinkContext::Footnote,
            (_, ContainerKind::Note) => LinkContext::Body,
        }
    }

    /// Says whether a cell that begins with a caret is all there is on the last line of its table.
    pub(super) fn ends_table(&self, caret: usize, cell: Span) -> bool {
        let before = Span::new(line_start(self.text, caret), caret).of(self.text);
        let ends = trimmed(self.text, cell).end >= trimmed(self.text, self.inside().span).end;
        ends && before.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'>'))
    }

    /// Decides which block the id behind `caret`, at the end of `leaf`, names.
    pub(super) fn named_block(&self, kind: LeafKind, leaf: Span, caret: usize) -> (BlockKind, Span) {
        let inside = self.inside();
        let line_start = line_start(self.text, caret);
        let above = |block: &Container| (block.holder.kind(), Span::new(block.span.start, line_start));
        let held = (inside.holder.kind(), inside.span);
        let own = (BlockKind::Paragraph, leaf);
        match kind {
            LeafKind::Cell => return above(inside),
            LeafKind::Heading(_) => return (BlockKind::Heading, leaf),
            LeafKind::Paragraph => {}
        }
        if caret == leaf.start {
            // Alone in its block: the id belongs to the block above, or else to what holds it.
            return inside.last.unwrap_or(if inside.holder == ContainerKind::Note { own } else { held });
        }
        if line_start > leaf.start
            && let Some(left) = self.left_by(line_start, caret)
        {
            return above(left);
        }
        let ends_holder = || trimmed(self.text, inside.span).end <= trimmed(self.text, leaf).end;
        match inside.holder {
            ContainerKind::Item => held,
            ContainerKind::Quote | ContainerKind::Callout if ends_holder() => held,
            _ => own,
        }
    }

    /// Finds the outermost block whose markers are missing on the line, if the id stands alone on it.
    ///
    /// Such a line continues the paragraph above for CommonMark, but Obsidian lets it name the block that it left.
    fn left_by(&self, line_start: usize, caret: usize) -> Option<&Container> {
        let prefix = self.text.get(line_start..caret)?.as_bytes();
        if !prefix.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'>')) {
            return None;
        }
        let blanks = |at: usize| prefix.iter().skip(at).take_while(|&&byte| byte != b'>').count();
        let mut at = 0;
        let mut list = None;
        for block in &self.stack {
            match block.holder {
                ContainerKind::Quote | ContainerKind::Callout => {
                    at += blanks(at);
                    if prefix.get(at) != Some(&b'>') {
                        return Some(block);
                    }
                    at += 1 + usize::from(prefix.get(at + 1) == Some(&b' '));
                }
                ContainerKind::List => list = Some(block),
                ContainerKind::Item if blanks(at) < block.indent && prefix.get(at) != Some(&b'\t') => {
                    return list;
                }
                ContainerKind::Item => at += block.indent,
                ContainerKind::Footnote if blanks(at) == 0 => return Some(block),
                ContainerKind::Footnote | ContainerKind::Note | ContainerKind::Table => {}
            }
        }
        None
    }
}

/// Cuts white space off the end of a span.
pub(super) fn trimmed(text: &str, span: Span) -> Span {
    Span::new(span.start, span.start + span.of(text).trim_end().len())
}

/// Returns the offset of an item's marker: the parser lets some items begin with their indent.
fn marker_start(text: &str, item: Span) -> usize {
    let raw = item.of(text);
    item.start + raw.len() - raw.trim_start_matches([' ', '\t']).len()
}

fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or("");
    before.rfind(['\n', '\r']).map_or(0, |end| end + 1)
}
