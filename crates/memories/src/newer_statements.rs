//! Newer statements: notes that were written after a recalled one and are about what it says, so that no fact is recalled
//! without its correction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sidenote_base::error::Result;
use sidenote_catalog::{FileId, FileKind};
use sidenote_index::Snapshot;
use sidenote_memory::evidence::MatchEvidence;
use sidenote_memory::recall::prompt_terms;
use sidenote_search::note_date::NoteDate;
use sidenote_search::query::Query;
use sidenote_search::{QueryVector, SearchHit};

use crate::Recalls;
use crate::candidates::Candidates;
use crate::prompt_evidence::{COMPARED_BYTES, EvaluatedMatch, LONGEST, Matches};

/// The most notes for which newer ones are looked for. Each takes a search, and few prompts mean more notes.
const MOST_FOLLOWED: usize = 5;
/// The number of notes that are compared with each.
const COMPARED: usize = 10;
/// The least distance between the evidence that a note is about the statement of an older one, and the usual evidence.
/// It is the sum of two parts, that of the similarity and that of the share of words, each as a share of the distance
/// to 1. Where all notes are about one topic, or are alike by their language, similarity alone says nothing
/// (docs/dev/ranking.md, Recall).
const STANDS_OUT: f32 = 0.3;
/// The most newer notes that are given with one.
const MOST_NEWER: usize = 3;

/// The newer notes about what an older one says, the newest first, by the older one.
pub(super) type NewerNotes = HashMap<FileId, Vec<FileId>>;

impl Recalls<'_> {
    /// Finds for each note that is meant the newer notes which are about what it says: the evidence for them stands out among the
    /// notes near it. Those that are not among the matches are added.
    ///
    /// Newer statements are looked for only for notes of one passage, and one that is no longer than the compared part
    /// of a prompt. A longer note says several things, of which a newer note corrects few, and its vector costs more
    /// than the rest of a recall.
    ///
    /// # Errors
    /// The errors of [`Recalls::candidates`].
    pub(super) fn newer_statements(
        &self,
        matches: &mut Matches,
        meant: &HashSet<usize>,
    ) -> Result<NewerNotes> {
        // The updates of a search are updates here, too.
        let updated = meant.iter().filter_map(|at| matches.found.get(*at));
        let mut newer_notes: NewerNotes =
            updated.filter_map(|hit| Some((hit.row.id, vec![hit.updated_by?]))).collect();
        let snapshot = self.core.index.snapshot()?;
        let mut followed: Vec<usize> = meant.iter().copied().collect();
        followed.sort_unstable();
        for at in followed.into_iter().take(MOST_FOLLOWED) {
            let (Some(older), Some(Some(weighed))) = (matches.found.get(at), matches.weighed.get(at)) else {
                continue;
            };
            let older = older.clone();
            if weighed.passage.len() > COMPARED_BYTES {
                continue;
            }
            let terms = prompt_terms(&weighed.passage).join(" ");
            let vector = self.vector_of_whole(&snapshot, &older, &weighed.passage)?;
            let Some(vector) = vector.filter(|_| !terms.is_empty()) else { continue };
            let statement = Query::plain(&terms);
            let Candidates { found, by_chance, .. } =
                self.candidates_near(&statement, vector, matches.filter.clone(), COMPARED + 1)?;
            let others: Vec<SearchHit> = found.into_iter().filter(|hit| hit.row.id != older.row.id).collect();
            let date = NoteDate::of(&older.row);
            let is_newer = |hit: &SearchHit| NoteDate::of(&hit.row).is_after(&date);
            if !others.iter().any(is_newer) {
                continue;
            }
            let evaluated = self.evaluate_matches(&others, by_chance, &statement.words, &[], LONGEST)?;
            let compared: Vec<(SearchHit, EvaluatedMatch)> = others
                .into_iter()
                .zip(evaluated)
                .filter_map(|(hit, weighed)| Some((hit, weighed?)))
                .collect();
            let usual = UsualEvidence::of(&compared);
            let mut about: Vec<(f32, SearchHit, EvaluatedMatch)> = compared
                .into_iter()
                .filter(|(hit, _)| is_newer(hit))
                .map(|(hit, weighed)| (usual.exceeded_by(&weighed.evidence), hit, weighed))
                .filter(|(exceeding, ..)| *exceeding >= STANDS_OUT)
                .collect();
            about.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
            about.truncate(MOST_NEWER);
            about.sort_by_key(|(_, hit, _)| std::cmp::Reverse((NoteDate::of(&hit.row).at, hit.row.id)));
            let known = newer_notes.entry(older.row.id).or_default();
            for (_, mut hit, weighed) in about {
                if !known.contains(&hit.row.id) {
                    known.push(hit.row.id);
                }
                if matches.found.iter().all(|known| known.row.id != hit.row.id) {
                    // It is as relevant to the prompt as what it corrects. The scores of two searches tell nothing together.
                    (hit.score, hit.components) = (older.score, older.components);
                    matches.found.push(hit);
                    matches.weighed.push(Some(weighed));
                }
            }
        }
        Ok(newer_notes)
    }

    /// Returns the vector by which notes are compared with a note of one passage: `Some(None)` if there is none yet,
    /// and `None` for a note with several passages and for other files.
    ///
    /// The note is embedded as a query, like a prompt: a model compares a query and a passage better than two passages.
    /// If the model is an endpoint, it is not asked, and passages are compared.
    fn vector_of_whole(
        &self,
        snapshot: &Snapshot,
        hit: &SearchHit,
        text: &str,
    ) -> Result<Option<QueryVector>> {
        if hit.row.kind != FileKind::Note {
            return Ok(None);
        }
        let keys = self.core.index.catalog().passages().of(hit.row.id)?;
        let [only] = keys.as_slice() else { return Ok(None) };
        if let Some(model) = snapshot.model.as_ref().filter(|model| model.is_built_in()) {
            match self.core.query_vector(Some(model), text) {
                Ok(vector) => return Ok(Some(vector)),
                Err(error) => tracing::warn!("newer notes are found by the vector of the passage: {error}"),
            }
        }
        Ok(Some(snapshot.vectors.mean(&[*only])?.map(Arc::new)))
    }
}

/// The evidence that a note which is near another one is usually about what that one says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct UsualEvidence {
    similarity: f32,
    words: f32,
}

impl UsualEvidence {
    /// Returns the medians of the evidence of the notes near another one. Where there are few, those that are missing have none.
    fn of(near: &[(SearchHit, EvaluatedMatch)]) -> Self {
        let evidence = || near.iter().map(|(_, weighed)| weighed.evidence);
        Self {
            similarity: median(evidence().filter_map(|evidence| evidence.similarity).collect()),
            words: median(evidence().map(|evidence| evidence.words).collect()),
        }
    }

    /// Returns how far evidence lies above this one. A note without a vector has the usual similarity.
    fn exceeded_by(self, evidence: &MatchEvidence) -> f32 {
        let part = |value: f32, usual: f32| (value - usual) / (1.0 - usual).max(f32::EPSILON);
        let similarity = evidence.similarity.map_or(0.0, |similarity| part(similarity, self.similarity));
        similarity + part(evidence.words, self.words)
    }
}

/// Returns the median of [`COMPARED`] values, where those that are missing are 0.
fn median(mut values: Vec<f32>) -> f32 {
    values.resize(COMPARED, 0.0);
    values.sort_by(f32::total_cmp);
    values.get(COMPARED / 2).copied().unwrap_or_default()
}
