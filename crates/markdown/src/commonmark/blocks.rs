//! The blocks for the query operator `block:` (docs/spec/obsidian.md 8.2): paragraphs, list items without nested lists,
//! tables, code blocks and quotes.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::nesting::trimmed;
use super::parser_input::parser_input;
use super::{OPTIONS, from_marker, shifted};
use crate::line::Lines;
use crate::span::Span;

/// Lists the blocks of a body that begins at `body_start`, in order, without the line end after each.
///
/// A quote is one block, and so is a list item up to the first list nested in it. The text after that list is another
/// block.
pub fn blocks(text: &str, body_start: usize, lines: &Lines) -> Vec<Span> {
    let input = parser_input(text, body_start, lines);
    let mut walk = BlockWalk::default();
    for (event, range) in Parser::new_ext(&input.body, OPTIONS).into_offset_iter() {
        let span = from_marker(text, &event, shifted(range, body_start));
        walk.event(&event, span);
    }
    let mut found: Vec<Span> = walk.found.into_iter().map(|span| trimmed(text, span)).collect();
    found.retain(|span| !span.of(text).trim().is_empty());
    found.sort_by_key(|span| (span.start, span.end));
    found
}

#[derive(Default)]
struct BlockWalk {
    found: Vec<Span>,
    /// The open list items: the index in `found`, unless a nested list has ended the block, and the end of the item.
    items: Vec<(Option<usize>, usize)>,
    /// The open blocks that are indivisible.
    whole: usize,
}

impl BlockWalk {
    fn event(&mut self, event: &Event<'_>, span: Span) {
        match event {
            Event::Start(Tag::List(_)) if self.whole == 0 => {
                if let Some(open) = self.items.last_mut().and_then(|(open, _)| open.take())
                    && let Some(item) = self.found.get_mut(open)
                {
                    item.end = item.end.min(span.start);
                }
            }
            Event::Start(Tag::Item) if self.whole == 0 => {
                self.items.push((Some(self.found.len()), span.end));
                self.found.push(span);
            }
            // The text after a nested list belongs to the item too, but is a block of its own.
            Event::End(TagEnd::List(_)) if self.whole == 0 => {
                if let Some((open, end)) = self.items.last_mut() {
                    *open = Some(self.found.len());
                    self.found.push(Span::new(span.end.min(*end), *end));
                }
            }
            Event::End(TagEnd::Item) if self.whole == 0 => drop(self.items.pop()),
            Event::Start(tag) if is_indivisible(tag) => {
                if self.whole == 0 && self.items.is_empty() {
                    self.found.push(span);
                }
                self.whole += 1;
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::Table | TagEnd::CodeBlock | TagEnd::Paragraph) => {
                self.whole = self.whole.saturating_sub(1)
            }
            _ => {}
        }
    }
}

/// Returns whether a block is not divided into the blocks in it.
fn is_indivisible(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::BlockQuote(_) | Tag::Table(_) | Tag::CodeBlock(_) | Tag::Paragraph)
}
