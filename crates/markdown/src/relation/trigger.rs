//! Trigger words: without one of them, a block states no relation by the phrases and names of the rules, so that it need
//! not be split into sentences.

use hashbrown::HashSet;
use sidenote_language::short_word::{MAX_SHORT, packed, short_run};
use sidenote_language::terms::is_stop_word;

use crate::note::{Piece, PieceKind};
use crate::relation::phrase::Phrase;

/// The bits of the filter before the set of words.
const FILTER_BITS: u32 = 13;

/// Words of which each phrase and each name of the rules has one, as runs of ASCII letters and digits in lower case.
#[derive(Debug, Clone)]
pub(super) struct Triggers {
    /// The words, or their first [`MAX_SHORT`] bytes, as [`packed`] returns them.
    words: HashSet<u128>,
    /// A bit for the hash of each word. Most words of a text are no trigger, and few of these share a bit with one.
    filter: Vec<u64>,
    /// Whether any text with a character that is not ASCII can state a relation.
    is_foreign: bool,
    /// Whether any text can state a relation.
    is_open: bool,
}

impl Default for Triggers {
    fn default() -> Self {
        Self {
            words: HashSet::new(),
            filter: vec![0; 1 << (FILTER_BITS - 6)],
            is_foreign: false,
            is_open: false,
        }
    }
}

impl Triggers {
    /// Returns triggers that every block has.
    pub(super) fn open() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    /// Adds a phrase. Wherever it is looked for, its first word and those of its head are there.
    pub(super) fn add_phrase(&mut self, phrase: &Phrase) {
        let words = phrase.words.first().into_iter().chain(phrase.head()).filter(|word| *word != "*");
        self.add_one_of(words.map(String::as_str));
    }

    /// Adds a name in the form of [`relation_key`](super::relation_key), all of whose words are in a text that says it.
    pub(super) fn add_name(&mut self, key: &str) {
        self.add_one_of(std::iter::once(key));
    }

    /// Adds the rarest run of letters and digits of some words, all of which are in a text that states a relation.
    fn add_one_of<'w>(&mut self, words: impl Iterator<Item = &'w str>) {
        let words: Vec<&str> = words.collect();
        let runs = words
            .iter()
            .filter(|word| word.is_ascii())
            .flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric()).filter(|run| !run.is_empty()));
        match runs.max_by_key(|run| (!is_stop_word(run), run.len())) {
            Some(run) => self.add(packed(run.to_ascii_lowercase().as_bytes())),
            None if words.iter().any(|word| !word.is_ascii()) => self.is_foreign = true,
            None => self.is_open = true,
        }
    }

    fn add(&mut self, word: u128) {
        let (index, bit) = place(word);
        if let Some(bits) = self.filter.get_mut(index) {
            *bits |= bit;
        }
        self.words.insert(word);
    }

    #[inline]
    fn has(&self, word: u128) -> bool {
        let (index, bit) = place(word);
        self.filter.get(index).is_some_and(|bits| bits & bit != 0) && self.words.contains(&word)
    }

    /// Says whether a block of these pieces has a trigger.
    pub(super) fn is_in(&self, text: &str, block: &[Piece]) -> bool {
        let prose = block.iter().filter(|piece| piece.kind == PieceKind::Prose);
        self.is_open || prose.map(|piece| piece.span).any(|span| self.is_between(text, span.start, span.end))
    }

    /// Says whether a trigger is between two places of a text.
    fn is_between(&self, text: &str, start: usize, end: usize) -> bool {
        let bytes = text.as_bytes().get(..end).unwrap_or_default();
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            if !byte.is_ascii_alphanumeric() {
                if !byte.is_ascii() && (self.is_foreign || folds_to_ascii(text, at)) {
                    return true;
                }
                at += 1;
                continue;
            }
            let (word, length) = match short_run(bytes, at) {
                Some(run) => (run.folded, run.length),
                None => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                    let run = rest.get(..length.min(MAX_SHORT)).unwrap_or_default();
                    (packed(&run.to_ascii_lowercase()), length)
                }
            };
            if self.has(word) {
                return true;
            }
            at += length;
        }
        false
    }
}

/// Returns the index and the bit of a word in the filter.
#[inline]
fn place(word: u128) -> (usize, u64) {
    let mixed = (word as u64 ^ ((word >> 64) as u64).rotate_left(23)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = mixed >> (64 - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Says whether a character at this byte that is not ASCII has a lower case with an ASCII letter: the Kelvin sign and the
/// capital i with a dot.
fn folds_to_ascii(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| rest.starts_with(['\u{212A}', '\u{130}']))
}
