//! The toolset `tiered` (docs/spec/toolsets.md): memories in tiers, with pins and explanations. Each answer is a text,
//! and the same as structured data. Its tool names, arguments and reply texts; `Store` does the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::{Filter, Inactive};
use sidenote_mcp::reply_limit::{TARGET_LENGTH, TextBudget};
use sidenote_mcp::tool::{Answer, Effect, Tool};
use sidenote_memory::preview::preview;
use sidenote_memory::state::{days_between, importance_of_share, share_of_importance};
use sidenote_store::{
    ChangeReply, InsertOutcome, InsertRequest, Memory, MemoryRecallRequest, RecalledReply, Store, Tier,
    WorkContext,
};

/// The default lifetime of a context, in hours.
const TTL_HOURS: f64 = 4.0;

const STORE_EXAMPLE: &str = r#"{"text": "The build needs Rust 1.95", "memory_type": "factual", "importance": 0.7, "tags": ["build"]}"#;
const ID_EXAMPLE: &str = r#"{"memoryId": "0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23"}"#;
const FORGET_EXAMPLE: &str = r#"{"memoryId": "0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23", "hard": false}"#;

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum KindInput {
    Procedural,
    #[default]
    Factual,
    Project,
    Episodic,
}

impl KindInput {
    /// Parses a type. An unknown one is factual, and `notices` says so.
    fn parse(text: &str, notices: &mut Vec<String>) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "procedural" => Self::Procedural,
            "project" => Self::Project,
            "episodic" => Self::Episodic,
            "factual" => Self::Factual,
            _ => {
                notices.push(format!(
                    "there is no type {text:?}, so the memory is factual; the types are procedural, factual, project and \
                     episodic"
                ));
                Self::Factual
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Procedural => "procedural",
            Self::Factual => "factual",
            Self::Project => "project",
            Self::Episodic => "episodic",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum TierInput {
    Hot,
    Warm,
    Cold,
    Archive,
}

impl From<TierInput> for Tier {
    fn from(tier: TierInput) -> Self {
        match tier {
            TierInput::Hot => Self::Hot,
            TierInput::Warm => Self::Warm,
            TierInput::Cold => Self::Cold,
            TierInput::Archive => Self::Archive,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct StoreInput {
    /// The text to remember.
    text: String,
    /// procedural (how to do something), factual (default), project or episodic (what happened); it decides how fast
    /// the memory fades.
    #[schemars(with = "Option<KindInput>")]
    memory_type: Option<String>,
    /// The same as memory_type.
    #[serde(rename = "type")]
    #[schemars(with = "Option<KindInput>")]
    kind: Option<String>,
    /// From 0 to 1 (default 0.5).
    #[schemars(range(min = 0, max = 1))]
    importance: Option<f64>,
    /// HOT (default) or ARCHIVE. A new memory is HOT; WARM and COLD follow from use and age.
    #[schemars(with = "Option<TierInput>")]
    tier: Option<String>,
    /// Pin it: it does not fade, and is WARM at least (default false).
    pinned: Option<bool>,
    /// What it belongs to, such as `work`.
    category: Option<String>,
    /// Its tags.
    #[schemars(extend("x-comma-list" = true))]
    tags: Option<Vec<String>>,
    /// Where it comes from.
    source: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RecallInput {
    /// What to look for, in words.
    query: String,
    /// At most this many memories (default 5).
    limit: Option<usize>,
    /// Only memories of this tier.
    tier: Option<TierInput>,
    /// Only memories with at least this score, from 0 to 1 (default 0).
    min_score: Option<f64>,
    /// Archived memories, too (default false).
    include_archive: Option<bool>,
    /// Forgotten memories, too (default false).
    include_forgotten: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ForgetInput {
    /// The memory's id.
    memory_id: Option<String>,
    /// Words by which the memory is found, where its id is not given.
    query: Option<String>,
    /// Move it to the trash, instead of keeping it out of recall (default false).
    hard: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct IdInput {
    /// The memory's id.
    memory_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ExplainInput {
    /// The memory's id.
    memory_id: String,
    /// What its likeness is measured against.
    query: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ContextInput {
    /// What is being worked on.
    text: String,
    /// For so many hours (default 4).
    ttl_hours: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoInput {}

#[derive(Debug, Serialize)]
struct Details<T> {
    details: T,
}

/// A memory as answers show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MemoryOutput {
    id: String,
    text: String,
    #[serde(rename = "type")]
    kind: String,
    /// The type again, under the name that the original server uses.
    #[serde(rename = "memory_type")]
    memory_type: String,
    tier: Tier,
    importance: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    pinned: bool,
    forgotten: bool,
    created_at: String,
    path: String,
}

impl MemoryOutput {
    fn of(memory: &Memory, text: String, properties: &Map<String, Value>) -> Self {
        Self {
            id: memory.id.clone(),
            text,
            kind: memory.kind.clone(),
            memory_type: memory.kind.clone(),
            tier: memory.state.tier,
            category: properties.get("category").and_then(Value::as_str).map(str::to_owned),
            importance: memory.given_importance().map_or(0.5, share_of_importance),
            tags: memory.tags.clone(),
            source: properties.get("source").and_then(Value::as_str).map(str::to_owned),
            pinned: memory.state.pinned,
            forgotten: memory.state.forgotten,
            created_at: memory.created.millis_rfc3339(),
            path: memory.path.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoreOutput {
    #[serde(flatten)]
    memory: MemoryOutput,
    is_duplicate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
}

#[derive(Debug, Serialize)]
struct RecallOutput {
    memories: Vec<RecalledOutput>,
    truncated: bool,
    context: Option<WorkContext>,
    /// Notices about what the results lack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RecalledOutput {
    #[serde(flatten)]
    memory: MemoryOutput,
    score: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ForgetOutput {
    id: String,
    text: String,
    hard_deleted: bool,
    restorable: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StateOutput {
    id: String,
    text: String,
    tier: Tier,
    pinned: bool,
    forgotten: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier_updated: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainOutput {
    #[serde(flatten)]
    memory: MemoryOutput,
    /// The type again, under the name that the original server uses here.
    #[serde(rename = "memoryType")]
    kind: String,
    similarity: f64,
    /// The days since the memory was created or last used; 0 for a pinned one.
    effective_age_days: f64,
    scoring: ScoringOutput,
    half_life_days: f64,
    /// The importance after decay, from 0 to 1.
    effective_importance: f64,
    use_count: usize,
    days_used: usize,
    use_days: Vec<String>,
    last_accessed_at: Option<String>,
    injection: InjectionOutput,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScoringOutput {
    similarity_value: f64,
    similarity_component: f64,
    recency_value: f64,
    recency_component: f64,
    frequency_value: f64,
    frequency_component: f64,
    total_score: f64,
    effective_age_days: f64,
    half_life_days: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InjectionOutput {
    eligible: bool,
    reason: String,
    is_pinned: bool,
    is_forgotten: bool,
    tier: Tier,
}

/// The active context, in the form of the original server.
#[derive(Debug, Serialize)]
struct ContextOutput {
    id: &'static str,
    text: String,
    created_at: String,
    ttl_seconds: i64,
    expires_at: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClearedOutput {
    cleared: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_text: Option<String>,
}

/// Returns the tools of the toolset.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "memory_store",
            Effect::Additive,
            "Store a memory as a note. What a note says already is not stored again, and that note is given instead.",
            STORE_EXAMPLE,
            memory_store,
        ),
        Tool::new(
            "memory_recall",
            Effect::ReadOnly,
            "Find memories by words and meaning, those that are near, new and in use first. Counts as a use of each.",
            r#"{"query": "how do we build", "limit": 5, "tier": "HOT"}"#,
            memory_recall,
        ),
        Tool::new(
            "memory_forget",
            Effect::Destructive,
            "Take a memory out of recall, which memory_restore undoes; with hard, move it to the trash.",
            FORGET_EXAMPLE,
            memory_forget,
        ),
        Tool::new(
            "memory_restore",
            Effect::Destructive,
            "Bring back a memory that was forgotten.",
            ID_EXAMPLE,
            memory_restore,
        ),
        Tool::new(
            "memory_pin",
            Effect::Destructive,
            "Pin a memory: it does not fade, and is WARM at least.",
            ID_EXAMPLE,
            |store, input: IdInput| memory_pin(store, &input),
        ),
        Tool::new(
            "memory_unpin",
            Effect::Destructive,
            "End the pinning of a memory.",
            ID_EXAMPLE,
            memory_unpin,
        ),
        Tool::new(
            "memory_explain",
            Effect::ReadOnly,
            "Explain how a memory scores, in which tier it is and why, and whether agents are given it.",
            r#"{"memoryId": "0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23", "query": "how do we build"}"#,
            memory_explain,
        ),
        Tool::new(
            "memory_set_context",
            Effect::IdempotentAdditive,
            "Say what is being worked on: it stands first in what agents are given. There is one at a time.",
            r#"{"text": "moving the parser to tables", "ttlHours": 4}"#,
            memory_set_context,
        ),
        Tool::new(
            "memory_clear_context",
            Effect::IdempotentAdditive,
            "End what memory_set_context said; tells whether there was anything.",
            "{}",
            memory_clear_context,
        ),
    ]
}

/// Rounds to four decimals.
fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

fn rounded_similarity(cosine: f32) -> f64 {
    round(f64::from(cosine)).min(1.0)
}

fn memory_by_id(store: &Store, id: &str) -> Result<Memory> {
    store.index().refresh()?;
    store.recalls().memory_by_id(id)?.ok_or_else(|| Error::not_found(format!("Memory not found: {id}")))
}

fn answer(text: impl Into<String>, details: impl Serialize) -> Result<Answer> {
    Answer::text(text).with_structured(&Details { details })
}

/// Returns a preview of the text of a memory.
fn preview_of(store: &Store, memory: &Memory) -> Result<String> {
    Ok(match store.memories().content(memory) {
        Ok(content) => preview(&content.text),
        Err(error) => {
            tracing::warn!("the text of a memory is not shown: {error}");
            "(its note cannot be read)".to_owned()
        }
    })
}

fn memory_store(store: &Store, input: StoreInput) -> Result<Answer> {
    let tier = input.tier.as_deref().map(str::trim).unwrap_or_default();
    let requested_tier = Tier::ALL.into_iter().find(|known| known.to_string().eq_ignore_ascii_case(tier));
    let mut notices = Vec::new();
    if requested_tier.is_none() && !tier.is_empty() {
        return Err(Error::invalid(format!("there is no tier {tier:?}"))
            .with_hint("The tiers are HOT, WARM, COLD and ARCHIVE"));
    }
    let importance = input.importance.map(|share| {
        let within = share.clamp(0.0, 1.0);
        if within != share {
            notices.push(format!("importance is {share}, so {within} is taken; it goes from 0 to 1"));
        }
        within
    });
    let mut properties = Map::new();
    if requested_tier == Some(Tier::Archive) {
        properties.insert("tier".to_owned(), Value::from("archive"));
    }
    if input.pinned == Some(true) {
        properties.insert("pinned".to_owned(), Value::from(true));
    }
    let category = input.category.map(|category| category.trim().to_owned());
    let category = category.filter(|category| !category.is_empty());
    properties.extend(category.map(|category| ("category".to_owned(), Value::from(category))));
    let kind = input.memory_type.or(input.kind);
    let source = input.source.filter(|source| !source.trim().is_empty());
    properties.extend(source.map(|source| ("source".to_owned(), Value::from(source))));
    let request = InsertRequest {
        text: input.text,
        kind: Some(
            kind.map(|kind| KindInput::parse(&kind, &mut notices)).unwrap_or_default().name().to_owned(),
        ),
        tags: input.tags.unwrap_or_default(),
        importance: importance.map(importance_of_share),
        properties,
        ..InsertRequest::default()
    };
    let (memory, similarity) = match store.memory_writes().insert_unless_similar(&request)? {
        InsertOutcome::Inserted(memory) => (memory, None),
        InsertOutcome::Duplicate(memory, cosine) => (memory, Some(rounded_similarity(cosine))),
    };
    let content = store.memories().content(&memory)?;
    let tier = memory.state.tier;
    let mut text = match similarity {
        None => format!("Memory stored in tier {tier}: {}", memory.id),
        Some(similarity) => format!(
            "Similar memory already exists (similarity: {:.1}%), so nothing is stored: {}",
            similarity * 100.0,
            memory.id
        ),
    };
    if let Some(requested_tier) =
        requested_tier.filter(|requested_tier| similarity.is_none() && *requested_tier != tier)
    {
        text.push_str(&format!(
            "\nIt is {tier}, not {requested_tier}: tiers follow from age and use, and only ARCHIVE can be given."
        ));
    }
    let output = MemoryOutput::of(&memory, content.text, &content.properties);
    let answer =
        answer(text, StoreOutput { memory: output, is_duplicate: similarity.is_some(), similarity })?;
    Ok(answer.with_notices(notices))
}

fn memory_recall(store: &Store, input: RecallInput) -> Result<Answer> {
    if input.query.trim().is_empty() {
        return Err(Error::invalid("Query cannot be empty").with_hint("Say in words what to look for"));
    }
    let tier = input.tier.map(Tier::from);
    let request = MemoryRecallRequest {
        query: input.query,
        limit: input.limit.unwrap_or(5),
        tier,
        min_score: input.min_score,
        include: Inactive {
            // A search of the tier ARCHIVE includes archived memories.
            archived: input.include_archive.unwrap_or(false) || tier == Some(Tier::Archive),
            forgotten: input.include_forgotten.unwrap_or(false),
        },
        filter: store.recalls().scoped(Filter::default()),
    };
    let context = store.memories().context()?;
    let mut text_budget = TextBudget::default();
    let mut truncated = false;
    let mut memories = Vec::new();
    let mut used = 0;
    let RecalledReply { memories: recalled, notices } = store.recalls().recall_memories(&request)?;
    for recalled in recalled {
        // A memory without its text takes about this many characters.
        used += 500;
        if used > TARGET_LENGTH {
            truncated = true;
            break;
        }
        let (text, is_cut) = text_budget.take(&recalled.content.text);
        truncated |= is_cut;
        memories.push(RecalledOutput {
            memory: MemoryOutput::of(&recalled.memory, text, &recalled.content.properties),
            score: recalled.score.total,
        });
    }
    let mut text =
        context.as_ref().map_or_else(String::new, |context| format!("Context: {}\n\n", context.text));
    match memories.len() {
        0 => text.push_str("No memories found."),
        1 => text.push_str("Found 1 memory:"),
        count => text.push_str(&format!("Found {count} memories:")),
    }
    for (at, RecalledOutput { memory, score }) in memories.iter().enumerate() {
        let MemoryOutput { id, kind, tier, .. } = memory;
        text.push_str(&format!("\n\n{}. {tier} {kind} {score:.3} {id}\n{}", at + 1, preview(&memory.text)));
    }
    Answer::text(text).with_notices(notices.clone()).with_structured(&RecallOutput {
        memories,
        truncated,
        context,
        notices,
    })
}

fn memory_forget(store: &Store, input: ForgetInput) -> Result<Answer> {
    let hard = input.hard.unwrap_or(false);
    let given = input.memory_id.filter(|id| !id.trim().is_empty());
    let by_query = given.is_none();
    let memory = match (given, input.query) {
        (Some(id), _) => memory_by_id(store, &id)?,
        (None, Some(query)) => best_match(store, &query, hard)?,
        (None, None) => {
            return Err(Error::invalid("neither memoryId nor query is given")
                .with_hint(format!("Give one of them. A valid call: {FORGET_EXAMPLE}")));
        }
    };
    let text = preview_of(store, &memory)?;
    match store.memory_writes().forget(&memory.path, hard, false) {
        Err(error) if error.kind() == ErrorKind::Exists && memory.state.forgotten => {
            return Err(Error::new(ErrorKind::Exists, format!("Memory is already forgotten: {}", memory.id))
                .with_hint("Use hard: true to move it to the trash, or memory_restore to bring it back"));
        }
        result => drop(result?),
    }
    let mut text_reply = if hard {
        format!(
            "Memory moved to the trash: {}\n{text}\nThe user can bring it back: undo takes it back.",
            memory.id
        )
    } else {
        format!("Memory forgotten: {}\n{text}\nmemory_restore brings it back.", memory.id)
    };
    if by_query {
        text_reply.push_str(&format!("\nThe query was taken to mean {} ({}).", memory.path, memory.title));
    }
    answer(text_reply, ForgetOutput { id: memory.id, text, hard_deleted: hard, restorable: !hard })
}

/// Finds the best match of a query. A forgotten memory matches only for a hard deletion.
fn best_match(store: &Store, query: &str, hard: bool) -> Result<Memory> {
    let hidden = Inactive { archived: false, forgotten: !hard };
    let filter = store.recalls().scoped(Filter { hidden, ..Filter::default() });
    store.recalls().best_match_for(query, filter)?.ok_or_else(|| {
        Error::not_found(format!("No memory found matching query: {query}"))
            .with_hint("Give memoryId, as memory_recall tells it, or more of the memory's own words")
    })
}

/// Describes the state of a memory after a change.
fn state_output(
    store: &Store,
    change: &ChangeReply,
    path: &str,
    tier_updated: Option<bool>,
) -> Result<StateOutput> {
    let memory = store.memories().memory_after(Some(change), path)?;
    let text = preview_of(store, &memory)?;
    let state = memory.state;
    let (tier, pinned, forgotten) = (state.tier, state.pinned, state.forgotten);
    Ok(StateOutput { id: memory.id, text, tier, pinned, forgotten, tier_updated })
}

fn memory_restore(store: &Store, input: IdInput) -> Result<Answer> {
    let id = input.memory_id;
    let memory = memory_by_id(store, &id)?;
    if !memory.state.forgotten {
        return Err(Error::invalid(format!("Memory is not forgotten: {id}")));
    }
    let done = store.memory_writes().restore_memory(&memory.path, false)?;
    let output = state_output(store, &done, &memory.path, None)?;
    answer(format!("Memory restored: {id}\n{}", output.text), output)
}

fn memory_pin(store: &Store, input: &IdInput) -> Result<Answer> {
    let id = &input.memory_id;
    let memory = memory_by_id(store, id)?;
    if memory.state.pinned {
        return Err(Error::new(ErrorKind::Exists, format!("Memory is already pinned: {id}")));
    }
    let before = memory.state.tier;
    let done = store.memory_writes().pin(&memory.path, false)?;
    let mut output = state_output(store, &done, &memory.path, None)?;
    let is_updated = output.tier != before;
    output.tier_updated = Some(is_updated);
    let mut text = format!("Memory pinned: {id}\n{}", output.text);
    if is_updated {
        text.push_str(&format!("\nIts tier was {before} and is {}.", output.tier));
    }
    answer(text, output)
}

fn memory_unpin(store: &Store, input: IdInput) -> Result<Answer> {
    let id = input.memory_id;
    let memory = memory_by_id(store, &id)?;
    if !memory.state.pinned {
        return Err(Error::invalid(format!("Memory is not pinned: {id}")));
    }
    let done = store.memory_writes().unpin(&memory.path, false)?;
    let output = state_output(store, &done, &memory.path, None)?;
    answer(format!("Memory unpinned: {id}\n{}\nIt is {} now.", output.text, output.tier), output)
}

fn memory_explain(store: &Store, input: ExplainInput) -> Result<Answer> {
    let memory = memory_by_id(store, &input.memory_id)?;
    let content = store.memories().content(&memory)?;
    let query = input.query.filter(|query| !query.trim().is_empty());
    let reply = store.recalls().explain(&memory.path, query.as_deref())?;
    let (memory, score) = (reply.memory, reply.score);
    let state = memory.state.clone();
    let since = state.last_use.map_or(memory.created, |last| last.max(memory.created));
    // A pinned memory does not age.
    let effective_age_days = if state.pinned { 0.0 } else { round(days_between(since, store.now())) };
    let scoring = ScoringOutput {
        effective_age_days,
        similarity_value: score.similarity.raw,
        similarity_component: score.similarity.weighted,
        recency_value: score.recency.raw,
        recency_component: score.recency.weighted,
        frequency_value: score.frequency.raw,
        frequency_component: score.frequency.weighted,
        total_score: score.total,
        half_life_days: reply.half_life_days,
    };
    let pinned = if state.pinned { ", pinned" } else { "" };
    let text = format!(
        "Memory {}\nTier: {}{pinned}\nType: {} (half-life {} days)\nAge: {effective_age_days} days\nUses: {} on {} days\n\
         Similarity: {:.4}, adds {:.4}\nRecency: {:.4}, adds {:.4}\nFrequency: {:.4}, adds {:.4}\nTotal: {:.4}\n\
         Given to agents: {} ({})",
        memory.id,
        state.tier,
        memory.kind,
        reply.half_life_days,
        state.uses,
        state.days_used,
        score.similarity.raw,
        score.similarity.weighted,
        score.recency.raw,
        score.recency.weighted,
        score.frequency.raw,
        score.frequency.weighted,
        score.total,
        if reply.eligible { "yes" } else { "no" },
        reply.reason,
    );
    let output = ExplainOutput {
        kind: memory.kind.clone(),
        similarity: score.similarity.raw,
        effective_age_days,
        scoring,
        half_life_days: reply.half_life_days,
        effective_importance: share_of_importance(state.importance),
        use_count: state.uses,
        days_used: state.days_used,
        use_days: memory.use_days(),
        last_accessed_at: state.last_use.map(Timestamp::millis_rfc3339),
        injection: InjectionOutput {
            eligible: reply.eligible,
            reason: reply.reason,
            is_pinned: state.pinned,
            is_forgotten: state.forgotten,
            tier: state.tier,
        },
        memory: MemoryOutput::of(&memory, preview(&content.text), &content.properties),
    };
    answer(text, output)
}

fn memory_set_context(store: &Store, input: ContextInput) -> Result<Answer> {
    let hours = input.ttl_hours.unwrap_or(TTL_HOURS);
    if hours <= 0.0 {
        return Err(Error::invalid("TTL hours must be greater than 0").with_hint("Leave ttlHours out for 4"));
    }
    let context = store.memories().set_context(&input.text, Some(hours))?;
    let expires_at = context.expires_at.map(Timestamp::millis_rfc3339);
    let text = format!("Context set. It expires at {}.", expires_at.as_deref().unwrap_or("no time"));
    let output = ContextOutput {
        id: "active",
        text: context.text,
        created_at: store.now().millis_rfc3339(),
        ttl_seconds: (hours * 3600.0).floor() as i64,
        expires_at,
    };
    answer(text, output)
}

fn memory_clear_context(store: &Store, _: NoInput) -> Result<Answer> {
    let previous = store.memories().context()?;
    let cleared = store.memories().clear_context()?;
    let text = if cleared { "Context cleared." } else { "There was no active context." };
    let previous_text = previous.filter(|_| cleared).map(|context| context.text);
    answer(text, ClearedOutput { cleared, previous_text })
}
