//! The toolset `vector` (docs/spec/toolsets.md): memories with intents, votes and handoffs, in plain text.
//! Its tool names, arguments and reply texts; `Store` does the work.

mod history;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::{Filter, Inactive};
use sidenote_mcp::error_text::message_for_agent;
use sidenote_mcp::reply_limit::TextBudget;
use sidenote_mcp::tool::{Answer, Effect, IntentInput, Tool};
use sidenote_store::{
    ConversationHit, Handoff, HandoffRequest, InsertRequest, Memory, MemoryContent, MemoryRanking,
    ReviseRequest, SearchRequest, Store,
};

use self::history::{HistoryInput, format_hit};

/// The separator of memories in a reply.
const SEPARATOR: &str = "\n\n---\n\n";
/// The property with the metadata that a client gave.
const METADATA: &str = "metadata";
/// The property that is embedded together with the text.
const SUMMARY: &str = "summary";

const STORE_EXAMPLE: &str =
    r#"{"memories": [{"content": "We deploy on Fridays", "metadata": {"team": "web"}}]}"#;
const UPDATE_EXAMPLE: &str =
    r#"{"updates": [{"id": "0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23", "content": "We deploy on Mondays"}]}"#;
const IDS_EXAMPLE: &str = r#"{"ids": ["0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23"]}"#;
const SEARCH_EXAMPLE: &str = r#"{"query": "when do we deploy", "intent": "fact_check", "reason_for_search": "to plan a release", "limit": 5}"#;
const VOTE_EXAMPLE: &str = r#"{"memory_id": "0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23", "useful": true}"#;
const HANDOFF_EXAMPLE: &str =
    r#"{"project": "parser", "branch": "main", "summary": "Tables parse", "next_steps": ["footnotes"]}"#;

#[derive(Debug, Deserialize, JsonSchema)]
struct StoreInput {
    /// The memories, one or several.
    #[schemars(length(min = 1))]
    memories: Vec<NewMemoryInput>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NewMemoryInput {
    /// The text to remember.
    content: String,
    /// A text that says in short what it is about; it is searched by meaning beside the content.
    embedding_text: Option<String>,
    /// Anything else to know of it.
    #[schemars(extend("x-open-object" = true, "properties" = { "project": { "type": "string" } }))]
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdateInput {
    /// The changes, one for each memory.
    #[schemars(length(min = 1))]
    updates: Vec<UpdateItemInput>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdateItemInput {
    /// The memory's id.
    id: String,
    /// The new text, in place of the whole old one.
    #[schemars(extend("x-empty-counts" = true))]
    content: Option<String>,
    /// The new text for search by meaning; an empty one takes the old one away.
    #[schemars(extend("x-empty-counts" = true))]
    embedding_text: Option<String>,
    /// The new metadata, in place of all of the old.
    #[schemars(extend("x-open-object" = true, "properties" = { "project": { "type": "string" } }))]
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct IdsInput {
    /// Ids of memories.
    #[schemars(length(min = 1), extend("x-comma-list" = true))]
    ids: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchInput {
    /// What to look for, in words.
    query: String,
    /// continuity (go on with what was done last), fact_check (be sure of something), frequent (what is of use most
    /// often), associative (what is like it) or explore (what else there is).
    intent: IntentInput,
    /// Why you search, in a few words; it changes nothing in the answer.
    #[expect(dead_code, reason = "the contract asks for it, and nobody logs what is searched for")]
    reason_for_search: String,
    /// At most this many memories (default 10).
    limit: Option<usize>,
    /// Leave out this many of the best (default 0).
    offset: Option<usize>,
    /// Find deleted memories, too (default false).
    include_deleted: Option<bool>,
    /// Only memories made at or after this day or moment, such as `2026-11-01`.
    after: Option<String>,
    /// Only memories made before this day or moment.
    before: Option<String>,
    /// Only memories made in this time, such as `past 7 days`; `after` goes before it.
    time_expr: Option<String>,
    #[serde(flatten)]
    history: HistoryInput,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct VoteInput {
    /// The memory's id.
    memory_id: String,
    /// Whether it was of use.
    useful: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct HandoffInput {
    /// What is worked on; each project has one handoff.
    project: String,
    #[serde(flatten)]
    work: WorkInput,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WaypointInput {
    /// What is worked on; each project has one waypoint (default: the folder of the notes).
    project: Option<String>,
    #[serde(flatten)]
    work: WorkInput,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct GetWaypointInput {
    /// What is worked on (default: what was worked on last).
    project: Option<String>,
}

/// Where the work on a project stands.
#[derive(Debug, Deserialize, JsonSchema)]
struct WorkInput {
    /// The branch.
    branch: Option<String>,
    /// Where the work stands, in a few sentences.
    summary: String,
    /// What is done.
    completed: Option<Vec<String>>,
    /// What is begun, or waits for something.
    in_progress_blocked: Option<Vec<String>>,
    /// What was decided.
    key_decisions: Option<Vec<String>>,
    /// What comes next.
    next_steps: Option<Vec<String>>,
    /// Ids of memories that belong to it.
    #[schemars(extend("x-comma-list" = true))]
    memory_ids: Option<Vec<String>>,
    /// Anything else to know of it.
    #[schemars(extend("x-open-object" = true, "properties" = { "project": { "type": "string" } }))]
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoInput {}

/// Returns the tools of the toolset.
pub(crate) fn tools() -> Vec<Tool> {
    tools_for_memories().into_iter().chain(tools_for_sessions()).collect()
}

/// Returns the tools for memories.
fn tools_for_memories() -> Vec<Tool> {
    vec![
        Tool::new(
            "store_memories",
            Effect::Additive,
            "Store one or several memories, each as a note of its own, after a decision or when something worth keeping \
             was learned. One idea each, in one to three sentences that stand alone: name what they are about, with dates \
             and versions. Leave out what holds for this machine or this moment alone. Gives their ids.",
            STORE_EXAMPLE,
            store_memories,
        ),
        Tool::new(
            "update_memories",
            Effect::IdempotentDestructive,
            "Change memories: what is given stands in place of the whole old content, embedding text or metadata.",
            UPDATE_EXAMPLE,
            update_memories,
        ),
        Tool::new(
            "delete_memories",
            Effect::IdempotentDestructive,
            "Delete memories softly: search finds them only with include_deleted.",
            IDS_EXAMPLE,
            delete_memories,
        ),
        Tool::new(
            "search_memories",
            Effect::ReadOnly,
            "Search memories by words and meaning, ranked for what the search is for. Search when a session begins; when \
             the answer depends on the user's tools, preferences or past decisions; when something is referred to but not \
             named (\"the project\", \"that bug\", \"last time\"); before a decision; and before solving what may have been \
             solved. When in doubt, search.",
            SEARCH_EXAMPLE,
            search_memories,
        ),
        Tool::new(
            "get_memories",
            Effect::ReadOnly,
            "Read memories, with their dates. Counts as a use of each.",
            IDS_EXAMPLE,
            get_memories,
        ),
        Tool::new(
            "report_memory_usefulness",
            Effect::Additive,
            "Vote for or against a memory after you used it: useful ones are found first.",
            VOTE_EXAMPLE,
            report_memory_usefulness,
        ),
    ]
}

/// Returns the tools for sessions: where the work stands, and what was said.
fn tools_for_sessions() -> Vec<Tool> {
    vec![
        Tool::new(
            "store_handoff",
            Effect::Destructive,
            "Store where a project's work stands, for the next session. It takes the place of the project's last one.",
            HANDOFF_EXAMPLE,
            store_handoff,
        ),
        Tool::new(
            "get_handoff",
            Effect::ReadOnly,
            "Read the newest handoff, with the memories that it names.",
            "{}",
            get_handoff,
        ),
        Tool::new(
            "set_waypoint",
            Effect::Destructive,
            "Store where a project's work stands, for the next session: a handoff under its newer name.",
            HANDOFF_EXAMPLE,
            set_waypoint,
        ),
        Tool::new(
            "get_waypoint",
            Effect::ReadOnly,
            "Read the waypoint of a project, or the newest one, with the memories that it names.",
            r#"{"project": "parser"}"#,
            get_waypoint,
        ),
        Tool::new(
            "index_conversations",
            Effect::IdempotentAdditive,
            "Index the sessions of the user's coding agent that changed, so that search_memories finds what was said in them. \
             The user has to allow it in the settings.",
            r#"{"since": "2026-11-01"}"#,
            history::index_conversations,
        ),
        Tool::new(
            "list_indexed_sessions",
            Effect::ReadOnly,
            "List the indexed sessions with their times, those first that were indexed last.",
            r#"{"limit": 20}"#,
            history::list_indexed_sessions,
        ),
        Tool::new(
            "reindex_session",
            Effect::IdempotentAdditive,
            "Index a session again, though it did not change.",
            r#"{"session_id": "0199f3a1-7c2e-7b4d-8f5a-2b6c9d0e1f23"}"#,
            history::reindex_session,
        ),
    ]
}

fn empty_list(name: &str, example: &str) -> Error {
    Error::invalid(format!("{name} is empty"))
        .with_hint(format!("Give at least one. A valid call: {example}"))
}

fn not_found(id: &str) -> String {
    format!("Memory {id} not found")
}

/// Finds memories by their ids. The result holds `None` for an id that no note has.
fn memories_by_ids<'a>(store: &Store, ids: impl Iterator<Item = &'a String>) -> Result<Vec<Option<Memory>>> {
    store.index().refresh()?;
    ids.map(|id| store.recalls().memory_by_id(id)).collect()
}

fn store_memories(store: &Store, input: StoreInput) -> Result<Answer> {
    if input.memories.is_empty() {
        return Err(empty_list("memories", STORE_EXAMPLE));
    }
    let insert_request = |new: NewMemoryInput| {
        let mut properties = Map::new();
        properties.extend(summary(new.embedding_text).map(|text| (SUMMARY.to_owned(), Value::from(text))));
        properties.extend(non_empty(new.metadata).map(|map| (METADATA.to_owned(), Value::Object(map))));
        InsertRequest { text: new.content, properties, ..InsertRequest::default() }
    };
    let requests: Vec<InsertRequest> = input.memories.into_iter().map(insert_request).collect();
    let stored = store.memory_writes().insert(&requests)?;
    Ok(Answer::text(match stored.as_slice() {
        [one] => format!("Memory stored with ID: {}", one.id),
        several => {
            let ids: Vec<String> = several.iter().map(|memory| format!("\n- {}", memory.id)).collect();
            format!("Stored {} memories:{}", several.len(), ids.concat())
        }
    }))
}

fn summary(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn non_empty(metadata: Option<Map<String, Value>>) -> Option<Map<String, Value>> {
    metadata.filter(|map| !map.is_empty())
}

fn update_memories(store: &Store, input: UpdateInput) -> Result<Answer> {
    if input.updates.is_empty() {
        return Err(empty_list("updates", UPDATE_EXAMPLE));
    }
    // All updates are checked before the first one is made.
    if let Some(update) =
        input.updates.iter().find(|update| update.content.as_ref().is_some_and(|text| text.trim().is_empty()))
    {
        return Err(Error::invalid(format!("the new content of {} is empty", update.id))
            .with_hint("Give a text, or omit content; delete_memories deletes a memory"));
    }
    let found = memories_by_ids(store, input.updates.iter().map(|update| &update.id))?;
    let mut lines = Vec::new();
    for (change, memory) in input.updates.into_iter().zip(found) {
        let Some(memory) = memory else {
            lines.push(not_found(&change.id));
            continue;
        };
        // An empty value removes the property.
        let mut properties = Vec::new();
        if change.embedding_text.is_some() {
            properties.push((SUMMARY.to_owned(), Value::from(summary(change.embedding_text))));
        }
        if change.metadata.is_some() {
            properties
                .push((METADATA.to_owned(), non_empty(change.metadata).map_or(Value::Null, Value::Object)));
        }
        let (note, content) = (memory.path, change.content);
        let request = ReviseRequest { note, content, properties, ..ReviseRequest::default() };
        // A failure does not hide the updates made before.
        lines.push(match store.memory_writes().revise(&request) {
            Ok(_) => format!("Memory {} updated successfully", change.id),
            Err(error) => {
                format!("Memory {} not updated: {}", change.id, message_for_agent(&error, |_| false))
            }
        });
    }
    Ok(Answer::text(lines.join("\n")))
}

fn delete_memories(store: &Store, input: IdsInput) -> Result<Answer> {
    if input.ids.is_empty() {
        return Err(empty_list("ids", IDS_EXAMPLE));
    }
    let found = memories_by_ids(store, input.ids.iter())?;
    let mut lines = Vec::new();
    for (id, memory) in input.ids.iter().zip(found) {
        let Some(memory) = memory else {
            lines.push(not_found(id));
            continue;
        };
        match store.memory_writes().forget(&memory.path, false, false) {
            // A memory that is deleted already is no error.
            Err(error) if error.kind() != ErrorKind::Exists => {
                lines.push(format!("Memory {id} not deleted: {}", message_for_agent(&error, |_| false)));
                continue;
            }
            _ => {}
        }
        lines.push(format!("Memory {id} deleted successfully"));
    }
    Ok(Answer::text(lines.join("\n")))
}

/// Formats what every reply tells about a memory.
fn format_memory(memory: &Memory, text: &str, content: &MemoryContent) -> String {
    let mut block = format!("ID: {}\nContent: {text}", memory.id);
    if let Some(Value::Object(metadata)) = content.get(METADATA)
        && !metadata.is_empty()
    {
        block.push_str(&format!("\nMetadata: {}", Value::Object(metadata.clone())));
    }
    block
}

/// Returns when a time such as `past 7 days` or `last 2 weeks` begins.
fn beginning_of(text: &str, now: Timestamp) -> Result<Timestamp> {
    let lower = text.trim().to_lowercase();
    let counted = ["past ", "last "].iter().find_map(|word| lower.strip_prefix(word));
    let begin = Timestamp::relative(&counted.map_or(lower.clone(), |rest| format!("{rest} ago")), now);
    begin.map(|(begin, _)| begin).ok_or_else(|| {
        Error::invalid(format!("time_expr {text:?} is not a time"))
            .with_hint("Give one such as \"past 7 days\"")
    })
}

/// What a search finds: a memory, or what was said in a conversation.
enum Found<'a> {
    Memory(&'a Memory),
    Said(&'a ConversationHit),
}

fn search_memories(store: &Store, input: SearchInput) -> Result<Answer> {
    let bound = |name: &str, text: &Option<String>| {
        text.as_deref().map(|text| Timestamp::parse_bound_at(name, text, store.now())).transpose()
    };
    let within = match &input.time_expr {
        Some(text) if input.after.is_none() => Some(beginning_of(text, store.now())?),
        _ => None,
    };
    let (after, before) = (bound("after", &input.after)?.or(within), bound("before", &input.before)?);
    let (limit, offset) = (input.limit.unwrap_or(10), input.offset.unwrap_or(0));
    let mut notices = Vec::new();
    let most = limit.saturating_add(offset);
    let said = input.history.find(store, &input.query, (after, before), most, &mut notices)?;
    let found = if input.history.is_only_history() {
        Vec::new()
    } else {
        let skip = if said.is_some() { 0 } else { offset };
        let filter = Filter { created_after: after, created_before: before, ..Filter::default() };
        let search = SearchRequest {
            notes_only: true,
            query: input.query,
            plain: true,
            limit: Some(if said.is_some() { most } else { limit }),
            skip,
            filter: store.recalls().scoped(filter),
            include: Inactive { archived: false, forgotten: input.include_deleted.unwrap_or(false) },
            memories: Some(MemoryRanking { intent: Some(input.intent.into()), ..MemoryRanking::default() }),
            ..SearchRequest::default()
        };
        let found = store.searches().search(&search)?;
        notices.extend(found.notes.iter().map(|note| note.for_agent(|_| false)));
        found.results.into_iter().filter_map(|result| result.memory).collect()
    };
    let shown = match &said {
        None => found.iter().map(Found::Memory).collect(),
        Some(said) => in_turn(&found, said).into_iter().skip(offset).take(limit).collect::<Vec<_>>(),
    };
    let blocks = blocks_of(store, &shown);
    if blocks.is_empty() {
        return Ok(Answer::text("No memories found matching your query.").with_notices(notices));
    }
    Ok(Answer::text(blocks.join(SEPARATOR)).with_notices(notices))
}

/// Joins memories and messages in turn, because their scores cannot be compared.
fn in_turn<'a>(memories: &'a [Memory], said: &'a [ConversationHit]) -> Vec<Found<'a>> {
    let mut joined = Vec::with_capacity(memories.len() + said.len());
    for at in 0..memories.len().max(said.len()) {
        joined.extend(memories.get(at).map(Found::Memory));
        joined.extend(said.get(at).map(Found::Said));
    }
    joined
}

/// Formats what was found, each as a block.
fn blocks_of(store: &Store, shown: &[Found<'_>]) -> Vec<String> {
    let mut text_budget = TextBudget::default();
    let mut blocks = Vec::new();
    for found in shown {
        let memory = match found {
            Found::Said(hit) => {
                blocks.push(format_hit(hit, &mut text_budget));
                continue;
            }
            Found::Memory(memory) => memory,
        };
        let content = match store.memories().content(memory) {
            Ok(content) => content,
            // A memory that was deleted since is no result, and one that cannot be read does not hide the others.
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!("a memory is left out of a reply: {error}");
                }
                continue;
            }
        };
        let (mut text, is_cut) = text_budget.take(&content.text);
        if is_cut {
            text.push_str(" (cut; get_memories gives more of it)");
        }
        let mut block = format_memory(memory, &text, &content);
        if memory.state.forgotten {
            block.push_str("\n[DELETED]");
        }
        blocks.push(block);
    }
    blocks
}

fn get_memories(store: &Store, input: IdsInput) -> Result<Answer> {
    if input.ids.is_empty() {
        return Err(empty_list("ids", IDS_EXAMPLE));
    }
    let found = memories_by_ids(store, input.ids.iter())?;
    let mut text_budget = TextBudget::default();
    let mut blocks = Vec::new();
    for (id, memory) in input.ids.iter().zip(&found) {
        let Some(memory) = memory else {
            blocks.push(not_found(id));
            continue;
        };
        let content = match store.memories().content(memory) {
            Ok(content) => content,
            Err(error) => {
                tracing::warn!("a memory is reported as not found: {error}");
                blocks.push(not_found(id));
                continue;
            }
        };
        let (mut text, is_cut) = text_budget.take(&content.text);
        if is_cut {
            text.push_str(&format!(" (cut; the note {} holds all of it)", memory.path));
        }
        let mut block = format_memory(memory, &text, &content);
        block.push_str(&format!(
            "\nCreated: {}\nUpdated: {}",
            memory.created.millis_rfc3339(),
            memory.updated.millis_rfc3339()
        ));
        let superseded_by = memory.superseded_by.as_deref();
        let superseded_by = if memory.state.forgotten { Some("DELETED") } else { superseded_by };
        if let Some(other) = superseded_by {
            block.push_str(&format!("\nSuperseded by: {other}"));
        }
        blocks.push(block);
    }
    store.memories().record_uses(found.iter().flatten(), "get_memories");
    Ok(Answer::text(blocks.join(SEPARATOR)))
}

fn report_memory_usefulness(store: &Store, input: VoteInput) -> Result<Answer> {
    store.index().refresh()?;
    let id = input.memory_id;
    let found = match store.recalls().memory_by_id(&id)? {
        // A search shows titles, too.
        None => store.recalls().memories_by_name(&id)?,
        found => found.into_iter().collect(),
    };
    let [memory] = found.as_slice() else { return Ok(Answer::error(not_found(&id))) };
    let score = store.memories().vote(&memory.path, input.useful)?.state.usefulness;
    let verdict = if input.useful { "useful" } else { "not useful" };
    Ok(Answer::text(format!("Memory {id} marked as {verdict}. New usefulness score: {score}")))
}

fn store_handoff(store: &Store, input: HandoffInput) -> Result<Answer> {
    Ok(Answer::text(format!(
        "Handoff stored with memory ID: {}",
        store_work(store, input.project, input.work)?
    )))
}

fn set_waypoint(store: &Store, input: WaypointInput) -> Result<Answer> {
    let folder = || store.root().file_name().map(|name| name.to_string_lossy().into_owned());
    let project = summary(input.project).or_else(folder).ok_or_else(|| {
        Error::invalid("project is missing").with_hint("Give the name of what is worked on")
    })?;
    Ok(Answer::text(format!("Waypoint stored with memory ID: {}", store_work(store, project, input.work)?)))
}

/// Stores where the work on a project stands, and returns the id of the note.
fn store_work(store: &Store, project: String, input: WorkInput) -> Result<String> {
    let handoff = Handoff {
        project,
        branch: summary(input.branch),
        summary: input.summary,
        completed: input.completed.unwrap_or_default(),
        in_progress: input.in_progress_blocked.unwrap_or_default(),
        decisions: input.key_decisions.unwrap_or_default(),
        next: input.next_steps.unwrap_or_default(),
        memories: input.memory_ids.unwrap_or_default(),
    };
    let mut properties = Map::new();
    properties.extend(non_empty(input.metadata).map(|map| (METADATA.to_owned(), Value::Object(map))));
    let reply = store.handoffs().store_handoff(&HandoffRequest { handoff, properties }, false)?;
    let memory = reply.memory.ok_or_else(|| Error::internal("the handoff has no note"))?;
    Ok(memory.id)
}

fn get_handoff(store: &Store, _: NoInput) -> Result<Answer> {
    handoff_answer(store, None, "No stored handoff found.")
}

fn get_waypoint(store: &Store, input: GetWaypointInput) -> Result<Answer> {
    handoff_answer(store, summary(input.project).as_deref(), "No stored waypoint found.")
}

/// Answers with a handoff and the memories that it names, or with `none`.
fn handoff_answer(store: &Store, project: Option<&str>, none: &str) -> Result<Answer> {
    store.index().refresh()?;
    match store.handoffs().handoff(project) {
        Ok(handoff) => {
            let mut text = handoff.text.trim_end().to_owned();
            // A memory that no longer exists is left out.
            let existing =
                handoff.memories.iter().filter_map(|(id, content)| Some((id, content.as_deref()?)));
            let existing: Vec<String> =
                existing.map(|(id, content)| format!("### Memory: {id}\n{}", content.trim())).collect();
            if !existing.is_empty() {
                text.push_str(&format!("\n\n## Referenced Memories\n\n{}", existing.join("\n\n")));
            }
            Ok(Answer::text(text))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Answer::text(none)),
        Err(error) => Err(error),
    }
}
