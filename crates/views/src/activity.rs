//! The journal as a timeline: pages of events by filter, and one operation with its difference and what an undo would do.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::FileRow;
use sidenote_change::Changes;
use sidenote_change::undo::UndoRequest;
use sidenote_change::undo_conflict::{LaterChanges, LaterOperation, later_of};
use sidenote_journal::event::Event;
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::edit::FileLocation;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::unified_diff::unified_diff;
use sidenote_open_vault::call_context::is_answer;
use sidenote_open_vault::lookup::Lookup;
use sidenote_vault::undo_log::{FileUndo, UndoLog};

use crate::Views;

/// The most events of one page.
const MOST_EVENTS: usize = 500;
/// The most events that are read for the lists of a period.
const MOST_READ: usize = 100_000;
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
    /// The agent; `cli` for a person, `other` for another program, `auto` for what happens by itself.
    pub agent: Option<String>,
    /// The operation.
    pub op: Option<String>,
    /// A note that the events concern, by any of its names.
    pub note: Option<String>,
    /// Whether uses, votes and records of maintenance are shown, too.
    pub all: bool,
    /// Whether only the events are wanted, without what the whole period is read for: the values for filters, and what a
    /// redo would do.
    pub brief: bool,
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
    /// The id of the event that restored what it deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<String>,
    /// Of an undo or redo: what it took back, or did again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<EventName>,
    /// Whether its before-images are there and it was neither undone nor restored.
    pub undoable: bool,
}

/// An operation by name, for an event that is about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventName {
    /// The id of the event.
    pub id: String,
    /// The name of the operation.
    pub op: String,
    /// What it was about.
    pub subject: Option<String>,
}

impl EventName {
    fn of(event: &Event) -> Self {
        Self { id: event.id.clone(), op: event.op.clone(), subject: event.subject() }
    }
}

/// A page of the timeline.
#[derive(Debug, Clone, Serialize)]
pub struct ActivityReply {
    /// The events, the newest first.
    pub events: Vec<ActivityEvent>,
    /// What `before` is for the next page; none at the end.
    pub next: Option<String>,
    /// The sessions of the period.
    pub sessions: BTreeSet<String>,
    /// The agents of the period.
    pub agents: BTreeSet<String>,
    /// The operations of the period.
    pub ops: BTreeSet<String>,
    /// What a redo would do again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redo: Option<EventName>,
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
    /// The operations that have to be undone first, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<LaterOperation>,
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

/// What later events say of an earlier one, as the journal is read from its end.
#[derive(Default)]
struct LaterEvents {
    /// The ids of events that were undone, each with the event that did it.
    undone: HashMap<String, String>,
    /// The places in the trash from which files were restored, each with the event that did it.
    restored: HashMap<FileLocation, String>,
}

impl LaterEvents {
    /// Notes what an event says of earlier ones. One that was undone itself says nothing.
    fn note(&mut self, event: &Event) {
        if self.undone.contains_key(&event.id) {
            return;
        }
        if let Some(id) = &event.undoes {
            self.undone.insert(id.clone(), event.id.clone());
        }
        for file in &event.files {
            if matches!(file.path, FileLocation::Trash(_)) && event.undoes.is_none() {
                self.restored.insert(file.path.clone(), event.id.clone());
            }
        }
    }

    /// Returns an event as the timeline shows it.
    fn shown(&self, event: Event, restored: Option<String>, is_kept: bool) -> ActivityEvent {
        let undone = self.undone.get(&event.id).cloned();
        let undoable = undone.is_none() && restored.is_none() && is_kept;
        ActivityEvent { subject: event.subject(), undone, restored, of: None, undoable, event }
    }

    /// Returns the event that restored the files that an event deleted.
    fn restored_by(&mut self, event: &Event) -> Option<String> {
        let places = event.files.iter().filter_map(|file| match &file.to {
            Some(place @ FileLocation::Trash(_)) => Some(place),
            _ => None,
        });
        places.filter_map(|place| self.restored.remove(place)).last()
    }

    /// Names an event in those that undid it.
    fn name(&self, shown: &mut [ActivityEvent], event: &Event) {
        let Some(by) = self.undone.get(&event.id) else { return };
        for undo in shown.iter_mut().filter(|shown| shown.event.id == *by) {
            undo.of = Some(EventName::of(event));
        }
    }
}

impl ActivityEvent {
    /// Returns whether it is known what the event took back, if it is an undo.
    fn is_named(&self) -> bool {
        self.event.undoes.is_none() || self.of.is_some()
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
            redo: None,
        };
        if !request.brief {
            reply.redo = Changes::of(self.core).redoable()?.as_ref().map(EventName::of);
        }
        let mut later = LaterEvents::default();
        let mut is_behind = request.before.is_none();
        let mut read = 0;
        for event in events {
            let event = event?;
            later.note(&event);
            let restored = later.restored_by(&event);
            read += 1;
            let is_change = !event.files.is_empty() || !event.folders.is_empty() || event.undoes.is_some();
            if is_answer(&event) || !(request.all || is_change) {
                continue;
            }
            later.name(&mut reply.events, &event);
            let is_complete = request.brief && reply.events.iter().all(ActivityEvent::is_named);
            if reply.next.is_some() && (is_complete || read > MOST_READ) {
                break;
            }
            if request.from.is_some_and(|from| event.at < from) {
                if reply.events.iter().all(ActivityEvent::is_named) {
                    break;
                }
                continue;
            }
            let (session, agent) = (text_of(&event, "session"), agent_of(&event));
            let is_in_time = request.until.is_none_or(|until| event.at < until)
                && note.as_ref().is_none_or(|note| note.concerns(&event));
            if is_in_time && !request.brief {
                reply.sessions.extend(session.map(str::to_owned));
                reply.agents.insert(agent.to_owned());
                reply.ops.insert(event.op.clone());
            }
            let is_wanted = is_in_time
                && request.session.as_deref().is_none_or(|wanted| session == Some(wanted))
                && request.agent.as_deref().is_none_or(|wanted| agent == wanted)
                && request.op.as_deref().is_none_or(|wanted| event.op == wanted);
            if is_behind && is_wanted {
                if reply.events.len() == limit {
                    // The rest is read for the lists of the period.
                    reply.next = reply.events.last().map(|last| last.event.id.clone());
                    is_behind = false;
                    continue;
                }
                let is_kept = kept.contains(&event.id);
                reply.events.push(later.shown(event, restored, is_kept));
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
        let path = match &row {
            Some(row) => row.path.as_str().to_owned(),
            None => self.path_of_deleted(name)?,
        };
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

    /// Returns the path that a deleted note had: the name itself, if the journal knows it as a path.
    fn path_of_deleted(&self, name: &str) -> Result<String> {
        if let Ok(path) = NotePath::parse(name)
            && !self.core.journal().history(&path)?.is_empty()
        {
            return Ok(name.to_owned());
        }
        let deleted = Changes::of(self.core).deleted_path(name)?;
        Ok(deleted.map_or_else(|| name.to_owned(), |path| path.as_str().to_owned()))
    }

    /// Lists changes, the newest first, with whether each was undone.
    ///
    /// # Errors
    /// Those of [`Views::activity`].
    pub fn changes(&self, request: &ActivityRequest) -> Result<Vec<ActivityEvent>> {
        let mut found: Vec<ActivityEvent> = Vec::new();
        let mut request = ActivityRequest { brief: true, ..request.clone() };
        let all = request.limit;
        while found.len() < all {
            request.limit = all - found.len();
            let page = self.activity(&request)?;
            found.extend(page.events);
            match page.next {
                Some(next) => request.before = Some(next),
                None => break,
            }
        }
        Ok(found)
    }

    /// Returns one operation with what it changed, and whether it can be undone.
    ///
    /// # Errors
    /// `NotFound` if no event has the id; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn operation(&self, id: &str) -> Result<OperationView> {
        let mut later = LaterEvents::default();
        let mut found = None;
        for event in self.core.journal().events(ReadOrder::NewestFirst)? {
            let event = event?;
            later.note(&event);
            // What another event deleted to the same place is not what this one deleted.
            let restored = later.restored_by(&event);
            if event.id == id {
                found = Some((event, restored));
                break;
            }
        }
        let (event, restored) = found.ok_or_else(|| {
            Error::not_found(format!("there is no operation {id}"))
                .with_hint("the journal may have been compacted since")
        })?;
        let record = UndoLog::open(&self.core.vault.records())?.record(id);
        let (diff, diff_missing) = match record {
            Ok(record) => {
                let later = LaterChanges::since(self.core, id)?;
                let (diff, missing) = Self::difference(&later, &record.files);
                let folders = record.folders.iter();
                let moved: String = folders
                    .map(|folder| format!("rename folder {} -> {}\n", folder.from, folder.to))
                    .collect();
                (Some(format!("{moved}{diff}")), missing)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let mut event = later.shown(event, restored, true);
        let undo = self.outlook(&event);
        event.undoable = undo.possible;
        event.of = event.event.undoes.as_deref().map(|id| self.event_named(id)).transpose()?.flatten();
        Ok(OperationView { event, diff, diff_missing, undo })
    }

    /// Finds an event of the journal, and names it.
    fn event_named(&self, id: &str) -> Result<Option<EventName>> {
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            if event.id == id {
                return Ok(Some(EventName::of(&event)));
            }
        }
        Ok(None)
    }

    /// Formats what an operation changed, under the paths that the files had then.
    fn difference(later: &LaterChanges<'_>, files: &[FileUndo]) -> (String, Option<String>) {
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
            let after = if file.after.is_none() { Some(Vec::new()) } else { later.content_after(file) };
            let Some(after) = after else {
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

    /// Says whether an operation can be undone, and what stands in its way.
    fn outlook(&self, event: &ActivityEvent) -> UndoOutlook {
        let mut outlook = UndoOutlook {
            possible: false,
            diff: None,
            kind: None,
            message: None,
            hint: None,
            files: Vec::new(),
            later: Vec::new(),
            notices: Vec::new(),
        };
        if event.undone.is_some() || event.restored.is_some() {
            let how = if event.undone.is_some() { "undone" } else { "restored" };
            outlook.kind = Some(ErrorKind::Exists.name());
            outlook.message = Some(format!("it was {how} already"));
            return outlook;
        }
        let event = &event.event;
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
                outlook.hint = error.wording().map(|hint| hint.for_page().to_owned());
                outlook.hint = outlook.hint.filter(|hint| !hint.is_empty());
                match changes.undo_obstacles(&event.id) {
                    Ok(conflicts) => {
                        outlook.later = later_of(&conflicts);
                        outlook.files =
                            conflicts.into_iter().map(|found| (found.path, found.reason)).collect();
                    }
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

/// The operations that maintenance records by itself.
const AUTOMATIC: [&str; 5] = ["maintain", "promote", "demote", "checkpoint", "consolidate"];

/// Returns who did something: the agent, `other` for a program that is not sidenote, `auto` for maintenance, or `cli` for a
/// person at the command line or the page.
pub(super) fn agent_of(event: &Event) -> &str {
    if AUTOMATIC.contains(&event.op.as_str()) {
        return "auto";
    }
    match text_of(event, "client") {
        Some(client) => client,
        None if event.op == sidenote_journal::event::OP_MOVED => "other",
        None => "cli",
    }
}
