//! What a search request ranks by, for each query that it searches for: the whole one, the one without the words of a period,
//! or the plain words of a condition.

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_catalog::{Filter, Kinds};
use sidenote_index::Snapshot;
use sidenote_open_vault::lookup::Lookup;
use sidenote_search::fuse::Fusion;
use sidenote_search::query::Query;
use sidenote_search::quotation;
use sidenote_search::reader::SearchReader;
use sidenote_search::{Mode, Request};
use sidenote_sets::file_set::FileSet;

use crate::Searches;
use crate::extent::Extent;
use crate::memory_weights::MemoryWeights;
use crate::query_reader::{QueryReader, ReadForQuery};
use crate::search::{MOST_RESULTS, SearchRequest, hide};
use crate::validity::valid_as_of;
use crate::verify::SearchHits;

/// The notes that a search request may find, and what they are ranked by.
pub(super) struct SearchScope<'a> {
    searches: Searches<'a>,
    pub(super) snapshot: &'a Snapshot,
    request: &'a SearchRequest,
    /// The mode that was asked for.
    pub(super) asked: Mode,
    filter: Filter,
    in_tier: Option<FileSet>,
    pub(super) extent: Extent,
    /// The time by which notes are superseded.
    pub(super) judged_at: Option<Timestamp>,
    /// The number of results up to the end of the page.
    pub(super) limit: usize,
    /// The number of notes to find so that `limit` of them are left.
    pub(super) most: usize,
}

/// The notes that were found for a query, and what was read for it.
pub(super) struct ScopeHits {
    pub(super) hits: SearchHits,
    pub(super) used: ReadForQuery,
}

impl<'a> SearchScope<'a> {
    /// Returns the scope of a request.
    ///
    /// # Errors
    /// `Invalid` for an unknown mode or a malformed filter; `Corrupt` if the index cannot be read.
    pub(super) fn of(
        searches: Searches<'a>,
        request: &'a SearchRequest,
        snapshot: &'a Snapshot,
        extent: Extent,
    ) -> Result<Self> {
        let core = searches.core;
        let config = &core.config.search;
        let asked = request.mode.map_or_else(|| Mode::parse(&config.mode), Ok)?;
        let limit = request.limit.unwrap_or(config.limit).saturating_add(request.skip).min(MOST_RESULTS);
        let most = request.memories.map_or(limit, |ranking| ranking.candidates(limit));
        let filter = hide(&Lookup::of(core).with_canonical_folder(&request.filter)?, request.included());
        let kinds = if request.finds_attachments() { Kinds::Searched } else { filter.kinds };
        let filter = Filter { kinds, ..valid_as_of(core, filter, request.as_of)? };
        // What was valid at another time is not superseded.
        let judged_at = Some(core.clock.now()).filter(|_| request.as_of.is_none());
        let in_tier =
            request.tier.map(|tier| MemoryWeights::of(core).files_in_tier(snapshot, tier)).transpose()?;
        Ok(Self { searches, snapshot, request, asked, filter, in_tier, extent, judged_at, limit, most })
    }

    /// Returns the request that selects the notes of the scope.
    pub(super) fn selection(&self) -> Request<'_> {
        Request {
            filter: self.filter.clone(),
            path: self.request.path.clone(),
            among: self.in_tier.as_ref(),
            ..Request::default()
        }
    }

    /// Finds the notes of the scope, and of `among` if it is given, for a query.
    ///
    /// # Errors
    /// The errors of [`Searches::found`].
    pub(super) fn find(&self, query: &Query, among: Option<&FileSet>) -> Result<ScopeHits> {
        let core = self.searches.core;
        let among = both(among, self.in_tier.as_ref());
        let is_whole = self.extent == Extent::All;
        let reranked = self.searches.rerank_depth(self.asked, query, self.most);
        let limit = if quotation::may_quote(query) { reranked.max(quotation::BEST) } else { reranked };
        let request = Request {
            query: Some(query),
            mode: self.asked,
            fusion: Fusion::parse(&core.config.search.fusion)?,
            limit,
            // A ranking that sorts all candidates again needs no deeper search.
            depth: (self.most > self.limit).then_some(self.most),
            among: among.as_ref(),
            relations: self.request.uses_relations(self.asked).then_some(&*core.state.relation_rules),
            now: self.judged_at,
            is_traced: is_whole || self.request.explain,
            is_whole,
            ..self.selection()
        };
        let reader = self.reader(query);
        let hits = self.searches.found(self.snapshot, &request, &reader)?;
        if is_whole {
            // What lacks for a search by meaning is said even where nothing could be found.
            reader.query_vector()?;
        }
        Ok(ScopeHits { hits, used: reader.used() })
    }

    /// Returns the reader of a search for a query.
    pub(super) fn reader<'q>(&self, query: &'q Query) -> QueryReader<'q>
    where
        'a: 'q,
    {
        QueryReader::new(self.searches, self.snapshot, query, self.asked)
    }
}

/// Returns the files that are in both sets, of which one that is missing has all.
fn both(one: Option<&FileSet>, other: Option<&FileSet>) -> Option<FileSet> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.and(other)),
        (one, other) => one.or(other).cloned(),
    }
}
