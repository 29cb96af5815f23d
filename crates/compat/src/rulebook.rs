//! The toolset `rulebook` (docs/spec/toolsets.md): memories in three levels of detail, as JSON with a success flag.
//! Its tool names, arguments and reply texts; `Store` does the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::Filter;
use sidenote_mcp::error_text::{ServedTools, message_for_agent};
use sidenote_mcp::tool::{Answer, Effect, Tool};
use sidenote_search::{MatchType, Mode};
use sidenote_store::{InsertRequest, Memory, MemoryRanking, SearchRequest, Store};

/// The error of every tool while memory is disabled.
const DISABLED: &str = "Memory system is not enabled. Set memory.enabled=true in .rulebook";

/// The largest number of memories on each side of the anchor that fit into a reply.
const MAX_WINDOW: usize = 40;

const ID_EXAMPLE: &str = r#"{"ids": ["0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23"]}"#;

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModeInput {
    Bm25,
    Vector,
    Hybrid,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchInput {
    /// What to look for, in words.
    query: String,
    /// At most this many memories (default 20).
    limit: Option<usize>,
    /// bm25 (words), vector (meaning) or hybrid (both, default).
    mode: Option<ModeInput>,
    /// Only memories of this type, such as decision.
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TimelineInput {
    /// The memory's id.
    memory_id: String,
    /// So many memories before it and as many after it (default 5).
    window: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct GetInput {
    /// Ids of memories.
    #[schemars(extend("x-comma-list" = true))]
    ids: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SaveInput {
    /// Such as bugfix, feature, refactor, decision, discovery, change or observation.
    #[serde(rename = "type")]
    kind: String,
    /// Its title.
    title: String,
    /// Its text; what stands between <private> and </private> is never written.
    content: String,
    /// Its tags.
    #[schemars(extend("x-comma-list" = true))]
    tags: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoInput {}

#[derive(Debug, Deserialize, JsonSchema)]
struct CleanupInput {
    /// Evict although there is room (default false).
    force: Option<bool>,
}

/// The reply to a successful call.
#[derive(Debug, Serialize)]
struct SuccessOutput<T> {
    success: bool,
    #[serde(flatten)]
    reply: T,
}

/// The reply to a failed call.
#[derive(Debug, Serialize)]
struct ErrorOutput<'a> {
    success: bool,
    error: &'a str,
}

#[derive(Debug, Serialize)]
struct SearchOutput {
    results: Vec<FoundOutput>,
    total: usize,
    /// Notices about what the results lack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundOutput {
    id: String,
    title: String,
    #[serde(rename = "type")]
    kind: String,
    score: f64,
    match_type: MatchType,
    created_at: i64,
}

#[derive(Debug, Serialize)]
struct TimelineOutput {
    timeline: Vec<TimelineItemOutput>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TimelineItemOutput {
    id: String,
    title: String,
    #[serde(rename = "type")]
    kind: String,
    created_at: i64,
    position: &'static str,
    /// The distance in milliseconds, the unit of `createdAt`.
    distance_from_anchor: u64,
}

#[derive(Debug, Serialize)]
struct GetOutput {
    memories: Vec<FullMemoryOutput>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FullMemoryOutput {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    title: String,
    content: String,
    tags: Vec<String>,
    created_at: i64,
    updated_at: i64,
    accessed_at: Option<i64>,
    path: String,
    importance: f64,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct SaveOutput {
    memory: SavedOutput,
}

#[derive(Debug, Serialize)]
struct SavedOutput {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    title: String,
}

#[derive(Debug, Serialize)]
struct StatsOutput {
    stats: Stats,
    /// The statistics again at the top level, where some clients expect them.
    #[serde(flatten)]
    same: Stats,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    db_size_bytes: u64,
    memory_count: usize,
    session_count: usize,
    oldest_memory: Option<i64>,
    newest_memory: Option<i64>,
    max_size_bytes: u64,
    usage_percent: f64,
    index_health: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CleanupOutput {
    evicted_count: usize,
    freed_bytes: u64,
}

/// Returns the tools of the toolset.
pub(crate) fn tools() -> Vec<Tool> {
    let tools = vec![
        Tool::new(
            "rulebook_memory_search",
            Effect::ReadOnly,
            "Search memories, and get a line of each: the first layer. Go on with rulebook_memory_timeline or rulebook_memory_get.",
            r#"{"query": "why plain files", "limit": 5, "type": "decision"}"#,
            |store, input: SearchInput| answer(store, || search(store, input)),
        ),
        Tool::new(
            "rulebook_memory_timeline",
            Effect::ReadOnly,
            "List what was remembered before and after a memory: the second layer.",
            r#"{"memoryId": "0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23", "window": 3}"#,
            |store, input: TimelineInput| answer(store, || timeline(store, &input)),
        ),
        Tool::new(
            "rulebook_memory_get",
            Effect::ReadOnly,
            "Read memories whole: the third layer. Counts as a use of each.",
            ID_EXAMPLE,
            |store, input: GetInput| answer(store, || get(store, &input)),
        ),
        Tool::new(
            "rulebook_memory_save",
            Effect::Additive,
            "Save a memory as a note of its own.",
            r#"{"type": "decision", "title": "Plain files", "content": "We chose plain files over a database."}"#,
            |store, input: SaveInput| answer(store, || save(store, input)),
        ),
        Tool::new(
            "rulebook_memory_stats",
            Effect::ReadOnly,
            "Count memories and sessions, and tell how much room they take and how the index is.",
            "{}",
            |store, _: NoInput| answer(store, || stats(store)),
        ),
        Tool::new(
            "rulebook_memory_cleanup",
            Effect::Destructive,
            "Move the least used memories to the trash where they take more room than they may.",
            r#"{"force": true}"#,
            |store, input: CleanupInput| answer(store, || cleanup(store, &input)),
        ),
    ];
    tools.into_iter().map(|tool| tool.with_error_format(error_answer)).collect()
}

/// Runs a call, unless memory is disabled. The setting is read at each call.
///
/// # Errors
/// `Invalid` if memory is disabled; otherwise the errors of `work`.
fn answer<T: Serialize>(store: &Store, work: impl FnOnce() -> Result<T>) -> Result<Answer> {
    if !store.memories().is_memory_enabled() {
        return Err(Error::invalid(DISABLED));
    }
    Answer::json(&SuccessOutput { success: true, reply: work()? })
}

fn error_answer(error: &Error, served: &ServedTools) -> Answer {
    let error = message_for_agent(error, |tool| served.has(tool));
    // A string can always be written as JSON.
    Answer::json_error(&ErrorOutput { success: false, error: &error })
        .unwrap_or_else(|_| Answer::error(error))
}

fn search(store: &Store, input: SearchInput) -> Result<SearchOutput> {
    let mode = match input.mode {
        None | Some(ModeInput::Hybrid) => Mode::Hybrid,
        Some(ModeInput::Bm25) => Mode::Bm25,
        Some(ModeInput::Vector) => Mode::Vector,
    };
    let mut filter = store.recalls().scoped(Filter::default());
    filter.note_type = input.kind;
    let search = SearchRequest {
        notes_only: true,
        query: input.query,
        plain: true,
        mode: Some(mode),
        limit: Some(input.limit.unwrap_or(20)),
        filter,
        memories: Some(MemoryRanking::default()),
        ..SearchRequest::default()
    };
    let found = store.searches().search(&search)?;
    let notices = found.notes.iter().map(|note| note.for_agent(|_| false)).collect();
    let results: Vec<FoundOutput> = found
        .results
        .into_iter()
        .filter_map(|result| {
            let memory = result.memory?;
            Some(FoundOutput {
                id: memory.id,
                title: memory.title,
                kind: memory.kind,
                score: f64::from(result.score),
                match_type: result.match_type,
                created_at: memory.created.millis(),
            })
        })
        .collect();
    Ok(SearchOutput { total: results.len(), results, notices })
}

fn memory_by_id(store: &Store, id: &str) -> Result<Memory> {
    store.index().refresh()?;
    store.recalls().memory_by_id(id)?.ok_or_else(|| Error::not_found(format!("Memory not found: {id}")))
}

fn timeline(store: &Store, input: &TimelineInput) -> Result<TimelineOutput> {
    let anchor = memory_by_id(store, &input.memory_id)?;
    let window = input.window.unwrap_or(5).min(MAX_WINDOW);
    let reply =
        store.memories().timeline_among(&anchor.path, window, &store.recalls().scoped(Filter::default()))?;
    let item = |(at, memory): (usize, Memory)| TimelineItemOutput {
        id: memory.id,
        title: memory.title,
        kind: memory.kind,
        created_at: memory.created.millis(),
        position: match at.cmp(&reply.anchor) {
            std::cmp::Ordering::Less => "before",
            std::cmp::Ordering::Equal => "anchor",
            std::cmp::Ordering::Greater => "after",
        },
        distance_from_anchor: memory.created.millis().abs_diff(anchor.created.millis()),
    };
    Ok(TimelineOutput { timeline: reply.memories.into_iter().enumerate().map(item).collect() })
}

fn get(store: &Store, input: &GetInput) -> Result<GetOutput> {
    store.index().refresh()?;
    let found = input.ids.iter().map(|id| store.recalls().memory_by_id(id)).collect::<Result<Vec<_>>>()?;
    let found: Vec<Memory> = found.into_iter().flatten().collect();
    let mut memories = Vec::new();
    for memory in &found {
        let content = match store.memories().content(memory) {
            Ok(content) => content,
            Err(error) => {
                tracing::warn!("a memory is left out of a reply: {error}");
                continue;
            }
        };
        let metadata = content.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        memories.push(FullMemoryOutput {
            id: memory.id.clone(),
            kind: memory.kind.clone(),
            title: memory.title.clone(),
            content: content.text,
            tags: memory.tags.clone(),
            created_at: memory.created.millis(),
            updated_at: memory.updated.millis(),
            accessed_at: memory.state.last_use.map(Timestamp::millis),
            path: memory.path.clone(),
            importance: memory.state.importance,
            metadata,
        });
    }
    store.memories().record_uses(found.iter(), "rulebook_memory_get");
    Ok(GetOutput { memories })
}

fn save(store: &Store, input: SaveInput) -> Result<SaveOutput> {
    for (name, text) in [("type", &input.kind), ("title", &input.title)] {
        if text.trim().is_empty() {
            return Err(Error::invalid(format!("{name} is empty")).with_hint("Give a word or more"));
        }
    }
    let request = InsertRequest {
        text: input.content,
        title: Some(input.title),
        kind: Some(input.kind),
        tags: input.tags.unwrap_or_default(),
        ..InsertRequest::default()
    };
    let created = store.memory_writes().insert(std::slice::from_ref(&request))?.pop();
    let memory = created.ok_or_else(|| Error::internal("the new note is missing"))?;
    Ok(SaveOutput { memory: SavedOutput { id: memory.id, kind: memory.kind, title: memory.title } })
}

fn stats(store: &Store) -> Result<StatsOutput> {
    let behind = store.index().refresh()?;
    let stats = store.memories().memory_stats_among(&store.recalls().scoped(Filter::default()))?;
    let (missing, all) = store.memories().missing()?;
    let index_health = match missing {
        // More than a tenth of the notes is not in the index.
        missing if missing.saturating_mul(10) > all => "needs-rebuild",
        0 if behind == 0 && stats.pending == 0 => "good",
        _ => "degraded",
    };
    let stats = Stats {
        db_size_bytes: stats.bytes,
        memory_count: stats.memories,
        session_count: store.memories().sessions()?,
        oldest_memory: stats.oldest.map(Timestamp::millis),
        newest_memory: stats.newest.map(Timestamp::millis),
        max_size_bytes: stats.max_bytes,
        usage_percent: stats.usage_percent,
        index_health,
    };
    Ok(StatsOutput { same: stats.clone(), stats })
}

fn cleanup(store: &Store, input: &CleanupInput) -> Result<CleanupOutput> {
    let reply = store.maintenance().cleanup(input.force.unwrap_or(false), false)?;
    Ok(CleanupOutput { evicted_count: reply.evicted_count, freed_bytes: reply.freed_bytes })
}
