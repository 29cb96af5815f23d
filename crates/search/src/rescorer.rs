//! Scores the notes of either list by the measure of the other one.

use std::collections::HashMap;

use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_bm25::Ranking;
use sidenote_catalog::FileId;
use sidenote_index::{Index, Snapshot};
use sidenote_sets::file_set::FileSet;

use crate::QueryVector;
use crate::fuse::{Candidates, NoteScores, Ranked, Similarity};

/// The fewest notes that one thread compares with a query.
const MIN_COMPARED: usize = 16;

/// Scores notes of either list by the measure of the other one, so that a note is not ranked by its absence from a
/// list.
pub(super) struct Rescorer<'a> {
    snapshot: &'a Snapshot,
    index: &'a Index,
    /// The vector of the query. Without it, nothing is known but the lists.
    query: QueryVector,
    ranking: Ranking<'a>,
    /// The similarity that a passage has with the query by chance.
    background: f32,
    known: HashMap<FileId, NoteScores>,
    /// The index of the nearest passage, by note.
    pub(super) passages: HashMap<FileId, usize>,
}

impl<'a> Rescorer<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        index: &'a Index,
        query: QueryVector,
        ranking: Ranking<'a>,
    ) -> Result<Self> {
        let background = match &query {
            Some(query) => index.mean_vector(snapshot)?.similarity(&snapshot.vectors, query),
            None => 0.0,
        };
        let (known, passages) = (HashMap::new(), HashMap::new());
        Ok(Self { snapshot, index, query, ranking, background, known, passages })
    }

    /// Scores files by words, and compares all their passages with the query. Returns those that were not known and have a
    /// word of the query or a vector.
    pub(super) fn add(&mut self, files: FileSet) -> Result<Vec<FileId>> {
        let Some(query) = &self.query else { return Ok(Vec::new()) };
        let by_words = self.ranking.scores_of(&files)?;
        let catalog = self.index.catalog();
        let passages_of = |file| Ok((file, catalog.passages().of(file)?));
        let added = files.iter().filter(|file| !self.known.contains_key(file));
        let keys: Vec<(FileId, Vec<i64>)> = added.map(passages_of).collect::<Result<_>>()?;
        drop(catalog);
        let mut found = Vec::with_capacity(keys.len());
        let compare =
            |(): &mut (), (_, keys): &(FileId, Vec<i64>)| self.snapshot.vectors.compare(query, keys);
        let compared = parallel::map_briefly(&keys, MIN_COMPARED, || (), compare);
        for ((file, keys), near) in keys.into_iter().zip(compared) {
            let near = near?;
            let best = near.iter().max_by(|a, b| a.similarity.total_cmp(&b.similarity));
            let place = best.and_then(|best| keys.iter().position(|key| *key == best.key));
            self.passages.extend(place.map(|place| (file, place)));
            let mut similarities: Vec<f32> = near.iter().map(|passage| passage.similarity).collect();
            let bm25 = by_words.get(&file).copied();
            let missing = (keys.len() - near.len()) as f32 / keys.len().max(1) as f32;
            let near = Similarity::of(&mut similarities);
            found.extend((bm25.is_some() || near.is_some()).then_some(file));
            self.known.insert(file, NoteScores { bm25, near, missing });
        }
        Ok(found)
    }

    /// Joins the lists, and notes of neither list, with what is known about them.
    pub(super) fn candidates<'c>(
        &'c self,
        text: &'c [Ranked],
        vector: &'c [Ranked],
        unlisted: &'c [FileId],
    ) -> Candidates<'c> {
        let (known, background) = (&self.known, self.background);
        Candidates { text, vector, unlisted, known, background, embedded: self.snapshot.embedded_share() }
    }
}
