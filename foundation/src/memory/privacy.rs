//! Private passages: text between `<private>` tags, which is never stored.

use std::borrow::Cow;

const OPEN: &str = "<private";
const CLOSE: &str = "</private";

/// Removes the text between `<private>` and `</private>` in any case. Without a closing tag it extends to the end.
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
        if let Some(length) = tag(rest, OPEN) {
            count += usize::from(depth == 0);
            depth += 1;
            at += length;
        } else if let Some(length) = tag(rest, CLOSE).filter(|_| depth > 0) {
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

/// Returns the length of the tag at the start of a text. White space is allowed before its closing bracket.
fn tag(text: &str, name: &str) -> Option<usize> {
    let rest = text.strip_prefix(name)?;
    let behind = rest.strip_prefix('>').or_else(|| {
        let bare = rest.trim_start();
        // The search for the bracket is limited, so that the time stays linear.
        (rest.len() - bare.len() <= 16).then(|| bare.strip_prefix('>'))?
    })?;
    Some(text.len() - behind.len())
}
