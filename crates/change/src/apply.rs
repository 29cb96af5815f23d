//! Applies planned operations under the write lock, records them in the journal, and updates the index.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::{FileKind, Hash};
use sidenote_index::{SyncScope, WaitLimit, silent};
use sidenote_journal::Journal;
use sidenote_journal::event::Event;
use sidenote_markdown::edit::{ChangeSet, Content, FileChange, FileLocation, apply};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::unified_diff::unified_diff;
use sidenote_open_vault::catalog_overlay::{GROUP, View};
use sidenote_open_vault::idempotency::Calls;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::sync::IndexSync;
use sidenote_vault::Vault;
use sidenote_vault::apply_result::Applied;
use sidenote_vault::authority::authority_of;
use sidenote_vault::undo_log::UndoLog;
use sidenote_vault::write_lock::WriteLock;

use crate::commit::CommitReply;
use crate::fence::Planned;
use crate::operation::{ChangeReply, Operation};
use crate::{Changes, Planner};

/// The name of the operation that brings changes of another copy of the vault.
pub const OP_SYNC: &str = "sync";

/// The time that a change waits for the process that writes the index.
const WAIT_LIMIT: Duration = Duration::from_secs(2);

/// The number of files from which on a change waits for the index whatever else is indexed. As many that move, with the paths
/// that they leave, are a large batch themselves.
const MANY: usize = 1000;

/// The longest file, in bytes, of which a diff shows lines.
const LONGEST_DIFF: usize = 4_000_000;

impl Changes<'_> {
    /// Plans an operation on the current files, without changing anything.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Conflict` or `Invalid` if the operation cannot be made.
    #[tracing::instrument(skip_all)]
    pub fn plan(&self, operation: &Operation) -> Result<ChangeSet> {
        self.plan_clean(&self.clean_operation(operation).0)
    }

    /// Plans like [`Changes::plan`], and counts the files that the plan read and the links and names that it looked up.
    ///
    /// # Errors
    /// Those of [`Changes::plan`].
    pub fn plan_with_work(&self, operation: &Operation) -> Result<(ChangeSet, usize)> {
        let view = View::new(self.core)?;
        let plan = self.plan_in(&view, &self.clean_operation(operation).0)?;
        Ok((plan, view.work()))
    }

    /// Plans an operation from which private text and secrets were removed already.
    fn plan_clean(&self, operation: &Operation) -> Result<ChangeSet> {
        self.plan_in(&self.view_for(operation)?, operation)
    }

    /// Returns the vault for the plan of an operation.
    fn view_for(&self, operation: &Operation) -> Result<View<'_>> {
        if is_edit(operation) { View::for_edits(self.core) } else { View::new(self.core) }
    }

    pub(crate) fn plan_in(&self, view: &View<'_>, operation: &Operation) -> Result<ChangeSet> {
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
            Operation::Restore(name) => Planner::of(self.core).plan_restore(view, name),
        }
    }

    /// Applies an operation, or plans it only with `dry_run`.
    ///
    /// The write lock is held from the planning to the last write, so the plan considers all changes before it.
    ///
    /// # Errors
    /// `NotFound`, `Exists` or `Invalid` if the operation cannot be made; `Conflict` if a file changed meanwhile or
    /// another process holds the write lock; `Io` if the files cannot be written. Nothing is half-done then.
    #[tracing::instrument(skip_all)]
    pub fn change(&self, operation: &Operation, dry_run: bool) -> Result<ChangeReply> {
        self.change_prepared(operation, dry_run, |_, _| Ok(()))
    }

    /// Applies an operation that the journal has under another name.
    pub fn change_as(&self, name: &str, operation: &Operation, dry_run: bool) -> Result<ChangeReply> {
        let plan = |_: Option<&WriteLock>| {
            let mut plan = self.plan_fenced(&self.view_for(operation)?, operation)?;
            name.clone_into(&mut plan.shown.operation);
            Ok(plan)
        };
        self.apply_after(!is_edit(operation), plan, dry_run)
    }

    /// Applies an operation after `prepare` has completed or rejected it. `prepare` runs under the write lock, when the
    /// files that the index lacks are known.
    pub fn change_prepared(
        &self,
        operation: &Operation,
        dry_run: bool,
        prepare: impl FnOnce(&View<'_>, &mut Operation) -> Result<()>,
    ) -> Result<ChangeReply> {
        let (mut operation, cleaned) = self.clean_operation(operation);
        let waits = !is_edit(&operation);
        let plan = |_: Option<&WriteLock>| {
            let view = self.view_for(&operation)?;
            prepare(&view, &mut operation)?;
            self.plan_fenced(&view, &operation)
        };
        let mut reply = self.apply_after(waits, plan, dry_run)?;
        reply.notices.extend(cleaned.notices());
        Ok(reply)
    }

    /// Makes a plan and applies it under the write lock, or only plans with `dry_run`.
    pub fn apply_planned(
        &self,
        plan: impl FnOnce(Option<&WriteLock>) -> Result<ChangeSet>,
        dry_run: bool,
    ) -> Result<ChangeReply> {
        self.apply_after(true, |lock| plan(lock).map(Planned::alone), dry_run)
    }

    /// Does the same. `waits` says whether the plan waits for a large batch that is being indexed; then this is done before the
    /// lock is taken, so that others can edit notes meanwhile.
    fn apply_after(
        &self,
        waits: bool,
        plan: impl FnOnce(Option<&WriteLock>) -> Result<Planned>,
        dry_run: bool,
    ) -> Result<ChangeReply> {
        let follower = self.core.index.follower();
        if waits && follower.large_batch().is_some() && !authority_of(&self.core.vault).is_shared() {
            follower.catch_up(WaitLimit::ENDLESS)?;
        }
        let proposes = self.core.call.is_proposing();
        if dry_run || proposes {
            let planned = plan(None)?;
            self.check_permission(&planned.shown)?;
            self.check_access(&planned)?;
            refuse_nul(&planned.shown)?;
            // A dry run reports the same errors as the operation.
            self.core.vault.check(&planned.shown)?;
            let diff = Some(self.diff(&planned.shown)?);
            if proposes && !dry_run {
                self.count_change(&planned.shown)?;
                self.core.call.propose(planned.shown.clone());
            }
            return Ok(ChangeReply { diff, ..ChangeReply::of(planned.shown) });
        }
        let records = self.core.vault.records();
        let lock = self.core.vault.lock(&records)?;
        let owner = self.core.for_owner();
        let vault = &owner.as_ref().unwrap_or(self.core).vault;
        let mut notices = end_unfinished(vault, &lock, self.core.clock.now())?;
        if owner.is_some() {
            // They name files that the caller may not know of.
            notices.clear();
        }
        // The journal of a copy may lack the operations of others.
        IndexSync::of(self.core).catch_up_copy()?;
        Calls::of(self.core).refuse_repeated()?;
        let planned = plan(Some(&lock))?;
        self.check_permission(&planned.shown)?;
        self.check_access(&planned)?;
        refuse_nul(&planned.shown)?;
        self.refuse_unexpected(&planned.shown)?;
        if self.keep_for_confirmation(&planned.shown)? {
            return Ok(ChangeReply { notices, ..ChangeReply::of(planned.shown) });
        }
        self.count_change(&planned.shown)?;
        self.apply_locked(planned, lock, notices)
    }

    /// Refuses a plan whose files are not those that the caller saw, if the caller said what it saw.
    fn refuse_unexpected(&self, plan: &ChangeSet) -> Result<()> {
        let expected = self.core.call.expected.lock().unwrap_or_else(PoisonError::into_inner).take();
        match expected {
            Some(expected) if expected != plan_basis(plan) => Err(Error::new(
                ErrorKind::Conflict,
                "the files have changed since the change was shown; nothing was written",
            )
            .with_hint("look at the change again, and apply it then")),
            _ => Ok(()),
        }
    }

    /// Applies a plan that was made under the lock.
    fn apply_locked(
        &self,
        planned: Planned,
        lock: WriteLock,
        mut notices: Vec<String>,
    ) -> Result<ChangeReply> {
        let records = lock.records().to_owned();
        let unseen: Vec<String> =
            planned.unseen.iter().flat_map(FileChange::places).map(ToString::to_string).collect();
        let (whole, plan) = (planned.whole(), &planned.shown);
        // The owner's vault has the files that the caller does not know of.
        let owner = self.core.for_owner();
        let writer = Changes::of(owner.as_ref().unwrap_or(self.core));
        let vault = &writer.core.vault;
        if plan.is_empty() {
            drop(whole);
            return Ok(ChangeReply { notices, ..ChangeReply::of(planned.shown) });
        }
        // The state of the files in git must be read before they are written.
        let prepared = writer.prepare_commit(&whole);
        // After the commit, errors no longer fail the change. They become notices.
        let applied =
            vault.apply_with_metadata(&lock, &whole, self.core.clock.now(), Calls::of(self.core).signature());
        let applied = applied.inspect_err(|error| {
            if error.kind() == ErrorKind::Quota {
                self.record_refusal(Some(error.message()));
            }
        })?;
        let changing = || self.core.state.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if authority_of(&self.core.vault).is_shared() {
            changing().extend(final_files(&applied));
        }
        self.core.state.has_changed.store(true, Ordering::Relaxed);
        Calls::of(self.core).own(&applied.id);
        notices.extend(applied.notices.iter().cloned());
        let journal = Journal::open(vault, &records);
        let undo = &self.core.config.undo;
        if let Err(error) = journal.record(&Event::of(&applied)) {
            notices.push(format!("{error}; the next change writes it into the journal"));
        } else if let Err(error) = journal.prune(&lock, undo.operations, undo.days, self.core.clock.now()) {
            notices.push(format!("{error}; the change itself was made"));
        }
        if plan.operation == "delete" && applied.files.iter().any(|file| file.to.is_none()) {
            // A file that was removed permanently is not kept for an undo.
            let forgotten = UndoLog::open(&records).and_then(|kept| kept.remove(&lock, &applied.id));
            if let Err(error) = forgotten {
                notices.push(format!("{error}; an undo could still restore the removed file"));
            }
        }
        let rows = Lookup::of(self.core).rows_of(&applied);
        notices.extend(self.take_unsaid());
        let commit = prepared.map(|prepared| {
            prepared
                .map_or_else(|refused| refused, |prepared| writer.commit_applied(prepared, &whole, &applied))
        });
        let uncommitted: Vec<String> = commit.iter().flat_map(CommitReply::notices).collect();
        Calls::of(self.core).note_uncommitted(&uncommitted);
        notices.extend(uncommitted);
        drop(lock);
        match self.update_index(plan, &applied) {
            Ok(told) => notices.extend(told),
            Err(error) => {
                Lookup::of(self.core).add_unindexed(&final_files(&applied));
                notices.push(format!("the index does not show the change yet: {error}"));
            }
        }
        for (path, _) in final_files(&applied) {
            changing().remove(&path);
        }
        notices.retain(|notice| !unseen.iter().any(|path| notice.contains(path)));
        drop(whole);
        Ok(ChangeReply {
            applied: true,
            id: Some(applied.id),
            rows,
            commit: commit.filter(|_| unseen.is_empty()),
            notices,
            ..ChangeReply::of(planned.shown)
        })
    }

    /// Updates the index after a change, or waits for the process that writes it. Returns notices about what the index
    /// does not contain yet.
    fn update_index(&self, plan: &ChangeSet, applied: &Applied) -> Result<Vec<String>> {
        if self.core.index.promote()? {
            let follower = self.core.index.follower();
            let is_small = plan.folders.is_empty() && plan.files.len() < MANY;
            // A server does not let a small change wait until it has indexed a large batch of others.
            let wait_limit = if is_small && follower.is_requested() {
                WaitLimit::ENDLESS.unless_large()
            } else {
                WaitLimit::ENDLESS
            };
            // Without the number, the index finds it out.
            let catalog = self.core.index.catalog();
            let inside = applied.folders.iter().map(|folder| catalog.paths().below(folder.from.as_str()));
            let moved: usize = inside.map(|paths| paths.map_or(0, |paths| paths.len())).sum();
            drop(catalog);
            let changed = applied.files.len() + moved;
            let report = self.core.index.sync_within(touched(plan), changed, silent(), wait_limit)?;
            IndexSync::of(self.core).note_moves();
            return Ok(match report {
                Some(report) => report.warnings,
                None => {
                    Lookup::of(self.core).add_unindexed(&final_files(applied));
                    vec![
                        "the index does not show the change yet, because many files are being indexed"
                            .to_owned(),
                    ]
                }
            });
        }
        let left = final_files(applied);
        if self.core.index.wait_for(&left, WAIT_LIMIT)?
            && (applied.folders.is_empty() || IndexSync::of(self.core).refresh()? == 0)
        {
            return Ok(Vec::new());
        }
        Lookup::of(self.core).add_unindexed(&left);
        let holder =
            self.core.index.holder().map_or_else(String::new, |holder| format!(" of process {}", holder.pid));
        Ok(vec![format!("the index{holder} does not show the change yet")])
    }

    /// Formats a plan as a unified diff.
    pub(crate) fn diff(&self, plan: &ChangeSet) -> Result<String> {
        let mut out = String::new();
        for folder in &plan.folders {
            out.push_str(&format!("rename folder {} -> {}\n", folder.from, folder.to));
        }
        for (at, change) in plan.files.iter().enumerate() {
            if at > 0 && at.is_multiple_of(GROUP) {
                self.core.check_cancelled()?;
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
            // What a removal loses is shown as `git diff` shows it, up to a limit of the whole.
            let is_lost = change.to.is_none() && out.len() <= LONGEST_DIFF;
            let source = change.from.as_ref().and_then(FileLocation::in_vault);
            let old = match source.filter(|_| change.writes() || is_lost) {
                Some(path) => self.core.read_bytes(path)?,
                None => Vec::new(),
            };
            let new = match &change.content {
                Content::Keep if is_lost && source.is_some() => Vec::new(),
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
            out.push_str(&unified_diff((&from, old), (&to, new)));
        }
        Ok(out)
    }
}

/// Refuses a plan that writes a NUL character into a note, because editors and git would then take it for a binary
/// file. A plan may do so if it restores earlier bytes, or copies the bytes that a file has elsewhere.
fn refuse_nul(plan: &ChangeSet) -> Result<()> {
    if plan.undoes.is_some() || plan.operation.starts_with("restore") || plan.operation == OP_SYNC {
        return Ok(());
    }
    let has_nul = |change: &FileChange| match &change.content {
        Content::Keep => false,
        Content::Whole(bytes) => change.from.is_none() && bytes.contains(&0),
        Content::Edits(edits) => edits.iter().any(|edit| edit.text.contains('\0')),
    };
    let place = |change: &FileChange| change.to.as_ref().and_then(FileLocation::in_vault).cloned();
    match plan.files.iter().filter(|change| has_nul(change)).find_map(place).filter(NotePath::is_note) {
        Some(path) => Err(Error::invalid(format!(
            "the text for {path} has a NUL character, so that other programs would not read the note as text"
        ))
        .with_hint("remove the character from the text")),
        None => Ok(()),
    }
}

/// Returns whether an operation changes the text of the notes that it names and nothing else.
fn is_edit(operation: &Operation) -> bool {
    matches!(operation, Operation::Edit(_) | Operation::EditMany(_))
}

/// Returns a text that identifies what a plan is based on: the paths of its files and folders, and the content of each
/// file. It is the same for plans that differ only in a time.
pub fn plan_basis(plan: &ChangeSet) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(text.as_bytes());
        hasher.update(&[0]);
    };
    add(&plan.operation);
    for folder in &plan.folders {
        add(folder.from.as_str());
        add(folder.to.as_str());
    }
    for file in &plan.files {
        add(&file.from.as_ref().map(ToString::to_string).unwrap_or_default());
        add(&file.to.as_ref().map(ToString::to_string).unwrap_or_default());
        add(&file
            .before
            .map(|hash| blake3::Hash::from_bytes(hash.to_bytes()).to_hex().to_string())
            .unwrap_or_default());
    }
    hasher.finalize().to_hex().to_string()
}

/// Finishes or rolls back what a crash left unfinished, and returns notices about it.
fn end_unfinished(vault: &Vault, lock: &WriteLock, now: Timestamp) -> Result<Vec<String>> {
    let mut notices = vault.recover(lock)?.notices;
    let journal = Journal::open(vault, &vault.records());
    journal.record_missing(lock)?;
    if let Err(error) = journal.rename_future_months(lock, now) {
        notices.push(format!("{error}; the journal goes on in the file of a month to come"));
    }
    Ok(notices)
}

/// Recovers what a crash left unfinished, before the files are first read.
pub fn end_unfinished_at_start(vault: &Vault, now: Timestamp) -> Vec<String> {
    let records = vault.records();
    if !vault.has_pending_transactions(&records) {
        return Vec::new();
    }
    let ended =
        vault.lock_with_timeout(&records, Duration::ZERO).and_then(|lock| end_unfinished(vault, &lock, now));
    match ended {
        Ok(notices) => notices,
        // Another process holds the write lock, so the operation may still be running.
        Err(error) if error.kind() == ErrorKind::Conflict => Vec::new(),
        Err(error) => vec![format!("an interrupted change could not be finished: {error}")],
    }
}

/// Lists the files of an operation as it left them: each with the hash of its bytes, or `None` if it was removed.
fn final_files(applied: &Applied) -> Vec<(NotePath, Option<Hash>)> {
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

/// Returns the files that the index must read again after a plan was applied.
fn touched(plan: &ChangeSet) -> SyncScope {
    if !plan.folders.is_empty() {
        return SyncScope::All;
    }
    let places = plan.files.iter().flat_map(|change| change.from.iter().chain(&change.to));
    SyncScope::only(places.filter_map(FileLocation::in_vault).cloned().collect())
}
