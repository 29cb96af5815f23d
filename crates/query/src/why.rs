//! Explains why a note is, or is not, among the results of a query.

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_catalog::FileRow;
use sidenote_index::Snapshot;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::sync::IndexSync;
use sidenote_search::query::Query;
use sidenote_search::query_parser::QueryNode;
use sidenote_search::stage::StagePlace;
use sidenote_search::{Components, Mode, Request, allowed_files};

use crate::Searches;
use crate::extent::Extent;
use crate::memory_weights::MemoryWeights;
use crate::search::{Fallback, SearchRequest};

/// A query and a note.
#[derive(Debug, Clone, Default)]
pub struct WhyRequest {
    /// The search, with its filters.
    pub search: SearchRequest,
    /// The note: path, id, title, alias, file name or `[[wikilink]]`.
    pub note: String,
}

/// A condition of the query, and whether the note fulfils it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// The condition, written as a query.
    pub term: String,
    /// Whether the note fulfils it.
    pub holds: bool,
}

/// The explanation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhyReply {
    /// Vault path of the note.
    pub path: String,
    /// Whether it is among the results.
    pub found: bool,
    /// The rank among all matching notes, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// The number of results on the first page.
    pub limit: usize,
    /// The components of its score, if a ranking contains the note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Components>,
    /// The similarity of the query and its nearest passage, even if it is too low for the ranking: 0 is that of an unrelated
    /// text and 1 that of the same, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f32>,
    /// The conditions of the query, if it has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The stages of the search that found the note or changed its place, each with the place after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StagePlace>,
    /// The words of the query that the note does not contain in any inflection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_words: Vec<String>,
    /// The reasons, each as a sentence.
    pub reasons: Vec<String>,
    /// Whether the note is forgotten or archived and therefore left out. Restoring it brings it back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restorable: bool,
}

impl Searches<'_> {
    /// Explains why a note is, or is not, among the results of a query.
    ///
    /// # Errors
    /// `NotFound` if no note has the name, or for vector mode without a model; `Exists` if several notes have the name;
    /// `Invalid` for a query that is not valid.
    #[tracing::instrument(skip_all)]
    pub fn why(&self, request: &WhyRequest) -> Result<WhyReply> {
        let search = &request.search;
        let stale = !search.no_sync && IndexSync::of(self.core).refresh()? > 0;
        let row = Lookup::of(self.core).find(&request.note)?;
        let mut query = search.parsed(self.core.clock.now())?;
        if !search.no_sync {
            self.embed_recent(search.mode, &query)?;
        }
        let snapshot = self.core.index.snapshot()?;
        query.in_languages_of(&snapshot.bm25)?;
        let limit = search.limit.unwrap_or(self.core.config.search.limit);
        let mut reply = WhyReply {
            path: row.path.as_str().to_owned(),
            found: false,
            rank: None,
            limit,
            explain: None,
            cosine: None,
            conditions: Vec::new(),
            stages: Vec::new(),
            missing_words: Vec::new(),
            reasons: Vec::new(),
            restorable: false,
        };
        if stale {
            reply.reasons.push("files changed that the index does not hold yet".to_owned());
        }
        if query.is_empty() {
            reply.reasons.push("the query is empty, and finds nothing".to_owned());
            return Ok(reply);
        }
        let is_let_in = self.filters(search, &row, &mut reply)?;
        let holds = self.conditions(&query, &row, &snapshot, &mut reply)?;
        let (searched, is_of_period) = self.places(search, &row, &snapshot, &mut reply)?;
        if is_let_in && holds && is_of_period {
            self.verdict(&searched, &row, &mut reply)?;
        }
        Ok(reply)
    }

    /// Returns why the note cannot be found at all, if that is so.
    pub(super) fn filters(
        &self,
        search: &SearchRequest,
        row: &FileRow,
        reply: &mut WhyReply,
    ) -> Result<bool> {
        if row.excluded {
            let why = "Obsidian's settings exclude it (userIgnoreFilters in .obsidian/app.json)";
            reply.reasons.push(why.to_owned());
            return Ok(false);
        }
        let inactive = row.inactive;
        if inactive.forgotten && !search.include.forgotten {
            reply.reasons.push("it is forgotten".to_owned());
            reply.restorable = true;
        }
        if inactive.archived && !search.include.archived {
            reply.reasons.push("it is archived".to_owned());
            reply.restorable = true;
        }
        let in_tier = |tier| MemoryWeights::of(self.core).files_in_tier(&*self.core.index.snapshot()?, tier);
        let in_tier = search.tier.map(in_tier).transpose()?;
        let filtered = Request {
            filter: crate::validity::valid_as_of(
                self.core,
                crate::search::hide(&search.filter, search.include),
                search.as_of,
            )?,
            path: search.path.clone(),
            among: in_tier.as_ref(),
            ..Request::default()
        };
        let allowed = allowed_files(&self.core.index.catalog(), &filtered)?;
        let is_let_in = allowed.is_none_or(|files| files.contains(row.id));
        if !is_let_in && reply.reasons.is_empty() {
            reply.reasons.push("a filter of the search keeps it out".to_owned());
        }
        Ok(is_let_in)
    }

    /// Evaluates each condition of the query for the note. Returns whether all hold.
    fn conditions(
        &self,
        query: &Query,
        row: &FileRow,
        snapshot: &Snapshot,
        reply: &mut WhyReply,
    ) -> Result<bool> {
        let Some(condition) = &query.condition else { return Ok(true) };
        let single = std::slice::from_ref(condition);
        let parts = if let QueryNode::All(nodes) = condition { nodes.as_slice() } else { single };
        for part in parts {
            let (holds, gave_up) = self.judged(part, row, snapshot)?;
            if gave_up {
                reply.reasons.push(format!("{part} takes too many steps in it"));
            } else if !holds {
                reply.reasons.push(format!("it does not match {part}"));
            }
            reply.conditions.push(Condition { term: part.to_string(), holds });
        }
        Ok(reply.conditions.iter().all(|condition| condition.holds))
    }

    /// Finds the rank of the note as a search does, and the components of its score. Returns the query that was searched for,
    /// and whether the note is of the period that the query names, if it names one.
    fn places(
        &self,
        search: &SearchRequest,
        row: &FileRow,
        snapshot: &Snapshot,
        reply: &mut WhyReply,
    ) -> Result<(Query, bool)> {
        // The condition itself is explained, and not the words that a search takes where no note meets it.
        let search = SearchRequest { fallback: Fallback::Never, ..search.clone() };
        let ranked = self.ranked(&search, snapshot, Extent::All)?;
        reply.reasons.extend(ranked.notes.iter().map(ToString::to_string));
        let found = &ranked.hits.found;
        reply.rank = found.iter().position(|hit| hit.row.id == row.id).map(|at| at + 1);
        reply.explain = found.iter().find(|hit| hit.row.id == row.id).map(|hit| hit.components);
        reply.stages = ranked.hits.trace.map_or_else(Vec::new, |trace| trace.places_of(row.id));
        let is_of_period = ranked.period.is_none_or(|period| period.files.contains(row.id));
        if !is_of_period {
            reply.reasons.push("it states no date in the period that the query names".to_owned());
        }
        let keys = self.core.index.catalog().passages().of(row.id)?;
        if let Some(vector) = ranked.vector.filter(|_| ranked.mode != Mode::Bm25) {
            let near = snapshot.vectors.compare(&vector, &keys)?;
            reply.cosine = near.iter().map(|near| near.similarity).max_by(f32::total_cmp);
            let waiting = keys.iter().filter(|key| !snapshot.vectors.contains(**key)).count();
            if waiting > 0 {
                reply
                    .reasons
                    .push(format!("passages of it without a vector yet: {waiting} of {}", keys.len()));
            }
        }
        let only = [row.id].into_iter().collect();
        for word in &ranked.query.words {
            let alone = sidenote_bm25::Bm25Query {
                words: std::slice::from_ref(word),
                allowed: Some(&only),
                limit: 1,
            };
            if snapshot.bm25.search(&alone, &sidenote_bm25::Tuning::default())?.is_empty() {
                reply.missing_words.push(ranked.query.as_typed(word).to_owned());
            }
        }
        Ok((ranked.query, is_of_period))
    }

    /// Returns a sentence about the rank of the note and the size of the page.
    pub(super) fn verdict(&self, query: &Query, row: &FileRow, reply: &mut WhyReply) -> Result<()> {
        match reply.rank {
            Some(rank) if rank <= reply.limit => {
                reply.found = true;
                reply.reasons.push(format!("it is result {rank} of the {} that are shown", reply.limit));
            }
            Some(rank) => reply.reasons.push(format!(
                "it comes at place {rank}, and {} are shown; a higher limit shows more",
                reply.limit
            )),
            None => {
                let is_empty = self.core.index.catalog().passages().of(row.id)?.is_empty();
                let has_none = reply.missing_words.len() == query.words.len();
                let why = match reply.cosine {
                    _ if is_empty => "it has no text",
                    None if has_none => "it holds none of the query's words",
                    Some(_) if has_none => {
                        "it holds none of the query's words, and other notes are nearer in meaning"
                    }
                    _ => "other notes have more of the query's words, or are nearer in meaning",
                };
                reply.reasons.push(why.to_owned());
            }
        }
        Ok(())
    }
}
