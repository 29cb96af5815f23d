//! HTML character references such as `&amp;` in a link destination.

use std::borrow::Cow;

use pulldown_cmark::{Event, Parser};

/// Parses the character reference at `at`, and returns its value and length.
pub(crate) fn entity_at(text: &str, at: usize) -> Option<(Cow<'static, str>, usize)> {
    // The longest name in HTML has 32 bytes with its `&` and `;`.
    let window = text.as_bytes().get(at..text.len().min(at + 40))?;
    let len = window.iter().position(|&byte| byte == b';')? + 1;
    let raw = text.get(at..at + len)?;
    match Parser::new(raw).nth(1)? {
        Event::Text(value) if &*value != raw => Some((Cow::Owned(value.into_string()), len)),
        _ => None,
    }
}
