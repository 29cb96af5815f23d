//! The parts of the API that change something, each by the plan that the command line makes, too.

use axum::http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use sidenote_base::error::Error;
use sidenote_markdown::edit::{ContentHash, FileLocation};
use sidenote_store::{
    Certainty, ChangeReply, DeadLinkRequest, EditRequest, FixRequest, GraphPositions, MoveRequest,
    NewRequest, NoteEdit, Operation, RepairReply, RepairRequest, Store, UndoRequest, plan_basis,
};

use crate::params::{day_of, parsed};
use crate::reply::{ApiError, to_json, to_json_with};
use crate::review;
use crate::sanitize::sanitized;

/// The address of the positions of the graph, which are not a part of the notes.
const POSITIONS: &str = "graph/positions";
/// The address that renders a source which is not written.
const PREVIEW: &str = "preview";
/// The beginning of the addresses of actions.
const ACTIONS: &str = "actions/";
/// The most files of a conflict that are given with their texts.
const MOST_SHOWN: usize = 20;
/// The longest text of a file in a conflict.
const LONGEST_SHOWN: usize = 1_000_000;

/// The body of an action.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Action {
    /// The note, or the file in the trash.
    name: Option<String>,
    /// The hash that the note must have.
    hash: Option<String>,
    dry_run: bool,
    /// What the plan must be based on, as the dry run gave it.
    expect_hash: Option<String>,
    hard: bool,
    useful: Option<bool>,
    id: Option<String>,
    keep: Vec<String>,
    fingerprints: Option<Vec<String>>,
    code: Option<String>,
    paths: Option<Vec<String>>,
    property: Option<String>,
    value: Value,
    line: Option<usize>,
    status: Option<char>,
    /// What a broken link names.
    link: Option<String>,
    /// The path of the file that it has to lead to, or that a note moves to.
    to: Option<String>,
    /// The source of a note, as an editor made it.
    text: Option<String>,
    /// The template of a new note.
    template: Option<String>,
    /// The day of a daily note.
    day: Option<String>,
    /// The session to undo.
    session: Option<String>,
    /// The operations of the session that the caller saw as those to undo.
    ids: Option<Vec<String>>,
}

/// A source to render.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Preview {
    /// The note that has another source now.
    name: String,
    text: String,
}

/// Returns whether an address can be changed by a method.
pub(crate) fn is_action(name: &str, method: &Method) -> bool {
    (name == POSITIONS && method == Method::PUT)
        || ((name == PREVIEW || name.starts_with(ACTIONS)) && method == Method::POST)
}

/// Carries out an action, or plans it.
///
/// # Errors
/// `read-only` if nothing may be changed; `invalid` if the body is malformed; `conflict`, with the files as they are, if they
/// are not as expected; those of the store.
pub(crate) fn reply(store: &Store, name: &str, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    if name == POSITIONS {
        let positions: GraphPositions = parsed(body)?;
        store.views().set_graph_positions(&positions)?;
        return to_json(&json!({"stored": positions.ids.len()}));
    }
    if name == PREVIEW {
        let preview: Preview = parsed(body)?;
        store.index().refresh()?;
        let mut page = store.views().preview(&preview.name, &preview.text)?;
        page.each_html(|html| *html = sanitized(html));
        // The caller has the source.
        page.text = None;
        return to_json(&page);
    }
    if store.is_read_only() {
        return Err(ApiError::read_only());
    }
    let name = name.strip_prefix(ACTIONS).unwrap_or(name);
    if review::is_action(name) {
        store.index().refresh()?;
        return review::decide(store, name, body);
    }
    let action: Action = parsed(body)?;
    store.index().refresh()?;
    check_path(store, name, &action)?;
    check_hash(store, &action)?;
    if name == "vote" {
        return vote(store, &action);
    }
    let expecting = store.expecting(action.expect_hash.clone().filter(|_| !action.dry_run));
    // The first plan is compared with what the caller saw, and what the reply says is based on that plan.
    let done = match name {
        "repair" => repair(&expecting, &action, action.dry_run).map(|done| {
            let repaired = done.links.iter().filter(|link| link.new_link.is_some());
            let places: Vec<Value> = repaired.map(|link| json!([link.path, link.line])).collect();
            (done.change, json!({"repaired": places}))
        }),
        "undo-session" => undo_session(&expecting, &action),
        _ => carried_out(&expecting, name, &action, action.dry_run).map(|reply| (reply, json!({}))),
    };
    match done {
        Ok((reply, mut more)) => {
            more["expect_hash"] = plan_basis(&reply.plan).into();
            if name == "write" {
                // The next change of the same editor is based on it.
                more["hash"] = reply.hash().map(|hash| hash.to_string()).into();
            }
            to_json_with(&reply, more)
        }
        Err(error) if error.is_taken() => Err(with_holder(store, name, &action, error)),
        Err(error) => Err(with_files(store, name, &action, error)),
    }
}

/// Repairs the links of which it is certain what they mean, or plans it.
fn repair(store: &Store, action: &Action, dry_run: bool) -> Result<RepairReply, ApiError> {
    let paths = action.paths.clone().unwrap_or_default();
    let request =
        RepairRequest { paths, apply: Some(Certainty::Certain), dry_run, ..RepairRequest::default() };
    Ok(store.repairs().repair(&request)?)
}

/// Lists the operations of a session that can be undone, with the plan of the first, or undoes those that the caller saw.
fn undo_session(store: &Store, action: &Action) -> Result<(ChangeReply, Value), ApiError> {
    let session = required(&action.session, "session")?;
    let changes = store.changes();
    let (replies, more) = if action.dry_run {
        let outlook = changes.session_outlook(session)?;
        let dry_run = UndoRequest { dry_run: true, ..UndoRequest::default() };
        let request = match outlook.operations.first() {
            Some(first) => UndoRequest { id: Some(first.id.clone()), ..dry_run },
            // The error names what stays.
            None => UndoRequest { session: Some(session.to_owned()), skip: true, ..dry_run },
        };
        (changes.undo_by(&request)?, json!({"session": outlook}))
    } else {
        let ids = action.ids.as_ref().ok_or_else(|| ApiError::invalid("ids is missing"))?;
        let replies = changes.undo_of_session(session, ids)?;
        let undone: Vec<&str> = replies.iter().filter_map(|reply| reply.reverted.as_deref()).collect();
        let undone = json!({"undone": undone});
        (replies, undone)
    };
    let mut replies = replies.into_iter();
    let mut first = replies.next().ok_or_else(|| Error::internal("an undo has no reply"))?;
    first.notices.extend(replies.flat_map(|reply| reply.notices));
    Ok((first, more))
}

/// Returns an error if an action names a note by its path and the note is no longer there. Otherwise, looking the name
/// up could give another note with the same file name.
fn check_path(store: &Store, name: &str, action: &Action) -> Result<(), ApiError> {
    let Some(given) = action.name.as_deref().filter(|_| !matches!(name, "create" | "restore-file")) else {
        return Ok(());
    };
    // The action itself says that nothing has the name, or finds it in the trash.
    let Ok(found) = store.lookup().find(given) else { return Ok(()) };
    let path = found.path.as_str();
    let is_file_name = path.rsplit('/').next() == Some(given);
    let is_path = given.contains('/') || given.to_lowercase().ends_with(".md") || is_file_name;
    if !is_path || path == given || path.strip_suffix(".md") == Some(given) {
        return Ok(());
    }
    let error = Error::not_found(format!("there is no note {given:?} any more; nothing was written"))
        .with_hint(format!("it was moved or deleted; {path:?} is another note"));
    Err(error.into())
}

fn required<'t>(value: &'t Option<String>, name: &str) -> Result<&'t str, ApiError> {
    value.as_deref().ok_or_else(|| ApiError::invalid(&format!("{name} is missing")))
}

/// Refuses an action on a note that is not as the page showed it.
fn check_hash(store: &Store, action: &Action) -> Result<(), ApiError> {
    let (Some(name), Some(hash)) = (&action.name, &action.hash) else { return Ok(()) };
    let path = store.lookup().find(name)?.path;
    let now = present(store, path.as_str());
    if now.get("hash").and_then(Value::as_str) == Some(hash) {
        return Ok(());
    }
    let text = format!("{path} has changed since it was shown; nothing was written");
    let error = Error::new(sidenote_base::error::ErrorKind::Conflict, text)
        .with_hint("look at the note again, and repeat the change then");
    Err(ApiError::from(error).with("files", json!([now])))
}

/// Describes a file as it is now.
fn present(store: &Store, path: &str) -> Value {
    let read = sidenote_markdown::path::NotePath::parse(path)
        .and_then(|path| store.reads().file(&path, LONGEST_SHOWN as u64));
    match read {
        Ok((_, sidenote_store::FileContent::Text(text))) => {
            let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
            let text = (text.len() <= LONGEST_SHOWN).then_some(text);
            json!({"path": path, "hash": hash, "text": text})
        }
        Ok((_, sidenote_store::FileContent::Bytes(bytes))) => {
            json!({"path": path, "hash": blake3::hash(&bytes).to_hex().to_string(), "text": null})
        }
        Ok((_, sidenote_store::FileContent::TooLarge)) | Err(_) => {
            json!({"path": path, "hash": null, "text": null})
        }
    }
}

fn vote(store: &Store, action: &Action) -> Result<Vec<u8>, ApiError> {
    let name = required(&action.name, "name")?;
    let useful = action.useful.ok_or_else(|| ApiError::invalid("useful is missing"))?;
    if action.dry_run {
        return to_json(&store.memories().memory(name)?);
    }
    to_json(&store.memories().vote(name, useful)?)
}

fn edit(store: &Store, action: &Action, edit: NoteEdit, dry_run: bool) -> Result<ChangeReply, ApiError> {
    let note = required(&action.name, "name")?.to_owned();
    let expect = action.hash.as_deref().and_then(|hash| blake3::Hash::from_hex(hash).ok());
    let expect = expect.map(|hash| ContentHash::from_bytes(*hash.as_bytes()));
    Ok(store.changes().change(&Operation::Edit(EditRequest { note, edit, expect }), dry_run)?)
}

/// Returns the broken links that an action is about, which their text replaces.
fn dead_link(action: &Action) -> Result<DeadLinkRequest, ApiError> {
    Ok(DeadLinkRequest {
        note: required(&action.name, "name")?.to_owned(),
        link: required(&action.link, "link")?.to_owned(),
        line: action.line,
        to: None,
    })
}

/// Carries out an action, or plans it with `dry_run`.
fn carried_out(store: &Store, name: &str, action: &Action, dry_run: bool) -> Result<ChangeReply, ApiError> {
    let note = || required(&action.name, "name");
    let writes = store.memory_writes();
    match name {
        "pin" => Ok(writes.pin(note()?, dry_run)?),
        "unpin" => Ok(writes.unpin(note()?, dry_run)?),
        "archive" => Ok(writes.archive(note()?, dry_run)?),
        "forget" => Ok(writes.forget(note()?, action.hard, dry_run)?),
        "restore" => Ok(writes.restore_memory(note()?, dry_run)?),
        "restore-file" => Ok(store.changes().change(&Operation::Restore(note()?.to_owned()), dry_run)?),
        "undo" => {
            let id = Some(required(&action.id, "id")?.to_owned());
            let request = UndoRequest { id, keep: action.keep.clone(), dry_run, ..UndoRequest::default() };
            let done = store.changes().undo_by(&request)?.pop();
            Ok(done.ok_or_else(|| Error::internal("an undo has no reply"))?)
        }
        "redo" => Ok(store.changes().redo(dry_run)?),
        "fix" => {
            let request = FixRequest {
                fingerprints: action.fingerprints.clone(),
                code: action.code.clone(),
                paths: action.paths.clone(),
            };
            Ok(store.upkeep().fix_problems(&request, dry_run)?)
        }
        "repair" => Ok(repair(store, action, dry_run)?.change),
        "link-target" => {
            let to = Some(required(&action.to, "to")?.to_owned());
            Ok(store.repairs().fix_dead_link(&DeadLinkRequest { to, ..dead_link(action)? }, dry_run)?)
        }
        "link-text" => Ok(store.repairs().fix_dead_link(&dead_link(action)?, dry_run)?),
        "create" => {
            let (folder, title) = match note()?.rsplit_once('/') {
                Some((folder, title)) => (Some(folder.to_owned()), title.to_owned()),
                None => (None, note()?.to_owned()),
            };
            let template = action.template.clone();
            let new = NewRequest { title, folder, template, ..NewRequest::default() };
            Ok(store.changes().change(&Operation::New(new), dry_run)?)
        }
        "daily" => {
            let day = day_of(action.day.as_deref())?;
            let new = NewRequest { daily: true, day, ..NewRequest::default() };
            Ok(store.changes().change(&Operation::New(new), dry_run)?)
        }
        "move" => {
            let (from, to) = (note()?.to_owned(), required(&action.to, "to")?.to_owned());
            let moved = MoveRequest { from, to, ..MoveRequest::default() };
            Ok(store.changes().change(&Operation::Move(moved), dry_run)?)
        }
        "write" => {
            let text = required(&action.text, "text")?.to_owned();
            // Without it, another text than the one that was edited would be replaced.
            if !dry_run {
                required(&action.hash, "hash")?;
            }
            edit(store, action, NoteEdit::Source(text), dry_run)
        }
        "set" => {
            let property = required(&action.property, "property")?.to_owned();
            let change = match &action.value {
                Value::Null => NoteEdit::Unset(property),
                value => NoteEdit::Set(property, value.clone()),
            };
            edit(store, action, change, dry_run)
        }
        "task" => {
            let line = action.line.ok_or_else(|| ApiError::invalid("line is missing"))?;
            edit(store, action, NoteEdit::Task { task: line.to_string(), status: action.status }, dry_run)
        }
        _ => Err(ApiError::not_found(&format!("there is no action {name:?}"))),
    }
}

/// Adds to the refusal of a name the note that has it.
fn with_holder(store: &Store, name: &str, action: &Action, error: ApiError) -> ApiError {
    let wanted = match name {
        "create" => &action.name,
        "move" => &action.to,
        _ => &None,
    };
    let holder = wanted.as_ref().and_then(|wanted| store.lookup().find(wanted).ok());
    match holder {
        Some(row) => error.with("taken", json!({"path": row.path, "title": row.title})),
        None => error,
    }
}

/// Adds to a conflict the files that the action is about, as they are now.
fn with_files(store: &Store, name: &str, action: &Action, error: ApiError) -> ApiError {
    if !error.is_conflict() {
        return error;
    }
    let planned = carried_out(store, name, action, true).map(|reply| {
        let places = reply.plan.files.into_iter().filter_map(|file| file.from.or(file.to));
        places.filter_map(|place| FileLocation::in_vault(&place).map(ToString::to_string)).collect()
    });
    let mut paths: Vec<String> = match planned {
        Ok(paths) => paths,
        Err(_) => match &action.id {
            Some(id) => {
                let obstacles = store.changes().undo_obstacles(id).unwrap_or_default();
                obstacles.into_iter().map(|found| found.path).collect()
            }
            None => action
                .name
                .iter()
                .filter_map(|name| Some(store.lookup().find(name).ok()?.path.to_string()))
                .collect(),
        },
    };
    paths.truncate(MOST_SHOWN);
    let files: Vec<Value> = paths.iter().map(|path| present(store, path)).collect();
    error.with("files", Value::from(files))
}
