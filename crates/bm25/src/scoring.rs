//! BM25F scores. All notes that match a query are scored, or, with MaxScore pruning (Turtle & Flood 1995), only those
//! that can be among the best. Both ways score a note by the same operations in the same order, so the scores are equal
//! to the last bit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sidenote_base::error::Result;
use sidenote_sets::file_set::{FileId, FileSet};
use tantivy::postings::{BlockSegmentPostings, Postings as _, TermInfo};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet as _, SegmentReader};

use super::doc_ranges::DocRange;
use super::file_documents::FileColumn;
use super::largest_frequencies::{Counted, Frequencies, LargestFrequencies};
use super::length_norms::{LargestByLength, LengthNorms};
use super::scratch::{FrequencyWeights, Scratch, extend_filtered, is_scored};
use super::stem_expansion::Expansion;
use super::{
    Bm25Query, Bm25Snapshot, DocSet, FieldTuning, Hit, Tuning, WHOLE_TERM_WEIGHT, Word, failed, idf,
};

/// The rounding allowance: a share of a bound. Sums of `f32` in different orders differ by less.
const ROUNDING: f32 = 1e-4;
/// The cost of a seek in a posting list, in documents that are read one after the other.
const SEEK_COST: usize = 16;
/// A frequency that stands for infinity: its score differs from the limit by less than rounding.
const MOST_FREQUENCY: f32 = 1e9;
/// The number of steps of the bisection that finds a frequency.
const HALVINGS: usize = 20;
/// The size of a window: the documents whose frequencies are added up before the documents are chosen.
const WINDOW: usize = 8192;
/// A word with a posting for every `LISTED_SHARE` documents is scored in windows if only large frequencies count. To
/// walk the sums of all documents and pick the large ones then takes less time than to list the documents that contain
/// the word.
const LISTED_SHARE: usize = 8;
/// The same share if every document counts: a word with a posting for every `WHOLE_SHARE` documents is scored in
/// windows.
const WHOLE_SHARE: usize = 4;
/// The cost of looking up the score of one listed document, in scores that are read one after the other.
const LISTED_COST: usize = 3;

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

/// A word of a query with the terms that match it: those with its stem, and those that are the word itself. A note gets
/// a score for each of the two, and each is saturated separately.
pub(super) struct ScoredWord {
    stemmed: Vec<FieldTerms>,
    stemmed_weight: f32,
    exact: Vec<FieldTerms>,
    exact_weight: f32,
    pub(super) largest: Arc<LargestFrequencies>,
}

impl ScoredWord {
    /// Returns an upper bound of the word's score in any note of a segment, except for rounding.
    fn bound(&self, at: usize, k1: f32) -> f32 {
        self.largest.get(at).map_or_else(|| self.bound_of_any(k1), |largest| self.score(largest, k1))
    }

    /// Returns an upper bound of the word's score in any note of any index.
    pub(super) fn bound_of_any(&self, k1: f32) -> f32 {
        (self.stemmed_weight + self.exact_weight) * (k1 + 1.0)
    }

    /// Returns the score of a document with these frequencies, except for rounding.
    fn score(&self, frequencies: Frequencies, k1: f32) -> f32 {
        let saturated = |frequency: f32| (k1 + 1.0) * frequency / (k1 + frequency);
        self.stemmed_weight * saturated(frequencies.stemmed)
            + self.exact_weight * saturated(frequencies.exact)
    }

    /// Returns the least frequency by stem with which the word can add `needed` to the score of a document, except for
    /// rounding; infinity if no document of the segment can get so much. The frequency of the word itself is at most
    /// `exact_share` times the frequency by stem.
    fn least_stemmed(&self, at: usize, needed: f32, k1: f32, exact_share: f32) -> f32 {
        if self.bound(at, k1) * (1.0 + ROUNDING) < needed {
            return f32::INFINITY;
        }
        let score = |stemmed: f32| self.score(Frequencies { stemmed, exact: stemmed * exact_share }, k1);
        // A saturated frequency, f / (k1 + f), is between 0 and 1.
        let frequency = |saturated: f32| k1 * saturated / (1.0 - saturated);
        let (mut below, mut above) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = (below + above) / 2.0;
            if score(frequency(middle)) < needed {
                below = middle;
            } else {
                above = middle;
            }
        }
        frequency(below)
    }

    /// Returns the weights of its two scores.
    fn weights(&self) -> FrequencyWeights {
        FrequencyWeights { stemmed: self.stemmed_weight, exact: self.exact_weight }
    }

    /// Returns roughly how many postings its terms have: those of a document in one field count once.
    pub(super) fn postings(&self) -> u64 {
        self.stemmed.iter().map(|terms| terms.expansion.documents).sum()
    }

    /// Returns whether all terms of the word itself are among the terms by stem, in one segment and in the fields that
    /// count. Then one pass over the postings gives both frequencies.
    fn has_exact_within_stemmed(&self, at: usize) -> bool {
        self.exact.iter().all(|exact| {
            let stemmed = self.stemmed.iter().filter(|stemmed| stemmed.field == exact.field);
            let mut stemmed = stemmed.flat_map(|stemmed| stemmed.in_segment(at));
            exact.in_segment(at).iter().all(|term| stemmed.any(|other| other == term))
        })
    }
}

/// The best scores so far, the worst of them first.
pub(super) type BestScores = BinaryHeap<Reverse<OrderedScore>>;

/// A lower bound of the score of the last of the best notes, shared by all threads.
#[derive(Debug, Default)]
pub(super) struct LeastScore(AtomicU32);

impl LeastScore {
    fn get(&self) -> f32 {
        f32::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Raises the bound to the worst of these best scores, if there are as many as the query asks for.
    pub(super) fn raise(&self, best: &BestScores, limit: usize) {
        if let Some(Reverse(OrderedScore(last))) = best.peek().filter(|_| best.len() >= limit) {
            // The bits of numbers that are not negative have the order of the numbers.
            self.0.fetch_max(last.max(0.0).to_bits(), Ordering::Relaxed);
        }
    }
}

/// A term of a word in one segment, and the weight of its frequency.
struct WeightedTerm<'w> {
    field: Field,
    info: &'w TermInfo,
    weights: FrequencyWeights,
    /// The length normalisation of the field, and those that are scored together with it.
    norms: Rc<LengthNorms>,
    /// The documents in which the term does not count.
    except: Option<Arc<DocSet>>,
}

impl WeightedTerm<'_> {
    /// Returns how many documents contain the term.
    fn postings(&self) -> usize {
        self.info.doc_freq as usize
    }
}

/// The postings of a term, and where in a block the next one is.
struct PostingCursor {
    postings: BlockSegmentPostings,
    at: usize,
    /// The documents that are skipped.
    except: Option<Arc<DocSet>>,
    /// The documents of a block that are not skipped, with their frequencies.
    rest: (Vec<DocId>, Vec<u32>),
}

impl PostingCursor {
    /// Calls `visit` with the documents before `end`, and with the frequencies in them, block by block.
    fn visit_until(&mut self, end: DocId, visit: &mut impl FnMut(&[DocId], &[u32])) {
        loop {
            let (docs, frequencies) = (self.postings.docs(), self.postings.freqs());
            let to = docs.partition_point(|&doc| doc < end);
            if let (Some(docs), Some(frequencies)) = (docs.get(self.at..to), frequencies.get(self.at..to)) {
                if let Some(except) = &self.except {
                    let (counted, counts) = &mut self.rest;
                    counted.clear();
                    counts.clear();
                    for (&doc, &frequency) in docs.iter().zip(frequencies) {
                        if !except.contains(doc) {
                            counted.push(doc);
                            counts.push(frequency);
                        }
                    }
                    visit(counted, counts);
                } else {
                    visit(docs, frequencies);
                }
            }
            self.at = to;
            // The rest lies behind the end, or there is none.
            if to < docs.len() || docs.is_empty() {
                return;
            }
            self.postings.advance();
            self.at = 0;
        }
    }
}

/// Scores a range of the documents of one segment.
pub(super) struct SegmentScorer<'a> {
    snapshot: &'a Bm25Snapshot,
    segment: &'a SegmentReader,
    /// The index of the segment.
    at: usize,
    /// The documents that are scored.
    range: Range<DocId>,
    query: &'a Bm25Query<'a>,
    k1: f32,
    /// The file of each document.
    files: FileColumn,
    /// The length normalisation of each field that was needed.
    norms: Vec<(Field, Rc<LengthNorms>)>,
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
        self.look_up(words)?;
        let has_compounds = self.languages()?.counts_compounds(words.len());
        words.iter().map(|word| self.scored_word(word, tuning, has_compounds)).collect()
    }

    fn scored_word(&self, word: &Word, tuning: &Tuning, has_compounds: bool) -> Result<ScoredWord> {
        let fields = self.fields;
        let mut frequency = self
            .document_frequency(word)?
            .max(self.expand_stem(fields.meta, word)?.documents)
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
                self.expand_stem(field, word)?
            };
            stemmed.push(FieldTerms { field, tuning, expansion });
        }
        // A compound says less about its part than the part itself does.
        if has_compounds {
            for (field, tuning) in [(fields.title, tuning.title), (fields.words, tuning.body)] {
                let tuning = FieldTuning { weight: tuning.weight * WHOLE_TERM_WEIGHT, ..tuning };
                let expansion = self.expand_compounds(field, word)?;
                frequency = frequency.max(expansion.documents);
                stemmed.push(FieldTerms { field, tuning, expansion });
            }
        }
        let exact_weight = word.weight * tuning.exact * idf(self.documents, exact_frequency);
        let mut exact = Vec::new();
        if exact_weight > 0.0 {
            for (field, tuning) in [(fields.words, tuning.body), (fields.title, tuning.title)] {
                let tuning = FieldTuning { weight: 1.0, ..tuning };
                let expansion = self.expand_exact(field, &word.exact)?;
                exact.push(FieldTerms { field, tuning, expansion });
            }
        }
        let stemmed_weight = word.weight * idf(self.documents, frequency);
        let counted = Counted { exact: exact_weight > 0.0, compounds: has_compounds };
        let segments = self.searcher.segment_readers().len();
        let largest = self.largest_frequencies.of(word, counted, tuning, segments);
        Ok(ScoredWord { stemmed, stemmed_weight, exact, exact_weight, largest })
    }
}

impl<'a> SegmentScorer<'a> {
    pub(super) fn new(
        snapshot: &'a Bm25Snapshot,
        DocRange { segment: at, docs }: &DocRange,
        query: &'a Bm25Query<'a>,
        tuning: &Tuning,
    ) -> Result<Option<Self>> {
        let (at, range) = (*at, docs.clone());
        let Some(segment) = snapshot.searcher.segment_readers().get(at) else { return Ok(None) };
        let files = snapshot.file_columns.of(at, segment)?;
        let (k1, norms) = (tuning.k1, Vec::new());
        Ok(Some(Self { snapshot, segment, at, range, query, k1, files, norms }))
    }

    /// Finds an upper bound of the frequencies of a word in the documents of the range: the sums of the largest
    /// frequency of each term.
    pub(super) fn largest_frequencies(&mut self, word: &ScoredWord) -> Result<Frequencies> {
        let mut sum = Frequencies::default();
        for term in &self.weighted_terms(word)? {
            let mut largest = LargestByLength::default();
            self.for_each_block(term, |docs, frequencies| largest.add(docs, frequencies, &term.norms))?;
            let largest = largest.divided(&term.norms);
            sum.stemmed += term.weights.stemmed * largest;
            sum.exact += term.weights.exact * largest;
        }
        Ok(sum)
    }

    /// Scores the documents that can be among the best, and returns them.
    ///
    /// Words are scored in the order of their upper bounds, so that rare words come first. Once the remaining words
    /// together cannot lift a new document into the best, they are looked up only for the documents that can still get
    /// there.
    pub(super) fn find_best(
        &mut self,
        words: &[ScoredWord],
        (best, least): (&BestScores, &LeastScore),
        scratch: &mut Scratch,
    ) -> Result<Vec<DocId>> {
        scratch.grow(self.segment.max_doc());
        let bounds: Vec<f32> = words.iter().map(|word| word.bound(self.at, self.k1)).collect();
        let bound = |word: usize| bounds.get(word).copied().unwrap_or(f32::INFINITY);
        let mut order: Vec<usize> = (0..words.len()).collect();
        order.sort_by(|&one, &other| bound(other).total_cmp(&bound(one)));
        let is_query_order = order.is_sorted();
        let (mut scanned, mut candidates): (f32, Option<Vec<DocId>>) = (0.0, None);
        for (position, &at) in order.iter().enumerate() {
            let others: f32 = order.iter().skip(position + 1).map(|&word| bound(word)).sum();
            let rest = bound(at) + others;
            let known = least.get() * (1.0 - ROUNDING);
            if candidates.is_some() || rest < scanned.max(known) {
                // A document without any of the earlier words cannot reach the least score, and neither can one that is
                // too far below it. With each word, the least score rises and the rest falls.
                let scored = candidates.as_deref().unwrap_or(scratch.scored());
                let least = self.least_score(best, scored, scratch).max(known);
                if rest < least {
                    candidates = Some(self.within(least - rest, candidates.as_deref(), scratch));
                }
            }
            if candidates.as_ref().is_some_and(Vec::is_empty) {
                return Ok(Vec::new());
            }
            let Some(word) = words.get(at) else { continue };
            // What the first word must add for a document to reach the least score.
            let needed = known - others * (1.0 + ROUNDING);
            if position > 0 || needed <= 0.0 || !self.score_enough(word, needed, scratch)? {
                self.score_word(word, candidates.as_deref(), scratch)?;
            }
            scanned += bound(at);
        }
        let scored = candidates.as_deref().unwrap_or(scratch.scored());
        let least = self.least_score(best, scored, scratch).max(least.get() * (1.0 - ROUNDING));
        let found = self.within(least, candidates.as_deref(), scratch);
        if !is_query_order {
            scratch.reset(&found);
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
        Ok(scratch.scored().iter().copied().filter(|&doc| !self.segment.is_deleted(doc)).collect())
    }

    /// Scores those of the given files that contain a word, and returns them with their scores, which equal those of
    /// [`SegmentScorer::find_best`].
    pub(super) fn scores_of(
        &mut self,
        words: &[ScoredWord],
        files: &FileSet,
        scratch: &mut Scratch,
    ) -> Result<Vec<(FileId, f32)>> {
        let docs = self.snapshot.documents_of(self.at, files)?;
        let docs: Vec<DocId> = docs.into_iter().map(|(doc, _)| doc).collect();
        scratch.grow(self.segment.max_doc());
        for word in words {
            self.score_word(word, Some(&docs), scratch)?;
        }
        Ok(scratch.scored().iter().map(|&doc| (self.file(doc), scratch.score(doc))).collect())
    }

    /// Returns a lower bound of the score of the last of the best documents, less an allowance for rounding; 0 while
    /// there are fewer documents than the query asks for. Of this segment, only `docs` are counted.
    fn least_score(&self, best: &BestScores, docs: &[DocId], scratch: &Scratch) -> f32 {
        let mut best = best.clone();
        let last = |best: &BestScores| {
            let last = best.peek().filter(|_| best.len() >= self.query.limit);
            last.map_or(f32::NEG_INFINITY, |Reverse(score)| score.0)
        };
        let mut worst = last(&best);
        for &doc in docs {
            let score = scratch.score(doc);
            if score > worst && self.may_be_found(doc) {
                best.push(Reverse(OrderedScore(score)));
                if best.len() > self.query.limit {
                    best.pop();
                }
                worst = last(&best);
            }
        }
        if worst.is_finite() { worst * (1.0 - ROUNDING) } else { 0.0 }
    }

    /// Returns the documents with a score of at least `least`, less an allowance for rounding, in ascending order. They
    /// are chosen among `candidates`, which ascend, or among all documents that have a score.
    fn within(&self, least: f32, candidates: Option<&[DocId]>, scratch: &Scratch) -> Vec<DocId> {
        let least = least - least.abs() * ROUNDING;
        let is_within = |doc: DocId| scratch.score(doc) >= least;
        let mut found = Vec::new();
        if let Some(docs) = candidates {
            extend_filtered(&mut found, docs.iter().copied(), is_within);
        } else if scratch.scored().len() * LISTED_COST > self.range.len() {
            let is_within = |doc| is_within(doc) & is_scored(scratch.score(doc));
            extend_filtered(&mut found, self.range.clone(), is_within);
        } else {
            extend_filtered(&mut found, scratch.scored().iter().copied(), is_within);
            // The list consists of ascending runs, one for each term, which makes a stable sort fast.
            found.sort();
        }
        found.retain(|&doc| self.may_be_found(doc));
        found
    }

    /// Returns whether a document is a note that exists and may be found.
    fn may_be_found(&self, doc: DocId) -> bool {
        !self.segment.is_deleted(doc) && self.query.allowed.is_none_or(|files| files.contains(self.file(doc)))
    }

    fn file(&self, doc: DocId) -> FileId {
        self.files.get_val(doc) as FileId
    }

    /// Adds those of the scored documents to the hits that are among the best so far.
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

    /// Returns the terms of a word in the order in which their frequencies are added up.
    fn weighted_terms<'w>(&mut self, word: &'w ScoredWord) -> Result<Vec<WeightedTerm<'w>>> {
        // In documents in which a term does not count by stem, it counts as the word itself.
        let languages = self.snapshot.languages()?;
        let is_one_pass = !languages.has_stems(self.at) && word.has_exact_within_stemmed(self.at);
        let mut found = Vec::new();
        for terms in &word.stemmed {
            let exact = word.exact.iter().find(|exact| is_one_pass && exact.field == terms.field);
            let exact = exact.map_or(&[][..], |exact| exact.in_segment(self.at));
            let stemmed_in = terms.expansion.stemmed_in.get(self.at).map_or(&[][..], Vec::as_slice);
            for (at, term) in terms.in_segment(self.at).iter().enumerate() {
                let exact = if exact.contains(term) { 1.0 } else { 0.0 };
                let weights = FrequencyWeights { stemmed: terms.tuning.weight, exact };
                let norms = self.norms(terms)?;
                let except = stemmed_in.get(at).and_then(|&set| languages.documents_in(self.at, set));
                found.push(WeightedTerm { field: term.0, info: &term.1, weights, norms, except });
            }
        }
        for terms in word.exact.iter().filter(|_| !is_one_pass) {
            for term in terms.in_segment(self.at) {
                let weights = FrequencyWeights { stemmed: 0.0, exact: terms.tuning.weight };
                let norms = self.norms(terms)?;
                found.push(WeightedTerm { field: term.0, info: &term.1, weights, norms, except: None });
            }
        }
        Ok(found)
    }

    /// Returns roughly how many documents of the range contain a term.
    fn postings_in_range(&self, term: &WeightedTerm<'_>) -> usize {
        term.postings() * self.range.len() / (self.segment.max_doc() as usize).max(1)
    }

    /// Adds the score of a word, to all documents or to `candidates`, which ascend.
    fn score_word(
        &mut self,
        word: &ScoredWord,
        candidates: Option<&[DocId]>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if candidates.is_some_and(<[DocId]>::is_empty) {
            return Ok(());
        }
        let terms = self.weighted_terms(word)?;
        let Some(docs) = candidates else {
            if self.are_in(WHOLE_SHARE, &terms) {
                return self.score_windows(word, &terms, None, scratch);
            }
            for term in &terms {
                self.add_all(term, scratch)?;
            }
            scratch.saturate(self.k1, word.weights());
            return Ok(());
        };
        let is_sought = |term: &WeightedTerm<'_>| docs.len() * SEEK_COST < self.postings_in_range(term);
        let marked = if terms.iter().all(is_sought) { &[] } else { docs };
        scratch.mark(marked);
        // The terms keep their order, on which the last bits of the sums depend.
        let added = terms.iter().try_for_each(|term| {
            let add = if is_sought(term) { Self::add_sought } else { Self::add_marked };
            add(self, term, docs, scratch)
        });
        scratch.unmark(marked);
        added?;
        scratch.saturate(self.k1, word.weights());
        Ok(())
    }

    /// Adds the score of a word to all documents in which it is at least `needed`, and to a few others. If the word is
    /// in few documents, it adds nothing and returns `false`. A document that is left out stays below the least score
    /// whatever the later words add.
    fn score_enough(&mut self, word: &ScoredWord, needed: f32, scratch: &mut Scratch) -> Result<bool> {
        let terms = self.weighted_terms(word)?;
        if !self.are_in(LISTED_SHARE, &terms) {
            return Ok(false);
        }
        let share = |term: &WeightedTerm<'_>| match term.weights {
            FrequencyWeights { exact, .. } if exact <= 0.0 => 0.0,
            FrequencyWeights { stemmed, .. } if stemmed <= 0.0 => MOST_FREQUENCY,
            FrequencyWeights { stemmed, exact } => exact / stemmed,
        };
        let exact_share = terms.iter().map(share).fold(0.0, f32::max);
        let least = word.least_stemmed(self.at, needed, self.k1, exact_share);
        if least.is_infinite() {
            return Ok(true);
        }
        self.score_windows(word, &terms, Some(least * (1.0 - ROUNDING)), scratch)?;
        Ok(true)
    }

    /// Returns whether roughly one in `share` documents of the segment contains one of the terms.
    fn are_in(&self, share: usize, terms: &[WeightedTerm<'_>]) -> bool {
        let postings: usize = terms.iter().map(WeightedTerm::postings).sum();
        postings * share >= self.segment.max_doc() as usize
    }

    /// Adds the score of a word to all documents, or to those whose frequency by stem is at least `least`.
    fn score_windows(
        &self,
        word: &ScoredWord,
        terms: &[WeightedTerm<'_>],
        least: Option<f32>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let opened: Result<Vec<_>> = terms.iter().map(|term| self.open_blocks(term)).collect();
        let mut cursors = opened?;
        // The frequencies of one window fit into the cache of the processor.
        for start in self.range.clone().step_by(WINDOW) {
            let window = start..start.saturating_add(WINDOW as DocId).min(self.range.end);
            for (term, cursor) in terms.iter().zip(&mut cursors) {
                cursor.visit_until(window.end, &mut |docs, frequencies| {
                    scratch.add_unlisted(docs, frequencies, term.weights, &term.norms);
                });
            }
            if let Some(least) = least {
                scratch.list(window, least);
                scratch.saturate(self.k1, word.weights());
            } else {
                scratch.saturate_all(window, self.k1, word.weights());
            }
        }
        Ok(())
    }

    /// Adds the frequencies of all documents that contain a term.
    fn add_all(&self, term: &WeightedTerm<'_>, scratch: &mut Scratch) -> Result<()> {
        self.for_each_block(term, |docs, frequencies| {
            scratch.add(docs, frequencies, term.weights, &term.norms);
        })
    }

    /// Calls `visit` with the documents of the range that contain a term, and with its frequencies in them, block by block.
    fn for_each_block(&self, term: &WeightedTerm<'_>, mut visit: impl FnMut(&[DocId], &[u32])) -> Result<()> {
        self.open_blocks(term)?.visit_until(self.range.end, &mut visit);
        Ok(())
    }

    /// Opens the postings of a term at the first document.
    fn open_blocks(&self, term: &WeightedTerm<'_>) -> Result<PostingCursor> {
        let inverted = self.segment.inverted_index(term.field).map_err(failed("read"))?;
        let mut postings = inverted
            .read_block_postings_from_terminfo(term.info, IndexRecordOption::WithFreqs)
            .map_err(|error| failed("read")(error.into()))?;
        postings.seek(self.range.start);
        let at = postings.docs().partition_point(|&doc| doc < self.range.start);
        Ok(PostingCursor { postings, at, except: term.except.clone(), rest: Default::default() })
    }

    /// Adds the frequencies of a term in `docs`, which ascend and are marked. It reads the postings of the term up to
    /// the last of these documents.
    fn add_marked(&self, term: &WeightedTerm<'_>, docs: &[DocId], scratch: &mut Scratch) -> Result<()> {
        let Some(last) = docs.last() else { return Ok(()) };
        self.open_blocks(term)?.visit_until(last.saturating_add(1), &mut |docs, frequencies| {
            scratch.add_marked(docs, frequencies, term.weights, &term.norms);
        });
        Ok(())
    }

    /// Adds the frequencies of a term in `docs`, which ascend. It seeks each of these documents in the postings of the
    /// term.
    fn add_sought(&self, term: &WeightedTerm<'_>, docs: &[DocId], scratch: &mut Scratch) -> Result<()> {
        let inverted = self.segment.inverted_index(term.field).map_err(failed("read"))?;
        let mut postings = inverted
            .read_postings_from_terminfo(term.info, IndexRecordOption::WithFreqs)
            .map_err(|error| failed("read")(error.into()))?;
        let (mut found, mut frequencies) = (Vec::new(), Vec::new());
        for &doc in docs {
            if postings.doc() < doc {
                postings.seek(doc);
            }
            if postings.doc() == doc && term.except.as_ref().is_none_or(|except| !except.contains(doc)) {
                found.push(doc);
                frequencies.push(postings.term_freq());
            }
        }
        scratch.add(&found, &frequencies, term.weights, &term.norms);
        Ok(())
    }

    /// Returns the length normalisation of a field.
    fn norms(&mut self, terms: &FieldTerms) -> Result<Rc<LengthNorms>> {
        if let Some((_, norms)) = self.norms.iter().find(|(known, _)| *known == terms.field) {
            return Ok(Rc::clone(norms));
        }
        let norms = Rc::new(self.length_norms(terms.field, terms.tuning)?);
        self.norms.push((terms.field, Rc::clone(&norms)));
        Ok(norms)
    }

    fn length_norms(&self, field: Field, tuning: FieldTuning) -> Result<LengthNorms> {
        let lengths = &self.snapshot.lengths;
        let mean = lengths.means.get(&field).copied().unwrap_or(1.0);
        let fields = self.snapshot.fields.scored_together(field);
        LengthNorms::new(self.segment, fields, tuning, (mean, lengths.min_length(tuning)))
    }
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
