//! Words of natural languages: how a text becomes words, which form of a word is indexed, its stem, and word lists of
//! languages. It takes texts and returns values. It knows no files, no clock and no notes.
//!
//! ```
//! use sidenote_language::language::{Language, detect};
//! use sidenote_language::terms::{CachedStemmer, terms};
//!
//! let words: Vec<String> = terms("Brücken, getLevel").into_iter().map(|term| term.text).collect();
//! assert_eq!(words, ["brucken", "getlevel", "get", "level"]);
//! assert_eq!(CachedStemmer::default().of("bridges"), "bridg");
//! assert_eq!(detect("Мы вчера видели мост через реку"), Language::of_code("ru"));
//! ```

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
