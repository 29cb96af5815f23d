//! The evidence that a note is about a prompt, and how much of it recall asks for.

/// The evidence that a note is about a text.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MatchEvidence {
    /// How far the similarity of the nearest passage lies above the one that a passage of the vault has by chance, as a part of the
    /// way to 1; `None` without a vector.
    pub similarity: Option<f32>,
    /// The share of the text's words that occur in the note's best passage or its names, 0 to 1, weighted by inverse
    /// document frequency.
    pub words: f32,
    /// The number of words of the text.
    pub count: usize,
    /// The number of words that occur in the note's title, an alias or the file name.
    pub in_name: usize,
    /// Whether the text is the note's title, an alias or the file name.
    pub is_named: bool,
    /// Whether the note has an identifier of the text, such as an error code, that few notes have.
    pub has_identifier: bool,
}

/// The weight of the word share, relative to a similarity at the model's floor.
const WORD_WEIGHT: f32 = 0.8;

/// The minimum word share without a vector, and for a match in the note's name.
const MIN_WORD_SHARE: f32 = 0.9;

/// The minimum word share for [`MatchEvidence::is_certain`].
const CERTAIN_WORD_SHARE: f32 = 0.6;

impl MatchEvidence {
    /// Returns the word share, reduced for short texts, because a single word may occur by chance.
    fn trusted_words(&self) -> f32 {
        self.words * (1.0 - 0.8 / self.count.max(1) as f32)
    }

    /// Says whether the note is about the text. `floor` is the similarity that is sufficient under the model; below it, similarity
    /// and word share add up.
    pub fn is_about(&self, floor: Option<f32>) -> bool {
        self.strength(floor) >= 1.0
    }

    /// Returns how strong the evidence is; 1 is enough.
    pub fn strength(&self, floor: Option<f32>) -> f32 {
        let by_name = self.is_named
            || self.has_identifier
            || (self.in_name > 0 && self.count > 1 && self.words >= MIN_WORD_SHARE);
        let by_text = match self.similarity.zip(floor) {
            Some((similarity, floor)) => similarity / floor + WORD_WEIGHT * self.trusted_words(),
            None if self.count > 1 => self.words / MIN_WORD_SHARE,
            None => 0.0,
        };
        if by_name { by_text.max(1.0) } else { by_text }
    }

    /// Says whether the note is about the text with so little doubt that it may be changed without asking.
    pub fn is_certain(&self) -> bool {
        self.is_named || self.words >= CERTAIN_WORD_SHARE
    }
}
