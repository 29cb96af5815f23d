//! The parser of a string that consists of one inline Markdown link.

use pulldown_cmark::{Event, LinkType, Parser, Tag, TagEnd};

use crate::link::LinkForm;
use crate::link_syntax;
use crate::link_syntax::Destination;
use crate::span::Span;

/// Parses `text` as one inline Markdown link or image. Returns `None` if it contains anything else.
pub(crate) fn whole_link(text: &str) -> Option<Destination> {
    let mut inner = 0;
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::Paragraph) => {}
            Event::Start(
                Tag::Link { link_type: LinkType::Inline, .. }
                | Tag::Image { link_type: LinkType::Inline, .. },
            ) if inner == 0 => {
                if range != (0..text.len()) {
                    return None;
                }
                inner = 1 + usize::from(text.starts_with('!'));
            }
            Event::End(TagEnd::Link | TagEnd::Image) if range == (0..text.len()) => {
                let embed = text.starts_with('!');
                let span = Span::from(range);
                let label = Span::new(1 + usize::from(embed), label_end(text, inner, span.end)?);
                let (dest, angle) = link_syntax::destination(text, Span::new(label.end + 2, span.end))?;
                let form = if angle { LinkForm::MdAngle } else { LinkForm::MdPlain };
                return Some(Destination { span, label, dest, form, embed });
            }
            _ if inner == 0 => return None,
            _ => inner = inner.max(range.end),
        }
    }
    None
}

/// Finds the bracket that closes a label whose last part ends at `from`.
pub(super) fn label_end(text: &str, from: usize, end: usize) -> Option<usize> {
    Some(from + text.get(from..end)?.find(']')?)
}
