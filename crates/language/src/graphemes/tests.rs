//! Texts are cut between two characters as readers see them.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::graphemes::{beginning, end_after, end_before, shortened};

/// Texts of which each is one character for a reader, and several code points.
const CHARACTERS: [&str; 7] = ["e\u{301}", "👩‍👩‍👧‍👦", "🇩🇪", "\u{1112}\u{1161}\u{11ab}", "क्षि", "กำ", "👍🏽"];

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
