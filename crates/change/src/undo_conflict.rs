//! What stands in the way of an undo: the later operations that changed, moved or removed what an operation wrote, or
//! changes outside sidenote.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_base::safe_open;
use sidenote_journal::event::{Event, OP_MOVED};
use sidenote_journal::{FileStep, steps_of_file};
use sidenote_markdown::edit::{Content, ContentHash, FileLocation, apply};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::revert::revert_edits;
use sidenote_open_vault::Core;
use sidenote_open_vault::caller::{actor_of, tool_of};
use sidenote_vault::undo_log::{FileUndo, UndoLog, UndoRecord};

/// An operation that has to be undone before an earlier one can be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaterOperation {
    /// The id of the operation, as `history` lists it.
    pub id: String,
    /// The time of the operation.
    pub at: Timestamp,
    /// The name of the operation.
    pub op: String,
    /// What it was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Who did it: the person or the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The tool with its toolset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether its before-images are there.
    pub undoable: bool,
    /// The number of events between the operation to undo and this one.
    #[serde(skip)]
    distance: usize,
}

impl LaterOperation {
    /// Describes the operation to a person or an agent: name, subject, id, time, and who did it.
    pub fn described(&self) -> String {
        let subject = self.subject.as_ref().map(|subject| format!(" of {subject}")).unwrap_or_default();
        let by = self.by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
        let tool = self.tool.as_ref().map(|tool| format!(", with {tool}")).unwrap_or_default();
        format!("{}{subject} ({}, {}{by}{tool})", self.op, self.id, self.at.local_rfc3339())
    }
}

/// A file that stands in the way of an undo.
#[derive(Debug, Clone)]
pub struct UndoConflict {
    /// The path where the operation left the file.
    pub path: String,
    /// Why the file cannot be restored.
    pub reason: String,
    /// The operations that have to be undone first, the newest first.
    pub later: Vec<LaterOperation>,
    /// Whether a change outside sidenote stands in the way.
    pub is_outside: bool,
}

/// Lists the operations that have to be undone before an earlier one, the newest first.
pub fn later_of(conflicts: &[UndoConflict]) -> Vec<LaterOperation> {
    let mut later: Vec<LaterOperation> = Vec::new();
    for operation in conflicts.iter().flat_map(|found| &found.later) {
        if !later.iter().any(|known| known.id == operation.id) {
            later.push(operation.clone());
        }
    }
    later.sort_by_key(|operation| std::cmp::Reverse(operation.distance));
    later
}

/// Why a file cannot be restored.
pub(super) enum Hindrance {
    /// What the operation wrote was changed.
    Changed,
    /// The operation made the file, which was changed since.
    ChangedNew,
    /// The file was moved.
    MovedOn(NotePath),
    /// The file is in the trash now.
    Deleted(FileLocation),
    /// The file is gone.
    Gone,
    /// The file was in the trash and is there no more.
    GoneFromTrash,
    /// Another file has the former path.
    Occupied(FileLocation),
}

/// What happened after an operation: the later events, and the contents that their before-images still have.
pub struct LaterChanges<'a> {
    core: &'a Core,
    /// The later events, oldest first.
    events: Vec<Event>,
    /// Whether the operation is in the journal, so that the later events are known.
    is_known: bool,
    /// The ids of later events that a later event undid, each with the id of that event.
    undone: HashMap<String, String>,
    log: UndoLog,
    kept: BTreeSet<String>,
    records: RefCell<HashMap<String, Option<Rc<UndoRecord>>>>,
}

/// What was changed, from the operation until now, in one file: each cause with the hash after it.
struct Trail<'e> {
    steps: Vec<FileStep<'e>>,
    states: Vec<(Cause, ContentHash)>,
    contents: HashMap<ContentHash, Vec<u8>>,
}

/// Who changed a file.
#[derive(Clone, Copy, PartialEq)]
enum Cause {
    /// The step with this number.
    Step(usize),
    Outside,
}

/// What was found to stand in the way: steps of the file, and whether a change outside sidenote does.
#[derive(Default)]
struct Found {
    ids: BTreeSet<String>,
    is_outside: bool,
}

impl<'a> LaterChanges<'a> {
    /// Reads what happened after an operation.
    ///
    /// # Errors
    /// `Io` if the journal or the before-images cannot be read.
    pub fn since(core: &'a Core, id: &str) -> Result<Self> {
        let log = UndoLog::open(&core.vault.records())?;
        let found = core.journal().events_since(id)?;
        let is_known = found.is_some();
        let events = found.unwrap_or_default();
        let ids: HashSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
        let mut undone = HashMap::new();
        for event in events.iter().rev() {
            let undoes = event.undoes.as_ref().filter(|id| ids.contains(id.as_str()));
            if let Some(id) = undoes.filter(|_| !undone.contains_key(&event.id)) {
                undone.insert(id.clone(), event.id.clone());
            }
        }
        let kept = log.ids()?;
        Ok(Self { core, events, is_known, undone, log, kept, records: RefCell::default() })
    }

    /// Returns the bytes of a file right after the operation, if they are still known: from the edits of the operation, from
    /// the file itself, wherever it is now, or from the before-image of the next operation that changed it.
    pub fn content_after(&self, change: &FileUndo) -> Option<Vec<u8>> {
        let wanted = change.after?;
        let before = change.image.clone().unwrap_or_default();
        let is_wanted = |bytes: &Vec<u8>| ContentHash::of(bytes) == wanted;
        let patched = apply(&before, &change.patch).ok().filter(is_wanted);
        patched.or_else(|| {
            let place = change.to.as_ref()?;
            let steps = steps_of_file(&self.events, place);
            let end = steps.last().map_or(Some(place), |step| step.to.as_ref());
            let mut contents = self.trail(change, self.present(end)).contents;
            contents.remove(&wanted)
        })
    }

    /// Returns the present bytes of a file.
    fn present(&self, place: Option<&FileLocation>) -> Option<Vec<u8>> {
        let vault = &self.core.vault;
        safe_open::read(vault.root(), place?.to_string(), vault.max_file_size()).ok()
    }

    /// Says what stands in the way of the undo of one file. `now` are its present bytes.
    pub(super) fn conflict(
        &self,
        change: &FileUndo,
        path: String,
        hindrance: &Hindrance,
        now: Option<Vec<u8>>,
    ) -> UndoConflict {
        let mut found = match (&change.to, hindrance) {
            (_, Hindrance::Occupied(place)) => self.occupant(place),
            (None, _) => Found::default(),
            (Some(_), Hindrance::Changed | Hindrance::ChangedNew) => self.overlapping(change, now),
            (Some(to), _) => self.movers(to),
        };
        found.is_outside |= found.ids.is_empty() && self.is_known;
        let (later, is_outside) = (self.named(&found.ids), found.is_outside);
        let how = match (later.len(), is_outside) {
            (0, true) => "outside sidenote".to_owned(),
            (0, false) => "since".to_owned(),
            (1, false) => "by a later operation".to_owned(),
            (count, false) => format!("by {count} later operations"),
            (1, true) => "by a later operation and outside sidenote".to_owned(),
            (count, true) => format!("by {count} later operations and outside sidenote"),
        };
        let reason = match hindrance {
            Hindrance::Changed => format!("was changed {how}, where this operation wrote"),
            Hindrance::ChangedNew => format!("is new and was changed {how}"),
            Hindrance::MovedOn(to) => format!("was moved on to {to} {how}"),
            Hindrance::Deleted(to) => format!("was deleted {how}, and is {to} now"),
            Hindrance::Gone => format!("is gone: it was removed {how}"),
            Hindrance::GoneFromTrash => format!("is gone from the trash: it was taken from there {how}"),
            Hindrance::Occupied(place) => {
                format!("cannot be restored to {place}, where another file is now, put there {how}")
            }
        };
        UndoConflict { path, reason, later, is_outside }
    }

    /// Describes some of the later events, the newest first.
    fn named(&self, ids: &BTreeSet<String>) -> Vec<LaterOperation> {
        let events = self.events.iter().enumerate().rev().filter(|(_, event)| ids.contains(&event.id));
        events
            .map(|(distance, event)| LaterOperation {
                distance,
                id: event.id.clone(),
                at: event.at,
                op: event.op.clone(),
                subject: event.subject(),
                by: actor_of(event),
                tool: tool_of(event),
                undoable: self.kept.contains(&event.id),
            })
            .collect()
    }

    /// Returns whether a later event counts: it is an operation, was not undone, and is no undo of one of them.
    fn is_active(&self, event: &Event) -> bool {
        event.op != OP_MOVED && !self.undone.contains_key(&event.id) && !self.is_undo_of_later(event)
    }

    fn is_undo_of_later(&self, event: &Event) -> bool {
        event.undoes.as_ref().is_some_and(|id| self.undone.get(id) == Some(&event.id))
    }

    /// Finds what put a file at `place`.
    fn occupant(&self, place: &FileLocation) -> Found {
        let puts = |event: &&Event| {
            event.files.iter().any(|file| file.end() == place && (file.after.is_some() || file.to.is_some()))
        };
        let found = self.events.iter().rev().find(puts).filter(|event| self.is_active(event));
        Found { ids: found.map(|event| event.id.clone()).into_iter().collect(), is_outside: false }
    }

    /// Finds what moved or removed the file.
    fn movers(&self, place: &FileLocation) -> Found {
        let steps = steps_of_file(&self.events, place);
        let moves = || steps.iter().filter(|step| step.to.as_ref() != Some(&step.from));
        let active = moves().filter(|step| self.is_active(step.event));
        Found {
            ids: active.map(|step| step.event.id.clone()).collect(),
            is_outside: moves().any(|step| step.event.op == OP_MOVED),
        }
    }

    fn file_of(&self, step: &FileStep<'_>) -> Option<FileUndo> {
        let mut records = self.records.borrow_mut();
        let record = records
            .entry(step.event.id.clone())
            .or_insert_with(|| self.log.record(&step.event.id).ok().map(Rc::new))
            .clone()?;
        record.files.iter().find(|file| file.from.as_ref() == Some(&step.from)).cloned()
    }

    /// Follows the content of the file from the operation until now.
    fn trail(&self, change: &FileUndo, now: Option<Vec<u8>>) -> Trail<'_> {
        let steps = change.to.as_ref().map_or_else(Vec::new, |place| steps_of_file(&self.events, place));
        let (mut states, mut contents) = (Vec::new(), HashMap::new());
        let mut last = change.after;
        for (number, step) in steps.iter().enumerate() {
            let Some(touched) = step.touched() else { continue };
            if let Some(file) = self.file_of(step)
                && let Some(image) = file.image
            {
                if let Ok(patched) = apply(&image, &file.patch) {
                    contents.insert(ContentHash::of(&patched), patched);
                }
                contents.insert(ContentHash::of(&image), image);
            }
            if let Some(before) = touched.before.filter(|before| last.is_some_and(|last| last != *before)) {
                states.push((Cause::Outside, before));
            }
            if let Some(after) = touched.after.filter(|after| touched.before != Some(*after)) {
                states.push((Cause::Step(number), after));
            }
            last = touched.after.or(last);
        }
        if let Some(now) = now {
            let hash = ContentHash::of(&now);
            if last.is_some_and(|last| last != hash) {
                states.push((Cause::Outside, hash));
            }
            contents.insert(hash, now);
        }
        Trail { steps, states, contents }
    }

    /// Finds the changes that overlap what the operation wrote. Each state of the file since is tried: where the undo would not
    /// succeed any more, even without the changes that were found before, the last change is one of them.
    fn overlapping(&self, change: &FileUndo, now: Option<Vec<u8>>) -> Found {
        let trail = self.trail(change, now);
        let mut found = Found::default();
        let (mut without, mut pending): (Vec<usize>, Vec<Cause>) = (Vec::new(), Vec::new());
        for (cause, hash) in &trail.states {
            if let Cause::Step(number) = cause
                && let Some(step) = trail.steps.get(*number)
            {
                if self.undone.contains_key(&step.event.id) {
                    without.push(*number);
                    continue;
                }
                if self.is_undo_of_later(step.event) {
                    let is_its = |other: &usize| {
                        trail
                            .steps
                            .get(*other)
                            .is_some_and(|other| Some(&other.event.id) == step.event.undoes.as_ref())
                    };
                    without.retain(|other| !is_its(other));
                    continue;
                }
            }
            pending.push(*cause);
            let Some(bytes) = trail.contents.get(hash) else { continue };
            if self.is_free(change, &trail, &without, bytes) {
                pending.clear();
                continue;
            }
            found.is_outside |= pending.contains(&Cause::Outside);
            let steps = pending.drain(..).filter_map(|cause| match cause {
                Cause::Step(number) => Some(number),
                Cause::Outside => None,
            });
            without.extend(steps);
            without.sort_unstable();
            if found.is_outside {
                break;
            }
        }
        let active = |number: &usize| trail.steps.get(*number).filter(|step| self.is_active(step.event));
        let mut steps: Vec<usize> = without.into_iter().filter(|number| active(number).is_some()).collect();
        // One that moved the file can be undone only after those that moved it on.
        let is_move = |number: &usize| active(number).is_some_and(FileStep::is_move);
        if let Some(first) = steps.iter().copied().find(is_move) {
            steps.extend((first..trail.steps.len()).filter(is_move));
        }
        let event = |number: usize| trail.steps.get(number).map(|step| step.event.id.clone());
        found.ids = steps.into_iter().filter_map(event).collect();
        found
    }

    /// Returns whether the operation could be undone in `bytes` without the changes of some steps.
    fn is_free(&self, change: &FileUndo, trail: &Trail<'_>, without: &[usize], bytes: &[u8]) -> bool {
        let mut text = bytes.to_vec();
        for number in without.iter().rev() {
            let file = trail.steps.get(*number).and_then(|step| self.file_of(step));
            match file.and_then(|file| reverted(&file, &text)) {
                Some(before) => text = before,
                None => return false,
            }
        }
        if change.after == Some(ContentHash::of(&text)) {
            return true;
        }
        change.from.is_some()
            && change.image.as_ref().is_none_or(|image| edits_back(image, change, &text).is_some())
    }
}

/// Returns a text without what an operation wrote, if that can be separated.
fn reverted(file: &FileUndo, text: &[u8]) -> Option<Vec<u8>> {
    let Some(image) = &file.image else { return Some(text.to_vec()) };
    if file.after == Some(ContentHash::of(text)) {
        return Some(image.clone());
    }
    match edits_back(image, file, text)? {
        Content::Edits(edits) => apply(text, &edits).ok(),
        Content::Whole(bytes) => Some(bytes),
        Content::Keep => Some(text.to_vec()),
    }
}

/// Removes what an operation wrote from bytes that others changed since.
pub(super) fn edits_back(image: &[u8], change: &FileUndo, now: &[u8]) -> Option<Content> {
    let after = apply(image, &change.patch).ok()?;
    if change.patch.is_empty() || Some(ContentHash::of(&after)) != change.after {
        return None;
    }
    let (before, after) = (std::str::from_utf8(image).ok()?, std::str::from_utf8(&after).ok()?);
    let edits = revert_edits(before, &change.patch, after, std::str::from_utf8(now).ok()?)?;
    Some(Content::Edits(edits))
}
