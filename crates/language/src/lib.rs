//! Words of natural languages: how a text becomes words, which form of a word is indexed, its stem, and word lists of
//! languages. It takes texts and returns values. It knows no files, no clock and no notes.

pub mod ascii;
pub mod english;
pub mod folding;
pub mod graphemes;
pub mod language;
pub mod pattern_limits;
pub mod relation_words;
pub mod short_word;
pub mod terms;
pub mod word_lists;
