//! Carries a planned operation out under the write lock, records it in the journal and brings it into the
//! index.

use std::collections::HashSet;
use std::time::Duration;

use similar::TextDiff;

use crate::clock::Timestamp;
use crate::error::{ErrorKind, Result};
use crate::index::catalog::{FileKind, Hash};
use crate::index::{SyncScope, silent};
use crate::journal::Journal;
use crate::journal::event::Event;
use crate::store::catalog_overlay::{GROUP, View};
use crate::store::change::operation::{ChangeReply, Operation};
use crate::store::change::{Changes, Planner};
use crate::store::idempotency::Calls;
use crate::store::lookup::Lookup;
use crate::store::sync::IndexSync;
use crate::text::edit::{ChangeSet, Content, FileLocation, apply};
use crate::text::path::NotePath;
use crate::vault::Vault;
use crate::vault::apply_result::Applied;
use crate::vault::undo_log::UndoLog;
use crate::vault::write_lock::WriteLock;

/// How long a change waits until the process that keeps the index shows it.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file longer than this is not shown line by line.
const LONGEST_DIFF: usize = 4_000_000;

impl Changes<'_> {
    /// Plans an operation on the files as they are this moment, and changes nothing.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Conflict` or `Invalid` if the operation cannot be made.
    #[tracing::instrument(skip_all)]
    pub fn plan(&self, operation: &Operation) -> Result<ChangeSet> {
        self.plan_clean(&self.clean_operation(operation).0)
    }

    /// Plans an operation, as [`Self::plan`] does, whose texts are clean already.
    fn plan_clean(&self, operation: &Operation) -> Result<ChangeSet> {
        self.plan_in(&View::new(self.core)?, operation)
    }

    fn plan_in(&self, view: &View<'_>, operation: &Operation) -> Result<ChangeSet> {
        match operation {
            Operation::New(request) => Planner::of(self.core).plan_new(view, request, self.core.clock.now()),
            Operation::Edit(request) => Planner::of(self.core).plan_edit(view, request),
            Operation::EditMany(requests) => Planner::of(self.core).plan_edits(view, requests),
            Operation::Revise(request) => Planner::of(self.core).plan_revise(
                view,
                &view.find(&request.note)?,
                request,
                self.core.clock.now(),
            ),
            Operation::Move(request) => Planner::of(self.core).plan_move(view, request),
            Operation::RenamePart(request) => Planner::of(self.core).plan_part(view, request),
            Operation::RenameEverywhere(request) => Planner::of(self.core).plan_rename(view, request),
            Operation::Link(request) => Planner::of(self.core).plan_link(view, request),
            Operation::Unlink(request) => Planner::of(self.core).plan_unlink(view, request),
            Operation::Merge(request) => Planner::of(self.core).plan_merge(view, request),
            Operation::Extract(request) => {
                Planner::of(self.core).plan_extract(view, request, self.core.clock.now())
            }
            Operation::Delete(request) => Planner::of(self.core).plan_delete(view, request),
            Operation::Restore(name) => Planner::of(self.core).plan_restore(name),
        }
    }

    /// Carries an operation out, or with `dry_run` says what it would do.
    ///
    /// The write lock is held from the look at the files to the last byte, so a link typed a second ago follows.
    ///
    /// # Errors
    /// `NotFound`, `Exists` or `Invalid` if the operation cannot be made; `Conflict` if a file changed meanwhile or
    /// another process holds the write lock; `Io` if the files cannot be written. Nothing is half-done then.
    #[tracing::instrument(skip_all)]
    pub fn change(&self, operation: &Operation, dry_run: bool) -> Result<ChangeReply> {
        self.change_prepared(operation, dry_run, |_| Ok(()))
    }

    /// Carries an operation out as [`Self::change`] does, after `prepare` completed or refused it. `prepare` runs under
    /// the write lock, when the files that the index lacks are known.
    pub(in crate::store) fn change_prepared(
        &self,
        operation: &Operation,
        dry_run: bool,
        prepare: impl FnOnce(&mut Operation) -> Result<()>,
    ) -> Result<ChangeReply> {
        let (mut operation, cleaned) = self.clean_operation(operation);
        let plan = |_: Option<&WriteLock>| {
            let view = View::new(self.core)?;
            prepare(&mut operation)?;
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
            self.core.vault.check(&plan)?;
            let diff = Some(self.diff(&plan)?);
            return Ok(ChangeReply { diff, ..ChangeReply::of(plan) });
        }
        self.under_lock(plan)
    }

    fn under_lock(&self, plan: impl FnOnce(Option<&WriteLock>) -> Result<ChangeSet>) -> Result<ChangeReply> {
        let records = self.core.vault.records();
        let lock = self.core.vault.lock(&records)?;
        let mut notices = end_unfinished(&self.core.vault, &lock, self.core.clock.now())?;
        Calls::of(self.core).refuse_repeated()?;
        let plan = plan(Some(&lock))?;
        if plan.is_empty() {
            return Ok(ChangeReply { notices, ..ChangeReply::of(plan) });
        }
        // From the commit on nothing fails the change: what goes wrong then is told beside it.
        let applied = self.core.vault.apply_with_metadata(
            &lock,
            &plan,
            self.core.clock.now(),
            Calls::of(self.core).signature(),
        )?;
        Calls::of(self.core).own(&applied.id);
        notices.extend(applied.notices.iter().cloned());
        let journal = Journal::open(&self.core.vault, &records);
        let undo = &self.core.config.undo;
        if let Err(error) = journal.record(&Event::of(&applied)) {
            notices.push(format!("{error}; the next change writes it into the journal"));
        } else if let Err(error) = journal.prune(&lock, undo.operations, undo.days, self.core.clock.now()) {
            notices.push(format!("{error}; the change itself is done"));
        }
        if plan.operation == "delete" && applied.files.iter().any(|file| file.to.is_none()) {
            // What was removed for good is not kept for an undo either.
            let forgotten = UndoLog::open(&records).and_then(|kept| kept.remove(&lock, &applied.id));
            if let Err(error) = forgotten {
                notices.push(format!("{error}; what was removed could still be brought back by an undo"));
            }
        }
        let rows = Lookup::of(self.core).rows_of(&applied);
        drop(lock);
        match self.show_change(&plan, &applied) {
            Ok(told) => notices.extend(told),
            Err(error) => {
                Lookup::of(self.core).add_unindexed(&left_behind(&applied));
                notices.push(format!("the index does not show the change yet: {error}"));
            }
        }
        Ok(ChangeReply { applied: true, id: Some(applied.id), rows, notices, ..ChangeReply::of(plan) })
    }

    /// Brings a change that landed into the index, or waits a while for the process that keeps it; gives sentences about
    /// what the index does not show.
    fn show_change(&self, plan: &ChangeSet, applied: &Applied) -> Result<Vec<String>> {
        if self.core.index.promote()? {
            let report = self.core.index.sync(touched(plan), silent())?;
            IndexSync::of(self.core).note_moves();
            return Ok(report.warnings);
        }
        let left = left_behind(applied);
        if self.core.index.wait_for(&left, PATIENCE)?
            && (applied.folders.is_empty() || IndexSync::of(self.core).refresh()? == 0)
        {
            return Ok(Vec::new());
        }
        Lookup::of(self.core).add_unindexed(&left);
        let holder =
            self.core.index.holder().map_or_else(String::new, |holder| format!(" of process {}", holder.pid));
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
                self.core.go_on()?;
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
                Some(path) => self.core.read_bytes(path)?,
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

/// Ends what a crash left unfinished, where there is anything. It is called before the files are first looked at.
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

/// Names the files that the index must look at after a plan was carried out.
fn touched(plan: &ChangeSet) -> SyncScope {
    if !plan.folders.is_empty() {
        return SyncScope::All;
    }
    let places = plan.files.iter().flat_map(|change| change.from.iter().chain(&change.to));
    SyncScope::only(places.filter_map(FileLocation::in_vault).cloned().collect())
}
