//! The toolset `longterm` (docs/spec/toolsets.md): memories with importance and decay.
//! Its tool names, arguments and reply texts; `Store` does the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_mcp::reply_limit::{TARGET_LENGTH, json_char_length, json_length, json_value_length};
use sidenote_mcp::tool::{Answer, Effect, Tool, to_json, within};
use sidenote_memory::preview::preview;
use sidenote_memory::state::DEFAULT_IMPORTANCE;
use sidenote_store::{
    DeleteRequest, InsertOutcome, InsertRequest, Memory, MemoryText, Operation, ReviseRequest, Store,
    TextOrder, TextsRequest, number,
};

/// The number of characters of each text that are shown at least.
const MIN_TEXT: usize = 200;
const GENERAL: &str = "general";

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TypeInput {
    General,
    Fact,
    Preference,
    Conversation,
    Task,
    Ephemeral,
}

impl TypeInput {
    fn name(self) -> &'static str {
        match self {
            Self::General => GENERAL,
            Self::Fact => "fact",
            Self::Preference => "preference",
            Self::Conversation => "conversation",
            Self::Task => "task",
            Self::Ephemeral => "ephemeral",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SaveInput {
    /// The text to keep.
    content: String,
    /// Anything else to keep with it, such as `{"project": "boat"}`.
    #[serde(default)]
    #[schemars(extend("x-open-object" = true, "properties" = { "project": { "type": "string" } }))]
    metadata: Map<String, Value>,
    /// Tags.
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
    /// How important it is (default 5); what is important fades more slowly.
    #[schemars(range(min = 1, max = 10))]
    importance: Option<f64>,
    /// What kind of memory it is (default general); kinds fade at different speeds.
    memory_type: Option<TypeInput>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchInput {
    /// What to look for, in words or sentences.
    query: String,
    /// At most this many (default 5).
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
    /// The least likeness (default 0.3).
    #[schemars(range(min = 0, max = 1))]
    threshold: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListInput {
    /// At most this many (default 50).
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Leave out this many of the newest (default 0).
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdateInput {
    /// The memory's id, a UUID.
    id: String,
    /// Its new text.
    #[schemars(extend("x-empty-counts" = true))]
    content: Option<String>,
    /// Its new metadata, whole.
    #[schemars(extend("x-open-object" = true, "properties" = { "project": { "type": "string" } }))]
    metadata: Option<Map<String, Value>>,
    /// Its new tags, all of them.
    #[schemars(extend("x-comma-list" = true))]
    tags: Option<Vec<String>>,
    /// Its new importance.
    #[schemars(range(min = 1, max = 10))]
    importance: Option<f64>,
    /// Its new kind.
    memory_type: Option<TypeInput>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct TypeSearchInput {
    /// The kind of memory.
    memory_type: TypeInput,
    /// At most this many (default 20).
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct TagSearchInput {
    /// Memories with any of these tags.
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
    /// At most this many (default 20).
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DateSearchInput {
    /// The first day or moment, such as `2026-11-01` or `2026-11-01T10:00:00Z`.
    date_from: String,
    /// The last day or moment (default now).
    date_to: Option<String>,
    /// At most this many (default 50).
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct IdInput {
    /// The memory's id, a UUID.
    id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoInput {}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SaveOutput {
    status: &'static str,
    id: String,
    preview: String,
    tags: Vec<String>,
    importance: Value,
    memory_type: String,
    created_at: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateOutput {
    status: &'static str,
    id: String,
    content: String,
    tags: Vec<String>,
    importance: Value,
    memory_type: String,
    updated_at: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MemoryOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    id: String,
    content: String,
    /// Whether the content was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    metadata: Map<String, Value>,
    tags: Vec<String>,
    importance: Value,
    memory_type: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
}

#[derive(Debug, Serialize)]
struct ListOutput {
    total: usize,
    returned: usize,
    offset: usize,
    memories: Vec<MemoryOutput>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatsOutput {
    total_memories: usize,
    database_path: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BackupOutput {
    status: &'static str,
    backup_path: String,
    memories_backed_up: usize,
    timestamp: String,
}

/// Returns the tools of the toolset.
pub(crate) fn tools() -> Vec<Tool> {
    const ID: &str = r#"{"id": "550e8400-e29b-41d4-a716-446655440000"}"#;
    vec![
        Tool::new(
            "save_memory",
            Effect::Additive,
            "Save a fact, decision, preference or other text to long-term memory, for later sessions. Gives its id.",
            r#"{"content": "Anna prefers tea", "tags": ["anna"], "importance": 7, "memory_type": "preference"}"#,
            save,
        ),
        Tool::new(
            "search_memory",
            Effect::ReadOnly,
            "Search long-term memory by meaning: the memories most like the query, best first.",
            r#"{"query": "what does Anna drink", "limit": 5, "threshold": 0.3}"#,
            search,
        ),
        Tool::new(
            "get_all_memories",
            Effect::ReadOnly,
            "List all memories, the newest first, a page at a time.",
            r#"{"limit": 50, "offset": 0}"#,
            list,
        ),
        Tool::new(
            "update_memory",
            Effect::IdempotentDestructive,
            "Change a memory's content, metadata, tags, importance or type; what is not given stays.",
            r#"{"id": "550e8400-e29b-41d4-a716-446655440000", "importance": 8}"#,
            update,
        ),
        Tool::new(
            "search_by_type",
            Effect::ReadOnly,
            "List the memories of one type, the most important first.",
            r#"{"memory_type": "fact", "limit": 20}"#,
            by_type,
        ),
        Tool::new(
            "search_by_tags",
            Effect::ReadOnly,
            "List the memories with any of some tags, the most important first.",
            r#"{"tags": ["anna", "tea"], "limit": 20}"#,
            by_tags,
        ),
        Tool::new(
            "search_by_date_range",
            Effect::ReadOnly,
            "List the memories made between two dates, the newest first.",
            r#"{"date_from": "2026-11-01", "date_to": "2026-11-30"}"#,
            by_dates,
        ),
        Tool::new(
            "delete_memory",
            Effect::IdempotentDestructive,
            "Delete one memory: it goes to the trash. Only when the user asks for it, or it is known to be wrong.",
            ID,
            delete,
        ),
        Tool::new(
            "delete_all_memories",
            Effect::IdempotentDestructive,
            "Delete all saved memories: they go to the trash; other notes stay. Only when the user asks for just this.",
            "{}",
            delete_all,
        ),
        Tool::new(
            "memory_stats",
            Effect::ReadOnly,
            "Count the memories, and tell where they are.",
            "{}",
            stats,
        ),
        Tool::new(
            "create_backup",
            Effect::Additive,
            "Back up all memories, with an export as JSON, into the backup folder.",
            "{}",
            backup,
        ),
    ]
}

fn require_uuid(text: &str) -> Result<&str> {
    let id = text.trim();
    if id.len() == 36 && uuid::Uuid::try_parse(id).is_ok() {
        return Ok(id);
    }
    Err(Error::invalid(format!("{text:?} is not a UUID"))
        .with_hint("Give an id that save_memory returned, such as \"550e8400-e29b-41d4-a716-446655440000\""))
}

fn require_content(content: &str) -> Result<()> {
    if content.trim().is_empty() {
        return Err(Error::invalid("content is empty").with_hint("Give the text to keep"));
    }
    Ok(())
}

/// Refuses a text that a memory already has, with the message of the original server.
fn duplicate_answer(verb: &str, existing: &Memory) -> Answer {
    let id = &existing.id;
    Answer::error(format!("Error {verb} memory: Duplicate content detected (existing memory: {id})"))
}

fn save(store: &Store, input: SaveInput) -> Result<Answer> {
    require_content(&input.content)?;
    let importance = within("importance", input.importance.unwrap_or(DEFAULT_IMPORTANCE), 1.0, 10.0)?;
    let mut properties =
        Map::from_iter([("updated_at".to_owned(), Value::from(store.now().exact_rfc3339()))]);
    if !input.metadata.is_empty() {
        properties.insert("metadata".to_owned(), Value::Object(input.metadata));
    }
    let request = InsertRequest {
        text: input.content,
        kind: Some(input.memory_type.map_or(GENERAL, TypeInput::name).to_owned()),
        tags: input.tags,
        importance: Some(importance),
        properties,
        ..InsertRequest::default()
    };
    let memory = match store.memory_writes().insert_unless_duplicate(&request)? {
        InsertOutcome::Inserted(memory) => *memory,
        InsertOutcome::Duplicate(known, _) => return Ok(duplicate_answer("saving", &known)),
    };
    let content = store.memories().content(&memory)?;
    Answer::pretty_json(&SaveOutput {
        status: "saved",
        id: memory.id,
        preview: preview(&content.text),
        tags: memory.tags,
        importance: number(importance),
        memory_type: memory.kind,
        created_at: memory.created.millis_rfc3339(),
    })
}

fn output(text: MemoryText) -> MemoryOutput {
    let memory = text.memory;
    MemoryOutput {
        rank: None,
        score: None,
        id: text.uuid,
        content: text.content,
        truncated: false,
        metadata: text.metadata,
        tags: text.tags,
        importance: number(memory.state.importance),
        memory_type: memory.kind,
        created_at: memory.created.millis_rfc3339(),
        updated_at: None,
    }
}

/// Shortens a list of memories that is too long for a reply: leaves out the last ones, and cuts the longest texts of the
/// others. Returns the number of memories that were left out.
fn limit_length(memories: &mut Vec<MemoryOutput>) -> Result<usize> {
    let (mut lengths, mut overhead) = (Vec::new(), 0);
    for memory in memories.iter_mut() {
        let content = std::mem::take(&mut memory.content);
        let rest = to_json(&*memory)?;
        memory.content = content;
        // Indentation takes as much as twelve short lines.
        let rest = json_value_length(&rest) + 100;
        let own = json_length(&memory.content);
        let used =
            overhead + rest + lengths.iter().chain([&own]).map(|own| (*own).min(MIN_TEXT)).sum::<usize>();
        if used > TARGET_LENGTH && !lengths.is_empty() {
            break;
        }
        overhead += rest;
        lengths.push(own);
    }
    let left_out = memories.len() - lengths.len();
    memories.truncate(lengths.len());
    lengths.sort_unstable();
    // The room that short texts do not use is shared among the long ones.
    let (mut left, mut share) = (TARGET_LENGTH.saturating_sub(overhead), TARGET_LENGTH);
    for (at, length) in lengths.iter().enumerate() {
        share = left / (lengths.len() - at);
        left = left.saturating_sub((*length).min(share));
    }
    for memory in memories {
        memory.truncated = json_length(&memory.content) > share.max(MIN_TEXT) && {
            let mut left = share.max(MIN_TEXT);
            let fits = |(at, c): (usize, char)| {
                let is_over = json_char_length(c) > left;
                left = left.saturating_sub(json_char_length(c));
                is_over.then_some(at)
            };
            let end = memory.content.char_indices().find_map(fits);
            end.is_some_and(|end| {
                memory.content.truncate(end);
                true
            })
        };
    }
    Ok(left_out)
}

/// Answers with memories, and with a note on how many were left out.
fn answer(memories: &impl Serialize, left_out: usize) -> Result<Answer> {
    let answer = Answer::pretty_json(memories)?;
    if left_out == 0 {
        return Ok(answer);
    }
    Ok(answer.with_text(format!(
        "({left_out} more do not fit into one reply; lower the limit, or narrow the search)"
    )))
}

fn list_answer(texts: Vec<MemoryText>, none: impl FnOnce() -> String) -> Result<Answer> {
    if texts.is_empty() {
        return Ok(Answer::text(none()));
    }
    let mut memories: Vec<MemoryOutput> = texts.into_iter().map(output).collect();
    let left_out = limit_length(&mut memories)?;
    answer(&memories, left_out)
}

fn search(store: &Store, input: SearchInput) -> Result<Answer> {
    let limit = within("limit", input.limit.unwrap_or(5), 1, 50)?;
    let threshold = within("threshold", input.threshold.unwrap_or(0.3), 0.0, 1.0)?;
    let found = store.recalls().most_similar(&input.query, limit, threshold)?;
    if found.memories.is_empty() {
        return Ok(Answer::text("No relevant memories found.").with_notices(found.notices));
    }
    let ranked = found.memories.into_iter().enumerate();
    let mut memories: Vec<MemoryOutput> = ranked
        .map(|(at, (text, score))| MemoryOutput { rank: Some(at + 1), score: Some(score), ..output(text) })
        .collect();
    let left_out = limit_length(&mut memories)?;
    Ok(answer(&memories, left_out)?.with_notices(found.notices))
}

fn list(store: &Store, input: ListInput) -> Result<Answer> {
    let limit = within("limit", input.limit.unwrap_or(50), 1, 500)?;
    let offset = input.offset.unwrap_or(0);
    let (total, texts) =
        store.recalls().memory_texts(&TextsRequest { skip: offset, limit, ..TextsRequest::default() })?;
    let mut memories: Vec<MemoryOutput> = texts
        .into_iter()
        .map(|text| {
            let updated_at = Some(text.memory.updated.millis_rfc3339());
            MemoryOutput { updated_at, ..output(text) }
        })
        .collect();
    let left_out = limit_length(&mut memories)?;
    answer(&ListOutput { total, returned: memories.len(), offset, memories }, left_out)
}

fn update(store: &Store, input: UpdateInput) -> Result<Answer> {
    let id = require_uuid(&input.id)?;
    if let Some(content) = &input.content {
        require_content(content)?;
    }
    let importance = input.importance.map(|given| within("importance", given, 1.0, 10.0)).transpose()?;
    store.index().refresh()?;
    let Some(memory) = store.recalls().memory_by_uuid(id)? else {
        return Ok(Answer::text(format!("Memory {} not found.", input.id)));
    };
    let mut properties = Vec::new();
    properties.extend(importance.map(|given| ("importance".to_owned(), number(given))));
    properties.extend(input.memory_type.map(|kind| ("type".to_owned(), Value::from(kind.name()))));
    properties.extend(input.metadata.map(|metadata| {
        let metadata = if metadata.is_empty() { Value::Null } else { Value::Object(metadata) };
        ("metadata".to_owned(), metadata)
    }));
    let request = ReviseRequest {
        note: memory.path,
        content: input.content,
        tags: input.tags,
        properties,
        ..ReviseRequest::default()
    };
    let memory = match store.memory_writes().revise_unless_duplicate(&request)? {
        InsertOutcome::Inserted(memory) => *memory,
        InsertOutcome::Duplicate(known, _) => return Ok(duplicate_answer("updating", &known)),
    };
    let text =
        store.recalls().memory_text(memory)?.ok_or_else(|| Error::internal("the updated note is missing"))?;
    Answer::pretty_json(&UpdateOutput {
        status: "updated",
        id: text.uuid,
        content: preview(&text.content),
        tags: text.tags,
        importance: number(importance.unwrap_or(text.memory.state.importance)),
        memory_type: text.memory.kind,
        updated_at: text.memory.updated.millis_rfc3339(),
    })
}

fn by_type(store: &Store, input: TypeSearchInput) -> Result<Answer> {
    let limit = within("limit", input.limit.unwrap_or(20), 1, 50)?;
    let kind = input.memory_type.name();
    let (_, texts) = store.recalls().memory_texts(&TextsRequest {
        kind: Some(kind.to_owned()),
        order: TextOrder::Important,
        limit,
        ..TextsRequest::default()
    })?;
    list_answer(texts, || format!("No memories of type \"{kind}\" found."))
}

fn by_tags(store: &Store, input: TagSearchInput) -> Result<Answer> {
    let limit = within("limit", input.limit.unwrap_or(20), 1, 50)?;
    let none = || format!("No memories found with tags: {}", input.tags.join(", "));
    let any_tag: Vec<String> = input.tags.iter().filter(|tag| !tag.trim().is_empty()).cloned().collect();
    if any_tag.is_empty() {
        return Ok(Answer::text(none()));
    }
    let order = TextOrder::Important;
    let (_, texts) =
        store.recalls().memory_texts(&TextsRequest { any_tag, order, limit, ..TextsRequest::default() })?;
    list_answer(texts, none)
}

fn by_dates(store: &Store, input: DateSearchInput) -> Result<Answer> {
    let limit = within("limit", input.limit.unwrap_or(50), 1, 50)?;
    let from = Timestamp::parse_bound("date_from", &input.date_from)?;
    let to = match &input.date_to {
        None => store.now(),
        Some(text) => {
            let to = Timestamp::parse_bound("date_to", text)?;
            // A range includes the whole of its last day.
            let is_day = !text.contains(':') && !text.contains('T');
            let end = Timestamp::day_range(to.date()).filter(|_| is_day);
            end.map_or(to, |(_, end)| Timestamp::from_millis(end.millis() - 1))
        }
    };
    let (_, texts) = store.recalls().memory_texts(&TextsRequest {
        from: Some(from),
        to: Some(to),
        limit,
        ..TextsRequest::default()
    })?;
    list_answer(texts, || "No memories found in the specified date range.".to_owned())
}

fn delete(store: &Store, input: IdInput) -> Result<Answer> {
    let id = require_uuid(&input.id)?;
    store.index().refresh()?;
    let Some(memory) = store.recalls().memory_by_uuid(id)? else {
        return Ok(Answer::text(format!("Memory {} not found.", input.id)));
    };
    let request = DeleteRequest { note: memory.path, ..DeleteRequest::default() };
    store.changes().change(&Operation::Delete(request), false)?;
    Ok(Answer::text(format!("Memory {} deleted successfully.", input.id)))
}

fn delete_all(store: &Store, _: NoInput) -> Result<Answer> {
    Ok(Answer::text(format!("Deleted {} memories.", store.maintenance().discard_memories()?)))
}

fn stats(store: &Store, _: NoInput) -> Result<Answer> {
    let (total, _) = store.recalls().memory_texts(&TextsRequest::default())?;
    Answer::pretty_json(&StatsOutput {
        total_memories: total,
        database_path: store.root().display().to_string(),
    })
}

fn backup(store: &Store, _: NoInput) -> Result<Answer> {
    if store.config().backup.dir.as_os_str().is_empty() {
        return Ok(Answer::error("Backup not configured."));
    }
    let made = store.upkeep().backup(None)?;
    Answer::pretty_json(&BackupOutput {
        status: "backed_up",
        backup_path: made.path.display().to_string(),
        memories_backed_up: made.notes,
        timestamp: Timestamp::parse(&made.at).map_or(made.at, Timestamp::millis_rfc3339),
    })
}
