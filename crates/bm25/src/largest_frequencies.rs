//! The largest frequencies of a word in each segment, from which an upper bound of the word's score is computed. They
//! are found once for each snapshot, when a search has words with many postings.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lru::LruCache;

use super::{Tuning, Word};

/// The number of words that are cached per snapshot.
const CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(2048).expect("not zero");

/// The weighted, length-normalised frequencies of a word in a document: by its stem, and of the word itself.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Frequencies {
    pub(super) stemmed: f32,
    pub(super) exact: f32,
}

impl Frequencies {
    /// Returns whether the document does not contain the word.
    pub(super) fn is_none(self) -> bool {
        // Sums of positive numbers are never -0.0.
        self.stemmed.to_bits() | self.exact.to_bits() == 0
    }
}

/// The largest frequencies of a word by segment, for the segments in which they were computed.
#[derive(Debug)]
pub(super) struct LargestFrequencies(Vec<OnceLock<Frequencies>>);

impl LargestFrequencies {
    /// Returns frequencies that those in no document of a segment exceed, if they were found.
    pub(super) fn get(&self, segment: usize) -> Option<Frequencies> {
        self.0.get(segment)?.get().copied()
    }

    /// Keeps those of a segment.
    pub(super) fn keep(&self, segment: usize, largest: Frequencies) {
        if let Some(place) = self.0.get(segment) {
            // Another thread may have found the same.
            place.get_or_init(|| largest);
        }
    }
}

/// The key of a word, by everything on which its frequencies depend: the stem, the word itself, the word with its
/// diacritics, whether it is a prefix, and whether matches of the word itself and its compounds count.
type WordKey = (String, String, Option<String>, bool, Counted);

/// What counts for a word besides its stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Counted {
    /// Whether matches of the word itself count.
    pub(super) exact: bool,
    /// Whether its compounds count.
    pub(super) compounds: bool,
}

/// A cache of the largest frequencies in one snapshot, under one tuning.
pub(super) struct LargestFrequencyCache(Mutex<(Tuning, LruCache<WordKey, Arc<LargestFrequencies>>)>);

impl Default for LargestFrequencyCache {
    fn default() -> Self {
        Self(Mutex::new((Tuning::default(), LruCache::new(CACHE_SIZE))))
    }
}

impl LargestFrequencyCache {
    /// Returns the entry of a word in a snapshot with this number of segments.
    pub(super) fn of(
        &self,
        word: &Word,
        counted: Counted,
        tuning: &Tuning,
        segments: usize,
    ) -> Arc<LargestFrequencies> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of_tuning, words) = &mut *cached;
        // How much a match of the word itself counts depends on the language of the query, and no frequency on it.
        let tuning = Tuning { exact: of_tuning.exact, ..*tuning };
        if *of_tuning != tuning {
            *of_tuning = tuning;
            words.clear();
        }
        let key = (word.stem.clone(), word.exact.clone(), word.typed.clone(), word.prefix, counted);
        let unknown = || Arc::new(LargestFrequencies((0..segments).map(|_| OnceLock::new()).collect()));
        Arc::clone(words.get_or_insert(key, unknown))
    }
}
