//! Links in properties: values that consist of one link (docs/spec/obsidian.md 2.7).

use crate::link::{Link, LinkContext};
use crate::link_syntax::{Destination, from_destination, wikilink_at};
use crate::span::Span;
use crate::whole_link::whole_link;

/// Parses a property value that consists of one link (docs/spec/obsidian.md 2.7). Spans are offsets in `value`.
///
/// The form is that of a property, and the context [`LinkContext::Property`]. The caller sets key, host and line.
pub fn parse_property(value: &str) -> Option<Link> {
    let trimmed = value.trim();
    let start = value.len() - value.trim_start().len();
    let end = start + trimmed.len();
    let inside = value.get(..end)?;
    let whole = wikilink_at(inside, start).filter(|link| link.span.end == end);
    let link = match whole {
        Some(link) => link,
        None if !trimmed.ends_with(')') || trimmed.contains(['\n', '\r']) => return None,
        None => {
            let found = whole_link(trimmed)?;
            let mut inner = trimmed.match_indices("[[").take_while(|(at, _)| *at < found.label.end);
            if inner.any(|(at, _)| wikilink_at(trimmed, at).is_some()) {
                return None;
            }
            let shift = |span: Span| Span::new(span.start + start, span.end + start);
            let label = shift(found.label);
            let moved = Destination { span: shift(found.span), label, dest: shift(found.dest), ..found };
            from_destination(inside, &moved)?
        }
    };
    Some(Link { form: link.form.in_property(), place: LinkContext::Property, ..link })
}
