//! Where a text can be cut: between two grapheme clusters (UAX #29), each of which a reader sees as one character. Pure.

#[cfg(test)]
mod tests;

use unicode_segmentation::GraphemeCursor;

/// Returns the last end of a character, as readers see it, that is not after byte `at`; the end of the text if that is less. A
/// character with more bytes than there are before `at`, such as one with a thousand accents, is cut between two code points.
pub fn end_before(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let before = match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.prev_boundary(text, 0).ok().flatten(),
        _ => None,
    };
    before.filter(|&before| before > 0).unwrap_or(at)
}

/// Returns the first end of a character, as readers see it, that is not before byte `at`; the end of the text if that is less.
pub fn end_after(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
        _ => at,
    }
}

/// Returns the beginning of a text, of at most `most` code points.
pub fn beginning(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    text.get(..end_before(text, end)).unwrap_or(text)
}

/// Returns a text of at most `most` code points as it is, and of a longer one the beginning with an ellipsis.
pub fn shortened(text: &str, most: usize) -> String {
    let kept = beginning(text, most);
    if kept.len() < text.len() { format!("{kept}…") } else { text.to_owned() }
}
