//! Makes proposals, lists them, and carries out what a person decides about them.

use std::collections::BTreeMap;

use serde::Serialize;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::wording::Wording;
use sidenote_change::Changes;
use sidenote_change::merge::MergeRequest;
use sidenote_change::operation::{ChangeReply, Operation};
use sidenote_markdown::decode::decode;
use sidenote_markdown::edit::{ChangeSet, Content, ContentHash, FileChange, FileLocation, apply};
use sidenote_markdown::note::Note;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::source_edit::source_edits;
use sidenote_memory::left_out::left_out;
use sidenote_open_vault::agent_access::MINUTE;
use sidenote_open_vault::caller::Role;

use crate::Proposals;
use crate::proposal::{
    Decision, Draft, Proposal, ProposalItem, ProposalKind, ProposalSource, ProposalState, Recipe,
};
use crate::records::StoredProposals;

/// Which proposals are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProposalsRequest {
    /// The kind.
    pub kind: Option<ProposalKind>,
    /// Whether decided ones are listed, too.
    pub all: bool,
}

/// A list of proposals.
#[derive(Debug, Clone, Serialize)]
pub struct ProposalsReply {
    /// The proposals, the oldest first.
    pub proposals: Vec<ProposalItem>,
    /// How many wait.
    pub waiting: usize,
    /// The files that cannot be read, each with the reason: proposals, and sources of proposals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// One proposal.
#[derive(Debug, Clone, Serialize)]
pub struct ProposalReply {
    /// The proposal.
    #[serde(flatten)]
    pub proposal: Proposal,
    /// The sources that changed or were removed since. The proposal cannot be accepted if there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// What became of an accepted proposal, or would become of it.
#[derive(Debug, Clone, Serialize)]
pub struct AcceptReply {
    /// The id of the proposal.
    pub id: String,
    /// Why it was proposed.
    pub kind: ProposalKind,
    /// The change.
    pub change: ChangeReply,
}

/// A proposal that could not be accepted.
#[derive(Debug, Clone, Serialize)]
pub struct RefusedProposal {
    /// The id of the proposal.
    pub id: String,
    /// Why it was refused, and what to do.
    pub reason: String,
    /// The kind of the failure.
    #[serde(skip)]
    pub failure: ErrorKind,
}

/// What became of several proposals.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AcceptedProposals {
    /// Those that were accepted, or would be.
    pub accepted: Vec<AcceptReply>,
    /// Those that were not.
    pub refused: Vec<RefusedProposal>,
    /// Contradictions, of which a person has to say which note holds. They are accepted by their ids or their kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
}

impl Proposals<'_> {
    /// Keeps a planned change as a proposal. The same change, proposed again while the first proposal waits or after it was
    /// rejected, is that proposal.
    ///
    /// # Errors
    /// `Exists` if the file of the same proposal is damaged;
    /// Those of applying the change, of which a dry run is made; `Io` if the proposal cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn propose(&self, plan: ChangeSet, reason: &str, author: &str) -> Result<Proposal> {
        if plan.is_empty() {
            return Err(Error::invalid("the change changes nothing, so there is nothing to propose"));
        }
        let mut draft = Draft::of_change(plan, reason);
        // A plan need not say what a file has that it removes.
        let unhashed = draft.plan.files.iter().filter(|file| file.before.is_none());
        for path in unhashed.filter_map(|file| file.from.as_ref().and_then(FileLocation::in_vault)) {
            let hash = ContentHash::of(&self.core.read_bytes(path)?);
            draft.sources.push(ProposalSource { path: path.to_string(), hash });
        }
        let proposal = self.proposal_of(draft, author)?;
        self.refuse_too_many()?;
        if let Ok(known) = self.named(&proposal.id)
            && known.state != ProposalState::Accepted
        {
            return Ok(known);
        }
        if let Some(damaged) = self.stored()?.damaged_as(&proposal.id) {
            return Err(Error::new(ErrorKind::Exists, damaged));
        }
        self.store(&proposal)?;
        Ok(proposal)
    }

    /// Refuses an agent that made as many proposals in the last minute as its rule allows changes.
    fn refuse_too_many(&self) -> Result<()> {
        let Some((access, rate)) =
            self.core.agent.as_ref().and_then(|access| Some((access, access.rule.rate?)))
        else {
            return Ok(());
        };
        let now = self.core.clock.now().millis();
        let is_recent = |proposal: &&Proposal| {
            proposal.author == self.core.client && (0..MINUTE).contains(&(now - proposal.created.millis()))
        };
        let made = self.stored()?.proposals.iter().filter(is_recent).count();
        if made < usize::try_from(rate).unwrap_or(usize::MAX) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{} allows {rate} changes a minute, and so many proposals; nothing was proposed",
            access.name()
        ))
        .with_hint("wait a minute, or make several edits in one call"))
    }

    /// Makes a proposal of a draft, with the diff of its plan. Nothing is written.
    pub(crate) fn proposal_of(&self, draft: Draft, author: &str) -> Result<Proposal> {
        let id = draft.id()?;
        let checked = Changes::of(self.core).apply_planned(|_| Ok(draft.plan), true)?;
        Ok(Proposal {
            id,
            kind: draft.kind,
            state: ProposalState::Waiting,
            reason: draft.reason,
            evidence: draft.evidence,
            author: author.to_owned(),
            created: self.core.clock.now(),
            sources: draft.sources,
            recipe: draft.recipe,
            plan: checked.plan,
            diff: checked.diff.unwrap_or_default(),
            texts: BTreeMap::new(),
            replaced: Vec::new(),
            left_out: Vec::new(),
            started: None,
            decision: None,
        })
    }

    /// Lists proposals.
    ///
    /// # Errors
    /// `Io` if the folder of proposals cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn list(&self, request: ProposalsRequest) -> Result<ProposalsReply> {
        let StoredProposals { proposals: stored, mut damaged, .. } = self.stored()?;
        let waiting = stored.iter().filter(|proposal| proposal.is_waiting()).count();
        let shown = stored.iter().filter(|proposal| request.all || proposal.is_waiting());
        let shown = shown.filter(|proposal| request.kind.is_none_or(|kind| kind == proposal.kind));
        let mut proposals = Vec::new();
        for proposal in shown {
            let changed = self.changed_since(proposal).unwrap_or_else(|error| {
                damaged.push(format!("a source of the proposal {} cannot be read: {error}", proposal.id));
                Vec::new()
            });
            proposals.push(ProposalItem { changed, ..ProposalItem::from(&self.as_seen(proposal.clone())?) });
        }
        Ok(ProposalsReply { proposals, waiting, damaged })
    }

    /// Counts the proposals that wait.
    ///
    /// # Errors
    /// `Io` if the folder of proposals cannot be read.
    pub fn waiting_count(&self) -> Result<usize> {
        Ok(self.stored()?.proposals.iter().filter(|proposal| proposal.is_waiting()).count())
    }

    /// Returns a proposal, by its id or the beginning of it.
    ///
    /// # Errors
    /// `NotFound` if there is none; `Exists` if several begin so.
    #[tracing::instrument(skip_all)]
    pub fn show(&self, id: &str) -> Result<ProposalReply> {
        let proposal = self.named(id)?;
        let changed = self.changed_since(&proposal)?;
        Ok(ProposalReply { proposal: self.as_seen(proposal)?, changed })
    }

    /// Applies the change of a proposal as one operation, or plans it only with `dry_run`.
    ///
    /// # Errors
    /// `NotFound` if there is no such proposal; `Exists` if it was decided already and not undone; `Conflict` if one of its
    /// sources changed since; those of applying a change.
    #[tracing::instrument(skip_all)]
    pub fn accept(&self, id: &str, dry_run: bool) -> Result<AcceptReply> {
        let mut proposal = self.undecided(id)?;
        if !dry_run {
            proposal.started = Some(self.core.clock.now());
            self.store(&proposal)?;
        }
        let plan = |_: Option<&_>| {
            let changed = self.changed_sources(&proposal)?;
            if changed.is_empty() { self.plan_again(&proposal) } else { Err(stale(&proposal, &changed)) }
        };
        let change = Changes::of(self.core).apply_planned(plan, dry_run)?;
        if !dry_run {
            self.decide(proposal.clone(), ProposalState::Accepted, change.id.clone())?;
        }
        Ok(AcceptReply { id: proposal.id, kind: proposal.kind, change })
    }

    /// Accepts proposals one after the other, each as one operation. One that is refused does not hinder the others.
    /// Without a kind, contradictions are left out. What removes files for good is refused.
    ///
    /// # Errors
    /// `Io` if the folder of proposals cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn accept_all(&self, kind: Option<ProposalKind>, dry_run: bool) -> Result<AcceptedProposals> {
        let mut reply = AcceptedProposals::default();
        for item in self.list(ProposalsRequest { kind, all: false })?.proposals {
            if kind.is_none() && item.kind == ProposalKind::Contradiction {
                reply.contradictions.push(item.id);
                continue;
            }
            if item.is_final {
                let reason = format!(
                    "it removes {} for good, which undo cannot take back; accept it by its id",
                    item.paths.join(", ")
                );
                reply.refused.push(RefusedProposal { id: item.id, reason, failure: ErrorKind::Invalid });
                continue;
            }
            match self.accept(&item.id, dry_run) {
                Ok(accepted) => reply.accepted.push(accepted),
                Err(error) => reply.refused.push(RefusedProposal::of(item.id, &error)),
            }
        }
        Ok(reply)
    }

    /// Rejects a proposal. It is kept, so that it does not come back unless a source changes.
    ///
    /// # Errors
    /// `NotFound` if there is no such proposal; `Exists` if it was decided already; `Io` if it cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn reject(&self, id: &str) -> Result<ProposalItem> {
        let rejected = self.decide(self.undecided(id)?, ProposalState::Rejected, None)?;
        Ok(ProposalItem::from(&rejected))
    }

    /// Lets a proposal that was rejected wait again.
    ///
    /// # Errors
    /// `NotFound` if there is no such proposal; `Exists` if it was accepted, or waits; `Io` if it cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn reopen(&self, id: &str) -> Result<ProposalItem> {
        let proposal = self.rejected(id)?;
        self.refuse_reader()?;
        let waiting = Proposal { state: ProposalState::Waiting, decision: None, ..proposal };
        self.store(&waiting)?;
        Ok(ProposalItem { changed: self.changed_since(&waiting)?, ..ProposalItem::from(&waiting) })
    }

    /// Returns a proposal that was rejected.
    ///
    /// # Errors
    /// `NotFound` if there is no such proposal; `Exists` if it was accepted, or waits.
    pub fn rejected(&self, id: &str) -> Result<Proposal> {
        let proposal = self.named(id)?;
        match proposal.state {
            ProposalState::Rejected => Ok(proposal),
            ProposalState::Waiting => {
                Err(Error::new(ErrorKind::Exists, format!("the proposal {} waits already", proposal.id)))
            }
            ProposalState::Accepted => Err(decided_already(&proposal)),
        }
    }

    /// Replaces the text that a proposal gives to a file. `path` may be left out if the plan writes one file. `declared`
    /// are numbers, names and dates of the sources that the text leaves out on purpose.
    ///
    /// # Errors
    /// `NotFound` if there is no such proposal, or its plan does not write the file; `Exists` if it was decided already;
    /// `Conflict` if a source changed since; `Invalid` if an agent leaves something out that is not declared.
    #[tracing::instrument(skip_all)]
    pub fn edit(
        &self,
        id: &str,
        path: Option<&str>,
        text: &str,
        declared: &[String],
        dry_run: bool,
    ) -> Result<ProposalReply> {
        let mut proposal = self.undecided(id)?;
        self.refuse_reader()?;
        let changed = self.changed_sources(&proposal)?;
        if !changed.is_empty() {
            return Err(stale(&proposal, &changed));
        }
        let path = written_path(&proposal, path)?;
        let mut text = text.to_owned();
        // A person who gives the whole text sees what is in it, as in an editor.
        if self.core.is_agent {
            self.core.clean(&mut text);
        }
        self.note_replaced(&mut proposal, &path)?;
        proposal.texts.insert(path, text);
        proposal.left_out = self.left_out_of(&proposal)?;
        if self.core.is_agent {
            refuse_undeclared(&proposal.left_out, declared)?;
        }
        let plan = |_: Option<&_>| self.plan_again(&proposal);
        let checked = Changes::of(self.core).apply_planned(plan, true)?;
        (proposal.plan, proposal.diff) = (checked.plan, checked.diff.unwrap_or_default());
        if !dry_run {
            self.store(&proposal)?;
        }
        Ok(ProposalReply { proposal: self.as_seen(proposal)?, changed: Vec::new() })
    }

    /// Notes what a file has that a given text replaces, so that a later change of it is not overwritten.
    fn note_replaced(&self, proposal: &mut Proposal, path: &str) -> Result<()> {
        for file in &self.plan_again(proposal)?.files {
            let is_it = file.to.as_ref().is_some_and(|to| to.to_string() == path);
            let Some(from) = file.from.as_ref().and_then(FileLocation::in_vault).filter(|_| is_it) else {
                continue;
            };
            let from = ProposalSource {
                path: from.to_string(),
                hash: ContentHash::of(&self.core.read_bytes(from)?),
            };
            let is_known = |known: &ProposalSource| known.path == from.path;
            if !proposal.sources.iter().chain(&proposal.replaced).any(is_known) {
                proposal.replaced.push(from);
            }
        }
        Ok(())
    }

    /// Lists the numbers, names and dates of the sources that no file of the plan has.
    fn left_out_of(&self, proposal: &Proposal) -> Result<Vec<String>> {
        let mut sources = Vec::new();
        for source in &proposal.sources {
            let Some(path) = NotePath::from_disk(&source.path) else { continue };
            sources.push(without_own_lines(&decode(&self.core.read_bytes(&path)?).text));
        }
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        let mut result = String::new();
        for change in &self.plan_again(proposal)?.files {
            let is_kept = change.to.as_ref().is_some_and(|to| to.in_vault().is_some());
            if is_kept && let Some(text) = self.text_after(change)? {
                result.push_str(&text);
                result.push('\n');
            }
        }
        Ok(left_out(&sources, &result))
    }

    /// Returns the text that a file has after a change; `None` for one that is no text.
    pub(crate) fn text_after(&self, change: &FileChange) -> Result<Option<String>> {
        let old = match change.from.as_ref().and_then(FileLocation::in_vault) {
            Some(path) => self.core.read_bytes(path)?,
            None => Vec::new(),
        };
        let new = match &change.content {
            Content::Keep => old,
            Content::Edits(edits) => apply(&old, edits)?,
            Content::Whole(bytes) => bytes.clone(),
        };
        Ok(String::from_utf8(new).ok())
    }

    /// Returns a proposal about which nothing was decided.
    fn undecided(&self, id: &str) -> Result<Proposal> {
        let mut proposal = self.named(id)?;
        if proposal.state == ProposalState::Accepted && self.is_undone(&proposal)? {
            (proposal.state, proposal.started, proposal.decision) = (ProposalState::Waiting, None, None);
        }
        if proposal.is_waiting() {
            return Ok(proposal);
        }
        Err(decided_already(&proposal))
    }

    /// Lists the sources of a proposal that waits which changed or were removed since. It is outdated if there is one.
    fn changed_since(&self, proposal: &Proposal) -> Result<Vec<String>> {
        if proposal.is_waiting() { self.changed_sources(proposal) } else { Ok(Vec::new()) }
    }

    /// Returns whether the sources of a proposal are as they were before it was accepted, and the files that it made are gone,
    /// because that was undone.
    fn is_undone(&self, proposal: &Proposal) -> Result<bool> {
        let made = proposal.plan.files.iter().filter(|file| file.from.is_none());
        let mut made = made.filter_map(|file| file.to.as_ref().and_then(FileLocation::in_vault));
        let is_gone = !made.any(|path| self.core.vault.has_entry(path));
        Ok(is_gone && !proposal.plan.is_empty() && self.changed_sources(proposal)?.is_empty())
    }

    /// Lists the sources of a proposal, and the files that given texts replace, that changed or were removed since.
    pub(crate) fn changed_sources(&self, proposal: &Proposal) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        for source in proposal.sources.iter().chain(&proposal.replaced) {
            // A plan of a synchronisation can have settings, whose change is noticed when it is applied.
            let Some(path) = NotePath::from_disk(&source.path) else { continue };
            match self.core.read_bytes(&path) {
                Ok(bytes) if ContentHash::of(&bytes) == source.hash => {}
                Ok(_) => changed.push(source.path.clone()),
                Err(error) if error.kind() == ErrorKind::NotFound => changed.push(source.path.clone()),
                Err(error) => return Err(error),
            }
        }
        Ok(changed)
    }

    /// Plans the change of a proposal on the files as they are now, with the texts that were given to files.
    pub(crate) fn plan_again(&self, proposal: &Proposal) -> Result<ChangeSet> {
        let mut plan = match &proposal.recipe {
            Recipe::Plan => proposal.plan.clone(),
            Recipe::Merge { from, into, title } => {
                Changes::of(self.core).plan(&merge_operation(from, into, title.as_deref()))?
            }
        };
        for (path, text) in &proposal.texts {
            let is_it = |file: &&mut FileChange| file.to.as_ref().is_some_and(|to| to.to_string() == *path);
            let Some(file) = plan.files.iter_mut().find(is_it) else {
                return Err(Error::internal(format!("the plan no longer writes {path}")));
            };
            let source = file.from.as_ref().and_then(FileLocation::in_vault).cloned();
            file.content = match source {
                None => Content::Whole(text.clone().into_bytes()),
                Some(source) => {
                    let bytes = self.core.read_bytes(&source)?;
                    let old = String::from_utf8(bytes)
                        .map_err(|_| Error::invalid(format!("{source} is not UTF-8, so it is not edited")))?;
                    Content::Edits(source_edits(&old, text))
                }
            };
        }
        Ok(plan)
    }

    fn decide(
        &self,
        proposal: Proposal,
        state: ProposalState,
        operation: Option<String>,
    ) -> Result<Proposal> {
        self.refuse_reader()?;
        let (at, by) = (self.core.clock.now(), self.core.client.clone());
        let proposal = Proposal { state, decision: Some(Decision { at, by, operation }), ..proposal };
        self.store(&proposal)?;
        Ok(proposal)
    }

    /// Refuses a call without the right to decide about proposals.
    fn refuse_reader(&self) -> Result<()> {
        if self.core.right >= Role::Writer {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "to decide about a proposal needs the role {}, and this call has the right of the role {}",
            Role::Writer,
            self.core.right
        )))
    }
}

impl RefusedProposal {
    /// Says why a proposal was refused.
    pub fn of(id: String, error: &Error) -> Self {
        let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        Self { id, reason: format!("{error}{hint}"), failure: error.kind() }
    }
}

/// Returns the operation that merges notes into another one, with the provenance of what is merged.
pub(crate) fn merge_operation(from: &[String], into: &str, title: Option<&str>) -> Operation {
    Operation::Merge(MergeRequest {
        from: from.to_vec(),
        into: into.to_owned(),
        consolidates: true,
        title: title.map(str::to_owned),
    })
}

/// Returns the file whose text an edit replaces.
fn written_path(proposal: &Proposal, path: Option<&str>) -> Result<String> {
    let written: Vec<String> = written_files(&proposal.plan).map(|(path, _)| path.to_string()).collect();
    let listed = || written.join(", ");
    match (path, written.as_slice()) {
        (_, []) => Err(Error::invalid(format!(
            "the proposal {} writes no text that could be another one",
            proposal.id
        ))
        .with_hint("it can be accepted or rejected as it is")),
        (Some(path), _) if written.iter().any(|own| own == path) => Ok(path.to_owned()),
        (None, [only]) => Ok(only.clone()),
        (Some(path), _) => {
            Err(Error::not_found(format!("the proposal {} does not write {path}", proposal.id))
                .with_hint(format!("it writes: {}", listed())))
        }
        (None, _) => Err(Error::invalid(format!("the proposal {} writes several files", proposal.id))
            .with_hint(format!("name one of: {}", listed()))),
    }
}

/// Lists the files of the vault that a plan writes, each with its path after it.
pub(crate) fn written_files(plan: &ChangeSet) -> impl Iterator<Item = (&NotePath, &FileChange)> {
    plan.files
        .iter()
        .filter(|file| file.writes())
        .filter_map(|file| Some((file.to.as_ref()?.in_vault()?, file)))
}

fn decided_already(proposal: &Proposal) -> Error {
    let done = proposal.state.name();
    let hint = match proposal.decision.as_ref().and_then(|decision| decision.operation.as_ref()) {
        Some(operation) => {
            let agent = format!("the operation {operation} can be undone");
            Wording::new(format!("to take it back: sidenote undo {operation}"), agent)
                .with_page("it can be taken back in Activity")
        }
        None => Wording::new(
            format!("to have it wait again: sidenote proposals reopen {}", proposal.id),
            "the next consolidation proposes it again if a source changes",
        )
        .with_page("let it wait again first"),
    };
    Error::new(ErrorKind::Exists, format!("the proposal {} was {done} already", proposal.id)).with_hint(hint)
}

/// Returns a text without the properties that are of the note itself and no fact: ids and times.
fn without_own_lines(text: &str) -> String {
    let end = Note::parse(text).body_start;
    let (front, body) = (text.get(..end).unwrap_or_default(), text.get(end..).unwrap_or_default());
    let is_own = |line: &&str| {
        let key = line.split(':').next().unwrap_or_default();
        ["id", "created", "created_at", "updated", "updated_at", "modified"].contains(&key)
    };
    let kept: String = front.split_inclusive('\n').filter(|line| !is_own(line)).collect();
    kept + body
}

/// Refuses a text that leaves out something that is not declared.
fn refuse_undeclared(left_out: &[String], declared: &[String]) -> Result<()> {
    let missing: Vec<&str> = left_out
        .iter()
        .filter(|item| !declared.iter().any(|said| said.trim().eq_ignore_ascii_case(item)))
        .map(String::as_str)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!("the text leaves out of the sources: {}", missing.join(", ")))
        .with_hint("keep each of them, or list in left_out what is left out on purpose"))
}

fn stale(proposal: &Proposal, changed: &[String]) -> Error {
    let what = if changed.len() == 1 { "a source" } else { "sources" };
    let hint = match proposal.kind {
        ProposalKind::Change => Wording::from("ask for the change again, or reject the proposal"),
        _ => Wording::new(
            "run `sidenote memory consolidate` again, which proposes what holds now",
            "the next consolidation proposes what holds now",
        )
        .with_page("look for more, which proposes what holds now"),
    };
    Error::new(
        ErrorKind::Conflict,
        format!(
            "{what} of the proposal {} changed since: {}; nothing was written",
            proposal.id,
            changed.join(", ")
        ),
    )
    .with_hint(hint)
}
