//! Changing the vault: every operation is planned as a [`ChangeSet`], carried out whole, written down, and can be taken
//! back.

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use similar::TextDiff;

use super::Store;
use super::create::NewRequest;
use super::edit::EditRequest;
use super::merge::{ExtractRequest, MergeRequest};
use super::moves::{MoveRequest, PartRequest};
use super::relate::{DeleteRequest, RelateRequest};
use super::rename::RenameRequest;
use super::revise::ReviseRequest;
use super::view::{GROUP, View};
use crate::error::{Error, ErrorKind, Result};
use crate::index::catalog::{FileKind, Hash};
use crate::index::{Changes, silent};
use crate::journal::{Event, Events, Journal, MOVED, Order, Standing};
use crate::text::edit::{ChangeSet, Content, ContentHash, Place, apply};
use crate::text::path::NotePath;
use crate::vault::Vault;
use crate::vault::kept::Kept;
use crate::vault::write::{Applied, WriteLock};

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
}

impl ChangeReply {
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
    pub(super) fn plan_clean(&self, operation: &Operation) -> Result<ChangeSet> {
        let view = View::new(self)?;
        match operation {
            Operation::New(request) => self.plan_new(&view, request, self.clock.now()),
            Operation::Edit(request) => self.plan_edit(&view, request),
            Operation::EditMany(requests) => self.plan_edits(&view, requests),
            Operation::Revise(request) => self.plan_revise(&view, request, self.clock.now()),
            Operation::Move(request) => self.plan_move(&view, request),
            Operation::RenamePart(request) => self.plan_part(&view, request),
            Operation::RenameEverywhere(request) => self.plan_rename(&view, request),
            Operation::Link(request) => self.plan_link(&view, request),
            Operation::Unlink(request) => self.plan_unlink(&view, request),
            Operation::Merge(request) => self.plan_merge(&view, request),
            Operation::Extract(request) => self.plan_extract(&view, request, self.clock.now()),
            Operation::Delete(request) => self.plan_delete(&view, request),
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
        let (operation, cleaned) = self.clean_operation(operation);
        let mut reply = self.carry_out(|_| self.plan_clean(&operation), dry_run)?;
        reply.notices.extend(cleaned.notices());
        Ok(reply)
    }

    /// Makes a plan and carries it out under the write lock, or with `dry_run` says what it would do.
    pub(super) fn carry_out(
        &self,
        plan: impl FnOnce(Option<&WriteLock>) -> Result<ChangeSet>,
        dry_run: bool,
    ) -> Result<ChangeReply> {
        if dry_run {
            let plan = plan(None)?;
            // What the run would refuse, the dry run refuses as well.
            self.vault.check(&plan)?;
            let diff = Some(self.diff(&plan)?);
            return Ok(ChangeReply { applied: false, id: None, plan, diff, notices: Vec::new() });
        }
        self.under_lock(plan)
    }

    /// Takes back the last `count` operations that can be, the newest first.
    ///
    /// # Errors
    /// `NotFound` where there is nothing to take back; `Conflict` naming the file that changed since.
    #[tracing::instrument(skip_all)]
    pub fn undo(&self, count: usize, dry_run: bool) -> Result<Vec<ChangeReply>> {
        let records = self.vault.records();
        let mut replies = Vec::new();
        let standing = Journal::open(&self.vault, &records).standing()?;
        let there = standing.iter().filter(|standing| standing.is_kept).count();
        // What cannot be taken back any more must not look as if it had been.
        let mut taken = 0;
        let passed: Vec<String> = standing
            .iter()
            .take_while(|standing| {
                taken += usize::from(standing.is_kept);
                taken < count || !standing.is_kept
            })
            .filter(|Standing { event, is_kept }| {
                !is_kept && event.op != MOVED && (!event.files.is_empty() || !event.folders.is_empty())
            })
            .map(|Standing { event, .. }| {
                let path = event.subject().map(|subject| format!(" of {subject}")).unwrap_or_default();
                format!("{}{path} is newer and stays: its before-images are not kept any more", event.op)
            })
            .collect();
        if there < count && there > 0 {
            return Err(Error::not_found(format!("only {there} operations can be undone, not {count}"))
                .with_hint("`sidenote history` lists what was done"));
        }
        for _ in 0..count {
            let plan = |_: Option<&WriteLock>| {
                let journal = Journal::open(&self.vault, &records);
                let last = journal.undoable()?.into_iter().next().ok_or_else(|| {
                    Error::not_found("there is nothing to undo")
                        .with_hint("`sidenote history` lists what was done")
                })?;
                journal.inverse(&last)
            };
            if dry_run {
                let plan = plan(None)?;
                self.verify(&plan)?;
                let diff = Some(self.diff(&plan)?);
                replies.push(ChangeReply { applied: false, id: None, plan, diff, notices: Vec::new() });
                break;
            }
            replies.push(self.under_lock(plan)?);
        }
        if let Some(first) = replies.first_mut() {
            first.notices.splice(0..0, passed);
        }
        Ok(replies)
    }

    /// Lists what was done, the newest first: to one note, under all its names, or to all.
    ///
    /// # Errors
    /// As [`Store::find`], unless the journal knows the path.
    #[tracing::instrument(skip_all)]
    pub fn history(&self, note: Option<&str>) -> Result<Vec<Event>> {
        let journal = Journal::open(&self.vault, &self.vault.records());
        let Some(name) = note else {
            let mut events = journal.events(Order::NewestFirst)?;
            let mut all = events.by_ref().collect::<Result<Vec<_>>>()?;
            warn_of_damage(&events);
            // What only moves weight stands in the audit trail.
            all.retain(|event| {
                !event.files.is_empty() || !event.folders.is_empty() || event.undoes.is_some()
            });
            return Ok(all);
        };
        let found = self.find(name).map(|row| row.path);
        let given = [name.to_owned(), format!("{name}.md")];
        let paths = found.iter().cloned().chain(given.iter().filter_map(|path| NotePath::parse(path).ok()));
        for path in paths {
            let mut events = journal.history(&path)?;
            if !events.is_empty() {
                events.reverse();
                return Ok(events);
            }
        }
        found.map(|_| Vec::new())
    }

    /// Says whether the files are as a plan expects them.
    fn verify(&self, plan: &ChangeSet) -> Result<()> {
        for change in &plan.files {
            let path = change.from.as_ref().and_then(Place::in_vault);
            if let (Some(path), Some(before)) = (path, change.before)
                && ContentHash::of(&self.read_bytes(path)?) != before
            {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    format!("{path} changed since (changed-on-disk)"),
                )
                .with_hint("what was changed by hand since is not taken back"));
            }
        }
        Ok(())
    }

    fn under_lock(&self, plan: impl FnOnce(Option<&WriteLock>) -> Result<ChangeSet>) -> Result<ChangeReply> {
        let records = self.vault.records();
        let lock = self.vault.lock(&records)?;
        let mut notices = end_unfinished(&self.vault, &lock)?;
        let plan = plan(Some(&lock))?;
        if plan.is_empty() {
            return Ok(ChangeReply { applied: false, id: None, plan, diff: None, notices });
        }
        let applied = self.vault.apply(&lock, &plan, self.clock.now())?;
        notices.extend(applied.notices.iter().cloned());
        let journal = Journal::open(&self.vault, &records);
        let undo = &self.config.undo;
        let mut event = Event::of(&applied);
        self.sign(&mut event);
        if let Err(error) = journal.record(&event) {
            notices.push(format!("{error}; the next change writes it into the journal"));
        } else if let Err(error) = journal.prune(&lock, undo.operations, undo.days, self.clock.now()) {
            notices.push(format!("{error}; the change itself is done"));
        }
        if plan.operation == "delete" && applied.files.iter().any(|file| file.to.is_none()) {
            // What was removed for good is not kept for an undo either.
            Kept::open(&records)?.forget(&lock, &applied.id)?;
        }
        drop(lock);
        if self.index.promote()? {
            let report = self.index.sync(touched(&plan), silent())?;
            notices.extend(report.warnings);
            self.note_moves();
        } else if !self.index.wait_for(&left_behind(&applied), PATIENCE)?
            || (!applied.folders.is_empty() && self.freshen()? > 0)
        {
            let holder =
                self.index.holder().map_or_else(String::new, |holder| format!(" of process {}", holder.pid));
            notices.push(format!("the index{holder} does not show the change yet"));
        }
        Ok(ChangeReply { applied: true, id: Some(applied.id), plan, diff: None, notices })
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
            let name = |place: &Option<Place>| {
                place.as_ref().map_or_else(|| "/dev/null".to_owned(), Place::to_string)
            };
            let (from, to) = (name(&change.from), name(&change.to));
            if from != to {
                out.push_str(&match (&change.from, &change.to) {
                    (None, _) => format!("create {to}\n"),
                    (_, None) => format!("delete {from}\n"),
                    _ => format!("rename {from} -> {to}\n"),
                });
            }
            let old = match change.from.as_ref().and_then(Place::in_vault).filter(|_| change.writes()) {
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
fn end_unfinished(vault: &Vault, lock: &WriteLock) -> Result<Vec<String>> {
    let recovery = vault.recover(lock)?;
    Journal::open(vault, &vault.records()).catch_up(lock)?;
    Ok(recovery.notices)
}

/// As [`end_unfinished`], where there is anything to end; called before the files are first looked at.
pub(super) fn end_unfinished_at_start(vault: &Vault) -> Vec<String> {
    let records = vault.records();
    if !vault.has_unfinished(&records) {
        return Vec::new();
    }
    let ended = vault.lock_within(&records, Duration::ZERO).and_then(|lock| end_unfinished(vault, &lock));
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
fn touched(plan: &ChangeSet) -> Changes {
    if !plan.folders.is_empty() {
        return Changes::All;
    }
    let places = plan.files.iter().flat_map(|change| change.from.iter().chain(&change.to));
    Changes::only(places.filter_map(Place::in_vault).cloned().collect())
}
