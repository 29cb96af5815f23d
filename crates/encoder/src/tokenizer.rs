//! SentencePiece with a unigram model (Kudo 2018, arXiv:1804.10959): the most probable pieces of each word. The pieces lie in
//! double arrays that are used where they are.
//!
//! A text is normalized to NFC, and characters are replaced as the model was trained. Each word begins with [`SPACE`].

use std::iter;

use unicode_normalization::{UnicodeNormalization, is_nfc};
use yada::DoubleArray;

use crate::asset::Asset;

/// The character that stands for the spaces before a word.
const SPACE: char = '\u{2581}';
/// The bytes of a word, or of a text without spaces, that are split together. 512 pieces of the greatest length are shorter.
const MAX_WORD: usize = 32 << 10;
/// How much less probable an unknown character is than the least probable piece, as a logarithm.
const UNKNOWN_PENALTY: f32 = 10.0;

/// A tokenizer that splits each word into its most probable pieces.
#[derive(Debug)]
pub struct Tokenizer {
    pieces: DoubleArray<&'static [u8]>,
    scores: &'static [[u8; 4]],
    replacements: DoubleArray<&'static [u8]>,
    replacement_text: &'static [u8],
    unknown_score: f32,
    unknown_id: u32,
    start_id: u32,
    end_id: u32,
}

/// The most probable way to the end of some bytes of a word.
#[derive(Clone, Copy)]
struct Step {
    score: f32,
    /// The length of the last piece, in bytes.
    length: u32,
    /// The id of the last piece.
    id: u32,
}

/// What words use, one after another.
#[derive(Default)]
struct Space {
    word: String,
    steps: Vec<Step>,
    reversed: Vec<u32>,
}

impl Tokenizer {
    /// The number of special tokens that [`encode`](Self::encode) adds to a text.
    pub const SPECIAL_TOKENS: usize = 2;

    /// Creates the tokenizer of a model.
    ///
    /// # Errors
    /// Says why its vocabulary cannot be read.
    pub fn new(asset: &Asset) -> Result<Self, String> {
        let array = |bytes| DoubleArray::new(bytes).map_err(|error| error.to_string());
        let scores = asset.scores;
        let least = scores.iter().map(|score| f32::from_le_bytes(*score)).fold(0.0, f32::min);
        Ok(Self {
            pieces: array(asset.pieces)?,
            scores,
            replacements: array(asset.replacements)?,
            replacement_text: asset.replacement_text,
            unknown_score: least - UNKNOWN_PENALTY,
            unknown_id: asset.unknown_id,
            start_id: asset.start_id,
            end_id: asset.end_id,
        })
    }

    /// Returns the ids of `prefix` and `text` with the special tokens, truncated to `limit` ids in all. No more of the text is
    /// read than they need.
    pub fn encode(&self, prefix: &str, text: &str, limit: usize) -> Vec<u32> {
        let limit = limit.saturating_sub(Self::SPECIAL_TOKENS);
        let mut ids = vec![self.start_id];
        self.extend(prefix, limit + 1, &mut ids);
        self.extend(text, limit + 1, &mut ids);
        ids.truncate(limit + 1);
        ids.push(self.end_id);
        ids
    }

    /// Counts the ids of the whole `text`, without the special tokens.
    pub fn count(&self, text: &str) -> usize {
        let (mut space, mut count) = (Space::default(), 0);
        let mut ids = Vec::new();
        self.for_each_word(text, &mut space, |space| {
            self.split_word(space, &mut ids);
            count += ids.len();
            ids.clear();
            true
        });
        count
    }

    /// Appends ids of a text until there are `limit` or more.
    fn extend(&self, text: &str, limit: usize, ids: &mut Vec<u32>) {
        self.for_each_word(text, &mut Space::default(), |space| {
            self.split_word(space, ids);
            ids.len() < limit
        });
    }

    /// Calls `visit` with each word of a text in `space`, until it returns false.
    fn for_each_word(&self, text: &str, space: &mut Space, mut visit: impl FnMut(&mut Space) -> bool) {
        space.word.clear();
        let mut composed;
        let mut plain;
        let characters: &mut dyn Iterator<Item = char> = if is_nfc(text) {
            plain = text.chars();
            &mut plain
        } else {
            composed = text.nfc();
            &mut composed
        };
        for c in characters.chain(iter::once(' ')) {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes);
            for c in self.replacement(bytes).chars() {
                let is_full = space.word.len() >= MAX_WORD;
                if c == ' ' || c == SPACE || is_full {
                    if !space.word.is_empty() && !visit(space) {
                        return;
                    }
                    space.word.clear();
                }
                if c != ' ' && c != SPACE {
                    if space.word.is_empty() && !is_full {
                        space.word.push(SPACE);
                    }
                    space.word.push(c);
                }
            }
        }
    }

    /// Returns the replacement of a character.
    fn replacement<'c>(&'c self, character: &'c str) -> &'c str {
        match character.as_bytes() {
            [b' '..=b'~'] => character,
            // It ends the keys of double arrays.
            [0] => "",
            bytes => {
                let found = self.replacements.common_prefix_search(bytes).last();
                found.map_or(character, |(place, _)| {
                    let (from, length) = ((place >> 8) as usize, (place & 255) as usize);
                    let text = self.replacement_text.get(from..from + length).unwrap_or_default();
                    std::str::from_utf8(text).unwrap_or_default()
                })
            }
        }
    }

    /// Appends the ids of the most probable pieces of a word. Unknown characters that follow each other are one.
    fn split_word(&self, space: &mut Space, ids: &mut Vec<u32>) {
        let Space { word, steps, reversed } = space;
        steps.clear();
        steps.resize(word.len() + 1, Step { score: f32::NEG_INFINITY, length: 0, id: self.unknown_id });
        if let Some(first) = steps.first_mut() {
            first.score = 0.0;
        }
        for (start, c) in word.char_indices() {
            let Some((step, after)) = steps.get_mut(start..).and_then(<[Step]>::split_first_mut) else {
                break;
            };
            let before = step.score;
            let mut reach = |id: u32, length: usize, score: f32| {
                if let Some(step) = after.get_mut(length - 1)
                    && before + score > step.score
                {
                    *step = Step { score: before + score, length: length as u32, id };
                }
            };
            let rest = word.get(start..).unwrap_or_default();
            for (id, length) in self.pieces.common_prefix_search(rest) {
                reach(id, length, self.score(id));
            }
            reach(self.unknown_id, c.len_utf8(), self.unknown_score);
        }
        reversed.clear();
        let mut end = word.len();
        while let Some(step) = steps.get(end).filter(|step| step.length > 0) {
            if step.id != self.unknown_id || reversed.last() != Some(&self.unknown_id) {
                reversed.push(step.id);
            }
            end -= step.length as usize;
        }
        ids.extend(reversed.iter().rev());
    }

    fn score(&self, id: u32) -> f32 {
        self.scores.get(id as usize).map_or(f32::NEG_INFINITY, |score| f32::from_le_bytes(*score))
    }
}
