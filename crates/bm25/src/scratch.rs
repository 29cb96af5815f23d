//! Working memory for the scores of the documents of one segment.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use tantivy::DocId;

use super::largest_frequencies::Frequencies;
use super::length_norms::LengthNorms;

/// How many postings are handled at once, which is how many tantivy keeps in a block.
pub(super) const BLOCK: usize = 128;
/// The most scratch memories that a snapshot keeps.
const MAX_SCRATCHES: usize = 4;

/// The score of a document that contains no word. Its bits differ from those of a score of 0, and an addition to it
/// gives the same as an addition to 0, since no word adds less than 0.
const NO_SCORE: f32 = -0.0;

/// Returns whether a document has a score.
pub(super) fn is_scored(score: f32) -> bool {
    score.to_bits() != NO_SCORE.to_bits()
}

/// Working memory for the scores of one segment. It is empty between ranges.
#[derive(Default)]
pub(super) struct Scratch {
    /// The weighted frequencies of the current word, by document.
    frequencies: Vec<Frequencies>,
    /// The documents that contain it.
    containing: Vec<DocId>,
    /// The score so far, by document.
    scores: Vec<f32>,
    /// The documents that have a score, in the order in which they got it.
    scored: Vec<DocId>,
    /// A bit for each document: whether its frequencies are wanted.
    marks: Vec<u64>,
}

/// The weights with which the frequency of a term counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrequencyWeights {
    pub(super) stemmed: f32,
    /// The weight for the word itself; 0 for its other inflections.
    pub(super) exact: f32,
}

impl Scratch {
    /// Makes room for a segment of `size` documents.
    pub(super) fn grow(&mut self, size: u32) {
        if self.scores.len() < size as usize {
            self.frequencies.resize(size as usize, Frequencies::default());
            self.scores.resize(size as usize, NO_SCORE);
            self.marks.resize((size as usize).div_ceil(u64::BITS as usize), 0);
        }
    }

    /// Marks some documents, the frequencies of which [`Scratch::add_marked`] adds. [`Scratch::unmark`] has to follow.
    pub(super) fn mark(&mut self, docs: &[DocId]) {
        for &doc in docs {
            if let Some(bits) = self.marks.get_mut(bits_of(doc)) {
                *bits |= 1 << (doc % u64::BITS);
            }
        }
    }

    /// Removes all marks, which are those of some documents.
    pub(super) fn unmark(&mut self, docs: &[DocId]) {
        for &doc in docs {
            if let Some(bits) = self.marks.get_mut(bits_of(doc)) {
                *bits = 0;
            }
        }
    }

    /// Returns the documents that have a score, in the order in which they got it.
    pub(super) fn scored(&self) -> &[DocId] {
        &self.scored
    }

    /// Sets the scores of some documents back to 0.
    pub(super) fn reset(&mut self, docs: &[DocId]) {
        for &doc in docs {
            if let Some(score) = self.scores.get_mut(doc as usize) {
                *score = 0.0;
            }
        }
    }

    /// Forgets all scores.
    pub(super) fn clear(&mut self) {
        for doc in self.scored.drain(..) {
            if let Some(score) = self.scores.get_mut(doc as usize) {
                *score = NO_SCORE;
            }
        }
    }

    /// Adds the frequencies of a term in some documents, divided by their length normalisation.
    pub(super) fn add(
        &mut self,
        docs: &[DocId],
        frequencies: &[u32],
        weights: FrequencyWeights,
        norms: &LengthNorms,
    ) {
        let is_new = |doc: DocId| self.frequencies.get(doc as usize).is_some_and(|sums| sums.is_none());
        extend_filtered(&mut self.containing, docs.iter().copied(), is_new);
        self.add_unlisted(docs, frequencies, weights, norms);
    }

    /// Adds them like [`Scratch::add`] for those documents that are marked.
    pub(super) fn add_marked(
        &mut self,
        docs: &[DocId],
        frequencies: &[u32],
        weights: FrequencyWeights,
        norms: &LengthNorms,
    ) {
        for (docs, frequencies) in docs.chunks(BLOCK).zip(frequencies.chunks(BLOCK)) {
            let (mut wanted, mut wanted_frequencies, mut count) = ([0; BLOCK], [0; BLOCK], 0_usize);
            for (&doc, &frequency) in docs.iter().zip(frequencies) {
                // Which documents are wanted cannot be guessed, so nothing branches on it.
                if let (Some(place), Some(place_of_frequency)) =
                    (wanted.get_mut(count), wanted_frequencies.get_mut(count))
                {
                    (*place, *place_of_frequency) = (doc, frequency);
                }
                let bits = self.marks.get(bits_of(doc)).copied().unwrap_or(0);
                count += usize::from(bits >> (doc % u64::BITS) & 1 == 1);
            }
            let wanted = wanted.get(..count).unwrap_or_default();
            self.add(wanted, wanted_frequencies.get(..count).unwrap_or_default(), weights, norms);
        }
    }

    /// Adds them like [`Scratch::add`], but does not list the documents: [`Scratch::list`] or [`Scratch::saturate_all`] has to
    /// follow.
    pub(super) fn add_unlisted(
        &mut self,
        docs: &[DocId],
        frequencies: &[u32],
        weights: FrequencyWeights,
        norms: &LengthNorms,
    ) {
        let sums = &mut self.frequencies;
        // The kind of norms is the same for all documents, so that it is not asked for each.
        match norms {
            LengthNorms::ByCode(reader, divisors) => {
                let divisor = |doc| divisors[usize::from(reader.fieldnorm_id(doc))];
                add_to(sums, docs, frequencies, weights, divisor);
            }
            LengthNorms::Sum(..) => add_to(sums, docs, frequencies, weights, |doc| norms.divisor(doc)),
        }
    }

    /// Lists the documents of a range whose frequency by stem is at least `least`, and forgets the frequencies of the others.
    pub(super) fn list(&mut self, range: Range<DocId>, least: f32) {
        let sum = |doc: DocId| self.frequencies.get(doc as usize).copied().unwrap_or_default();
        let is_enough = |doc| (sum(doc).stemmed >= least) & !sum(doc).is_none();
        extend_filtered(&mut self.containing, range.clone(), is_enough);
        let listed: Vec<Frequencies> = self.containing.iter().map(|&doc| sum(doc)).collect();
        if let Some(sums) = self.frequencies.get_mut(range.start as usize..range.end as usize) {
            sums.fill(Frequencies::default());
        }
        for (&doc, listed) in self.containing.iter().zip(listed) {
            if let Some(sum) = self.frequencies.get_mut(doc as usize) {
                *sum = listed;
            }
        }
    }

    /// Adds the scores of a word, idf · (k1 + 1) · tf / (k1 + tf) by stem and the same for the word itself. It then
    /// clears the frequencies for the next word.
    pub(super) fn saturate(&mut self, k1: f32, weights: FrequencyWeights) {
        for doc in self.containing.drain(..) {
            let index = doc as usize;
            if let (Some(sums), Some(score)) = (self.frequencies.get_mut(index), self.scores.get_mut(index)) {
                if !is_scored(*score) {
                    self.scored.push(doc);
                }
                *score = saturated(*score, std::mem::take(sums), k1, weights);
            }
        }
    }

    /// Adds the scores like [`Scratch::saturate`] to all documents of a range that contain the word.
    pub(super) fn saturate_all(&mut self, range: Range<DocId>, k1: f32, weights: FrequencyWeights) {
        let places = range.start as usize..range.end as usize;
        let (Some(sums), Some(scores)) =
            (self.frequencies.get_mut(places.clone()), self.scores.get_mut(places))
        else {
            return;
        };
        let is_new = |doc: DocId| {
            let at = (doc - range.start) as usize;
            sums.get(at).is_some_and(|sums| !sums.is_none())
                & scores.get(at).is_some_and(|score| !is_scored(*score))
        };
        extend_filtered(&mut self.scored, range.clone(), is_new);
        for (sums, score) in sums.iter().zip(scores) {
            let added = saturated(*score, *sums, k1, weights);
            *score = if sums.is_none() { *score } else { added };
        }
        sums.fill(Frequencies::default());
    }

    pub(super) fn score(&self, doc: DocId) -> f32 {
        self.scores.get(doc as usize).copied().unwrap_or(0.0)
    }
}

/// Returns the index of the bits of a document.
fn bits_of(doc: DocId) -> usize {
    (doc / u64::BITS) as usize
}

/// Returns a score with what a word adds to it.
#[inline]
fn saturated(score: f32, frequencies: Frequencies, k1: f32, weights: FrequencyWeights) -> f32 {
    let Frequencies { stemmed, exact } = frequencies;
    score
        + weights.stemmed * (k1 + 1.0) * stemmed / (k1 + stemmed)
        + weights.exact * (k1 + 1.0) * exact / (k1 + exact)
}

/// Adds the frequencies of a term in some documents to their sums.
#[inline]
fn add_to(
    sums: &mut [Frequencies],
    docs: &[DocId],
    frequencies: &[u32],
    weights: FrequencyWeights,
    divisor: impl Fn(DocId) -> f32,
) {
    for (&doc, &frequency) in docs.iter().zip(frequencies) {
        if let Some(sums) = sums.get_mut(doc as usize) {
            let (frequency, divisor) = (frequency as f32, divisor(doc));
            sums.stemmed += weights.stemmed * frequency / divisor;
            sums.exact += weights.exact * frequency / divisor;
        }
    }
}

/// Adds those documents to `found` for which `is_wanted` returns `true`.
pub(super) fn extend_filtered(
    found: &mut Vec<DocId>,
    docs: impl Iterator<Item = DocId>,
    is_wanted: impl Fn(DocId) -> bool,
) {
    let (mut chosen, mut count) = ([0; BLOCK], 0_usize);
    for doc in docs {
        // Which documents are wanted cannot be guessed, so only a full block branches.
        if let Some(place) = chosen.get_mut(count) {
            *place = doc;
            count += usize::from(is_wanted(doc));
        }
        if count == BLOCK {
            found.extend(chosen);
            count = 0;
        }
    }
    found.extend(chosen.iter().take(count));
}

/// Scratch memories for the next searches, so that a search need not clear memory for every note of the vault.
#[derive(Default)]
pub(super) struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    pub(super) fn take(&self) -> PooledScratch<'_> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        PooledScratch { pool: self, scratch: kept.unwrap_or_default() }
    }
}

/// A scratch memory that goes back to its pool when it is dropped.
pub(super) struct PooledScratch<'p> {
    pool: &'p ScratchPool,
    pub(super) scratch: Scratch,
}

impl Drop for PooledScratch<'_> {
    fn drop(&mut self) {
        self.scratch.clear();
        let mut pool = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An error leaves frequencies behind, and so may a panic.
        let is_empty = self.scratch.containing.is_empty() && !std::thread::panicking();
        if is_empty && pool.len() < MAX_SCRATCHES {
            pool.push(std::mem::take(&mut self.scratch));
        }
    }
}
