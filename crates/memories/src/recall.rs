//! Recalls memories for a prompt or a query, and explains their scores.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_catalog::{FileId, Filter, Inactive};
use sidenote_journal::reader::ReadOrder;
use sidenote_language::word_lists::Languages;
use sidenote_memory::context::WorkContext;
use sidenote_memory::recall::{RecallGroup, RecallItem, asks_again, prompt_query, select_by_quotas};
use sidenote_memory::score::{CompositeScore, composite_score};
use sidenote_memory::tier::Tier;
use sidenote_memory::tier_rule::{TierReason, tier_reason};
use sidenote_memory::types::MemoryType;
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::Searches;
use sidenote_query::memory_weights::{Memory, MemoryWeights, RECALLED, TierThresholds, content_state};
use sidenote_query::search::hide;
use sidenote_query::validity::{invalidities, valid_as_of};
use sidenote_search::SearchHit;
use sidenote_search::note_date::NoteDate;
use sidenote_search::query::Query;
use sidenote_search::validity_order::with_replacements;

use crate::candidates::Candidates;
use crate::content::MemoryContent;
use crate::meant::meant;
use crate::newer_statements::NewerNotes;
use crate::prompt_evidence::{COMPARED_BYTES, EvaluatedMatch, LONGEST, Matches};
use crate::recall_reply::{RecallBudget, RecallReply};
use crate::{Memories, Recalls};

/// The default number of recalled memories.
const MOST_ITEMS: usize = 10;

/// The fewest notes among which memories are chosen (docs/spec/toolsets.md, `memory_recall`).
const MIN_CANDIDATES: usize = 30;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// A request for memories that help with a prompt.
#[derive(Debug, Clone, Default)]
pub struct RecallRequest {
    /// The prompt.
    pub prompt: String,
    /// The largest number of memories.
    pub limit: Option<usize>,
    /// The instant at which a memory must be valid.
    pub as_of: Option<Timestamp>,
    /// The time for updating the index, after which it is used as it is. Without it, the update takes as long as it
    /// needs.
    pub wait_limit: Option<Duration>,
    /// Whether to leave out what the session of the store got before, unless the note changed or the prompt asks for it.
    pub only_new: bool,
    /// The most tokens of the reply.
    pub budget: Option<RecallBudget>,
}

/// A search for memories that returns their whole texts, which counts as a use of each.
#[derive(Debug, Clone, Default)]
pub struct MemoryRecallRequest {
    /// The query, as plain words without operators.
    pub query: String,
    /// The largest number of memories.
    pub limit: usize,
    /// Only memories of this tier.
    pub tier: Option<Tier>,
    /// Only memories with at least this composite score.
    pub min_score: Option<f64>,
    /// Inactive memories to include.
    pub include: Inactive,
    /// The filter of notes.
    pub filter: Filter,
}

/// The result of recalling memories by a query.
#[derive(Debug, Clone)]
pub struct RecalledReply {
    /// The memories, best first.
    pub memories: Vec<Recalled>,
    /// Sentences about what the answer lacks, such as that only words were searched.
    pub notices: Vec<String>,
}

/// A recalled memory.
#[derive(Debug, Clone)]
pub struct Recalled {
    /// The memory.
    pub memory: Memory,
    /// The score with its components.
    pub score: CompositeScore,
    /// The text and properties of the memory.
    pub content: MemoryContent,
}

/// The score of a memory, with reasons.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainReply {
    /// The memory.
    #[serde(flatten)]
    pub memory: Memory,
    /// The half-life of its importance, in days.
    pub half_life_days: f64,
    /// The lower limit of its importance after decay.
    pub floor: f64,
    /// The score in recall with its components. The similarity is 0 without a query.
    pub score: CompositeScore,
    /// Whether recall may return the memory.
    pub eligible: bool,
    /// Why recall may return the memory, or why not.
    pub reason: String,
    /// Which value decides the tier.
    pub tier_reason: TierReason,
    /// The thresholds of the tiers.
    pub thresholds: TierThresholds,
}

/// Returns the query that finds notes for a prompt. `None` if the prompt is small talk. Its words are the key terms of the
/// prompt; its meaning is that of the beginning of the prompt, as it was written.
fn query_for(prompt: &str) -> Option<Query> {
    let words = prompt_query(prompt)?;
    let asked = prompt.trim();
    let beginning = asked.get(..asked.floor_char_boundary(COMPARED_BYTES)).unwrap_or(asked);
    Some(Query::plain(&words).with_prompt(beginning))
}

/// Returns the text whose vector a recall for this prompt needs first, for [`Open::first_query`](sidenote_open_vault::open::Open::first_query).
pub fn text_to_embed_for(prompt: &str) -> Option<String> {
    query_for(prompt).map(|query| query.text_to_embed().to_owned())
}

/// The number of best hits by which similarity is scaled, so that it does not depend on the number requested.
const COMPARED: usize = 30;

/// Scales scores to the range of the best hits, from 0 to 1. Fused scores alone say little about how different the hits
/// are.
fn likeness(found: &[SearchHit]) -> Vec<f64> {
    // The bonus of a note that the query names or quotes would make all others look similar.
    let score = |hit: &SearchHit| f64::from(hit.rank_score());
    let compared = found.get(..found.len().min(COMPARED)).unwrap_or_default();
    let best = compared.iter().map(score).fold(0.0, f64::max);
    let least = compared.iter().map(score).reduce(f64::min).unwrap_or(0.0);
    let place = |score: f64| if best > least { ((score - least) / (best - least)).max(0.0) } else { 1.0 };
    let of = |hit: &SearchHit| if hit.components.from_name.is_some() { 1.0 } else { place(score(hit)) };
    found.iter().map(of).collect()
}

/// Memories, each with its composite score.
type Scored = Vec<(Memory, CompositeScore)>;

impl Recalls<'_> {
    /// Returns memories that help with a prompt, best first, and records a use of each. Returns none if no memory is
    /// about the prompt.
    ///
    /// # Errors
    /// `Invalid` for an invalid query or filter; `NotFound` for vector mode without a model; `Corrupt` if the index
    /// cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn recall(&self, request: &RecallRequest) -> Result<RecallReply> {
        let most = request.limit.unwrap_or(MOST_ITEMS);
        let query = match query_for(&request.prompt) {
            None if most > 0 => self.query_of_name(request)?,
            found => found.filter(|_| most > 0),
        };
        let (context, memories, notices) = match query {
            Some(query) => self.recalled(request, &query, most)?,
            None => (Memories::of(self.core).context()?, Vec::new(), Vec::new()),
        };
        let reply = RecallReply { context, memories, notices };
        let reply = match &request.budget {
            None => reply,
            Some(budget) => budget.fit(reply),
        };
        let rows = {
            let catalog = self.core.index.catalog();
            let rows = reply.memories.iter().map(|item| catalog.row_at(&item.path));
            rows.collect::<Result<Vec<_>>>()?
        };
        MemoryWeights::of(self.core).note_use(rows.iter().flatten(), RECALLED);
        Ok(reply)
    }

    /// Returns the query that finds the notes that have a prompt as their name, if there are any. In another language than
    /// English it may consist of stop words and small talk, as `La Cosa Nostra`.
    fn query_of_name(&self, request: &RecallRequest) -> Result<Option<Query>> {
        if Languages::of(&request.prompt).is_empty() {
            return Ok(None);
        }
        match request.wait_limit {
            Some(wait_limit) => IndexSync::of(self.core).refresh_within(wait_limit).map(drop)?,
            None => IndexSync::of(self.core).refresh().map(drop)?,
        }
        let name = request.prompt.trim_matches(|c: char| !c.is_alphanumeric());
        let named = self.core.index.catalog().names().with_title_or_name(name)?;
        Ok((!named.is_empty()).then(|| Query::plain(name)))
    }

    /// Reads the work context and finds the notes that match a prompt while the files are compared with the index, which takes
    /// most of the time of a process. If the index changed meanwhile, it finds the notes once more.
    fn matches_meanwhile(
        &self,
        wait_limit: Duration,
        request: &RecallRequest,
        query: &Query,
        most: usize,
    ) -> Result<(Option<WorkContext>, Matches)> {
        let before = self.core.index.generation()?;
        let refresh = || IndexSync::of(self.core).refresh_within(wait_limit);
        let find = || (Memories::of(self.core).context(), self.matches(request, query, most));
        let (refreshed, (context, matches)) = parallel::join(refresh, find);
        // Another process may have changed the index, too.
        let has_changed = refreshed? || self.core.index.generation()? != before;
        // What was written last may be what is asked for.
        let has_changed = Searches::of(self.core).embed_recent(None, query)? || has_changed;
        Ok((context?, if has_changed { self.matches(request, query, most)? } else { matches? }))
    }

    /// Finds the notes that match a prompt in the index as it is.
    fn matches(&self, request: &RecallRequest, query: &Query, most: usize) -> Result<Matches> {
        let filter = hide(&Filter::default(), Inactive::default());
        let filter = valid_as_of(self.core, filter, request.as_of)?;
        let prompt = self.prompt_words(&request.prompt)?;
        let Candidates { mut found, by_chance, notices, .. } =
            self.candidates(query, None, filter.clone(), most.saturating_mul(3).max(MIN_CANDIDATES))?;
        found.extend(self.notes_with_names(&prompt, filter.clone(), &found)?);
        let weighed = self.evaluate_matches(&found, by_chance, &query.words, &prompt, LONGEST)?;
        Ok(Matches { found, notices, prompt, weighed, filter })
    }

    /// Finds the memories that a prompt is about. Returns the work context, the memories, and sentences about what they lack.
    fn recalled(
        &self,
        request: &RecallRequest,
        query: &Query,
        most: usize,
    ) -> Result<(Option<WorkContext>, Vec<RecallItem>, Vec<String>)> {
        let (context, matches) = match request.wait_limit {
            Some(wait_limit) => self.matches_meanwhile(wait_limit, request, query, most)?,
            None => {
                IndexSync::of(self.core).refresh()?;
                Searches::of(self.core).embed_recent(None, query)?;
                (Memories::of(self.core).context()?, self.matches(request, query, most)?)
            }
        };
        let now = self.core.clock.now();
        let mut matches = matches;
        let floor = self.recall_floor()?;
        let mut scored = self.compose(matches.found.clone(), now)?;
        let is_pinned = |at: usize| scored.get(at).is_some_and(|(memory, _)| memory.state.pinned);
        let mut meant = meant(&matches.weighed, &matches.prompt, floor, is_pinned);
        let updates = self.newer_statements(&mut matches, &meant)?;
        let Matches { found, notices, mut weighed, .. } = matches;
        let is_update = |hit: &SearchHit| updates.values().flatten().any(|file| *file == hit.row.id);
        meant.extend((0..found.len()).filter(|at| found.get(*at).is_some_and(is_update)));
        if found.len() > scored.len() {
            scored = self.compose(found, now)?;
        }
        // It is read last, for another process may give memories to the same session.
        let given = if request.only_new { self.given_in_session()? } else { HashMap::new() };
        let asks_again = asks_again(&request.prompt);
        let is_new = |at: usize| {
            let row = scored.get(at).map(|(memory, _)| &memory.row);
            let is_named =
                weighed.get(at).and_then(Option::as_ref).is_some_and(EvaluatedMatch::has_whole_name);
            let at_hand = row.and_then(|row| Some(*given.get(row.path.as_str())? == content_state(row)));
            asks_again || is_named || at_hand != Some(true)
        };
        let about: Vec<usize> = (0..scored.len()).filter(|at| meant.contains(at) && is_new(*at)).collect();
        let share = |memory: &Memory| {
            if memory.state.pinned { RecallGroup::Pinned } else { RecallGroup::Tier(memory.state.tier) }
        };
        let shares: Vec<(RecallGroup, f64)> = about
            .iter()
            .filter_map(|&at| scored.get(at))
            .map(|(memory, score)| (share(memory), score.total))
            .collect();
        let chosen = select_by_quotas(&MemoryWeights::of(self.core).shares(), &shares, most)
            .into_iter()
            .filter_map(|at| about.get(at).copied());
        let is_now = request.as_of.is_none();
        // What was valid then is not superseded.
        let chosen: Vec<usize> = chosen.collect();
        let chosen = if is_now { self.superseded_last(chosen, &scored, &updates, now)? } else { chosen };
        let files = scored.iter().filter(|_| is_now).map(|(memory, _)| memory.row.id);
        let mut invalid = invalidities(self.core, files, now)?;
        let chosen: Vec<usize> = chosen.into_iter().take(most).collect();
        let given_rows = chosen.iter().filter_map(|at| scored.get(*at)).map(|(memory, _)| &memory.row);
        let paths: HashMap<FileId, String> = given_rows.map(|row| (row.id, row.path.to_string())).collect();
        let mut items = Vec::new();
        for at in chosen {
            let newer_of = |file: FileId| updates.get(&file).into_iter().flatten().filter(|_| is_now);
            let Some((memory, score)) = scored.get(at) else { continue };
            let Some(weighed) = weighed.get_mut(at).and_then(Option::take) else { continue };
            items.push(RecallItem {
                id: memory.id.clone(),
                path: memory.path.clone(),
                title: memory.title.clone(),
                kind: memory.kind.clone(),
                tier: memory.state.tier,
                date: Some(NoteDate::of(&memory.row)).filter(|date| date.is_stated).map(|date| date.at.day()),
                score: score.total,
                text: weighed.passage,
                invalidity: invalid.remove(&memory.row.id).unwrap_or_default(),
                newer: newer_of(memory.row.id).filter_map(|file| paths.get(file).cloned()).collect(),
            });
        }
        Ok((context, items, notices))
    }

    /// Lists what was recalled in this session during the last day: paths, and the content that was given last.
    fn given_in_session(&self) -> Result<HashMap<String, String>> {
        let mut given = HashMap::new();
        let Some(mut session) = self.core.session.clone() else { return Ok(given) };
        self.core.clean(&mut session);
        let since = Timestamp::from_millis(self.core.clock.now().millis() - MILLIS_PER_DAY);
        let events = self.core.journal().events(ReadOrder::NewestFirst)?;
        for event in events.since(since).with_any(&[&session]) {
            let event = event?;
            if event.at < since {
                break;
            }
            let says = |name: &str, text: &str| event.more.get(name).and_then(Value::as_str) == Some(text);
            if event.op == "use" && says("by", RECALLED) && says("session", &session) {
                let notes = event.more.get("notes").and_then(Value::as_array).into_iter().flatten();
                let states = event.more.get("states").and_then(Value::as_array).into_iter().flatten();
                for (note, state) in notes.zip(states) {
                    if let (Some(path), Some(state)) =
                        (note.get("path").and_then(Value::as_str), state.as_str())
                    {
                        given.entry(path.to_owned()).or_insert_with(|| state.to_owned());
                    }
                }
            }
        }
        Ok(given)
    }

    /// Orders chosen memories so that none is given without the newest one that supersedes it, which comes first, or without
    /// its update.
    fn superseded_last(
        &self,
        chosen: Vec<usize>,
        scored: &Scored,
        updates: &NewerNotes,
        now: Timestamp,
    ) -> Result<Vec<usize>> {
        let table = self.core.index.validity(&*self.core.index.snapshot()?)?;
        let file = |at: usize| scored.get(at).map(|(memory, _)| memory.row.id);
        Ok(with_replacements(chosen, scored.len(), file, &table, updates, now))
    }

    /// Returns the similarity above which a passage counts as being about a prompt, if it was measured for the model.
    fn recall_floor(&self) -> Result<Option<f32>> {
        Ok(self.core.index.snapshot()?.model.as_ref().and_then(|model| model.recall_floor()))
    }

    /// Computes the composite score of each hit.
    fn compose(&self, found: Vec<SearchHit>, now: Timestamp) -> Result<Vec<(Memory, CompositeScore)>> {
        let likeness = likeness(&found);
        let memories = MemoryWeights::of(self.core)
            .weigh_for_scores(found.into_iter().map(|hit| hit.row).collect(), now)?;
        let kinds = MemoryWeights::of(self.core).kinds();
        let weights = self.core.config.memory.weights;
        let scored = memories.into_iter().zip(likeness).map(|(memory, likeness)| {
            let kind = kinds.get(&memory.kind);
            let score = composite_score(likeness, &memory.state, &kind, memory.said.created, now, &weights);
            (memory, score)
        });
        Ok(scored.collect())
    }

    /// Returns the memories that match a query, by composite score, and records a use of each.
    ///
    /// # Errors
    /// `Invalid` for an invalid query or filter; `NotFound` for vector mode without a model; `Corrupt` if the index
    /// cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn recall_memories(&self, request: &MemoryRecallRequest) -> Result<RecalledReply> {
        IndexSync::of(self.core).refresh()?;
        let now = self.core.clock.now();
        let filter = hide(&request.filter, request.include);
        let query = Query::plain(&request.query);
        Searches::of(self.core).embed_recent(None, &query)?;
        let most = request.limit.saturating_mul(3).max(MIN_CANDIDATES);
        let Candidates { found, mut notices, by_meaning, .. } =
            self.candidates(&query, None, filter, most)?;
        let updates: NewerNotes =
            found.iter().filter_map(|hit| Some((hit.row.id, vec![hit.updated_by?]))).collect();
        let mut scored = self.compose(found, now)?;
        scored.retain(|(memory, score)| {
            request.tier.is_none_or(|tier| memory.state.tier == tier)
                && request.min_score.is_none_or(|least| score.total >= least)
        });
        // The sort is stable, so equal scores keep the order of the search.
        scored.sort_by(|(_, one), (_, other)| other.total.total_cmp(&one.total));
        let order = self.superseded_last((0..scored.len()).collect(), &scored, &updates, now)?;
        let mut scored: Vec<Option<(Memory, CompositeScore)>> = scored.into_iter().map(Some).collect();
        let mut scored: Scored =
            order.into_iter().filter_map(|at| scored.get_mut(at).and_then(Option::take)).collect();
        scored.truncate(request.limit);
        let (mut memories, scores): (Vec<Memory>, Vec<CompositeScore>) = scored.into_iter().unzip();
        MemoryWeights::of(self.core).complete(&mut memories, now)?;
        let mut given = Vec::new();
        for (memory, score) in memories.into_iter().zip(scores) {
            // A memory that was removed since is left out.
            let Ok(content) = Memories::of(self.core).content(&memory) else { continue };
            given.push(Recalled { memory, score, content });
        }
        MemoryWeights::of(self.core).note_use(given.iter().map(|recalled| &recalled.memory.row), RECALLED);
        notices.extend(by_meaning.filter(|_| !given.is_empty()));
        Ok(RecalledReply { memories: given, notices })
    }

    /// Explains the score of a memory, and its score for a query.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn explain(&self, name: &str, query: Option<&str>) -> Result<ExplainReply> {
        let memory = Memories::of(self.core).memory(name)?;
        let kind: MemoryType = MemoryWeights::of(self.core).kind_of(&memory);
        let now = self.core.clock.now();
        let similarity = match query {
            None => 0.0,
            Some(text) => {
                let found = self.candidates(&Query::plain(text), None, Filter::default(), 1000)?.found;
                let likeness = likeness(&found);
                let at = found.iter().position(|hit| hit.row.id == memory.row.id);
                at.and_then(|at| likeness.get(at).copied()).unwrap_or(0.0)
            }
        };
        let score = composite_score(
            similarity,
            &memory.state,
            &kind,
            memory.said.created,
            now,
            &self.core.config.memory.weights,
        );
        let (eligible, reason) = match (memory.state.forgotten, memory.state.tier) {
            (true, _) => (false, "it is forgotten; `restore` restores it".to_owned()),
            (_, Tier::Archive) => (false, "it is archived; `restore` or `pin` restores it".to_owned()),
            (_, tier) if memory.state.pinned => (true, format!("it is pinned ({tier})")),
            (_, tier) => (true, format!("it is {tier}")),
        };
        let thresholds = MemoryWeights::of(self.core).thresholds().of_kind(&kind);
        Ok(ExplainReply {
            tier_reason: tier_reason(&thresholds, &memory.said, &memory.usage, now),
            thresholds: TierThresholds::of(&thresholds),
            memory,
            half_life_days: kind.half_life_days,
            floor: kind.floor,
            score,
            eligible,
            reason,
        })
    }
}
