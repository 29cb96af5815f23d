//! The tools for memories: state and settings of a memory, recall for a prompt, and handoffs between sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_markdown::control::plain;
use sidenote_memory::validity::Invalidity;
use sidenote_store::{
    ChangeReply, EditRequest, Event, Handoff, HandoffRequest, NoteEdit, Operation, RecallBudget, RecallReply,
    RecallRequest, Searches, Store, UndoRequest, names_of, number, person_of, refuse_long_label, xml_block,
};

use super::super::tool::{Answer, text_line, to_json, within};
use super::TARGET_LENGTH;

/// The largest number of events of the audit trail in a reply.
const MAX_EVENTS: usize = 50;
/// The largest number of names that the audit trail shows of one event.
const MAX_EVENT_NAMES: usize = 3;
/// The largest number of operations that one call undoes.
const MAX_UNDONE: usize = 100;

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TierInput {
    Archive,
    None,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SetInput {
    note: String,
    pinned: Option<bool>,
    #[schemars(range(min = 1, max = 10))]
    importance: Option<f64>,
    /// none: use and time decide
    tier: Option<TierInput>,
    #[serde(rename = "type")]
    kind: Option<String>,
    /// A vote
    useful: Option<bool>,
    #[serde(default)]
    reviewed: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct SetOutput {
    path: String,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    tier: String,
    importance: f64,
    pinned: bool,
    forgotten: bool,
    usefulness: i64,
    uses: usize,
}

pub(super) fn set(store: &Store, input: SetInput) -> Result<Answer> {
    if let Some(kind) = &input.kind
        && (kind.trim().is_empty() || kind.chars().any(char::is_control))
    {
        return Err(
            Error::invalid(format!("{kind:?} is not a type")).with_hint("Give a word, such as decision")
        );
    }
    refuse_long_label("type", input.kind.as_deref())?;
    store.index().refresh()?;
    let path = store.lookup().find(&input.note)?.path.to_string();
    let importance =
        input.importance.map(|importance| within("importance", importance, 1.0, 10.0)).transpose()?;
    let pinned = store.memories().memory(&path)?.state.pinned;
    let mut last = match input.pinned {
        Some(true) if !pinned => Some(store.memory_writes().pin(&path, false)?),
        Some(false) if pinned => Some(store.memory_writes().unpin(&path, false)?),
        _ => None,
    };
    let mut edit = |edit: NoteEdit| -> Result<()> {
        let request = EditRequest { note: path.clone(), edit, expect: None };
        last = Some(store.changes().change(&Operation::Edit(request), false)?);
        Ok(())
    };
    if let Some(importance) = importance {
        edit(NoteEdit::Set("importance".to_owned(), number(importance)))?;
    }
    match input.tier {
        Some(TierInput::Archive) => edit(NoteEdit::Set("tier".to_owned(), Value::from("archive")))?,
        Some(TierInput::None) => edit(NoteEdit::Unset("tier".to_owned()))?,
        None => {}
    }
    if let Some(kind) = input.kind {
        edit(NoteEdit::Set("type".to_owned(), Value::from(kind)))?;
    }
    if input.reviewed {
        edit(NoteEdit::Set("last_reviewed".to_owned(), Value::from(store.now().rfc3339())))?;
    }
    if let Some(useful) = input.useful {
        store.memories().vote(&path, useful)?;
    }
    let memory = store.memories().memory_after(last.as_ref(), &path)?;
    let state = &memory.state;
    let output = SetOutput {
        kind: memory.kind,
        tier: state.tier.to_string(),
        importance: state.importance,
        pinned: state.pinned,
        forgotten: state.forgotten,
        usefulness: state.usefulness,
        uses: state.uses,
        path: memory.path,
        id: memory.id,
    };
    let pinned = if output.pinned { ", pinned" } else { "" };
    let text = format!(
        "{}: {} {}, importance {}, usefulness {}{pinned}",
        output.path, output.tier, output.kind, output.importance, output.usefulness
    );
    Answer::text(text).with_structured(&output)
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RecallInput {
    prompt: String,
    limit: Option<usize>,
    /// Tokens (4000)
    budget: Option<usize>,
    as_of: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct RecallOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Value>,
    /// The memories, best first.
    memories: Vec<RecalledOutput>,
    /// The memories as XML, within the budget.
    xml: String,
}

#[derive(Debug, Serialize)]
struct RecalledOutput {
    id: String,
    path: String,
    title: String,
    #[serde(rename = "type")]
    kind: String,
    tier: String,
    score: f64,
    text: String,
    #[serde(flatten)]
    invalidity: Invalidity,
    /// The paths of notes that say something later about the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    newer: Vec<String>,
}

pub(super) fn recall(store: &Store, input: RecallInput) -> Result<Answer> {
    /// The default budget, in tokens. A client may show an agent the text, the structured data, or both.
    const BUDGET: usize = 4_000;
    let limit = input.limit.map(|limit| within("limit", limit, 1, 50)).transpose()?;
    // The length of a reply is limited whatever the budget.
    let budget = input.budget.unwrap_or(BUDGET).min(TARGET_LENGTH / 4);
    let budget = Some(RecallBudget::new(budget, |reply| {
        recall_answer(reply.clone()).map_or_else(|_| String::new(), |answer| answer.sent())
    }));
    let as_of = Searches::as_of("as_of", input.as_of.as_deref(), store.now())?;
    let request = RecallRequest { prompt: input.prompt, limit, as_of, budget, ..RecallRequest::default() };
    recall_answer(store.recalls().recall(&request)?)
}

/// Returns the block of a recall, and the same as data.
fn recall_answer(reply: RecallReply) -> Result<Answer> {
    let xml = xml_block(reply.context.as_ref(), &reply.memories);
    let context = reply.context.as_ref().map(to_json).transpose()?;
    let memories = reply.memories.into_iter().map(|item| RecalledOutput {
        id: item.id,
        path: item.path,
        title: item.title,
        kind: item.kind,
        tier: item.tier.to_string(),
        score: item.score,
        text: item.text,
        invalidity: item.invalidity,
        newer: item.newer,
    });
    let output = RecallOutput { context, memories: memories.collect(), xml };
    let shown = if output.xml.is_empty() { "no note helps with this prompt" } else { output.xml.as_str() };
    Answer::text(shown).with_notices(reply.notices).with_structured(&output)
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ActionInput {
    HandoffStore,
    ContextSet,
    ContextClear,
    Undo,
    Redo,
    Backup,
    // The actions of read_session are accepted, but not in the schema.
    #[schemars(skip)]
    HandoffGet,
    #[schemars(skip)]
    ContextGet,
    #[schemars(skip)]
    Audit,
    #[schemars(skip)]
    Stats,
    #[schemars(skip)]
    Date,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReadActionInput {
    HandoffGet,
    ContextGet,
    Audit,
    Stats,
    Date,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadSessionInput {
    action: ReadActionInput,
    project: Option<String>,
    note: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ListsInput {
    completed: Vec<String>,
    in_progress: Vec<String>,
    decisions: Vec<String>,
    next_steps: Vec<String>,
    #[schemars(extend("x-comma-list" = true))]
    memory_ids: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SessionInput {
    action: ActionInput,
    project: Option<String>,
    branch: Option<String>,
    summary: Option<String>,
    /// Of a handoff
    #[serde(default)]
    lists: ListsInput,
    /// The context
    text: Option<String>,
    ttl_hours: Option<f64>,
    note: Option<String>,
    count: Option<usize>,
    operation: Option<String>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct SessionOutput {
    /// The result of the action.
    result: Value,
    /// The number of proposals that wait for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposals: Option<usize>,
}

/// Answers with the result of an action, and the number of proposals that wait.
fn session_answer(store: &Store, mut text: String, result: Value) -> Result<Answer> {
    let proposals = Some(store.proposals().waiting_count()?).filter(|count| *count > 0);
    if let Some(count) = proposals {
        let what = if count == 1 { "1 proposal waits" } else { &format!("{count} proposals wait") };
        text.push_str(&format!("\n{what} for the user"));
    }
    Answer::text(text).with_structured(&SessionOutput { result, proposals })
}

/// Runs an action that only reads: the last handoff, the context, the audit trail, statistics or the date.
pub(super) fn read_session(store: &Store, input: ReadSessionInput) -> Result<Answer> {
    let (text, result) =
        run_read_action(store, input.action, input.project.as_deref(), input.note.as_deref())?;
    session_answer(store, text, result)
}

fn run_read_action(
    store: &Store,
    action: ReadActionInput,
    project: Option<&str>,
    note: Option<&str>,
) -> Result<(String, Value)> {
    Ok(match action {
        ReadActionInput::HandoffGet => {
            store.index().refresh()?;
            match store.handoffs().handoff(project) {
                Ok(handoff) => (
                    handoff.with_memories(),
                    json!({ "path": handoff.path, "id": handoff.id, "project": handoff.project, "updated_at": handoff.updated.local_rfc3339() }),
                ),
                Err(error) if error.kind() == ErrorKind::NotFound => (
                    // A read-only server has no tool `session`.
                    if store.is_read_only() {
                        "there is no handoff yet".to_owned()
                    } else {
                        "there is no handoff yet; session with the action handoff_store stores one".to_owned()
                    },
                    Value::Null,
                ),
                Err(error) => return Err(error),
            }
        }
        ReadActionInput::ContextGet => {
            let context = store.memories().context()?;
            let text = context.as_ref().map_or("there is no context", |context| context.text.as_str());
            (text.to_owned(), to_json(&context)?)
        }
        ReadActionInput::Audit => audit(store, note)?,
        ReadActionInput::Stats => stats(store)?,
        ReadActionInput::Date => {
            let now = store.now();
            let (local, zone) = (now.local_rfc3339(), now.zone());
            let result = json!({ "utc": now.rfc3339(), "local": local, "time_zone": zone });
            (format!("{local} ({zone})"), result)
        }
    })
}

pub(super) fn session(store: &Store, input: SessionInput) -> Result<Answer> {
    let read = |action| run_read_action(store, action, input.project.as_deref(), input.note.as_deref());
    let (text, result) = match input.action {
        ActionInput::HandoffGet => read(ReadActionInput::HandoffGet)?,
        ActionInput::ContextGet => read(ReadActionInput::ContextGet)?,
        ActionInput::Audit => read(ReadActionInput::Audit)?,
        ActionInput::Stats => read(ReadActionInput::Stats)?,
        ActionInput::Date => read(ReadActionInput::Date)?,
        ActionInput::HandoffStore => store_handoff(store, input)?,
        ActionInput::ContextSet => {
            let text = input.text.ok_or_else(|| {
                missing_argument("text", r#"{"action": "context_set", "text": "The new sail"}"#)
            })?;
            let context = store.memories().set_context(&text, input.ttl_hours)?;
            let until = context.expires_at.map_or_else(
                || "until further notice".to_owned(),
                |until| format!("until {}", until.local_rfc3339()),
            );
            (format!("the context is set {until}"), to_json(&context)?)
        }
        ActionInput::ContextClear => {
            let was_set = store.memories().clear_context()?;
            (
                if was_set { "the context is cleared" } else { "there was no context" }.to_owned(),
                Value::Bool(was_set),
            )
        }
        ActionInput::Undo => undo(store, input.count.unwrap_or(1), input.operation)?,
        ActionInput::Redo => undone_output(&[store.changes().redo(false)?]),
        ActionInput::Backup => {
            let backup = store.upkeep().backup(None)?;
            (format!("{} notes are in {}", backup.notes, backup.path.display()), to_json(&backup)?)
        }
    };
    session_answer(store, text, result)
}

fn missing_argument(name: &str, example: &str) -> Error {
    Error::invalid(format!("session needs {name} for this action"))
        .with_hint(format!("A valid call: {example}"))
}

fn store_handoff(store: &Store, input: SessionInput) -> Result<(String, Value)> {
    let example = r#"{"action": "handoff_store", "project": "boat", "summary": "The sail is sewn."}"#;
    let handoff = Handoff {
        completed: input.lists.completed,
        in_progress: input.lists.in_progress,
        decisions: input.lists.decisions,
        next: input.lists.next_steps,
        memories: input.lists.memory_ids,
        project: input.project.ok_or_else(|| missing_argument("project", example))?,
        branch: input.branch,
        summary: input.summary.ok_or_else(|| missing_argument("summary", example))?,
    };
    let request = HandoffRequest { handoff, ..HandoffRequest::default() };
    let reply = store.handoffs().store_handoff(&request, false)?;
    let notices = reply.change.notices;
    let (path, id) = reply.memory.map(|memory| (memory.path, memory.id)).unzip();
    let mut text = path.as_ref().map_or_else(
        || reply.change.diff.unwrap_or_else(|| "nothing to change".to_owned()),
        |path| format!("the handoff is in {path}"),
    );
    notices.iter().for_each(|notice| text.push_str(&format!("\nnotice: {notice}")));
    Ok((text, json!({ "path": path, "id": id })))
}

fn audit(store: &Store, note: Option<&str>) -> Result<(String, Value)> {
    store.index().refresh()?;
    let mut events = store.memories().audit(note)?;
    let total = events.len();
    events.truncate(MAX_EVENTS);
    let mut text = String::new();
    for event in &events {
        let mut names = names_of(event);
        let others = names.len().saturating_sub(MAX_EVENT_NAMES);
        names.truncate(MAX_EVENT_NAMES);
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        let by = person_of(event).map_or_else(String::new, |person| format!("  by {person}"));
        let Event { id, at, op, .. } = event;
        let (at, names) = (at.local_rfc3339(), names.join(", "));
        text.push_str(&text_line(&format!("{id}  {at}  {op}  {names}{others}{by}")));
    }
    if total > events.len() {
        text.push_str(&format!("and {} older ones\n", total - events.len()));
    }
    if events.is_empty() {
        text.push_str("no operations yet\n");
    }
    let mut list = to_json(&events)?;
    if list.to_string().len() > TARGET_LENGTH {
        // The files of a large move would take all the room.
        list = events
            .iter()
            .map(|event| json!({ "id": event.id, "at": event.at.local_rfc3339(), "op": event.op }))
            .collect();
    }
    Ok((text, json!({ "events": list, "total": total })))
}

fn undo(store: &Store, count: usize, operation: Option<String>) -> Result<(String, Value)> {
    let count = within("count", count, 1, MAX_UNDONE)?;
    let replies = store.changes().undo_by(&UndoRequest { id: operation, count, ..UndoRequest::default() });
    let with_hint = |error: Error| {
        match error.kind() {
        ErrorKind::NotFound => Error::new(error.kind(), error.to_string()).with_hint(
            "read_session with action audit lists operations; give session the id of one as operation to undo it alone",
        ),
        _ => error,
    }
    };
    Ok(undone_output(&replies.map_err(with_hint)?))
}

fn undone_output(replies: &[ChangeReply]) -> (String, Value) {
    let mut lines = Vec::new();
    for reply in replies {
        let files: Vec<String> = reply
            .plan
            .files
            .iter()
            .take(5)
            .filter_map(|file| file.to.as_ref().or(file.from.as_ref()))
            .map(ToString::to_string)
            .collect();
        let verb = if reply.plan.operation == "redo" { "redone" } else { "undone" };
        let reverted = reply.reverted.as_deref().map(|reverted| format!("{reverted}: ")).unwrap_or_default();
        lines.push(plain(&format!(
            "{verb}: {reverted}{} files ({})",
            reply.plan.files.len(),
            files.join(", ")
        )));
        lines.extend(reply.notices.iter().map(|notice| format!("notice: {notice}")));
    }
    let operations: Vec<_> = replies
        .iter()
        .map(|reply| json!({ "id": reply.id, "undoes": reply.plan.undoes, "files": reply.plan.files.len() }))
        .collect();
    (lines.join("\n"), json!({ "operations": operations }))
}

fn stats(store: &Store) -> Result<(String, Value)> {
    store.index().refresh()?;
    let status = store.index().status()?;
    let memory = store.memories().memory_stats()?;
    let text = format!(
        "notes: {}, attachments: {}; vectors: {}, passages without one: {}; memories: {}, pinned: {}, forgotten: {}",
        status.counts.notes,
        status.counts.attachments,
        status.vectors,
        status.pending,
        memory.memories,
        memory.pinned,
        memory.forgotten
    );
    Ok((text, json!({ "vault": to_json(&status)?, "memory": to_json(&memory)? })))
}
