//! What a search reads besides the index: callers implement [`SearchReader`], because this crate opens no file and has no
//! model.

use std::sync::Arc;

use sidenote_base::error::Result;
use sidenote_catalog::FileRow;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::path::NotePath;

use crate::{QueryVector, SearchHit};

/// Reads what the stages of a search need besides the index. A hybrid search calls it from two threads.
pub trait SearchReader: Sync {
    /// Reads and parses a note. `None` if it cannot be read.
    fn note(&self, path: &NotePath) -> Option<Arc<ParsedNote>>;

    /// Reads and parses a file that was found: a note, or an attachment with text. `None` if it cannot be read.
    fn searched_file(&self, _row: &FileRow) -> Option<Arc<ParsedNote>> {
        None
    }

    /// Returns the vector of the query; `None` if only words rank.
    ///
    /// # Errors
    /// The errors of the model.
    fn query_vector(&self) -> Result<QueryVector>;

    /// Scores the first hits by a reranker, as many as it has time for, in their order. Higher scores are better.
    fn rerank(&self, _hits: &[SearchHit]) -> Vec<f32> {
        Vec::new()
    }
}

/// Reads nothing besides the index, which is enough for a search by words.
#[derive(Debug, Clone, Copy, Default)]
pub struct IndexOnly;

impl SearchReader for IndexOnly {
    fn note(&self, _: &NotePath) -> Option<Arc<ParsedNote>> {
        None
    }

    fn query_vector(&self) -> Result<QueryVector> {
        Ok(None)
    }
}
