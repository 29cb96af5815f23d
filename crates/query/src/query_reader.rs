//! Reads what a search for one query needs besides the index: notes, and the vector of the query.

use std::sync::{Arc, OnceLock};

use sidenote_base::error::Result;
use sidenote_base::wording::Wording;
use sidenote_index::Snapshot;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::path::NotePath;
use sidenote_search::query::Query;
use sidenote_search::reader::SearchReader;
use sidenote_search::{Mode, QueryVector};

use crate::Searches;

/// The reader of a search for one query.
pub struct QueryReader<'a> {
    searches: Searches<'a>,
    snapshot: &'a Snapshot,
    query: &'a Query,
    asked: Mode,
    /// The vector to use in place of that of the query.
    given: Option<QueryVector>,
    embedded: OnceLock<EmbeddedQuery>,
}

/// The vector of a query, and what was said about it.
#[derive(Debug, Clone, Default)]
pub struct EmbeddedQuery {
    /// The mode that the search used: `bm25` if hybrid mode had no vector.
    pub mode: Mode,
    /// The vector; `None` if only words rank.
    pub vector: QueryVector,
    /// Notices, such as that there is no model.
    pub notes: Vec<Wording>,
}

impl<'a> QueryReader<'a> {
    /// Makes the reader of a search in a mode.
    pub fn new(searches: Searches<'a>, snapshot: &'a Snapshot, query: &'a Query, asked: Mode) -> Self {
        Self { searches, snapshot, query, asked, given: None, embedded: OnceLock::new() }
    }

    /// Sets the vector of the query, which is not computed then.
    #[must_use]
    pub fn with_vector(self, vector: QueryVector) -> Self {
        Self { given: Some(vector), ..self }
    }

    /// Returns the vector of the query, if the search asked for it, with what was said about it.
    pub fn into_embedded(self) -> EmbeddedQuery {
        let unasked = EmbeddedQuery { mode: self.asked, ..EmbeddedQuery::default() };
        self.embedded.into_inner().unwrap_or(unasked)
    }
}

impl SearchReader for QueryReader<'_> {
    fn note(&self, path: &NotePath) -> Option<Arc<ParsedNote>> {
        self.searches.core.parsed_note(path)
    }

    fn query_vector(&self) -> Result<QueryVector> {
        if let Some(embedded) = self.embedded.get() {
            return Ok(embedded.vector.clone());
        }
        let mut notes = Vec::new();
        let (mode, vector) = match &self.given {
            Some(vector) => (self.asked, vector.clone()),
            None => self.searches.vector_for(self.asked, self.query, self.snapshot, &mut notes)?,
        };
        Ok(self.embedded.get_or_init(|| EmbeddedQuery { mode, vector, notes }).vector.clone())
    }
}
