//! The result of a ranked query: the best notes in order, and the scores of all others.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::DocId;
use tantivy::columnar::ColumnValues;

use crate::index::bm25::Hit;
use crate::index::file_set::{FileId, FileSet};

/// The best notes for a query, and the scores of all notes that match it.
#[derive(Default)]
pub struct Ranking {
    /// The best notes, in descending order of score.
    pub hits: Vec<Hit>,
    pub(super) segments: Vec<SegmentScores>,
}

impl std::fmt::Debug for Ranking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranking").field("hits", &self.hits).finish_non_exhaustive()
    }
}

/// The scores of one segment.
pub(super) struct SegmentScores {
    /// The file of each document.
    pub(super) files: Arc<dyn ColumnValues<u64>>,
    /// The documents that contain a word of the query.
    pub(super) docs: Vec<DocId>,
    /// The score of each document.
    pub(super) scores: Vec<f32>,
}

impl Ranking {
    /// Creates a ranking of the best notes alone.
    pub fn of_best(hits: Vec<Hit>) -> Self {
        Self { hits, segments: Vec::new() }
    }

    /// Returns the scores of those of `files` that contain a word of the query.
    pub fn scores_of(&self, files: &FileSet) -> HashMap<FileId, f32> {
        let mut found = HashMap::with_capacity(files.len());
        for segment in self.segments.iter().filter(|_| !files.is_empty()) {
            for &doc in &segment.docs {
                let file = segment.files.get_val(doc) as FileId;
                if files.contains(file) {
                    let score = segment.scores.get(doc as usize).copied().unwrap_or(0.0);
                    found.extend((score > 0.0).then_some((file, score)));
                }
            }
        }
        found
    }
}
