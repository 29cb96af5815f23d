//! Private passages: text between `<private>` tags, which is never stored.

use std::borrow::Cow;

const OPEN: &str = "<private";
const CLOSE: &str = "</private";

/// Removes the text between `<private>` and `</private>` in any case, also where the tags have attributes. Without a closing
/// tag it extends to the end.
pub fn without_private(text: &str) -> Cow<'_, str> {
    without_passages(text).0
}

/// Removes private passages like [`without_private`]; also returns their number and whether the last one was unclosed.
pub fn without_passages(text: &str) -> (Cow<'_, str>, usize, bool) {
    let lower = text.to_ascii_lowercase();
    if !lower.contains(OPEN) {
        return (Cow::Borrowed(text), 0, false);
    }
    let mut count = 0;
    let mut kept = String::with_capacity(text.len());
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        let rest = lower.get(at..).unwrap_or("");
        if let Some(length) = opening_tag(rest) {
            count += usize::from(depth == 0);
            depth += 1;
            at += length;
        } else if let Some(length) = closing_tag(rest).filter(|_| depth > 0) {
            depth -= 1;
            at += length;
        } else {
            let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
            if depth == 0 {
                kept.push(next);
            }
            at += next.len_utf8();
        }
    }
    (Cow::Owned(kept), count, depth > 0)
}

/// Returns the length of the beginning of an opening tag at the start of a text: its attributes are part of what is private.
fn opening_tag(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(OPEN)?;
    let ends_name = |c: char| c.is_whitespace() || matches!(c, '>' | '/');
    let length = text.len() - rest.len();
    rest.starts_with(ends_name).then(|| length + usize::from(rest.starts_with('>')))
}

/// Returns the length of the closing tag at the start of a text.
fn closing_tag(text: &str) -> Option<usize> {
    /// The longest closing tag behind its name, in bytes. The limit keeps the time linear.
    const LONGEST: usize = 64;
    let rest = text.strip_prefix(CLOSE)?;
    let end = rest.bytes().take(LONGEST).position(|byte| matches!(byte, b'>' | b'<'))?;
    let is_whole = rest.as_bytes().get(end) == Some(&b'>');
    let is_named = end == 0 || rest.starts_with(char::is_whitespace);
    (is_whole && is_named).then(|| text.len() - rest.len() + end + 1)
}
