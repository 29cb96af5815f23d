//! The constants of the ranking by words.

use sidenote_language::language::Language;

use crate::statistics::PASSAGE_TERMS;

/// How one field contributes to the score: its weight before saturation, and its length normalisation (`b`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldTuning {
    /// The factor of the term frequency.
    pub weight: f32,
    /// The strength of length normalisation, from 0 (none) to 1 (full).
    pub b: f32,
    /// The least length that is normalised, in terms, where no note is longer than a passage. A shorter field is treated
    /// as this long: up to the length of a passage, a longer text says more and needs no penalty. The more notes are
    /// longer, the smaller it is.
    pub min_length: f32,
}

/// The weight of unstemmed matches in languages with stems, English excepted.
const EXACT_ELSEWHERE: f32 = 0.5;

/// The constants of BM25F (Robertson & Zaragoza 2009, section 3.5). docs/dev/ranking.md explains how they were chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// The saturation of the term frequency.
    pub k1: f32,
    /// Title, aliases and file name.
    pub title: FieldTuning,
    /// Headings.
    pub headings: FieldTuning,
    /// Body text, headings included.
    pub body: FieldTuning,
    /// Code.
    pub code: FieldTuning,
    /// Tags, properties and path.
    pub meta: FieldTuning,
    /// The weight of unstemmed matches, which add a score of their own.
    pub exact: f32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            k1: 1.2,
            title: FieldTuning { weight: 1.0, b: 0.4, min_length: 0.0 },
            headings: FieldTuning { weight: 0.3, b: 0.4, min_length: 0.0 },
            body: FieldTuning { weight: 1.0, b: 0.75, min_length: PASSAGE_TERMS as f32 },
            code: FieldTuning { weight: 0.4, b: 0.75, min_length: 0.0 },
            meta: FieldTuning { weight: 0.2, b: 0.75, min_length: 0.0 },
            exact: 0.1,
        }
    }
}

impl Tuning {
    /// Returns the constants for queries in a language, or in English if there is none. Most stemmers conflate more words than
    /// the English one, so that the word itself counts more.
    pub fn of(language: Option<Language>) -> Self {
        let english = Self::default();
        let has_stems = language.is_some_and(|language| language.stemmer().is_some());
        Self { exact: if has_stems { EXACT_ELSEWHERE } else { english.exact }, ..english }
    }
}
