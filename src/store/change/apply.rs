//! Changing the vault: every operation is planned as a [`ChangeSet`], carried out whole, written down, and can be taken
//! back.

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use similar::TextDiff;

use crate::clock::Timestamp;
use crate::error::{ErrorKind, Result};
use crate::index::catalog::{FileKind, FileRow, Hash};
use crate::index::{SyncScope, silent};
use crate::journal::Journal;
use crate::journal::event::Event;
use crate::journal::reader::{Events, ReadOrder};
use crate::store::Store;
use crate::store::change::create::NewRequest;
use crate::store::change::edit::EditRequest;
use crate::store::change::merge::{ExtractRequest, MergeRequest};
use crate::store::change::move_files::{MoveRequest, PartRequest};
use crate::store::change::relate::{DeleteRequest, RelateRequest};
use crate::store::change::rename::RenameRequest;
use crate::store::change::revise::ReviseRequest;
use crate::store::view::{GROUP, View};
use crate::text::edit::{ChangeSet, Content, FileLocation, apply};
use crate::text::path::NotePath;
use crate::vault::Vault;
use crate::vault::applied::Applied;
use crate::vault::undo_log::UndoLog;
use crate::vault::write_lock::WriteLock;

/// How long a change waits until the process that keeps the index shows it.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file longer than this is not shown line by line.
const LONGEST_DIFF: usize = 4_000_000;

/// Something that a user wants changed.
#[derive(Debug, Clone)]
pub enum Operation {
    /// A note is made.
    New(NewRequest),
    /// One note's text or properties change.
    Edit(EditRequest),
    /// Several edits, of one note or of many, are made as one.
    EditMany(Vec<EditRequest>),
    /// One note gets another title, text or properties, all at once.
    Revise(ReviseRequest),
    /// A file or folder goes to another place, or gets another name.
    Move(MoveRequest),
    /// A heading or block gets another name.
    RenamePart(PartRequest),
    /// A tag or property gets another name in every note.
    RenameEverywhere(RenameRequest),
    /// Two notes are linked, both ways.
    Link(RelateRequest),
    /// Two notes are linked no longer.
    Unlink(RelateRequest),
    /// A note goes into another.
    Merge(MergeRequest),
    /// A section becomes a note of its own.
    Extract(ExtractRequest),
    /// A file goes to the bin, or for good.
    Delete(DeleteRequest),
    /// A file comes back from the bin.
    Restore(String),
}

/// What an operation did, or would do.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeReply {
    /// Whether it was done; a dry run, and a plan without changes, are not.
    pub applied: bool,
    /// Its number in the journal, where it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What changes, byte for byte.
    pub plan: ChangeSet,
    /// The same for a person to read, as a unified diff, where nothing was done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Sentences about what somebody should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The notes that it left, as they were before anybody else could write.
    #[serde(skip)]
    pub(in crate::store) rows: Vec<FileRow>,
}

impl ChangeReply {
    /// Makes the reply to a plan that was not carried out.
    fn of(plan: ChangeSet) -> Self {
        Self { applied: false, id: None, plan, diff: None, notices: Vec::new(), rows: Vec::new() }
    }

    /// Gives the path of the note that was made, or would be.
    pub fn made(&self) -> Option<String> {
        let made = self.plan.files.iter().find(|file| file.from.is_none());
        made.and_then(|file| file.to.as_ref()).map(ToString::to_string)
    }
}

impl Store {
    /// Plans an operation on the files as they are this moment, and changes nothing.
    ///
    /// # Errors
    /// As the operation: `NotFound`, `Exists`, `Conflict` or `Invalid` where it cannot be done.
    #[tracing::instrument(skip_all)]
    pub fn plan(&self, operation: &Operation) -> Result<ChangeSet> {
        self.plan_clean(&self.clean_operation(operation).0)
    }

    /// As [`Store::plan`], of an operation that brings nothing private.
    pub(in crate::store) fn plan_clean(&self, operation: &Operation) -> Result<ChangeSet> {
        self.plan_in(&View::new(self)?, operation)
    }

    fn plan_in(&self, view: &View<'_>, operation: &Operation) -> Result<ChangeSet> {
        match operation {
            Operation::New(request) => self.plan_new(view, request, self.clock.now()),
            Operation::Edit(request) => self.plan_edit(view, request),
            Operation::EditMany(requests) => self.plan_edits(view, requests),
            Operation::Revise(request) => {
                self.plan_revise(view, &view.find(&request.note)?, request, self.clock.now())
            }
            Operation::Move(request) => self.plan_move(view, request),
            Operation::RenamePart(request) => self.plan_part(view, request),
            Operation::RenameEverywhere(request) => self.plan_rename(view, request),
            Operation::Link(request) => self.plan_link(view, request),
            Operation::Unlink(request) => self.plan_unlink(view, request),
            Operation::Merge(request) => self.plan_merge(view, request),
            Operation::Extract(request) => self.plan_extract(view, request, self.clock.now()),
            Operation::Delete(request) => self.plan_delete(view, request),
            Operation::Restore(name) => self.plan_restore(name),
        }
    }

    /// Carries an operation out, or with `dry_run` says what it would do.
    ///
    /// The write lock is held from the look at the files to the last byte, so a link typed a second ago follows.
    ///
    /// # Errors
    /// As [`Store::plan`]; `Conflict` where a file changed meanwhile or another process keeps the lock; `Io` where the
    /// files cannot be written. Nothing is half-done then.
    #[tracing::instrument(skip_all)]
    pub fn change(&self, operation: &Operation, dry_run: bool) -> Result<ChangeReply> {
        self.change_if(operation, dry_run, || Ok(()))
    }

    /// As [`Store::change`], unless `allowed` refuses it: it is asked under the write lock, when what the index has not
    /// seen is known.
    pub(in crate::store) fn change_if(
        &self,
        operation: &Operation,
        dry_run: bool,
        allowed: impl FnOnce() -> Result<()>,
    ) -> Result<ChangeReply> {
        let (operation, cleaned) = self.clean_operation(operation);
        let plan = |_: Option<&WriteLock>| {
            let view = View::new(self)?;
            allowed()?;
            self.plan_in(&view, &operation)
        };
        let mut reply = self.carry_out(plan, dry_run)?;
        reply.notices.extend(cleaned.notices());
        Ok(reply)
    }

    /// Makes a plan and carries it out under the write lock, or with `dry_run` says what it would do.
    pub(in crate::store) fn carry_out(
        &self,
        plan: impl FnOnce(Option<&WriteLock>) -> Result<ChangeSet>,
        dry_run: bool,
    ) -> Result<ChangeReply> {
        if dry_run {
            let plan = plan(None)?;
            // What the run would refuse, the dry run refuses as well.
            self.vault.check(&plan)?;
            let diff = Some(self.diff(&plan)?);
            return Ok(ChangeReply { diff, ..ChangeReply::of(plan) });
        }
        self.under_lock(plan)
    }

    /// Lists what was done, the newest first: to one note, under all its names, or to all.
    ///
    /// # Errors
    /// As [`Store::find`], unless the journal knows the path.
    #[tracing::instrument(skip_all)]
    pub fn history(&self, note: Option<&str>) -> Result<Vec<Event>> {
        self.history_of(note, usize::MAX)
    }

    /// As [`Store::history`], `limit` at most; no more of the journal is read than that takes.
    ///
    /// # Errors
    /// As [`Store::history`].
    #[tracing::instrument(skip_all)]
    pub fn history_of(&self, note: Option<&str>, limit: usize) -> Result<Vec<Event>> {
        let journal = Journal::open(&self.vault, &self.vault.records());
        let Some(name) = note else {
            let mut events = journal.events(ReadOrder::NewestFirst)?.of_changes();
            // What only moves weight stands in the audit trail.
            let is_change = |event: &Result<Event>| {
                event.as_ref().map_or(true, |event| {
                    !event.files.is_empty() || !event.folders.is_empty() || event.undoes.is_some()
                })
            };
            let all = events.by_ref().filter(is_change).take(limit).collect::<Result<Vec<_>>>()?;
            warn_of_damage(&events);
            return Ok(all);
        };
        let found = self.find(name).map(|row| row.path);
        let given = [name.to_owned(), format!("{name}.md")];
        let paths = found.iter().cloned().chain(given.iter().filter_map(|path| NotePath::parse(path).ok()));
        for path in paths {
            let mut events = journal.history(&path)?;
            if !events.is_empty() {
                events.reverse();
                events.truncate(limit);
                return Ok(events);
            }
        }
        found.map(|_| Vec::new())
    }

    fn under_lock(&self, plan: impl FnOnce(Option<&WriteLock>) -> Result<ChangeSet>) -> Result<ChangeReply> {
        let records = self.vault.records();
        let lock = self.vault.lock(&records)?;
        let mut notices = end_unfinished(&self.vault, &lock, self.clock.now())?;
        self.refuse_repeated()?;
        let plan = plan(Some(&lock))?;
        if plan.is_empty() {
            return Ok(ChangeReply { notices, ..ChangeReply::of(plan) });
        }
        // From the commit on nothing fails the change: what goes wrong then is told beside it.
        let applied = self.vault.apply_with_metadata(&lock, &plan, self.clock.now(), self.signature())?;
        self.own(&applied.id);
        notices.extend(applied.notices.iter().cloned());
        let journal = Journal::open(&self.vault, &records);
        let undo = &self.config.undo;
        if let Err(error) = journal.record(&Event::of(&applied)) {
            notices.push(format!("{error}; the next change writes it into the journal"));
        } else if let Err(error) = journal.prune(&lock, undo.operations, undo.days, self.clock.now()) {
            notices.push(format!("{error}; the change itself is done"));
        }
        if plan.operation == "delete" && applied.files.iter().any(|file| file.to.is_none()) {
            // What was removed for good is not kept for an undo either.
            let forgotten = UndoLog::open(&records).and_then(|kept| kept.remove(&lock, &applied.id));
            if let Err(error) = forgotten {
                notices.push(format!("{error}; what was removed could still be brought back by an undo"));
            }
        }
        let rows = self.rows_of(&applied);
        drop(lock);
        match self.show_change(&plan, &applied) {
            Ok(told) => notices.extend(told),
            Err(error) => {
                self.add_unseen(&left_behind(&applied));
                notices.push(format!("the index does not show the change yet: {error}"));
            }
        }
        Ok(ChangeReply { applied: true, id: Some(applied.id), rows, notices, ..ChangeReply::of(plan) })
    }

    /// Brings a change that landed into the index, or waits a while for the process that keeps it; gives sentences about
    /// what the index does not show.
    fn show_change(&self, plan: &ChangeSet, applied: &Applied) -> Result<Vec<String>> {
        if self.index.promote()? {
            let report = self.index.sync(touched(plan), silent())?;
            self.note_moves();
            return Ok(report.warnings);
        }
        let left = left_behind(applied);
        if self.index.wait_for(&left, PATIENCE)? && (applied.folders.is_empty() || self.freshen()? == 0) {
            return Ok(Vec::new());
        }
        self.add_unseen(&left);
        let holder =
            self.index.holder().map_or_else(String::new, |holder| format!(" of process {}", holder.pid));
        Ok(vec![format!("the index{holder} does not show the change yet")])
    }

    /// Writes a plan as a unified diff.
    fn diff(&self, plan: &ChangeSet) -> Result<String> {
        let mut out = String::new();
        for folder in &plan.folders {
            out.push_str(&format!("rename folder {} -> {}\n", folder.from, folder.to));
        }
        for (at, change) in plan.files.iter().enumerate() {
            if at > 0 && at.is_multiple_of(GROUP) {
                self.go_on()?;
            }
            let name = |place: &Option<FileLocation>| {
                place.as_ref().map_or_else(|| "/dev/null".to_owned(), FileLocation::to_string)
            };
            let (from, to) = (name(&change.from), name(&change.to));
            if from != to {
                out.push_str(&match (&change.from, &change.to) {
                    (None, _) => format!("create {to}\n"),
                    (_, None) => format!("delete {from}\n"),
                    _ => format!("rename {from} -> {to}\n"),
                });
            }
            let old = match change.from.as_ref().and_then(FileLocation::in_vault).filter(|_| change.writes())
            {
                Some(path) => self.read_bytes(path)?,
                None => Vec::new(),
            };
            let new = match &change.content {
                Content::Keep => continue,
                Content::Edits(edits) => apply(&old, edits)?,
                Content::Whole(bytes) => bytes.clone(),
            };
            let (old, new) = match (std::str::from_utf8(&old), std::str::from_utf8(&new)) {
                (Ok(old), Ok(new)) if old.len().max(new.len()) <= LONGEST_DIFF => (old, new),
                _ => {
                    out.push_str(&format!("other bytes: {from} {}, {to} {}\n", old.len(), new.len()));
                    continue;
                }
            };
            let diff = TextDiff::from_lines(old, new);
            out.push_str(&diff.unified_diff().context_radius(2).header(&from, &to).to_string());
        }
        Ok(out)
    }
}

/// Finishes or undoes what a crash left half-done, and says so.
fn end_unfinished(vault: &Vault, lock: &WriteLock, now: Timestamp) -> Result<Vec<String>> {
    let mut notices = vault.recover(lock)?.notices;
    let journal = Journal::open(vault, &vault.records());
    journal.record_missing(lock)?;
    if let Err(error) = journal.rename_future_month(lock, now) {
        notices.push(format!("{error}; the journal goes on in the file of a month to come"));
    }
    Ok(notices)
}

/// As [`end_unfinished`], where there is anything to end; called before the files are first looked at.
pub(in crate::store) fn end_unfinished_at_start(vault: &Vault, now: Timestamp) -> Vec<String> {
    let records = vault.records();
    if !vault.has_pending_transactions(&records) {
        return Vec::new();
    }
    let ended =
        vault.lock_with_timeout(&records, Duration::ZERO).and_then(|lock| end_unfinished(vault, &lock, now));
    match ended {
        Ok(notices) => notices,
        // Another process is at it this moment, and it is not unfinished at all.
        Err(error) if error.kind() == ErrorKind::Conflict => Vec::new(),
        Err(error) => vec![format!("a change that was cut short could not be ended: {error}")],
    }
}

/// Lists the files of an operation as it left them: with the hash of their bytes, or gone.
fn left_behind(applied: &Applied) -> Vec<(NotePath, Option<Hash>)> {
    let now: Vec<(NotePath, Option<Hash>)> = applied
        .files
        .iter()
        .filter_map(|file| Some((file.to.as_ref()?.in_vault()?.clone(), Some(file.after?.to_bytes()))))
        .collect();
    let there: HashSet<NotePath> = now.iter().map(|(path, _)| path.clone()).collect();
    let gone = applied.files.iter().filter_map(|file| file.from.as_ref()?.in_vault().cloned());
    let gone = gone.filter(|path| !there.contains(path)).map(|path| (path, None)).collect::<Vec<_>>();
    let is_read = |path: &NotePath| FileKind::of(path) != FileKind::Attachment;
    now.into_iter().chain(gone).filter(|(path, _)| is_read(path)).collect()
}

/// Tells of lines of the journal that could not be read, and were passed over.
fn warn_of_damage(events: &Events) {
    if events.corrupt() > 0 {
        tracing::warn!("{} lines of the journal cannot be read and are left out", events.corrupt());
    }
}

/// Names the files that the index must look at after a plan was carried out.
fn touched(plan: &ChangeSet) -> SyncScope {
    if !plan.folders.is_empty() {
        return SyncScope::All;
    }
    let places = plan.files.iter().flat_map(|change| change.from.iter().chain(&change.to));
    SyncScope::only(places.filter_map(FileLocation::in_vault).cloned().collect())
}
