//! Where a text can be cut: between two grapheme clusters (UAX #29), each of which a reader sees as one character. Pure.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation as _;

    use super::*;

    /// Texts of which each is one character for a reader, and several code points.
    const CHARACTERS: [&str; 7] = ["é", "👩‍👩‍👧‍👦", "🇩🇪", "한", "क्षि", "กำ", "👍🏽"];

    #[test]
    fn no_character_is_cut() {
        for character in CHARACTERS {
            let text = format!("a{character}b");
            let (from, to) = (1, 1 + character.len());
            for at in from + 1..to {
                assert_eq!((end_before(&text, at), end_after(&text, at)), (from, to), "{text} at {at}");
            }
            assert_eq!((end_before(&text, to), end_after(&text, to)), (to, to), "{text}");
            assert_eq!(beginning(&text, 2), "a", "{text}");
            assert_eq!(shortened(&text, 2), "a…", "{text}");
            assert_eq!(shortened(&text, text.chars().count()), text);
        }
    }

    #[test]
    fn a_character_without_end_is_cut() {
        let text = format!("e{}", "\u{301}".repeat(1000));
        assert_eq!(beginning(&text, 10).chars().count(), 10);
    }

    proptest! {
        #[test]
        fn the_beginning_of_a_text_has_whole_characters(text: String, most in 0usize..40) {
            let kept = beginning(&text, most);
            prop_assert!(text.starts_with(kept) && kept.chars().count() <= most);
            let first = text.graphemes(true).next().unwrap_or_default();
            if first.chars().count() <= most {
                prop_assert!(text.grapheme_indices(true).any(|(at, _)| at == kept.len()) || kept == text);
            }
        }
    }
}
