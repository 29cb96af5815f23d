//! Ranks the notes for a search request: by the notes of a period or by all, by a condition or by its words, and by a reranker.
//! A search shows a page of them, and `ask-why` tells the place of one, so both give the same place.

use sidenote_base::error::Result;
use sidenote_base::wording::Wording;
use sidenote_index::Snapshot;
use sidenote_markdown::relation::RelationEnd;
use sidenote_open_vault::Core;
use sidenote_search::pipeline::finish;
use sidenote_search::query::Query;
use sidenote_search::reader::SearchReader;
use sidenote_search::relation_answer::RelationAnswer;
use sidenote_search::{Mode, QueryVector};

use crate::Searches;
use crate::dates::{DatedQuery, Period};
use crate::extent::Extent;
use crate::read::Reads;
use crate::search::SearchRequest;
use crate::search_scope::{ScopeHits, SearchScope};
use crate::verify::SearchHits;

/// The notes for a search request, in the order of the results.
pub(super) struct RankedSearch {
    /// The query that was searched for: without the words of a period, or the plain words of a condition.
    pub(super) query: Query,
    /// The mode that was used.
    pub(super) mode: Mode,
    /// The vector of the query, if the search asked for one.
    pub(super) vector: QueryVector,
    /// The notes.
    pub(super) hits: SearchHits,
    /// The period to which the query narrowed the search.
    pub(super) period: Option<Period>,
    /// Whether the query has no words but those of a period and common ones.
    pub(super) is_date_alone: bool,
    /// Notices about what was searched.
    pub(super) notes: Vec<Wording>,
    /// The number of results up to the end of the page.
    pub(super) limit: usize,
    /// The number of hits from which the results are taken.
    pub(super) most: usize,
}

impl Searches<'_> {
    /// Ranks the notes for a search request, without reading more of the files than the ranking needs.
    ///
    /// # Errors
    /// `Invalid` for a malformed query or filter; `NotFound` for vector mode without a model; `Corrupt` if the index cannot be
    /// read.
    pub(super) fn ranked(
        &self,
        request: &SearchRequest,
        snapshot: &Snapshot,
        extent: Extent,
    ) -> Result<RankedSearch> {
        let mut notes = Vec::new();
        let mut query = request.understood(self.core.clock.now(), &mut notes)?;
        query.in_languages_of(&snapshot.bm25)?;
        let scope = SearchScope::of(*self, request, snapshot, extent)?;
        let (mut period, mut is_date_alone, mut narrowed) = (None, false, None);
        if let Some(dated) = dated(self.core, request, &query, &scope)? {
            let dated = dated.search(&scope)?;
            notes.extend(dated.notices);
            is_date_alone = dated.is_date_alone;
            if let Some(found) = dated.narrowed {
                (query, period, narrowed) = (found.rest, Some(found.period), Some(found.hits));
            }
        }
        let mut found = match narrowed {
            Some(found) => found,
            None => scope.find(&query, None)?,
        };
        notes.append(&mut found.used.notes);
        let is_unmet = found.hits.found.is_empty() && !request.may_be_message();
        let unmet = query.condition.as_ref().filter(|_| is_unmet);
        let unmet = unmet.map(|condition| Reads::of(self.core).absent_in(condition)).transpose()?;
        if let Some(words) = request.plain_words(&query).filter(|_| found.hits.found.is_empty()) {
            notes.clear();
            notes.push(WORDS_INSTEAD.into());
            query = words;
            found = scope.find(&query, None)?;
            notes.append(&mut found.used.notes);
        }
        notes.extend(unmet.into_iter().flatten().map(Wording::from));
        // While one types, most queries are superseded by the next letter.
        self.core.check_cancelled()?;
        let ScopeHits { hits, used } = found;
        notes.extend(hits.undecided.clone().map(Wording::from));
        notes.extend(hits.answer.as_ref().map(|answer| relation_notice(self.core, answer)).transpose()?);
        let hits = finished(self.core, hits, &query, &scope, &mut notes)?;
        let (limit, most) = (scope.limit, scope.most);
        let (mode, vector) = (used.mode, used.vector);
        Ok(RankedSearch { query, mode, vector, hits, period, is_date_alone, notes, limit, most })
    }
}

/// Returns the query as one that names a period, if it does and no filter or condition goes before it.
fn dated(
    core: &Core,
    request: &SearchRequest,
    query: &Query,
    scope: &SearchScope<'_>,
) -> Result<Option<DatedQuery>> {
    if !request.may_be_dated(query) {
        return Ok(None);
    }
    let now = core.clock.now();
    DatedQuery::of(core, &request.query, scope.snapshot, &scope.selection(), now)
}

/// Runs the last stages of the pipeline.
fn finished(
    core: &Core,
    mut hits: SearchHits,
    query: &Query,
    scope: &SearchScope<'_>,
    notes: &mut Vec<Wording>,
) -> Result<SearchHits> {
    let reader = scope.reader(query);
    let found = std::mem::take(&mut hits.found);
    let (best, trace) = (hits.best, hits.trace.as_mut());
    let at = (query, scope.judged_at, &reader as &dyn SearchReader);
    hits.found = finish(&core.index, scope.snapshot, at, found, best, trace)?;
    notes.extend(reader.used().notes);
    Ok(hits)
}

/// The notice that plain words replaced the condition.
const WORDS_INSTEAD: &str = "no note meets the whole condition, so its words answer";

/// Says that relations answer the query, and how to search without them.
fn relation_notice(core: &Core, answer: &RelationAnswer) -> Result<Wording> {
    let row = core.index.catalog().rows(&[answer.named])?.pop();
    let path = row.map(|row| row.path.as_str().to_owned()).unwrap_or_default();
    let stated = answer.stated();
    let (is, note, leads) = if stated == 1 { ("is", "note", "leads") } else { ("are", "notes", "lead") };
    let begin = match (answer.is_whole, stated) {
        (true, 1) => "this is",
        (true, _) => "these are",
        (false, 1) => "first comes",
        (false, _) => "first come",
    };
    let what = match answer.end {
        Some(RelationEnd::Subject) => format!("to which {path} leads by {}", answer.kind),
        Some(RelationEnd::Object) => format!("that {leads} to {path} by {}", answer.kind),
        None => format!("of this kind that {is} linked with {path}"),
    };
    let linked = answer.notes.len() - stated;
    let text = match (stated, linked) {
        (0, _) => format!(
            "no note states {} of {path}; first come notes that are linked with it and may answer",
            answer.kind
        ),
        (_, 0) => format!("{begin} the {note} {what}"),
        (1, _) => {
            format!("{begin} the note {what}, and {linked} that may answer: linked with it, but not stated")
        }
        (_, _) => {
            format!(
                "{begin} {stated} {note} {what}, and {linked} that may answer: linked with it, but not stated"
            )
        }
    };
    Ok(Wording::new(
        format!("{text}; --no-relations searches for the words"),
        format!("{text}; the mode bm25 or vector searches all notes"),
    )
    .with_page(format!("{text}; “Words” and “Meaning” above search all notes")))
}
