//! What the rule of an agent allows a plan to do: which files it may write, how many changes, and how large notes become.
//!
//! Every plan of an agent passes here, and is refused before anything happens. A fenced agent does not know of all notes, so
//! its plans are also made with the whole vault in view: links to its files in notes outside of the fence must not break.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_config::{ConfirmedChange, OutsideLinks};
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::edit::{ChangeSet, Content, FileChange, FileLocation, apply};
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::agent_access::{AgentAccess, MINUTE};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_vault::fence::NoteAccess;

use crate::Changes;
use crate::fenced_path::not_written;
use crate::operation::{FORGET, Operation};

/// A plan as its caller sees it, and what else belongs to it.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    /// What the caller sees of the plan.
    pub(crate) shown: ChangeSet,
    /// The changes of notes that do not exist for the caller: links that follow the files of the plan.
    pub(crate) unseen: Vec<FileChange>,
    /// The notes that the operation names. In all others, a plan that gives files other names rewrites links and nothing else.
    /// `None` for a plan that is not made of an operation.
    named: Option<BTreeSet<NotePath>>,
}

impl Planned {
    /// Makes the plan of no operation.
    pub(crate) fn alone(shown: ChangeSet) -> Self {
        Self { shown, ..Self::default() }
    }

    /// Returns the whole plan. It is copied only if the caller does not know of all: the plan of an import has the texts of
    /// thousands of notes.
    pub(crate) fn whole(&self) -> Cow<'_, ChangeSet> {
        if self.unseen.is_empty() {
            return Cow::Borrowed(&self.shown);
        }
        let mut whole = self.shown.clone();
        whole.files.extend(self.unseen.iter().cloned());
        Cow::Owned(whole)
    }
}

impl Changes<'_> {
    /// Plans an operation in the view of the caller, and with the whole vault in view if the caller knows of a part only.
    ///
    /// # Errors
    /// Those of the operation; `Invalid` if notes that do not exist for the caller would need other links, and its rule does not
    /// allow that.
    pub(crate) fn plan_fenced(&self, view: &View<'_>, operation: &Operation) -> Result<Planned> {
        let shown = self.plan_in(view, operation)?;
        let Some(access) = &self.core.agent else { return Ok(Planned::alone(shown)) };
        let operation = by_path(view, operation)?;
        let named = named_notes(&operation, &shown);
        let unseen = match self.core.for_owner() {
            Some(owner) => self.unseen_changes(access, &Changes::of(&owner), &operation, &shown)?,
            None => Vec::new(),
        };
        Ok(Planned { shown, unseen, named: Some(named) })
    }

    /// Plans an operation with the whole vault in view, and returns what it changes beyond `shown`.
    fn unseen_changes(
        &self,
        access: &AgentAccess,
        owner: &Changes<'_>,
        operation: &Operation,
        shown: &ChangeSet,
    ) -> Result<Vec<FileChange>> {
        // A tag or property gets another name where the agent sees it.
        if matches!(operation, Operation::RenameEverywhere(_)) {
            return Ok(Vec::new());
        }
        let view = View::new(owner.core)?;
        for folder in &shown.folders {
            if view.below(&folder.from)?.iter().any(|path| !self.exists(path)) {
                return Err(refused(access, "the folder holds files that the agent may not see"));
            }
        }
        let about_others =
            || refused(access, "links in notes outside of what the agent may change depend on it");
        let whole = owner.plan_in(&view, operation).map_err(|_| about_others())?;
        let seen: BTreeSet<&FileLocation> = shown.files.iter().flat_map(FileChange::places).collect();
        let (mut unseen, is_created) = (Vec::new(), |file: &FileChange| file.from.is_none());
        for file in whole.files {
            if file.places().any(|place| seen.contains(place)) || is_created(&file) {
                continue;
            }
            let in_place = file.from == file.to && matches!(file.content, Content::Edits(_));
            let is_hidden =
                file.from.as_ref().and_then(FileLocation::in_vault).is_some_and(|path| !self.exists(path));
            if !is_hidden || !in_place || access.rule.links == OutsideLinks::Refuse {
                return Err(about_others());
            }
            unseen.push(file);
        }
        Ok(unseen)
    }

    fn exists(&self, path: &NotePath) -> bool {
        !self.core.vault.withholds(path)
    }

    /// Refuses a plan that the rule of the agent does not allow, and records the refusal. The notes themselves can say that
    /// agents do not change them, whatever the rule.
    ///
    /// # Errors
    /// `Invalid` with the file and the rule.
    pub(crate) fn check_access(&self, planned: &Planned) -> Result<()> {
        if !self.core.is_agent {
            return Ok(());
        }
        self.find_refusal(planned).inspect_err(|error| self.record_refusal(Some(error.message())))
    }

    fn find_refusal(&self, planned: &Planned) -> Result<()> {
        self.refuse_unseen(planned.shown.files.iter().flat_map(FileChange::places))?;
        let below = self.files_below(&planned.shown)?;
        self.refuse_own_access(&planned.shown)?;
        let sources =
            planned.shown.files.iter().filter_map(|file| file.from.as_ref().and_then(FileLocation::in_vault));
        for path in sources.chain(below.iter().map(|(from, _)| from)).filter(|path| path.is_note()) {
            let Ok(bytes) = self.core.read_bytes(path) else { continue };
            if NoteAccess::of(&bytes) != NoteAccess::Full {
                return Err(Error::invalid(format!(
                    "{path} says `agents: read`, so agents may not change it"
                ))
                .with_hint("ask the user, who can change the note or its property agents"));
            }
        }
        let Some(access) = &self.core.agent else { return Ok(()) };
        for file in &planned.shown.files {
            self.refuse_file(access, file, planned)?;
        }
        let is_refused = |path: &&NotePath| !self.may_write(access, path);
        if let Some(path) = below.iter().flat_map(|(from, to)| [from, to]).find(is_refused) {
            return Err(not_written(access, self.core, path));
        }
        Ok(())
    }

    /// Refuses a text that would say what agents may do: the property is for people.
    fn refuse_own_access(&self, plan: &ChangeSet) -> Result<()> {
        for file in &plan.files {
            let Some(to) = file.to.as_ref().and_then(FileLocation::in_vault).filter(|to| to.is_note()) else {
                continue;
            };
            let from = file.from.as_ref().and_then(FileLocation::in_vault);
            // What a file says counts when it becomes a note.
            let was_note = from.is_some_and(NotePath::is_note);
            let before = match from {
                Some(_) if was_note && matches!(file.content, Content::Keep) => continue,
                Some(path) => self.core.read_bytes(path)?,
                None => Vec::new(),
            };
            let after = match &file.content {
                Content::Keep => before.clone(),
                Content::Whole(bytes) => bytes.clone(),
                Content::Edits(edits) => apply(&before, edits)?,
            };
            let said = if was_note { NoteAccess::of(&before) } else { NoteAccess::Full };
            if NoteAccess::of(&after) != NoteAccess::Full && said == NoteAccess::Full {
                return Err(Error::invalid(format!(
                    "{to} would say by its property agents what agents may do; nothing was changed"
                ))
                .with_hint("ask the user, who can set that property"));
            }
        }
        Ok(())
    }

    /// Keeps a plan as a proposal if a person has to confirm it by the rule. Returns whether that is so.
    ///
    /// # Errors
    /// `Invalid` if the call does something else, too, which cannot wait.
    pub(crate) fn keep_for_confirmation(&self, plan: &ChangeSet) -> Result<bool> {
        let Some(access) = &self.core.agent else { return Ok(false) };
        let asks = |kind: &ConfirmedChange| {
            // What is removed for good is removed, too.
            let is_deletion = *kind == ConfirmedChange::Permanent;
            let confirm = &access.rule.confirm;
            confirm.contains(kind) || is_deletion && confirm.contains(&ConfirmedChange::Delete)
        };
        let Some(kind) = kinds(plan).find(asks) else { return Ok(false) };
        if !self.core.call.may_propose.load(Ordering::Relaxed) {
            return Err(refused(access, &format!("a person has to confirm each {} first", named(kind))));
        }
        self.count_change(plan)?;
        self.core.call.propose(plan.clone());
        Ok(true)
    }

    /// Lists the files that move with their folders: where each is, and where it will be.
    fn files_below(&self, plan: &ChangeSet) -> Result<Vec<(NotePath, NotePath)>> {
        let mut files = Vec::new();
        for folder in &plan.folders {
            let inside = self.core.index.catalog().paths().below(folder.from.as_str())?;
            files.extend(inside.into_iter().filter_map(|path| {
                let rest = path.as_str().strip_prefix(folder.from.as_str())?.to_owned();
                Some((path, NotePath::from_disk(&format!("{}{rest}", folder.to))?))
            }));
        }
        Ok(files)
    }

    /// Refuses a change of files that do not exist for the caller.
    pub(crate) fn refuse_unseen<'p>(&self, places: impl IntoIterator<Item = &'p FileLocation>) -> Result<()> {
        let vault = &self.core.vault;
        let is_unseen = |place: &FileLocation| match place {
            FileLocation::Vault(path) => vault.withholds(path),
            FileLocation::Trash(path) => !vault.may_show_trashed(path),
            FileLocation::Settings(_) => false,
        };
        if !places.into_iter().any(is_unseen) {
            return Ok(());
        }
        Err(Error::invalid("the change is about files that this agent may not see; nothing was changed")
            .with_hint("tell the user, who can make the change"))
    }

    /// Refuses a change of one file that the rule does not allow.
    fn refuse_file(&self, access: &AgentAccess, file: &FileChange, planned: &Planned) -> Result<()> {
        for place in file.places() {
            let (FileLocation::Vault(path) | FileLocation::Trash(path)) = place else { continue };
            if self.may_write(access, path) {
                continue;
            }
            let follows = planned.named.as_ref().is_some_and(|named| !named.contains(path));
            let in_place = file.from == file.to && matches!(file.content, Content::Edits(_));
            if !(follows && in_place && access.rule.links == OutsideLinks::Rewrite) {
                return Err(not_written(access, self.core, path));
            }
        }
        let Some(most) = access.rule.max_note_bytes else { return Ok(()) };
        let bytes = self.length_after(file)?;
        let is_note = file.to.as_ref().and_then(FileLocation::in_vault).is_some_and(NotePath::is_note);
        if let Some(to) = file.to.as_ref().filter(|_| is_note && file.writes() && bytes > most) {
            let rule = access.name();
            return Err(Error::invalid(format!(
                "{to} would have {bytes} bytes, and {rule} allows {most}; nothing was changed"
            ))
            .with_hint("write less, or divide the text into several notes"));
        }
        Ok(())
    }

    fn may_write(&self, access: &AgentAccess, path: &NotePath) -> bool {
        self.core.vault.may_show(path) && access.may_write(path)
    }

    /// Returns the length of a file after a change, in bytes.
    fn length_after(&self, file: &FileChange) -> Result<u64> {
        Ok(match &file.content {
            Content::Keep => 0,
            Content::Whole(bytes) => bytes.len() as u64,
            Content::Edits(edits) => {
                let path = file.from.as_ref().and_then(FileLocation::in_vault);
                let before =
                    path.map(|path| self.core.read_bytes(path)).transpose()?.map_or(0, |bytes| bytes.len());
                let (out, new) = edits
                    .iter()
                    .fold((0, 0), |(out, new), edit| (out + edit.span.len(), new + edit.text.len()));
                (before.saturating_sub(out) + new) as u64
            }
        })
    }

    /// Counts the changes that an agent of this name made in the last minute, in this process or an earlier one.
    fn earlier_changes(&self, access: &AgentAccess, now: Timestamp) -> Result<usize> {
        if access.rule.rate.is_none() {
            return Ok(0);
        }
        let mut count = 0;
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.with_any(&["\"client\""]) {
            let event = event?;
            // A time in the future was written with a wrong clock.
            match now.millis() - event.at.millis() {
                MINUTE.. => break,
                0.. => {}
                _ => continue,
            }
            let is_own = event.more.get("client").and_then(Value::as_str) == Some(self.core.client.as_str());
            count += usize::from(is_own && !event.files.is_empty());
        }
        Ok(count)
    }

    /// Counts a change against the rate of the rule. A plan that does nothing is none.
    ///
    /// # Errors
    /// `Invalid` if the last minute has as many changes as the rule allows.
    pub(crate) fn count_change(&self, plan: &ChangeSet) -> Result<()> {
        let Some(access) = self.core.agent.as_ref().filter(|_| !plan.is_empty()) else { return Ok(()) };
        let now = self.core.clock.now();
        if access.count_change(now, self.earlier_changes(access, now)?) {
            return Ok(());
        }
        let (rule, rate) = (access.name(), access.rule.rate.unwrap_or_default());
        let error = Error::invalid(format!("{rule} allows {rate} changes a minute; nothing was changed"));
        self.record_refusal(Some(error.message()));
        Err(error.with_hint("wait a minute, or make several edits in one call"))
    }
}

fn refused(access: &AgentAccess, why: &str) -> Error {
    Error::invalid(format!("{} refuses the change: {why}; nothing was changed", access.name()))
        .with_hint("tell the user, who can make the change or widen the rule: `[[agents]]` in the settings")
}

/// Lists the kinds of changes of a plan.
fn kinds(plan: &ChangeSet) -> impl Iterator<Item = ConfirmedChange> {
    let of_file = |file: &FileChange| match (&file.from, &file.to) {
        (None | Some(FileLocation::Trash(_)), _) => ConfirmedChange::Create,
        (_, None) => ConfirmedChange::Permanent,
        (_, Some(FileLocation::Trash(_))) => ConfirmedChange::Delete,
        (from, to) if from != to => ConfirmedChange::Move,
        _ => ConfirmedChange::Edit,
    };
    // A memory that is forgotten is gone for those who search.
    let forgotten = (plan.operation == FORGET).then_some(ConfirmedChange::Delete);
    plan.files.iter().map(of_file).chain(plan.folders.iter().map(|_| ConfirmedChange::Move)).chain(forgotten)
}

fn named(kind: ConfirmedChange) -> &'static str {
    match kind {
        ConfirmedChange::Create => "new file",
        ConfirmedChange::Edit => "edit",
        ConfirmedChange::Move => "move",
        ConfirmedChange::Delete => "deletion",
        ConfirmedChange::Permanent => "permanent deletion",
    }
}

/// Replaces the names of notes in an operation by their paths, so that it means the same notes whatever else exists.
fn by_path(view: &View<'_>, operation: &Operation) -> Result<Operation> {
    let mut operation = operation.clone();
    let set = |name: &mut String| -> Result<()> {
        // A folder is named by its path already.
        if let Ok(path) = view.find(name) {
            *name = path.to_string();
        }
        Ok(())
    };
    match &mut operation {
        Operation::Edit(request) => set(&mut request.note)?,
        Operation::EditMany(requests) => {
            requests.iter_mut().try_for_each(|request| set(&mut request.note))?
        }
        Operation::Revise(request) => set(&mut request.note)?,
        Operation::Move(request) => set(&mut request.from)?,
        Operation::RenamePart(request) => set(&mut request.note)?,
        Operation::Link(request) | Operation::Unlink(request) => {
            set(&mut request.a)?;
            set(&mut request.b)?;
        }
        Operation::Merge(request) => {
            request.from.iter_mut().try_for_each(set)?;
            set(&mut request.into)?;
        }
        Operation::Extract(request) => set(&mut request.note)?,
        Operation::Delete(request) => set(&mut request.note)?,
        Operation::New(_) | Operation::RenameEverywhere(_) | Operation::Restore(_) => {}
    }
    Ok(operation)
}

/// Lists the notes that an operation names, and those that it makes, moves or removes: in all others it rewrites links alone.
fn named_notes(operation: &Operation, plan: &ChangeSet) -> BTreeSet<NotePath> {
    let texts: Vec<&String> = match operation {
        Operation::Edit(request) => vec![&request.note],
        Operation::EditMany(requests) => requests.iter().map(|request| &request.note).collect(),
        Operation::Revise(request) => vec![&request.note],
        Operation::RenamePart(request) => vec![&request.note],
        Operation::Link(request) | Operation::Unlink(request) => vec![&request.a, &request.b],
        Operation::Merge(request) => request.from.iter().chain([&request.into]).collect(),
        Operation::Extract(request) => vec![&request.note],
        Operation::Move(_) | Operation::Delete(_) | Operation::New(_) | Operation::Restore(_) => Vec::new(),
        // It names a tag or property of every note.
        Operation::RenameEverywhere(_) => {
            return plan
                .files
                .iter()
                .flat_map(FileChange::places)
                .filter_map(FileLocation::in_vault)
                .cloned()
                .collect();
        }
    };
    let named = texts.into_iter().filter_map(|text| NotePath::from_disk(text));
    let others = plan.files.iter().filter(|file| file.from != file.to).flat_map(FileChange::places);
    named.chain(others.filter_map(FileLocation::in_vault).cloned()).collect()
}
