//! Reads what a search for one query needs besides the index: notes, the vector of the query, and the scores of a reranker.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sidenote_base::error::Result;
use sidenote_base::wording::Wording;
use sidenote_catalog::FileRow;
use sidenote_index::Snapshot;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::path::NotePath;
use sidenote_search::query::Query;
use sidenote_search::reader::SearchReader;
use sidenote_search::{Mode, QueryVector, SearchHit};

use crate::Searches;

/// The reader of a search for one query.
pub struct QueryReader<'a> {
    searches: Searches<'a>,
    snapshot: &'a Snapshot,
    query: &'a Query,
    asked: Mode,
    /// The vector to use in place of that of the query.
    given: Option<QueryVector>,
    /// The mode that the search used and the vector, once it asked for that.
    embedded: OnceLock<(Mode, QueryVector)>,
    notes: Mutex<Vec<Wording>>,
}

/// What a search used of its reader.
#[derive(Debug, Clone, Default)]
pub struct ReadForQuery {
    /// The mode that the search used: `bm25` if hybrid mode had no vector.
    pub mode: Mode,
    /// The vector of the query; `None` if only words rank.
    pub vector: QueryVector,
    /// Notices, such as that there is no model.
    pub notes: Vec<Wording>,
}

impl<'a> QueryReader<'a> {
    /// Makes the reader of a search in a mode.
    pub fn new(searches: Searches<'a>, snapshot: &'a Snapshot, query: &'a Query, asked: Mode) -> Self {
        let (embedded, notes) = (OnceLock::new(), Mutex::new(Vec::new()));
        Self { searches, snapshot, query, asked, given: None, embedded, notes }
    }

    /// Sets the vector of the query, which is not computed then.
    #[must_use]
    pub fn with_vector(self, vector: QueryVector) -> Self {
        Self { given: Some(vector), ..self }
    }

    /// Returns what the search used.
    pub fn used(self) -> ReadForQuery {
        let (mode, vector) = self.embedded.into_inner().unwrap_or((self.asked, None));
        ReadForQuery { mode, vector, notes: self.notes.into_inner().unwrap_or_else(PoisonError::into_inner) }
    }

    fn notes(&self) -> MutexGuard<'_, Vec<Wording>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SearchReader for QueryReader<'_> {
    fn note(&self, path: &NotePath) -> Option<Arc<ParsedNote>> {
        self.searches.core.parsed_note(path)
    }

    fn searched_file(&self, row: &FileRow) -> Option<Arc<ParsedNote>> {
        // What cannot be read is left out where the results are shown, and said there.
        self.searches.core.parsed_file(row).ok().flatten()
    }

    fn query_vector(&self) -> Result<QueryVector> {
        if let Some((_, vector)) = self.embedded.get() {
            return Ok(vector.clone());
        }
        let embedded = match &self.given {
            Some(vector) => (self.asked, vector.clone()),
            None => self.searches.vector_for(self.asked, self.query, self.snapshot, &mut self.notes())?,
        };
        Ok(self.embedded.get_or_init(|| embedded).1.clone())
    }

    fn rerank(&self, hits: &[SearchHit]) -> Vec<f32> {
        self.searches.rerank_scores(self.asked, self.query, hits, &mut self.notes())
    }
}
