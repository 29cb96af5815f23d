//! The notes that a query finds, before they are weighed as memories.

use sidenote_base::error::Result;
use sidenote_base::wording::Wording;
use sidenote_catalog::Filter;
use sidenote_query::Searches;
use sidenote_query::query_reader::{QueryReader, ReadForQuery};
use sidenote_search::fuse::Fusion;
use sidenote_search::query::Query;
use sidenote_search::{Mode, QueryVector, Request, SearchHit};

use crate::Recalls;

/// Notes that match a query, before their scores as memories are computed.
pub(crate) struct Candidates {
    /// The notes, best first.
    pub(crate) found: Vec<SearchHit>,
    /// The similarity that a passage of the vault has with the query by chance, at least 0.
    pub(crate) by_chance: f32,
    /// Notices about what the reply lacks.
    pub(crate) notices: Vec<String>,
    /// The notice that no note has a word of the query, for a reply that gives notes nevertheless.
    pub(crate) by_meaning: Option<String>,
}

impl Recalls<'_> {
    /// Ranks notes by a query, without excerpts.
    ///
    /// # Errors
    /// `Invalid` for an invalid mode or fusion; `NotFound` for vector mode without a model; `Corrupt` if the index cannot be
    /// read.
    pub(crate) fn candidates(
        &self,
        query: &Query,
        mode: Option<Mode>,
        filter: Filter,
        limit: usize,
    ) -> Result<Candidates> {
        self.candidates_by(query, mode, filter, limit, None)
    }

    /// Ranks notes by the words of a query and by a vector, without excerpts.
    ///
    /// # Errors
    /// The errors of [`Recalls::candidates`].
    pub(super) fn candidates_near(
        &self,
        query: &Query,
        vector: QueryVector,
        filter: Filter,
        limit: usize,
    ) -> Result<Candidates> {
        self.candidates_by(query, None, filter, limit, Some(vector))
    }

    /// Ranks notes by a query, and by `vector` in place of that of the query if it is given.
    fn candidates_by(
        &self,
        query: &Query,
        mode: Option<Mode>,
        filter: Filter,
        limit: usize,
        vector: Option<QueryVector>,
    ) -> Result<Candidates> {
        let asked = mode.map_or_else(|| Mode::parse(&self.core.config.search.mode), Ok)?;
        let snapshot = self.core.index.snapshot()?;
        let request = Request {
            query: Some(query),
            mode: asked,
            fusion: Fusion::parse(&self.core.config.search.fusion)?,
            limit,
            // The scores are computed for all of these, so the search need not look deeper.
            depth: Some(limit),
            now: Some(filter.valid.as_ref().map_or(self.core.clock.now(), |valid| valid.at)),
            filter,
            ..Request::default()
        };
        let mut reader = QueryReader::new(Searches::of(self.core), &snapshot, query, asked);
        if let Some(vector) = vector {
            reader = reader.with_vector(vector);
        }
        let hits = Searches::of(self.core).found(&snapshot, &request, &reader)?;
        let ReadForQuery { vector: compared, notes, .. } = reader.used();
        let by_chance = match &compared {
            Some(vector) => {
                self.core.index.mean_vector(&snapshot)?.similarity(&snapshot.vectors, vector).max(0.0)
            }
            None => 0.0,
        };
        let by_meaning = hits.by_meaning_notice(query, &snapshot)?.as_ref().map(for_agents);
        let notices = notes.iter().map(for_agents).collect();
        Ok(Candidates { found: hits.found, by_chance, notices, by_meaning })
    }
}

/// Returns a notice in its form for agents.
fn for_agents(notice: &Wording) -> String {
    notice.for_agent(|_| false)
}
