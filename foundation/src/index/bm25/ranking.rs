//! A ranked query: the best notes in order, and the scores of any others.

use std::collections::HashMap;

use tantivy::{DocId, SegmentReader};

use super::scoring::{BestScores, PooledScratch, ScoredWord, SegmentPart, SegmentScorer};
use super::{Bm25Query, Bm25Snapshot, Hit, Tuning, Word};
use crate::error::Result;
use crate::index::file_set::{FileId, FileSet};
use crate::parallel;

/// With so many postings, it takes less time to score several threads' parts of the index, and to look up single notes again,
/// than to score every note.
const MANY_POSTINGS: u64 = 20_000;
/// The number of parts of the index for each thread: notes with a word can be anywhere.
const PARTS_PER_THREAD: usize = 2;

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
    /// The scores of all notes.
    Scored(&'s Bm25Snapshot, Vec<(SegmentPart, PooledScratch<'s>)>),
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
                for (part, memory) in segments {
                    let docs = snapshot.documents_of(part.segment, files)?.into_iter();
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

    fn prepare(&self, words: &[Word], tuning: &Tuning) -> Result<PreparedWords<'_>> {
        Ok(PreparedWords { snapshot: self, tuning: *tuning, words: self.scored_words(words, tuning)? })
    }

    /// Divides the documents into about this many parts of similar size. No part has documents of two segments.
    fn parts(&self, count: usize) -> Vec<SegmentPart> {
        let sizes = || self.searcher.segment_readers().iter().map(SegmentReader::max_doc);
        let all = sizes().map(u64::from).sum::<u64>().max(1);
        let mut parts = Vec::with_capacity(count);
        for (segment, size) in sizes().enumerate() {
            let here = (u64::from(size) * count as u64).div_ceil(all).max(1);
            let end = |part: u64| (u64::from(size) * part / here) as DocId;
            parts.extend((0..here).map(|part| SegmentPart { segment, docs: end(part)..end(part + 1) }));
        }
        parts
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
        for part in self.snapshot.parts(1) {
            let mut memory = self.snapshot.scratches.take();
            let scorer = SegmentScorer::new(self.snapshot, &part, query, &self.tuning)?;
            let Some(mut scorer) = scorer else { continue };
            let docs = scorer.score_all(&self.words, &mut memory.scratch)?;
            scorer.add_hits(&docs, &memory.scratch, &mut best, &mut hits);
            segments.push((part, memory));
        }
        let others = Others::Scored(self.snapshot, segments);
        Ok(Ranking { hits: best_first(hits, query.limit), others })
    }

    /// Returns the best notes, best first, and the number of notes that were scored.
    fn best(&self, query: &Bm25Query<'_>) -> Result<(Vec<Hit>, usize)> {
        let start = || Best { scores: BestScores::new(), scratch: self.snapshot.scratches.take() };
        let score = |best: &mut Best<'_>, part: &SegmentPart| self.best_of(part, query, best);
        let found: Vec<_> = if self.postings() < MANY_POSTINGS {
            let mut best = start();
            self.snapshot.parts(1).iter().map(|part| score(&mut best, part)).collect()
        } else {
            let parts = self.snapshot.parts(parallel::core_count() * PARTS_PER_THREAD);
            parallel::map_briefly(&parts, 1, start, score)
        };
        let (mut hits, mut scored) = (Vec::new(), 0);
        for found in found {
            let (found, count) = found?;
            hits.extend(found);
            scored += count;
        }
        Ok((best_first(hits, query.limit), scored))
    }

    /// Returns the notes of a part that are among the best so far, and the number of notes that were scored.
    fn best_of(
        &self,
        part: &SegmentPart,
        query: &Bm25Query<'_>,
        best: &mut Best<'_>,
    ) -> Result<(Vec<Hit>, usize)> {
        let mut hits = Vec::new();
        let scratch = &mut best.scratch.scratch;
        let Some(mut scorer) = SegmentScorer::new(self.snapshot, part, query, &self.tuning)? else {
            return Ok((hits, 0));
        };
        let found = scorer.find_best(&self.words, &best.scores, scratch)?;
        scorer.add_hits(&found, scratch, &mut best.scores, &mut hits);
        let scored = scratch.scored();
        scratch.clear();
        Ok((hits, scored))
    }

    fn scores_of(&self, files: &FileSet) -> Result<HashMap<FileId, f32>> {
        let mut found = HashMap::with_capacity(files.len());
        let all = Bm25Query::default();
        let mut memory = self.snapshot.scratches.take();
        for part in self.snapshot.parts(1).iter().filter(|_| !files.is_empty()) {
            let scorer = SegmentScorer::new(self.snapshot, part, &all, &self.tuning)?;
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
