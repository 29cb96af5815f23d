//! The stack of open container blocks, and the choice of the block that a block id names (docs/spec/obsidian.md 3.7).

use crate::line::Lines;
use crate::link::LinkContext;
use crate::note::BlockKind;
use crate::span::Span;

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
    /// The column of an item's text, counted from its marker.
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

    /// Returns the innermost open container.
    pub(super) fn innermost(&self) -> &Container {
        self.stack.last().unwrap_or(&self.root)
    }

    pub(super) fn innermost_mut(&mut self) -> &mut Container {
        self.stack.last_mut().unwrap_or(&mut self.root)
    }

    pub(super) fn push(&mut self, holder: ContainerKind, span: Span) {
        self.stack.push(Container::new(holder, span));
    }

    /// Closes the innermost container, whose whole span is `span`.
    pub(super) fn pop(&mut self, span: Span) {
        if let Some(ended) = self.stack.pop() {
            self.ended(ended.holder.kind(), span);
        }
    }

    /// Records that a block begins at `at` in the innermost container.
    pub(super) fn begin(&mut self, at: usize, lines: &Lines) {
        let text = self.text;
        let innermost = self.innermost_mut();
        if !innermost.begun {
            innermost.begun = true;
            let marker = marker_start(text, innermost.span);
            // Text on the line after its marker has the indentation of the narrowest marker.
            innermost.indent = if lines.of(marker) == lines.of(at) { at.saturating_sub(marker) } else { 2 };
        }
    }

    /// Records that a block in the innermost container has ended.
    pub(super) fn ended(&mut self, kind: BlockKind, span: Span) {
        self.innermost_mut().last = Some((kind, span));
    }

    /// Returns the markers of the open list items, the innermost first.
    pub(super) fn item_markers(&self) -> impl Iterator<Item = usize> + '_ {
        let items = self.stack.iter().rev().filter(|innermost| innermost.holder == ContainerKind::Item);
        items.map(|innermost| marker_start(self.text, innermost.span))
    }

    pub(super) fn place(&self, kind: LeafKind) -> LinkContext {
        match (kind, self.innermost().holder) {
            (LeafKind::Heading(_), _) => LinkContext::Heading,
            (LeafKind::Cell, _) | (_, ContainerKind::Table) => LinkContext::Table,
            (_, ContainerKind::List | ContainerKind::Item) => LinkContext::List,
            (_, ContainerKind::Quote) => LinkContext::Quote,
            (_, ContainerKind::Callout) => LinkContext::Callout,
            (_, ContainerKind::Footnote) => LinkContext::Footnote,
            (_, ContainerKind::Note) => LinkContext::Body,
        }
    }

    /// Returns whether a cell that begins with a caret is the only content of the last line of its table.
    pub(super) fn ends_table(&self, caret: usize, cell: Span) -> bool {
        let before = Span::new(line_start(self.text, caret), caret).of(self.text);
        let ends = trimmed(self.text, cell).end >= trimmed(self.text, self.innermost().span).end;
        ends && before.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'>'))
    }

    /// Determines the block that the id after `caret`, at the end of `leaf`, names.
    pub(super) fn named_block(&self, kind: LeafKind, leaf: Span, caret: usize) -> (BlockKind, Span) {
        let innermost = self.innermost();
        let line_start = line_start(self.text, caret);
        let above = |block: &Container| (block.holder.kind(), Span::new(block.span.start, line_start));
        let held = (innermost.holder.kind(), innermost.span);
        let own = (BlockKind::Paragraph, leaf);
        match kind {
            LeafKind::Cell => return above(innermost),
            LeafKind::Heading(_) => return (BlockKind::Heading, leaf),
            LeafKind::Paragraph => {}
        }
        if caret == leaf.start {
            // An id that is the only content of its block names the block above, or else the container.
            return innermost.last.unwrap_or(if innermost.holder == ContainerKind::Note {
                own
            } else {
                held
            });
        }
        if line_start > leaf.start
            && let Some(left) = self.outdented_block(line_start, caret)
        {
            return above(left);
        }
        let ends_holder = || trimmed(self.text, innermost.span).end <= trimmed(self.text, leaf).end;
        match innermost.holder {
            ContainerKind::Item => held,
            ContainerKind::Quote | ContainerKind::Callout if ends_holder() => held,
            _ => own,
        }
    }

    /// Finds the outermost block whose markers are missing on the line, if the id is the only text of the line.
    ///
    /// For CommonMark such a line continues the paragraph above, but for Obsidian it names the block whose markers are
    /// missing.
    fn outdented_block(&self, line_start: usize, caret: usize) -> Option<&Container> {
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

/// Removes white space from the end of a span.
pub(super) fn trimmed(text: &str, span: Span) -> Span {
    Span::new(span.start, span.start + span.of(text).trim_end().len())
}

/// Returns the offset of an item's marker, because the parser begins some items at their indentation.
fn marker_start(text: &str, item: Span) -> usize {
    let raw = item.of(text);
    item.start + raw.len() - raw.trim_start_matches([' ', '\t']).len()
}

fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or("");
    before.rfind(['\n', '\r']).map_or(0, |end| end + 1)
}
