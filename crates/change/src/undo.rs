//! Undoes operations: the last ones, or one by its id. If a file changed since, only what the operation wrote is
//! undone; if later changes overlap it, the undo fails with a conflict.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform::Shell;
use sidenote_base::wording::Wording;
use sidenote_journal::event::{Event, OP_MOVED};
use sidenote_journal::reader::ReadOrder;
use sidenote_journal::{ActiveOperation, Journal, LaterMoves, OperationHistory};
use sidenote_markdown::edit::{ChangeSet, Content, ContentHash, FileChange, FileLocation};
use sidenote_markdown::path::NotePath;
use sidenote_vault::scan;
use sidenote_vault::undo_log::{FileUndo, UndoLog, inverse_moves};
use sidenote_vault::write_lock::WriteLock;

use crate::Changes;
use crate::operation::ChangeReply;
use crate::undo_conflict::{Hindrance, LaterChanges, LaterOperation, UndoConflict, edits_back, later_of};

/// The name of the operation that undoes an undo.
const REDO: &str = "redo";

/// The least number of characters of an id that identify an operation, if no other id begins with them.
const SHORTEST_NAME: usize = 8;

/// The largest number of files that a conflict names.
const NAMED: usize = 10;

/// The operations to undo.
#[derive(Debug, Clone, Default)]
pub struct UndoRequest {
    /// The id of one operation, or the beginning of it. Without it, the last operations are undone.
    pub id: Option<String>,
    /// The number of operations, at least 1.
    pub count: usize,
    /// All operations of this session are undone, and no others.
    pub session: Option<String>,
    /// Whether to skip operations that cannot be undone.
    pub skip: bool,
    /// Files that stay as they are.
    pub keep: Vec<String>,
    /// Whether to plan only.
    pub dry_run: bool,
}

/// The plan of an undo.
pub(super) struct PlannedUndo {
    pub(super) plan: ChangeSet,
    /// Which files others changed since.
    notices: Vec<String>,
    /// The files that stand in the way.
    pub(super) conflicts: Vec<UndoConflict>,
    /// Whether the undo has something to do without them.
    is_partial: bool,
}

/// What the undo of one operation found before it ended.
#[derive(Default)]
pub(super) struct Attempt {
    /// The operation, if one was found.
    event: Option<Event>,
    /// Which of its files others changed since.
    notices: Vec<String>,
    /// Whether files of the operation stand in the way. Only such an operation can be skipped.
    is_hindered: bool,
}

impl Changes<'_> {
    /// Undoes the last `count` operations that can be undone, the newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no operation to undo, or none with this id; `Conflict`, naming the files, if later
    /// changes overlap the operation.
    pub fn undo(&self, count: usize, dry_run: bool) -> Result<Vec<ChangeReply>> {
        self.undo_by(&UndoRequest { count, dry_run, ..UndoRequest::default() })
    }

    /// Undoes operations. An undo is an operation itself and can be undone.
    ///
    /// # Errors
    /// `NotFound` if there is no operation to undo, or none with this id; `Conflict`, naming the files, if later
    /// changes overlap the operation.
    #[tracing::instrument(skip_all)]
    pub fn undo_by(&self, request: &UndoRequest) -> Result<Vec<ChangeReply>> {
        if let Some(id) = &request.id {
            let reply = self.undo_with(request, &RefCell::default(), |journal| named(journal, id))?;
            return Ok(vec![reply]);
        }
        let (of_session, mut notices) = match &request.session {
            Some(session) => self.operations_of_session(session)?,
            None => (Vec::new(), self.passed(request.count.max(1), request.skip)?),
        };
        let count = if request.session.is_some() { of_session.len() } else { request.count.max(1) };
        let mut replies: Vec<ChangeReply> = Vec::new();
        let mut skipped: HashSet<String> = HashSet::new();
        while replies.len() < count {
            let attempt = RefCell::default();
            let next = |journal: &Journal| {
                let is_next = |operation: &ActiveOperation| {
                    operation.is_undoable
                        && !skipped.contains(&operation.event.id)
                        && request
                            .session
                            .as_deref()
                            .is_none_or(|session| session_of(&operation.event) == Some(session))
                };
                let found = journal.operation_history(is_next)?.active.into_iter().find(is_next);
                Ok(found.ok_or_else(nothing)?.event)
            };
            match self.undo_with(request, &attempt, next) {
                Ok(reply) => replies.push(reply),
                Err(error) => {
                    let Attempt { event, is_hindered, .. } = attempt.into_inner();
                    let is_end = event.is_none() && error.kind() == ErrorKind::NotFound;
                    let Some(event) = event.filter(|_| request.skip && is_hindered) else {
                        // The operations that were undone before an error stay undone, and the error says so.
                        if !is_end || replies.is_empty() && skipped.is_empty() {
                            return Err(after_some(error, &replies));
                        }
                        if replies.is_empty() {
                            let said = format!("nothing can be taken back: {}", notices.join("; "));
                            return Err(Error::not_found(said).with_hint(
                                Wording::new("`sidenote history` lists what was done", "").with_tool(
                                    "read_session",
                                    "read_session with the action audit lists what was done",
                                ),
                            ));
                        }
                        break;
                    };
                    notices.push(format!("{} is skipped: {}", shown(&event), error.message()));
                    skipped.insert(event.id);
                }
            }
            // The plan of the next one follows from the files that this one leaves.
            if request.dry_run && !replies.is_empty() {
                break;
            }
        }
        if let (true, Some(session), Some(first)) = (request.dry_run, &request.session, replies.first()) {
            notices.extend(self.after_the_first(session, &of_session, first, request.skip)?);
        }
        if let Some(first) = replies.first_mut() {
            first.notices.splice(0..0, notices);
        }
        Ok(replies)
    }

    /// Undoes the last undo, if no other operation followed it.
    ///
    /// # Errors
    /// `NotFound` if nothing was undone since the last change; `Conflict`, naming the files, if later changes overlap
    /// the operation.
    #[tracing::instrument(skip_all)]
    pub fn redo(&self, dry_run: bool) -> Result<ChangeReply> {
        let request = UndoRequest { dry_run, ..UndoRequest::default() };
        let again = self.redoable()?;
        let reply = self.undo_with(&request, &RefCell::default(), |journal| {
            undo_to_redo(journal)?.ok_or_else(|| {
                Error::not_found("there is nothing to redo")
                    .with_hint("redo works until another operation follows the undo")
            })
        })?;
        Ok(ChangeReply { reverted: again.as_ref().map(shown), ..reply })
    }

    /// Returns the operation that a redo would do again.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn redoable(&self) -> Result<Option<Event>> {
        let journal = self.core.journal();
        let Some(id) = undo_to_redo(&journal)?.and_then(|undo| undo.undoes) else { return Ok(None) };
        for event in journal.events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            if event.id == id {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Finds the id of the one change of files whose id begins with some characters. Returns `None` if there is none.
    ///
    /// # Errors
    /// `Exists` if several begin so; `Io` if the journal cannot be read.
    pub fn operation_id(&self, start: &str) -> Result<Option<String>> {
        let start = start.trim().to_ascii_lowercase();
        if start.len() < SHORTEST_NAME || !start.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let mut found: Vec<String> = Vec::new();
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            if event.id.starts_with(&start) {
                found.push(event.id);
            }
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            count => Err(Error::new(ErrorKind::Exists, format!("{count} operations begin with {start:?}"))
                .with_hint("give more of the id")),
        }
    }

    /// Lists the operations of a session that have before-images, the newest first. Notices name those that stay.
    fn operations_of_session(&self, session: &str) -> Result<(Vec<Event>, Vec<String>)> {
        let found = self.core.journal().operation_history(|_| false)?.active;
        let own: Vec<&ActiveOperation> =
            found.iter().filter(|operation| session_of(&operation.event) == Some(session)).collect();
        let undoable = own.iter().filter(|operation| operation.is_undoable);
        let undoable: Vec<Event> = undoable.map(|operation| operation.event.clone()).collect();
        let staying = own.iter().filter_map(|operation| Some((operation, reason_to_stay(operation)?)));
        let mut notices: Vec<String> =
            staying.map(|(operation, why)| format!("{} stays: {why}", shown(&operation.event))).collect();
        if undoable.is_empty() {
            notices.insert(0, format!("the session {session:?} did nothing that can be undone"));
            return Err(Error::not_found(notices.join("; ")).with_hint(
                Wording::new("`sidenote history --json` lists the session of each operation", "")
                    .with_tool("read_session", "read_session with the action audit lists what was done"),
            ));
        }
        Ok((undoable, notices))
    }

    /// Says what the undo of a session would do after the operation that it undoes first: what else it would undo, and what it
    /// would skip, or where it would stop.
    fn after_the_first(
        &self,
        session: &str,
        of_session: &[Event],
        first: &ChangeReply,
        skip: bool,
    ) -> Result<Vec<String>> {
        let is_first = |event: &Event| first.plan.undoes.as_ref() == Some(&event.id);
        let rest = of_session.iter().skip_while(|event| !is_first(event)).skip(1);
        let stays = self.session_outlook(session)?.stays;
        let (mut others, mut notices) = (Vec::new(), Vec::new());
        for event in rest {
            let staying = stays.iter().find(|operation| operation.id == event.id);
            match staying.map(|operation| operation.reason.as_deref().unwrap_or_default()) {
                None => others.push(shown(event)),
                Some(why) if skip => notices.push(format!("{} would be skipped: {why}", shown(event))),
                Some(why) => {
                    notices.push(format!("the undo would stop at {}: {why}", shown(event)));
                    break;
                }
            }
        }
        if !others.is_empty() {
            let count = others.len() + 1;
            let others = others.join("; ");
            let said = format!(
                "this is the first of {count} operations that would be undone; the others are: {others}"
            );
            notices.insert(0, said);
        }
        Ok(notices)
    }

    /// Returns a notice about operations that are newer than those that are undone, and stay.
    ///
    /// # Errors
    /// `Conflict` if the newest operation removed a file for good, and the caller did not ask to skip such ones: what would be
    /// undone is another one than the caller has in mind.
    fn passed(&self, count: usize, skip: bool) -> Result<Vec<String>> {
        let mut there = 0;
        let found = self.core.journal().operation_history(|operation| {
            there += usize::from(operation.is_undoable);
            there >= count
        })?;
        let there = found.active.iter().filter(|operation| operation.is_undoable).count();
        if there < count && there > 0 {
            return Err(Error::not_found(format!("only {there} operations can be undone, not {count}"))
                .with_hint(
                    Wording::new("`sidenote history` lists what was done", "")
                        .with_tool("read_session", "read_session with the action audit lists what was done"),
                ));
        }
        // A file that cannot be restored must not be reported as restored.
        let stays = |operation: &&ActiveOperation| reason_to_stay(operation).is_some();
        let gone = found.active.iter().filter(stays).find(|operation| removes_for_good(&operation.event));
        let next = found.active.iter().find(|operation| operation.is_undoable);
        if let (Some(gone), Some(next), false) = (gone, next, skip) {
            let (gone, shown_next, id) = (shown(&gone.event), shown(&next.event), &next.event.id);
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("{gone} cannot be undone: the file was removed for good; nothing was written"),
            )
            .with_hint(
                Wording::new(
                    format!("to undo the {shown_next} before it: sidenote undo {id}"),
                    format!("ask the user whether to undo the {shown_next} before it, which has the id {id}"),
                )
                .with_tool("session", "give session that id as operation, with the action undo"),
            ));
        }
        let said = |operation: &ActiveOperation| {
            format!("{} is newer and stays: its before-images were removed", shown(&operation.event))
        };
        let mut notices: Vec<String> = found.active.iter().filter(stays).map(said).collect();
        if found.corrupt > 0 {
            notices.push(format!(
                "{} newer lines of the journal cannot be read; their operations are known only by before-images that are kept",
                found.corrupt
            ));
        }
        Ok(notices)
    }

    /// Undoes one operation, chosen by `choose`. After an error, `attempt` says how far it came.
    pub(super) fn undo_with(
        &self,
        request: &UndoRequest,
        attempt: &RefCell<Attempt>,
        choose: impl FnOnce(&Journal) -> Result<Event>,
    ) -> Result<ChangeReply> {
        let plan = |_: Option<&WriteLock>| {
            let event = choose(&self.core.journal())?;
            attempt.borrow_mut().event = Some(event.clone());
            let PlannedUndo { plan, notices, conflicts, is_partial } =
                self.undo_of(&event, &request.keep, &self.moves_since(&event)?)?;
            let obstacle = match conflicts.is_empty() {
                true if request.skip => self.obstacle_at_apply(&plan)?,
                true => None,
                false => Some(refusal(&event, &conflicts, is_partial, request)),
            };
            let mut attempt = attempt.borrow_mut();
            attempt.notices = notices;
            attempt.is_hindered = obstacle.is_some();
            obstacle.map_or(Ok(plan), Err)
        };
        let mut reply = self.apply_planned(plan, request.dry_run)?;
        let mut attempt = attempt.borrow_mut();
        reply.reverted = attempt.event.as_ref().map(shown);
        reply.notices.splice(0..0, std::mem::take(&mut attempt.notices));
        Ok(reply)
    }

    /// Returns the error about files in the way of a plan that applying it would find, such as below folders that move.
    pub(super) fn obstacle_at_apply(&self, plan: &ChangeSet) -> Result<Option<Error>> {
        match self.core.vault.check(plan) {
            Ok(()) => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Exists) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Lists what stands in the way of the undo of an operation: each file with the reason, and the operations that have to
    /// be undone first.
    ///
    /// # Errors
    /// `NotFound` if there is no operation with this id, or its before-images were removed.
    pub fn undo_obstacles(&self, id: &str) -> Result<Vec<UndoConflict>> {
        let event = named(&self.core.journal(), id)?;
        Ok(self.undo_of(&event, &[], &self.moves_since(&event)?)?.conflicts)
    }

    fn moves_since(&self, event: &Event) -> Result<LaterMoves> {
        self.core.journal().moves_since([event.id.as_str()])
    }

    /// Plans the undo of each file of an operation. `moves` are those since then.
    pub(super) fn undo_of(&self, event: &Event, keep: &[String], moves: &LaterMoves) -> Result<PlannedUndo> {
        let record = UndoLog::open(&self.core.vault.records())?.record(&event.id)?;
        self.refuse_unseen(record.files.iter().flat_map(|file| file.from.iter().chain(&file.to)))?;
        // The undo of an undo applies the operation again.
        let operation = if event.undoes.is_some() && event.op != REDO { REDO } else { "undo" };
        let mut plan = ChangeSet { undoes: Some(event.id.clone()), ..ChangeSet::new(operation) };
        plan.folders = inverse_moves(&record.folders);
        let left: HashSet<FileLocation> =
            record.files.iter().filter_map(|change| change.to.clone()).collect();
        let ends = record.files.iter().filter_map(|change| change.to.clone());
        let moved_on = moves.of(&event.id, ends);
        let (mut notices, mut hindered) = (Vec::new(), Vec::new());
        let mut unmet: HashMap<&str, bool> = keep.iter().map(|name| (name.as_str(), true)).collect();
        for change in record.files {
            let places: Vec<String> = change.from.iter().chain(&change.to).map(ToString::to_string).collect();
            let is_of =
                |name: &&str| places.iter().any(|place| place == name || *place == format!("{name}.md"));
            let kept: Vec<&str> = unmet.keys().copied().filter(is_of).collect();
            if !kept.is_empty() {
                unmet.extend(kept.into_iter().map(|name| (name, false)));
                continue;
            }
            let shown = places.last().cloned().unwrap_or_default();
            match self.way_back(change.clone(), &left, &moved_on, !plan.folders.is_empty())? {
                Back::Plain(change) => plan.files.push(change),
                Back::Around(change) => {
                    notices
                        .push(format!("{shown} was changed since; only what the operation wrote is undone"));
                    plan.files.push(change);
                }
                Back::Elsewhere(change, now) => {
                    notices.push(format!("{shown} was moved since: it is {now} now"));
                    plan.files.push(change);
                }
                Back::Conflict(why, now) => hindered.push((change, shown, why, now)),
            }
        }
        if let Some((name, _)) = unmet.iter().find(|(_, is_unmet)| **is_unmet) {
            return Err(Error::invalid(format!("{} touched no {name:?}", shown(event))).with_hint(
                Wording::new(
                    "give a path as `sidenote history` shows it",
                    "give a path as the operation named it",
                )
                .with_tool("read_session", "read_session with the action audit shows it"),
            ));
        }
        let is_partial = !(plan.files.is_empty() && plan.folders.is_empty());
        if hindered.is_empty() {
            return Ok(PlannedUndo { plan, notices, conflicts: Vec::new(), is_partial });
        }
        let later = LaterChanges::since(self.core, &event.id)?;
        let conflicts = hindered.into_iter();
        let conflicts =
            conflicts.map(|(change, path, why, now)| later.conflict(&change, path, &why, now)).collect();
        Ok(PlannedUndo { plan, notices, conflicts, is_partial })
    }

    /// Plans the undo of one file. `left` are the paths where the operation left files; `moved_on` maps them to their
    /// current paths.
    fn way_back(
        &self,
        change: FileUndo,
        left: &HashSet<FileLocation>,
        moved_on: &HashMap<FileLocation, Option<FileLocation>>,
        with_folders: bool,
    ) -> Result<Back> {
        let is_there = |place: &FileLocation| self.place_on_disk(place).symlink_metadata().is_ok();
        // Paths below a folder are checked when the plan is applied, because the folder itself may be restored.
        let occupied = change.from.as_ref().filter(|from| {
            change.to.as_ref() != Some(*from) && !left.contains(*from) && !with_folders && is_there(from)
        });
        let occupied = match occupied {
            Some(from) => match (from.in_vault(), change.to.as_ref().and_then(FileLocation::in_vault)) {
                (Some(path), Some(to)) if scan::is_other_spelling(&self.core.vault, path, to)? => None,
                _ => Some(from),
            },
            None => None,
        };
        if let Some(from) = occupied {
            return Ok(Back::blocked(Hindrance::Occupied(from.clone())));
        }
        let Some(to) = change.to.clone() else { return Ok(Back::Plain(change.inverse())) };
        let Some(path) = to.in_vault() else {
            if with_folders || is_there(&to) {
                return Ok(Back::Plain(change.inverse()));
            }
            return Ok(Back::blocked(Hindrance::GoneFromTrash));
        };
        // Another note may have the former name now.
        let elsewhere = match moved_on.get(&to) {
            Some(Some(other)) if is_there(other) => match other.in_vault() {
                Some(path) => Some(path.clone()),
                None => return Ok(Back::blocked(Hindrance::Deleted(other.clone()))),
            },
            _ if is_there(&to) => None,
            _ => match self.core.journal().current_path(path)? {
                Some(path) if is_there(&FileLocation::Vault(path.clone())) => Some(path),
                _ => return Ok(Back::blocked(Hindrance::Gone)),
            },
        };
        let is_moved = elsewhere.is_some();
        let path = elsewhere.unwrap_or_else(|| path.clone());
        if is_moved && (with_folders || change.from.as_ref().is_some_and(|from| *from != to)) {
            return Ok(Back::blocked(Hindrance::MovedOn(path)));
        }
        let now = match self.core.read_bytes(&path) {
            Ok(now) => now,
            // A file that is too large to be read was only moved.
            Err(error) if error.kind() == ErrorKind::Invalid && change.image.is_none() => {
                return Ok(Back::Plain(change.inverse()));
            }
            Err(error) => return Err(error),
        };
        let hash = ContentHash::of(&now);
        let here = Some(FileLocation::Vault(path.clone()));
        // A file that was moved since gets its former bytes, but stays where it is.
        let from = if is_moved { change.from.as_ref().and(here.clone()) } else { change.from.clone() };
        if change.after.is_none_or(|after| after == hash) {
            let back = FileChange { from: here, to: from, ..change.inverse() };
            return Ok(if is_moved { Back::Elsewhere(back, path) } else { Back::Plain(back) });
        }
        if change.from.is_none() {
            return Ok(Back::Conflict(Hindrance::ChangedNew, Some(now)));
        }
        let Some(image) = &change.image else {
            // The operation only moved the file.
            return Ok(Back::Around(FileChange {
                from: here,
                to: from,
                before: None,
                content: Content::Keep,
            }));
        };
        let edits = edits_back(image, &change, &now);
        Ok(match edits {
            Some(content) => Back::Around(FileChange { from: here, to: from, before: Some(hash), content }),
            None => Back::Conflict(Hindrance::Changed, Some(now)),
        })
    }

    fn place_on_disk(&self, place: &FileLocation) -> std::path::PathBuf {
        self.core.vault.root().join(place.to_string())
    }
}

/// The undo of one file.
enum Back {
    /// The file is as the operation left it.
    Plain(FileChange),
    /// Others changed the file elsewhere.
    Around(FileChange),
    /// The file is as the operation left it, but was moved to this path.
    Elsewhere(FileChange, NotePath),
    /// The file cannot be restored for this reason. Its present bytes are given where they are the reason.
    Conflict(Hindrance, Option<Vec<u8>>),
}

impl Back {
    fn blocked(why: Hindrance) -> Self {
        Self::Conflict(why, None)
    }
}

/// Adds to the error of an undo which operations were undone before it.
pub(super) fn after_some(error: Error, replies: &[ChangeReply]) -> Error {
    let done: Vec<&str> = replies.iter().filter_map(|reply| reply.reverted.as_deref()).collect();
    if done.is_empty() {
        return error;
    }
    let message = error.message().replace("nothing was written", "nothing of it was written");
    let said = format!("{message}; undone before it, and stays so: {}", done.join("; "));
    let hint = error.wording().cloned().unwrap_or_default();
    Error::new(error.kind(), said).with_hint(hint).with_source(error)
}

/// Returns the error that names what stands in the way of an undo, and says what to do. `is_partial` says whether the undo has
/// something to do without the files that are in the way.
fn refusal(event: &Event, conflicts: &[UndoConflict], is_partial: bool, request: &UndoRequest) -> Error {
    let mut said: Vec<String> =
        conflicts.iter().take(NAMED).map(|found| format!("{} {}", found.path, found.reason)).collect();
    if conflicts.len() > NAMED {
        said.push(format!("{} more", conflicts.len() - NAMED));
    }
    let later = later_of(conflicts);
    if !later.is_empty() {
        let mut named: Vec<String> = later.iter().take(NAMED).map(LaterOperation::described).collect();
        if later.len() > NAMED {
            named.push(format!("{} more", later.len() - NAMED));
        }
        let order = if later.len() > 1 { ", the newest first" } else { "" };
        said.push(format!("in the way{order}: {}", named.join(", ")));
    }
    let is_outside = conflicts.iter().any(|found| found.is_outside);
    let code = if is_outside { " (changed-on-disk)" } else { "" };
    let message =
        format!("{} cannot be taken back{code}: {}; nothing was written", shown(event), said.join("; "));
    let command = |words: &[&str]| {
        let words: Vec<String> =
            ["sidenote", "undo"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        Shell::SYSTEM.line(&words)
    };
    let (mut person, mut agent, mut page) = (Vec::new(), Vec::new(), Vec::new());
    let mut tool = None;
    let is_open = !is_outside && later.len() <= NAMED && later.iter().all(|operation| operation.undoable);
    if is_open && !later.is_empty() {
        let ids = later.iter().map(|operation| operation.id.as_str()).chain([event.id.as_str()]);
        let commands: Vec<String> = ids.map(|id| command(&[id])).collect();
        let those = if later.len() == 1 { "that operation" } else { "those operations" };
        person.push(format!("undo {those} first: {}", commands.join(", then ")));
        agent.push(format!("undo {those} first"));
        page.push(format!("Undo {those} first."));
        tool = Some("give session the id of each as operation, with the action undo");
    }
    if is_partial {
        let kept = conflicts.iter().take(NAMED).flat_map(|found| ["--keep", found.path.as_str()]);
        let words: Vec<&str> = [event.id.as_str()].into_iter().chain(kept).collect();
        person.push(format!("leave these files as they are: {}", command(&words)));
    }
    // To pass over one operation that was named would undo another one.
    let last = match (&request.id, &request.session) {
        (Some(_), _) => Wording::new(format!("see what it wrote: sidenote history {}", event.id), ""),
        (None, Some(session)) => {
            Wording::new(format!("pass over the operation: sidenote undo --session '{session}' --skip"), "")
        }
        (None, None) => Wording::new("pass over the operation: sidenote undo --skip", ""),
    };
    person.push(last.for_person().to_owned());
    let person = person.join("; or ");
    agent.push(
        "ask the user whether to leave these files as they are, or to pass over the operation".to_owned(),
    );
    let hint = Wording::new(person, agent.join("; or ")).with_page(page.join(" "));
    let hint = match tool {
        Some(says) => hint.with_tool("session", says),
        None => hint,
    };
    Error::new(ErrorKind::Conflict, message).with_hint(hint)
}

/// Finds the last undo, if no other operation followed it.
fn undo_to_redo(journal: &Journal) -> Result<Option<Event>> {
    let is_change = |operation: &ActiveOperation| operation.event.op != OP_MOVED;
    let OperationHistory { active, undos, .. } = journal.operation_history(is_change)?;
    let undo = undos.into_iter().find(|(_, event)| event.op != REDO);
    let is_last = |newer: usize| active.iter().take(newer).all(|newer| newer.event.op == OP_MOVED);
    Ok(undo.filter(|(newer, _)| is_last(*newer)).map(|(_, event)| event))
}

/// Finds an operation by its id, or by the beginning of it.
pub(super) fn named(journal: &Journal, id: &str) -> Result<Event> {
    let wanted = id.trim().to_ascii_lowercase();
    let unknown = || {
        Error::not_found(format!("there is no operation {id:?} that can be undone")).with_hint(
            Wording::new("`sidenote history` lists what was done, with the id of each", "")
                .with_tool(
                    "read_session",
                    "read_session with the action audit lists what was done, with the id of each",
                )
                .with_page("Activity lists what was done"),
        )
    };
    if wanted.len() < SHORTEST_NAME {
        return Err(unknown());
    }
    let is_named = |operation: &ActiveOperation| operation.event.id == wanted;
    let OperationHistory { active, undos, .. } = journal.operation_history(is_named)?;
    let all =
        active.into_iter().map(|operation| operation.event).chain(undos.into_iter().map(|(_, event)| event));
    let mut found: Vec<Event> = all.filter(|event| event.id.starts_with(&wanted)).collect();
    match found.len() {
        1 => found.pop().ok_or_else(unknown),
        0 => Err(undone_already(journal, &wanted)?.unwrap_or_else(unknown)),
        count => Err(Error::new(ErrorKind::Exists, format!("{count} operations begin with {id:?}"))
            .with_hint("give more of the id")),
    }
}

/// Returns the error about an operation that was undone, if there is one with this id; `None` otherwise.
fn undone_already(journal: &Journal, wanted: &str) -> Result<Option<Error>> {
    let mut undos: HashMap<String, Event> = HashMap::new();
    for event in journal.events(ReadOrder::NewestFirst)?.of_changes() {
        let event = event?;
        if event.id.starts_with(wanted) {
            return Ok(undos.get(&event.id).map(|undo| {
                let said = format!("{} was undone already, at {}", shown(&event), undo.at.local_rfc3339());
                let person = format!("to do it again, undo that undo: sidenote undo {}", undo.id);
                Error::new(ErrorKind::Exists, said).with_hint(
                    Wording::new(person, format!("the id of that undo is {}", undo.id)).with_page(""),
                )
            }));
        }
        // An undo that was undone itself does not count.
        if let Some(id) = event.undoes.clone().filter(|_| !undos.contains_key(&event.id)) {
            undos.entry(id).or_insert(event);
        }
    }
    Ok(None)
}

/// Returns the session of an operation.
pub(super) fn session_of(event: &Event) -> Option<&str> {
    event.more.get("session").and_then(serde_json::Value::as_str)
}

/// Returns why an operation that changed files can never be undone, if it cannot.
pub(super) fn reason_to_stay(operation: &ActiveOperation) -> Option<&'static str> {
    let event = &operation.event;
    let is_change = event.op != OP_MOVED && !(event.files.is_empty() && event.folders.is_empty());
    let why = match removes_for_good(event) {
        true => "the file was removed for good",
        false => "its before-images were removed",
    };
    Some(why).filter(|_| is_change && !operation.is_undoable)
}

/// Returns whether an operation removed a file without a way back.
fn removes_for_good(event: &Event) -> bool {
    event.undoes.is_none() && event.files.iter().any(|file| file.to.is_none() && file.after.is_none())
}

/// Describes an operation to a person.
fn shown(event: &Event) -> String {
    let subject = event.subject().map(|subject| format!(" of {subject}")).unwrap_or_default();
    format!("{}{subject}", event.op)
}

fn nothing() -> Error {
    Error::not_found("there is nothing to undo").with_hint(
        Wording::new("`sidenote history` lists what was done", "")
            .with_tool("read_session", "read_session with the action audit lists what was done"),
    )
}
