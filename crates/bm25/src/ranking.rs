//! A ranked query: the best notes in order, and the scores of any others.

use std::collections::HashMap;

use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_sets::file_set::{FileId, FileSet};

use super::doc_ranges::{self, DocRange};
use super::scoring::{BestScores, LeastScore, ScoredWord, SegmentScorer};
use super::scratch::PooledScratch;
use super::{Bm25Query, Bm25Snapshot, Hit, Tuning, Word};

/// From this number of postings on, it takes less time to look up single notes again than to score every note, and
/// several threads score several segments.
const MANY_POSTINGS: u64 = 20_000;
/// From this number of postings on, in total or for each note, it takes less time to find the largest frequencies of
/// the words first, and to divide segments.
const MOST_POSTINGS: u64 = 150_000;
const MOST_POSTINGS_OF_NOTE: u64 = 3;
/// A word is common if it has more than one posting for every `MANY_SHARE` notes.
const MANY_SHARE: u64 = 4;
/// A word matters to a score if it can add at least a `MUCH_SHARE`th of what another word can add.
const MUCH_SHARE: f32 = 10.0;

/// The best notes for a query, and what gives the scores of others.
#[derive(Default)]
pub struct Ranking<'s> {
    /// The best notes, in descending order of score.
    pub hits: Vec<Hit>,
    others: Others<'s>,
}

/// What gives the scores of notes beside the best.
#[derive(Default)]
enum Others<'s> {
    /// No note has a score.
    #[default]
    None,
    /// The scores of all notes, by segment.
    Scored(&'s Bm25Snapshot, Vec<(usize, PooledScratch<'s>)>),
    /// The words, by which single notes are scored.
    Words(PreparedWords<'s>),
}

/// The words of a query with the terms of a snapshot that match them.
struct PreparedWords<'s> {
    snapshot: &'s Bm25Snapshot,
    tuning: Tuning,
    words: Vec<ScoredWord>,
}

impl std::fmt::Debug for Ranking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranking").field("hits", &self.hits).finish_non_exhaustive()
    }
}

impl Ranking<'_> {
    /// Creates a ranking of the best notes alone.
    pub fn of_best(hits: Vec<Hit>) -> Self {
        Self { hits, others: Others::None }
    }

    /// Returns the scores of those of `files` that contain a word of the query.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn scores_of(&self, files: &FileSet) -> Result<HashMap<FileId, f32>> {
        match &self.others {
            Others::None => Ok(HashMap::new()),
            Others::Words(words) => words.scores_of(files),
            Others::Scored(snapshot, segments) => {
                let mut found = HashMap::with_capacity(files.len());
                for (segment, memory) in segments {
                    let docs = snapshot.documents_of(*segment, files)?.into_iter();
                    let scored = docs.map(|(doc, file)| (file, memory.scratch.score(doc)));
                    found.extend(scored.filter(|(_, score)| *score > 0.0));
                }
                Ok(found)
            }
        }
    }
}

impl Bm25Snapshot {
    /// Ranks the notes that match a query, best first. Notes that tie with the last one within the limit are included,
    /// because ties are resolved elsewhere.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn search(&self, query: &Bm25Query<'_>, tuning: &Tuning) -> Result<Vec<Hit>> {
        self.search_counting(query, tuning).map(|(hits, _)| hits)
    }

    /// Ranks like [`Bm25Snapshot::search`], and also returns how many notes were scored.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn search_counting(&self, query: &Bm25Query<'_>, tuning: &Tuning) -> Result<(Vec<Hit>, usize)> {
        if query.limit == 0 || query.words.is_empty() {
            return Ok((Vec::new(), 0));
        }
        self.prepare(query.words, tuning)?.best(query)
    }

    /// Ranks like [`Bm25Snapshot::search`], and also returns the means to score other notes.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn rank(&self, query: &Bm25Query<'_>, tuning: &Tuning) -> Result<Ranking<'_>> {
        if query.limit == 0 || query.words.is_empty() {
            return Ok(Ranking::default());
        }
        let words = self.prepare(query.words, tuning)?;
        if words.postings() < MANY_POSTINGS {
            return words.all(query);
        }
        let (hits, _) = words.best(query)?;
        Ok(Ranking { hits, others: Others::Words(words) })
    }

    /// Returns the scores of those of `files` that contain one of some words.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn scores_of(
        &self,
        words: &[Word],
        files: &FileSet,
        tuning: &Tuning,
    ) -> Result<HashMap<FileId, f32>> {
        self.prepare(words, tuning)?.scores_of(files)
    }

    fn whole_segments(&self) -> Vec<DocRange> {
        doc_ranges::whole_segments(self.searcher.segment_readers())
    }

    fn prepare(&self, words: &[Word], tuning: &Tuning) -> Result<PreparedWords<'_>> {
        Ok(PreparedWords { snapshot: self, tuning: *tuning, words: self.scored_words(words, tuning)? })
    }
}

/// The best scores that one thread found, and its working memory.
struct Best<'p> {
    scores: BestScores,
    scratch: PooledScratch<'p>,
}

impl<'s> PreparedWords<'s> {
    /// Returns how many postings the words have, roughly.
    fn postings(&self) -> u64 {
        self.words.iter().map(ScoredWord::postings).sum()
    }

    /// Scores all notes.
    fn all(self, query: &Bm25Query<'_>) -> Result<Ranking<'s>> {
        let (mut best, mut hits, mut segments) = (BestScores::new(), Vec::new(), Vec::new());
        for range in self.snapshot.whole_segments() {
            let mut memory = self.snapshot.scratches.take();
            let scorer = SegmentScorer::new(self.snapshot, &range, query, &self.tuning)?;
            let Some(mut scorer) = scorer else { continue };
            let docs = scorer.score_all(&self.words, &mut memory.scratch)?;
            scorer.add_hits(&docs, &memory.scratch, &mut best, &mut hits);
            segments.push((range.segment, memory));
        }
        let others = Others::Scored(self.snapshot, segments);
        Ok(Ranking { hits: best_first(hits, query.limit), others })
    }

    /// Returns the best notes, best first, and the number of notes that were scored.
    fn best(&self, query: &Bm25Query<'_>) -> Result<(Vec<Hit>, usize)> {
        let least = LeastScore::default();
        let start = || Best { scores: BestScores::new(), scratch: self.snapshot.scratches.take() };
        let score = |best: &mut Best<'_>, range: &DocRange| self.best_of(range, query, best, &least);
        let (postings, whole) = (self.postings(), self.snapshot.whole_segments());
        let found: Vec<_> = if postings < MANY_POSTINGS {
            let mut best = start();
            whole.iter().map(|range| score(&mut best, range)).collect()
        } else if postings < MOST_POSTINGS.min(MOST_POSTINGS_OF_NOTE * self.snapshot.documents) {
            parallel::map_briefly(&whole, 1, start, score)
        } else {
            self.find_largest_frequencies()?;
            let ranges = doc_ranges::divided(self.snapshot.searcher.segment_readers());
            parallel::map_in_order(&ranges, start, score)
        };
        let (mut hits, mut scored) = (Vec::new(), 0);
        for found in found {
            let (found, count) = found?;
            hits.extend(found);
            scored += count;
        }
        Ok((best_first(hits, query.limit), scored))
    }

    /// Finds the largest frequencies in each segment, where they are not known yet, for the words for which they
    /// matter: words that are common and matter to the score, in a query with a word that can add more.
    fn find_largest_frequencies(&self) -> Result<()> {
        let query = Bm25Query::default();
        let segments = self.snapshot.whole_segments();
        let bound = |word: &ScoredWord| word.bound_of_any(self.tuning.k1);
        let mut words: Vec<&ScoredWord> = self.words.iter().collect();
        words.sort_by(|one, other| bound(other).total_cmp(&bound(one)));
        let most = words.first().map_or(0.0, |word| bound(word));
        let matters = |word: &&ScoredWord| {
            word.postings() * MANY_SHARE > self.snapshot.documents && bound(word) * MUCH_SHARE > most
        };
        let words: Vec<&ScoredWord> = words.into_iter().skip(1).filter(matters).collect();
        let pairs = segments.iter().flat_map(|range| words.iter().map(move |word| (range, *word)));
        let is_unknown = |(range, word): &(&DocRange, &ScoredWord)| word.largest.get(range.segment).is_none();
        let pairs: Vec<_> = pairs.filter(is_unknown).collect();
        let find = |(range, word): &(&DocRange, &ScoredWord)| -> Result<()> {
            let scorer = SegmentScorer::new(self.snapshot, range, &query, &self.tuning)?;
            if let Some(mut scorer) = scorer {
                word.largest.keep(range.segment, scorer.largest_frequencies(word)?);
            }
            Ok(())
        };
        parallel::map_briefly(&pairs, 1, || (), |(), pair| find(pair)).into_iter().collect()
    }

    /// Returns the notes of a range that are among the best so far, and the number of notes that were scored.
    fn best_of(
        &self,
        range: &DocRange,
        query: &Bm25Query<'_>,
        best: &mut Best<'_>,
        least: &LeastScore,
    ) -> Result<(Vec<Hit>, usize)> {
        let mut hits = Vec::new();
        let scratch = &mut best.scratch.scratch;
        let Some(mut scorer) = SegmentScorer::new(self.snapshot, range, query, &self.tuning)? else {
            return Ok((hits, 0));
        };
        let found = scorer.find_best(&self.words, (&best.scores, least), scratch)?;
        scorer.add_hits(&found, scratch, &mut best.scores, &mut hits);
        least.raise(&best.scores, query.limit);
        let scored = scratch.scored().len();
        scratch.clear();
        Ok((hits, scored))
    }

    fn scores_of(&self, files: &FileSet) -> Result<HashMap<FileId, f32>> {
        let mut found = HashMap::with_capacity(files.len());
        let all = Bm25Query::default();
        let mut memory = self.snapshot.scratches.take();
        for range in self.snapshot.whole_segments().iter().filter(|_| !files.is_empty()) {
            let scorer = SegmentScorer::new(self.snapshot, range, &all, &self.tuning)?;
            let Some(mut scorer) = scorer else { continue };
            let scores = scorer.scores_of(&self.words, files, &mut memory.scratch)?;
            found.extend(scores.into_iter().filter(|(_, score)| *score > 0.0));
            memory.scratch.clear();
        }
        Ok(found)
    }
}

/// Sorts hits, best first, and drops those that are worse than the last one within the limit.
fn best_first(mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
    if let Some(worst) = limit.checked_sub(1).and_then(|last| hits.get(last)).map(|hit| hit.score) {
        hits.truncate(hits.partition_point(|hit| hit.score.total_cmp(&worst).is_ge()));
    }
    hits
}
