//! BM25F scores: of all notes that match a query, or, with MaxScore pruning (Turtle & Flood 1995), of those that can be
//! among the best. Both score a note by the same operations in the same order, so that the scores are equal to the last
//! bit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::columnar::ColumnValues;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{BlockSegmentPostings, Postings as _, TermInfo};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet as _, SegmentReader};

use super::stem_expansion::Expansion;
use super::{Bm25Query, Bm25Snapshot, DocSet, FieldTuning, Hit, Tuning, Word, failed, idf};
use crate::error::Result;
use crate::index::file_set::{FileId, FileSet};
use crate::parallel;

/// The part of a bound by which sums of `f32` in different orders may differ, and more.
const ROUNDING: f32 = 1e-4;
/// How many documents of a posting list are read in the time of a search for one in it.
const SEEK_COST: usize = 4;
/// How many documents of a bitset are passed in the time in which one of a list is sorted.
const SORTING_COST: usize = 32;
/// The most scratch memories that a snapshot keeps.
const MAX_SCRATCHES: usize = 4;

/// The terms of one field that match a word.
struct FieldTerms {
    field: Field,
    tuning: FieldTuning,
    expansion: Arc<Expansion>,
}

impl FieldTerms {
    /// Returns the terms that one segment has, unless the field does not count.
    fn in_segment(&self, at: usize) -> &[(Field, TermInfo)] {
        let counts = self.tuning.weight > 0.0;
        self.expansion.terms.get(at).filter(|_| counts).map_or(&[], Vec::as_slice)
    }
}

/// A word of a query with the terms that match it: those by stem, and those of the word itself. A note gets a score for
/// each, saturated by itself.
pub(super) struct ScoredWord {
    stemmed: Vec<FieldTerms>,
    stemmed_weight: f32,
    exact: Vec<FieldTerms>,
    exact_weight: f32,
}

impl ScoredWord {
    /// Returns a score that the word cannot exceed in any note.
    fn bound(&self, k1: f32) -> f32 {
        [self.stemmed_weight, self.exact_weight].iter().map(|weight| weight * (k1 + 1.0)).sum()
    }

    /// Returns how many postings its terms have, roughly: those of a document in one field count once.
    pub(super) fn postings(&self) -> u64 {
        self.stemmed.iter().map(|terms| terms.expansion.documents).sum()
    }

    /// Returns whether in one segment all terms of the word itself are among those by stem, in fields that count. Then one
    /// pass over their postings gives both frequencies.
    fn has_exact_within_stemmed(&self, at: usize) -> bool {
        self.exact.iter().all(|exact| {
            let stemmed = self.stemmed.iter().filter(|stemmed| stemmed.field == exact.field);
            let mut stemmed = stemmed.flat_map(|stemmed| stemmed.in_segment(at));
            exact.in_segment(at).iter().all(|term| stemmed.any(|other| other == term))
        })
    }
}

/// Working memory for the scores of one segment. It is empty between segments.
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
    /// Whether a document has a score.
    has_score: DocSet,
}

/// The weighted frequencies of a word in a document.
#[derive(Debug, Clone, Copy, Default)]
struct Frequencies {
    stemmed: f32,
    exact: f32,
}

/// The weights with which the frequency of a term counts.
#[derive(Debug, Clone, Copy)]
struct FrequencyWeights {
    stemmed: f32,
    /// The weight for the word itself; 0 for its other inflections.
    exact: f32,
}

impl Scratch {
    /// Makes room for a segment of `size` documents.
    fn grow(&mut self, size: u32) {
        if self.scores.len() < size as usize {
            self.frequencies.resize(size as usize, Frequencies::default());
            self.scores.resize(size as usize, 0.0);
            self.has_score = DocSet::new(size);
        }
    }

    /// Returns the number of documents that have a score.
    pub(super) fn scored(&self) -> usize {
        self.scored.len()
    }

    /// Forgets all scores.
    pub(super) fn clear(&mut self) {
        for doc in self.scored.drain(..) {
            self.has_score.remove(doc);
            if let Some(score) = self.scores.get_mut(doc as usize) {
                *score = 0.0;
            }
        }
    }

    #[inline]
    fn add_frequency(&mut self, doc: DocId, weights: FrequencyWeights, frequency: u32, divisor: f32) {
        if let Some(sums) = self.frequencies.get_mut(doc as usize) {
            if sums.stemmed == 0.0 && sums.exact == 0.0 {
                self.containing.push(doc);
            }
            sums.stemmed += weights.stemmed * frequency as f32 / divisor;
            sums.exact += weights.exact * frequency as f32 / divisor;
        }
    }

    /// Adds the scores of a word, idf · (k1 + 1) · tf / (k1 + tf) by stem and the same for the word itself, and clears its
    /// frequencies for the next one.
    fn saturate(&mut self, k1: f32, weights: FrequencyWeights) {
        for doc in self.containing.drain(..) {
            if self.has_score.insert(doc) {
                self.scored.push(doc);
            }
            let index = doc as usize;
            if let (Some(sums), Some(score)) = (self.frequencies.get_mut(index), self.scores.get_mut(index)) {
                let Frequencies { stemmed, exact } = std::mem::take(sums);
                *score += weights.stemmed * (k1 + 1.0) * stemmed / (k1 + stemmed);
                *score += weights.exact * (k1 + 1.0) * exact / (k1 + exact);
            }
        }
    }

    pub(super) fn score(&self, doc: DocId) -> f32 {
        self.scores.get(doc as usize).copied().unwrap_or(0.0)
    }
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
        // An error leaves frequencies behind.
        if self.scratch.containing.is_empty() && pool.len() < MAX_SCRATCHES {
            pool.push(std::mem::take(&mut self.scratch));
        }
    }
}

/// The best scores so far, the worst of them first.
pub(super) type BestScores = BinaryHeap<Reverse<OrderedScore>>;

/// A score that the last of the best notes has at least, whichever thread found them.
#[derive(Debug, Default)]
pub(super) struct LeastScore(AtomicU32);

impl LeastScore {
    fn get(&self) -> f32 {
        f32::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Raises the score to that of the last of some best scores, if there are as many as asked for.
    pub(super) fn raise(&self, best: &BestScores, limit: usize) {
        if let Some(Reverse(OrderedScore(last))) = best.peek().filter(|_| best.len() >= limit) {
            // The bits of numbers that are not negative have the order of the numbers.
            self.0.fetch_max(last.max(0.0).to_bits(), Ordering::Relaxed);
        }
    }
}

/// Scores documents of one segment.
pub(super) struct SegmentScorer<'a> {
    snapshot: &'a Bm25Snapshot,
    segment: &'a SegmentReader,
    /// The index of the segment.
    at: usize,
    query: &'a Bm25Query<'a>,
    k1: f32,
    /// The file of each document.
    files: Arc<dyn ColumnValues<u64>>,
    /// The length normalisation of each field that was needed.
    norms: Vec<(Field, LengthNorms)>,
}

/// The length normalisation of one field: the divisors of frequencies.
enum LengthNorms {
    /// The field alone has the length: the divisor by the code of a length.
    ByCode(FieldNormReader, Box<[f32; 256]>),
    /// Several fields have it together.
    Sum(Vec<FieldNormReader>, LengthDivisor),
}

/// The divisor of a frequency by the length of the text: 1 − b + b · length / mean.
#[derive(Clone, Copy)]
struct LengthDivisor {
    b: f32,
    min_length: f32,
    mean: f32,
}

impl LengthDivisor {
    fn of(self, length: u32) -> f32 {
        let length = (length as f32).max(self.min_length) / self.mean;
        1.0 - self.b + self.b * length
    }
}

impl LengthNorms {
    fn divisor(&self, doc: DocId) -> f32 {
        match self {
            Self::ByCode(reader, divisors) => divisors[usize::from(reader.fieldnorm_id(doc))],
            Self::Sum(readers, divisor) => {
                divisor.of(readers.iter().map(|reader| reader.fieldnorm(doc)).sum())
            }
        }
    }
}

impl Bm25Snapshot {
    /// Returns the documents of a segment that belong to some files and are not removed, in ascending order, each with its
    /// file.
    pub(super) fn documents_of(&self, segment: usize, files: &FileSet) -> Result<Vec<(DocId, FileId)>> {
        let segment = self.searcher.segment_readers().get(segment);
        segment.map_or_else(|| Ok(Vec::new()), |segment| self.file_documents.of_files(segment, files))
    }

    /// Finds the terms that match each word. The weight of a word is that in the query times its idf, separately for
    /// stemmed and for exact matches.
    pub(super) fn scored_words(&self, words: &[Word], tuning: &Tuning) -> Result<Vec<ScoredWord>> {
        if self.searcher.segment_readers().len() < 2 {
            return words.iter().map(|word| self.scored_word(word, tuning)).collect();
        }
        let scored = parallel::map_briefly(words, 1, || (), |(), word| self.scored_word(word, tuning));
        scored.into_iter().collect()
    }

    fn scored_word(&self, word: &Word, tuning: &Tuning) -> Result<ScoredWord> {
        let fields = self.fields;
        let frequency = self
            .document_frequency(word)?
            .max(self.expand_stem(fields.meta, &word.stem)?.documents)
            .max(self.documents_with(fields.code, &word.exact)?);
        let exact_frequency = self
            .documents_with(fields.words, &word.exact)?
            .max(self.documents_with(fields.title, &word.exact)?);
        let mut stemmed = Vec::new();
        for (field, tuning) in [
            (fields.title, tuning.title),
            (fields.headings, tuning.headings),
            (fields.words, tuning.body),
            (fields.code, tuning.code),
            (fields.meta, tuning.meta),
        ] {
            let expansion = if word.prefix {
                self.expand_prefix(field, &word.exact)?
            } else if field == fields.code {
                self.expand_exact(field, &word.exact)?
            } else {
                self.expand_stem(field, &word.stem)?
            };
            stemmed.push(FieldTerms { field, tuning, expansion });
        }
        let exact_weight = word.weight * tuning.exact * idf(self.documents, exact_frequency);
        let mut exact = Vec::new();
        if exact_weight > 0.0 {
            for (field, tuning) in [(fields.words, tuning.body), (fields.title, tuning.title)] {
                let tuning = FieldTuning { weight: 1.0, ..tuning };
                exact.push(FieldTerms { field, tuning, expansion: self.expand_exact(field, &word.exact)? });
            }
        }
        let stemmed_weight = word.weight * idf(self.documents, frequency);
        Ok(ScoredWord { stemmed, stemmed_weight, exact, exact_weight })
    }
}

impl<'a> SegmentScorer<'a> {
    pub(super) fn new(
        snapshot: &'a Bm25Snapshot,
        at: usize,
        query: &'a Bm25Query<'a>,
        tuning: &Tuning,
    ) -> Result<Option<Self>> {
        let Some(segment) = snapshot.searcher.segment_readers().get(at) else { return Ok(None) };
        let files = segment.fast_fields().u64("file").map_err(failed("read"))?.first_or_default_col(0);
        Ok(Some(Self { snapshot, segment, at, query, k1: tuning.k1, files, norms: Vec::new() }))
    }

    /// Scores the documents that can be among the best, and returns them.
    ///
    /// Words are taken by what they can add at most, which rare ones do most of all. Once the rest of them cannot lift a new
    /// document among the best, they are looked up only for the documents that still can get there.
    pub(super) fn find_best(
        &mut self,
        words: &[ScoredWord],
        (best, least): (&BestScores, &LeastScore),
        scratch: &mut Scratch,
    ) -> Result<Vec<DocId>> {
        scratch.grow(self.segment.max_doc());
        let bounds: Vec<f32> = words.iter().map(|word| word.bound(self.k1)).collect();
        let bound = |word: usize| bounds.get(word).copied().unwrap_or(f32::INFINITY);
        let mut order: Vec<usize> = (0..words.len()).collect();
        order.sort_by(|&one, &other| bound(other).total_cmp(&bound(one)));
        let is_query_order = order.is_sorted();
        let known = least.get();
        let (mut scanned, mut candidates): (f32, Option<Vec<DocId>>) = (0.0, None);
        for (position, &at) in order.iter().enumerate() {
            let rest: f32 = order.iter().skip(position).map(|&word| bound(word)).sum();
            if candidates.is_some() || rest < scanned.max(known) {
                // No document that has none of the words before it reaches the least score, nor does one that lags too far
                // behind. With each word the least score rises and the rest falls.
                let scored = candidates.as_ref().unwrap_or(&scratch.scored);
                let least = self.least_score(best, scored, scratch).max(known * (1.0 - ROUNDING));
                if rest < least {
                    candidates = Some(self.within(least - rest, candidates.as_deref(), scratch));
                }
            }
            if let Some(word) = words.get(at) {
                self.score_word(word, candidates.as_deref(), scratch)?;
            }
            scanned += bound(at);
        }
        let scored = candidates.as_ref().unwrap_or(&scratch.scored);
        let least = self.least_score(best, scored, scratch).max(known * (1.0 - ROUNDING));
        let found = self.within(least, candidates.as_deref(), scratch);
        if !is_query_order {
            for &doc in &found {
                if let Some(score) = scratch.scores.get_mut(doc as usize) {
                    *score = 0.0;
                }
            }
            for word in words {
                self.score_word(word, Some(&found), scratch)?;
            }
        }
        Ok(found)
    }

    /// Scores all documents, and returns those that contain a word and are not removed.
    pub(super) fn score_all(&mut self, words: &[ScoredWord], scratch: &mut Scratch) -> Result<Vec<DocId>> {
        scratch.grow(self.segment.max_doc());
        for word in words {
            self.score_word(word, None, scratch)?;
        }
        Ok(scratch.scored.iter().copied().filter(|&doc| !self.segment.is_deleted(doc)).collect())
    }

    /// Scores those of some files that contain a word, and returns them with their scores, which are the same as those that
    /// [`SegmentScorer::find_best`] gives.
    pub(super) fn scores_of(
        &mut self,
        words: &[ScoredWord],
        files: &FileSet,
        scratch: &mut Scratch,
    ) -> Result<Vec<(FileId, f32)>> {
        let docs = self.snapshot.documents_of(self.at, files)?;
        let docs: Vec<DocId> = docs.into_iter().map(|(doc, _)| doc).collect();
        scratch.grow(self.segment.max_doc());
        for word in words.iter().filter(|_| !docs.is_empty()) {
            self.score_word(word, Some(&docs), scratch)?;
        }
        Ok(scratch.scored.iter().map(|&doc| (self.file(doc), scratch.score(doc))).collect())
    }

    /// Returns a score that the last of the best documents has at least, less an allowance for rounding; 0 while there are
    /// fewer. Of this segment, only `docs` are among them.
    fn least_score(&self, best: &BestScores, docs: &[DocId], scratch: &Scratch) -> f32 {
        let mut best = best.clone();
        for &doc in docs {
            let score = OrderedScore(scratch.score(doc));
            let is_full = best.len() >= self.query.limit;
            if is_full && best.peek().is_some_and(|Reverse(worst)| score <= *worst) || !self.may_be_found(doc)
            {
                continue;
            }
            best.push(Reverse(score));
            if is_full {
                best.pop();
            }
        }
        let last = best.peek().filter(|_| best.len() >= self.query.limit);
        last.map_or(0.0, |Reverse(score)| score.0 * (1.0 - ROUNDING))
    }

    /// Returns those documents in ascending order that have a score of at least `least`, less an allowance for rounding. They
    /// are among `candidates`, which ascend, or among all that have a score.
    fn within(&self, least: f32, candidates: Option<&[DocId]>, scratch: &Scratch) -> Vec<DocId> {
        let least = least - least.abs() * ROUNDING;
        let is_within = |doc: &DocId| scratch.score(*doc) >= least && self.may_be_found(*doc);
        if let Some(docs) = candidates {
            return docs.iter().copied().filter(is_within).collect();
        }
        if scratch.scored.len() * SORTING_COST > self.segment.max_doc() as usize {
            return scratch.has_score.iter().filter(is_within).collect();
        }
        let mut found: Vec<DocId> = scratch.scored.iter().copied().filter(is_within).collect();
        found.sort_unstable();
        found
    }

    /// Returns whether a document is a note that exists and may be found.
    fn may_be_found(&self, doc: DocId) -> bool {
        !self.segment.is_deleted(doc) && self.query.allowed.is_none_or(|files| files.contains(self.file(doc)))
    }

    fn file(&self, doc: DocId) -> FileId {
        self.files.get_val(doc) as FileId
    }

    /// Adds the hits among documents that have their scores, as far as they are among the best so far.
    pub(super) fn add_hits(
        &self,
        docs: &[DocId],
        scratch: &Scratch,
        best: &mut BestScores,
        hits: &mut Vec<Hit>,
    ) {
        for &doc in docs {
            let score = scratch.score(doc);
            let candidate = OrderedScore(score);
            let is_full = best.len() >= self.query.limit;
            if is_full && best.peek().is_some_and(|Reverse(worst)| candidate < *worst) {
                continue;
            }
            let file = self.file(doc);
            if self.query.allowed.is_some_and(|set| !set.contains(file)) {
                continue;
            }
            hits.push(Hit { file, score });
            best.push(Reverse(candidate));
            if best.len() > self.query.limit {
                best.pop();
            }
        }
    }

    /// Adds the score of a word, to all documents or to `candidates`, which ascend.
    fn score_word(
        &mut self,
        word: &ScoredWord,
        candidates: Option<&[DocId]>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let is_one_pass = word.has_exact_within_stemmed(self.at);
        for terms in &word.stemmed {
            let exact = word.exact.iter().find(|exact| is_one_pass && exact.field == terms.field);
            let exact = exact.map_or(&[][..], |exact| exact.in_segment(self.at));
            for term in terms.in_segment(self.at) {
                let exact = if exact.contains(term) { 1.0 } else { 0.0 };
                let weights = FrequencyWeights { stemmed: terms.tuning.weight, exact };
                self.add_frequencies(terms, term, weights, candidates, scratch)?;
            }
        }
        for terms in word.exact.iter().filter(|_| !is_one_pass) {
            for term in terms.in_segment(self.at) {
                let weights = FrequencyWeights { stemmed: 0.0, exact: terms.tuning.weight };
                self.add_frequencies(terms, term, weights, candidates, scratch)?;
            }
        }
        let weights = FrequencyWeights { stemmed: word.stemmed_weight, exact: word.exact_weight };
        scratch.saturate(self.k1, weights);
        Ok(())
    }

    /// Adds the weighted, length-normalised frequencies of a term in one field.
    fn add_frequencies(
        &mut self,
        FieldTerms { field, tuning, .. }: &FieldTerms,
        (part, term): &(Field, TermInfo),
        weights: FrequencyWeights,
        candidates: Option<&[DocId]>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if !self.norms.iter().any(|(known, _)| known == field) {
            self.norms.push((*field, self.length_norms(*field, *tuning)?));
        }
        let Some((_, norms)) = self.norms.iter().find(|(known, _)| known == field) else { return Ok(()) };
        match candidates {
            None => self.add_all(*part, term, weights, norms, scratch),
            Some(docs) if docs.len() * SEEK_COST < term.doc_freq as usize => {
                self.add_sought(*part, term, weights, norms, docs, scratch)
            }
            Some(docs) => self.add_common(*part, term, weights, norms, docs, scratch),
        }
    }

    /// Opens the blocks of postings of a term.
    fn open_blocks(&self, part: Field, term: &TermInfo) -> Result<BlockSegmentPostings> {
        let inverted = self.segment.inverted_index(part).map_err(failed("read"))?;
        let mut postings = inverted
            .read_block_postings_from_terminfo(term, IndexRecordOption::WithFreqs)
            .map_err(|error| failed("read")(error.into()))?;
        postings.seek(0);
        Ok(postings)
    }

    /// Adds the frequencies of all documents that contain a term.
    fn add_all(
        &self,
        part: Field,
        term: &TermInfo,
        weights: FrequencyWeights,
        norms: &LengthNorms,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut postings = self.open_blocks(part, term)?;
        scratch.containing.reserve(term.doc_freq as usize);
        while !postings.docs().is_empty() {
            let found = postings.docs().iter().zip(postings.freqs());
            // The kind of norms is the same for all documents, so that it is not asked for each.
            match norms {
                LengthNorms::ByCode(reader, divisors) => found.for_each(|(&doc, &frequency)| {
                    let divisor = divisors[usize::from(reader.fieldnorm_id(doc))];
                    scratch.add_frequency(doc, weights, frequency, divisor);
                }),
                LengthNorms::Sum(..) => found.for_each(|(&doc, &frequency)| {
                    scratch.add_frequency(doc, weights, frequency, norms.divisor(doc));
                }),
            }
            postings.advance();
        }
        Ok(())
    }

    /// Adds the frequencies of those of some documents, which ascend, that contain a term. It reads all postings of the term.
    fn add_common(
        &self,
        part: Field,
        term: &TermInfo,
        weights: FrequencyWeights,
        norms: &LengthNorms,
        docs: &[DocId],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut postings = self.open_blocks(part, term)?;
        let mut docs = docs.iter().copied().peekable();
        while !postings.docs().is_empty() && docs.peek().is_some() {
            for (&doc, &frequency) in postings.docs().iter().zip(postings.freqs()) {
                while docs.next_if(|wanted| *wanted < doc).is_some() {}
                if docs.next_if_eq(&doc).is_some() {
                    scratch.add_frequency(doc, weights, frequency, norms.divisor(doc));
                }
            }
            postings.advance();
        }
        Ok(())
    }

    /// Adds the frequencies of those of some documents, which ascend, that contain a term. It searches for each in the
    /// postings of the term.
    fn add_sought(
        &self,
        part: Field,
        term: &TermInfo,
        weights: FrequencyWeights,
        norms: &LengthNorms,
        docs: &[DocId],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let inverted = self.segment.inverted_index(part).map_err(failed("read"))?;
        let mut postings = inverted
            .read_postings_from_terminfo(term, IndexRecordOption::WithFreqs)
            .map_err(|error| failed("read")(error.into()))?;
        for &doc in docs {
            if postings.doc() < doc {
                postings.seek(doc);
            }
            if postings.doc() == doc {
                scratch.add_frequency(doc, weights, postings.term_freq(), norms.divisor(doc));
            }
        }
        Ok(())
    }

    fn length_norms(&self, field: Field, tuning: FieldTuning) -> Result<LengthNorms> {
        let fields = self.snapshot.fields.scored_together(field);
        let reader = |part| self.segment.get_fieldnorms_reader(part).map_err(failed("read"));
        let readers = fields.into_iter().map(reader).collect::<Result<Vec<_>>>()?;
        let lengths = &self.snapshot.lengths;
        let min_length = lengths.min_length(tuning);
        let mean = lengths.means.get(&field).copied().unwrap_or(1.0).max(min_length);
        let divisor = LengthDivisor { b: tuning.b, min_length, mean };
        let by_code = || Box::new(std::array::from_fn(|code| divisor.of(length_of_code(code))));
        Ok(match <[FieldNormReader; 1]>::try_from(readers) {
            Ok([reader]) => LengthNorms::ByCode(reader, by_code()),
            Err(readers) => LengthNorms::Sum(readers, divisor),
        })
    }
}

/// Returns the length that a code of tantivy's field norms stands for.
fn length_of_code(code: usize) -> u32 {
    FieldNormReader::id_to_fieldnorm(u8::try_from(code).unwrap_or(u8::MAX))
}

/// A score with a total order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OrderedScore(pub(super) f32);

impl Eq for OrderedScore {}

impl PartialOrd for OrderedScore {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedScore {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
