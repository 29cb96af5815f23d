//! The journal as a timeline: pages of events by filter, and one operation with its difference and what an undo would do.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::Value;

use crate::call_context::is_answer;
use crate::change::Changes;
use crate::change::undo::UndoRequest;
use crate::lookup::Lookup;
use crate::view::Views;
use sidenote_foundation::clock::Timestamp;
use sidenote_foundation::error::{Error, ErrorKind, Result};
use sidenote_foundation::index::catalog::FileRow;
use sidenote_foundation::journal::event::Event;
use sidenote_foundation::journal::reader::ReadOrder;
use sidenote_foundation::text::edit::{ContentHash, FileLocation, apply};
use sidenote_foundation::text::unified_diff::unified_diff;
use sidenote_foundation::vault::undo_log::{FileUndo, UndoLog};

/// The most events of one page.
const MOST_EVENTS: usize = 500;
/// The longest difference, in bytes.
const LONGEST_DIFF: usize = 2_000_000;

/// Which events a page of the timeline shows.
#[derive(Debug, Clone, Default)]
pub struct ActivityRequest {
    /// The number of events.
    pub limit: usize,
    /// The id of the event after which the page begins.
    pub before: Option<String>,
    /// The earliest time.
    pub from: Option<Timestamp>,
    /// The time before which the events were.
    pub until: Option<Timestamp>,
    /// The session.
    pub session: Option<String>,
    /// The agent; `cli` for a person at the command line.
    pub agent: Option<String>,
    /// The operation.
    pub op: Option<String>,
    /// A note that the events concern, by any of its names.
    pub note: Option<String>,
    /// Whether uses, votes and records of maintenance are shown, too.
    pub all: bool,
}

/// An event of the timeline.
#[derive(Debug, Clone, Serialize)]
pub struct ActivityEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// What it was about: the first path, or the move of it.
    pub subject: Option<String>,
    /// The id of the event that undid it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<String>,
    /// Whether its before-images are there and it was not undone.
    pub undoable: bool,
}

/// A page of the timeline.
#[derive(Debug, Clone, Serialize)]
pub struct ActivityReply {
    /// The events, the newest first.
    pub events: Vec<ActivityEvent>,
    /// What `before` is for the next page; none at the end.
    pub next: Option<String>,
    /// The sessions that were met.
    pub sessions: BTreeSet<String>,
    /// The agents that were met.
    pub agents: BTreeSet<String>,
    /// The operations that were met.
    pub ops: BTreeSet<String>,
}

/// Whether an operation can be undone, and what stands in its way.
#[derive(Debug, Clone, Serialize)]
pub struct UndoOutlook {
    /// Whether it can be undone.
    pub possible: bool,
    /// What the undo would change, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The kind of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Why it cannot be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The files in the way, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, String)>,
    /// What the user should know of the undo.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// One operation.
#[derive(Debug, Clone, Serialize)]
pub struct OperationView {
    /// The event.
    pub event: ActivityEvent,
    /// What it changed, as a unified diff.
    pub diff: Option<String>,
    /// Why there is no diff, or not of every file.
    pub diff_missing: Option<String>,
    /// Whether it can be undone.
    pub undo: UndoOutlook,
}

/// The names of one note in events.
struct NoteFilter {
    row: Option<FileRow>,
    /// The paths that it has and had.
    paths: BTreeSet<String>,
}

impl NoteFilter {
    fn concerns(&self, event: &Event) -> bool {
        let is_path = |place: &FileLocation| self.paths.contains(&place.to_string());
        if event.files.iter().any(|file| is_path(&file.path) || is_path(file.end())) {
            return true;
        }
        let notes = event.more.get("notes").and_then(Value::as_array);
        let text = |note: &Value, name: &str| note.get(name).and_then(Value::as_str).map(str::to_owned);
        notes.into_iter().flatten().any(|note| {
            text(note, "path").is_some_and(|path| self.paths.contains(&path))
                || self.row.as_ref().is_some_and(|row| text(note, "id").as_ref() == Some(&row.note_id))
        })
    }
}

impl Views<'_> {
    /// Returns a page of the timeline.
    ///
    /// # Errors
    /// `NotFound` if no note has the name of the filter and the journal does not know it; `Io` if the journal cannot be
    /// read.
    #[tracing::instrument(skip_all)]
    pub fn activity(&self, request: &ActivityRequest) -> Result<ActivityReply> {
        let limit = request.limit.clamp(1, MOST_EVENTS);
        let note = request.note.as_deref().map(|name| self.note_filter(name)).transpose()?;
        let kept = UndoLog::open(&self.core.vault.records())?.ids()?;
        let events = self.core.journal().events(ReadOrder::NewestFirst)?;
        let events = if request.all { events } else { events.of_changes() };
        let mut reply = ActivityReply {
            events: Vec::new(),
            next: None,
            sessions: BTreeSet::new(),
            agents: BTreeSet::new(),
            ops: BTreeSet::new(),
        };
        let mut undone: HashMap<String, String> = HashMap::new();
        let mut is_behind = request.before.is_none();
        for event in events {
            let event = event?;
            if let Some(id) = event.undoes.as_ref().filter(|_| !undone.contains_key(&event.id)) {
                undone.insert(id.clone(), event.id.clone());
            }
            let is_change = !event.files.is_empty() || !event.folders.is_empty() || event.undoes.is_some();
            if is_answer(&event) || !(request.all || is_change) {
                continue;
            }
            if request.from.is_some_and(|from| event.at < from) {
                break;
            }
            let (session, agent) = (text_of(&event, "session"), agent_of(&event));
            reply.sessions.extend(session.map(str::to_owned));
            reply.agents.insert(agent.to_owned());
            reply.ops.insert(event.op.clone());
            let is_wanted = request.until.is_none_or(|until| event.at < until)
                && request.session.as_deref().is_none_or(|wanted| session == Some(wanted))
                && request.agent.as_deref().is_none_or(|wanted| agent == wanted)
                && request.op.as_deref().is_none_or(|wanted| event.op == wanted)
                && note.as_ref().is_none_or(|note| note.concerns(&event));
            if is_behind && is_wanted {
                if reply.events.len() == limit {
                    reply.next = reply.events.last().map(|last| last.event.id.clone());
                    break;
                }
                let undone = undone.get(&event.id).cloned();
                let undoable = undone.is_none() && kept.contains(&event.id);
                reply.events.push(ActivityEvent { subject: event.subject(), undone, undoable, event });
            } else if request.before.as_deref() == Some(&event.id) {
                is_behind = true;
            }
        }
        Ok(reply)
    }

    /// Finds the names of a note in events, also of one that is gone.
    fn note_filter(&self, name: &str) -> Result<NoteFilter> {
        let row = match Lookup::of(self.core).find(name) {
            Ok(row) => Some(row),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let path = row.as_ref().map_or_else(|| name.to_owned(), |row| row.path.as_str().to_owned());
        let mut paths = BTreeSet::from([path.clone()]);
        for event in Changes::of(self.core).history(Some(&path))? {
            for file in &event.files {
                let names = [file.path.to_string(), file.end().to_string()];
                if names.iter().any(|name| paths.contains(name)) {
                    paths.extend(names);
                }
            }
        }
        Ok(NoteFilter { row, paths })
    }

    /// Returns one operation with what it changed, and whether it can be undone.
    ///
    /// # Errors
    /// `NotFound` if no event has the id; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn operation(&self, id: &str) -> Result<OperationView> {
        let mut undone = None;
        let mut found = None;
        for event in self.core.journal().events(ReadOrder::NewestFirst)? {
            let event = event?;
            if event.undoes.as_deref() == Some(id) {
                undone.get_or_insert(event.id.clone());
            }
            if event.id == id {
                found = Some(event);
                break;
            }
        }
        let event = found.ok_or_else(|| {
            Error::not_found(format!("there is no operation {id}"))
                .with_hint("the journal may have been compacted since")
        })?;
        let record = UndoLog::open(&self.core.vault.records())?.record(id);
        let (diff, diff_missing) = match record {
            Ok(record) => {
                let (diff, missing) = self.difference(&record.files);
                let folders = record.folders.iter();
                let moved: String = folders
                    .map(|folder| format!("rename folder {} -> {}\n", folder.from, folder.to))
                    .collect();
                (Some(format!("{moved}{diff}")), missing)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let undo = self.outlook(&event, undone.is_some());
        let undoable = undo.possible;
        let event = ActivityEvent { subject: event.subject(), undone, undoable, event };
        Ok(OperationView { event, diff, diff_missing, undo })
    }

    /// Formats what an operation changed. The bytes after it are computed from its edits, or are those of the file where it is
    /// still as the operation left it.
    fn difference(&self, files: &[FileUndo]) -> (String, Option<String>) {
        let (mut diff, mut missing) = (String::new(), Vec::new());
        for file in files {
            let name = |place: &Option<FileLocation>| {
                place.as_ref().map_or_else(|| "/dev/null".to_owned(), FileLocation::to_string)
            };
            let (from, to) = (name(&file.from), name(&file.to));
            if from != to {
                diff.push_str(&match (&file.from, &file.to) {
                    (None, _) => format!("create {to}\n"),
                    (_, None) => format!("delete {from}\n"),
                    _ => format!("rename {from} -> {to}\n"),
                });
            }
            let is_kept = file.image.is_none() && file.from.is_some() && file.patch.is_empty();
            if is_kept || file.to.is_none() && file.image.is_none() {
                continue;
            }
            let before = file.image.clone().unwrap_or_default();
            let Some(after) = self.bytes_after(file, &before) else {
                missing.push(to);
                continue;
            };
            let texts = (std::str::from_utf8(&before), std::str::from_utf8(&after));
            match texts {
                (Ok(old), Ok(new)) if diff.len() + old.len() + new.len() <= LONGEST_DIFF => {
                    diff.push_str(&unified_diff((&from, old), (&to, new)));
                }
                _ => diff.push_str(&format!("other bytes: {from} {}, {to} {}\n", before.len(), after.len())),
            }
        }
        let missing = (!missing.is_empty())
            .then(|| format!("what the operation wrote is not known any more of {}", missing.join(", ")));
        (diff, missing)
    }

    fn bytes_after(&self, file: &FileUndo, before: &[u8]) -> Option<Vec<u8>> {
        let Some(wanted) = file.after else { return Some(Vec::new()) };
        let is_after = |bytes: &Vec<u8>| ContentHash::of(bytes) == wanted;
        let patched = apply(before, &file.patch).ok().filter(is_after);
        patched.or_else(|| {
            let path = file.to.as_ref()?.in_vault()?;
            self.core.read_bytes(path).ok().filter(is_after)
        })
    }

    /// Says whether an operation can be undone, and what stands in its way.
    fn outlook(&self, event: &Event, is_undone: bool) -> UndoOutlook {
        let mut outlook = UndoOutlook {
            possible: false,
            diff: None,
            kind: None,
            message: None,
            hint: None,
            files: Vec::new(),
            notices: Vec::new(),
        };
        if is_undone {
            outlook.kind = Some(ErrorKind::Exists.name());
            outlook.message = Some("it was undone already".to_owned());
            return outlook;
        }
        let changes = Changes::of(self.core);
        let request = UndoRequest { id: Some(event.id.clone()), dry_run: true, ..UndoRequest::default() };
        match changes.undo_by(&request).map(|mut replies| replies.pop()) {
            Ok(reply) => {
                outlook.possible = true;
                outlook.notices = reply.iter().flat_map(|reply| reply.notices.clone()).collect();
                outlook.diff = reply.and_then(|reply| reply.diff);
            }
            Err(error) => {
                outlook.kind = Some(error.kind().name());
                outlook.message = Some(error.to_string());
                outlook.hint = error.hint().map(str::to_owned);
                match changes.undo_obstacles(&event.id) {
                    Ok(files) => outlook.files = files,
                    Err(error) => {
                        outlook.notices.push(format!("the files in the way cannot be listed: {error}"));
                    }
                }
            }
        }
        outlook
    }
}

fn text_of<'e>(event: &'e Event, name: &str) -> Option<&'e str> {
    event.more.get(name).and_then(Value::as_str)
}

/// Returns who did something: the agent, a program that is not sidenote, or the command line.
fn agent_of(event: &Event) -> &str {
    match text_of(event, "client") {
        Some(client) => client,
        None if event.op == sidenote_foundation::journal::event::OP_MOVED => "other",
        None => "cli",
    }
}
