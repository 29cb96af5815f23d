//! Consolidation: finds what keeps the memories of a vault from being useful, and makes proposals of it. Each kind has a
//! rule of its own in a file of this folder (docs/spec/agents.md 4). Nothing but proposals is written.

mod clusters;
mod duplicates;
mod facts;
mod handoffs;
mod links;
mod nightly;
mod same_text;
mod single;

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_base::parallel;
use sidenote_catalog::{FileRow, Filter, Inactive};
use sidenote_change::Changes;
use sidenote_change::create::NewRequest;
use sidenote_change::edit::{EditRequest, NoteEdit};
use sidenote_change::operation::Operation;
use sidenote_change::revise::ReviseRequest;
use sidenote_markdown::edit::ChangeSet;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::word_sketch::WordSketch;
use sidenote_memory::statement::Statement;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::source::Source;
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::memory_weights::Memory;
use sidenote_query::memory_weights::MemoryWeights;
use sidenote_query::validity::invalidities;
use sidenote_search::note_date::NoteDate;

use crate::Proposals;
use crate::decide::merge_operation;
use crate::proposal::{
    Draft, Proposal, ProposalEvidence, ProposalItem, ProposalKind, ProposalSource, ProposalState, Recipe,
};

/// The author of the proposals that consolidation makes.
const AUTHOR: &str = "consolidation";

/// The bytes of a note that are shown as evidence.
const SHOWN: usize = 600;

/// What is consolidated.
#[derive(Debug, Clone, Default)]
pub struct ConsolidateRequest {
    /// The kinds that are looked for; all if it is empty.
    pub kinds: Vec<ProposalKind>,
    /// The folder whose notes are compared; the whole vault if it is missing.
    pub folder: Option<String>,
    /// Whether the proposals are only shown, and not kept.
    pub dry_run: bool,
}

/// What a consolidation found.
#[derive(Debug, Clone, Serialize)]
pub struct ConsolidateReply {
    /// The new proposals.
    pub proposals: Vec<ProposalItem>,
    /// The number of new proposals of each kind.
    pub counts: BTreeMap<&'static str, usize>,
    /// The number of findings that were proposed before.
    pub known: usize,
    /// The number of findings whose notes another proposal that waits changes. They are proposed after its decision.
    pub later: usize,
    /// The number of notes that were compared.
    pub notes: usize,
    /// The number of proposals that wait, the new ones included.
    pub waiting: usize,
    /// The ids of the proposals that waited and whose notes changed since. Those of consolidations are removed where the
    /// same kind was looked for in the whole vault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outdated: Vec<String>,
    /// What could not be proposed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A note with what is compared of it.
struct Compared {
    memory: Memory,
    source: Source,
    date: NoteDate,
    statement: Option<Statement>,
    sketch: WordSketch,
    /// Whether the note was created as a memory.
    is_own: bool,
    /// Whether another note supersedes it, or its time is over.
    is_over: bool,
}

impl Compared {
    fn path(&self) -> &str {
        self.source.path.as_str()
    }

    fn origin(&self) -> ProposalSource {
        ProposalSource { path: self.source.path.to_string(), hash: self.source.hash }
    }

    fn evidence(&self) -> ProposalEvidence {
        let body = self.source.body();
        let end = (0..=SHOWN.min(body.len())).rev().find(|end| body.is_char_boundary(*end)).unwrap_or(0);
        let more = if end < body.len() { "…" } else { "" };
        let text = format!("{}{more}", body.get(..end).unwrap_or_default());
        ProposalEvidence { path: self.source.path.to_string(), text }
    }
}

/// What a finding would do.
enum Action {
    Merge { from: Vec<String>, into: String, title: Option<String> },
    Edit(&'static str, Vec<EditRequest>),
    Retitle { note: String, title: String },
    New(NewRequest),
    Plan(ChangeSet),
}

/// Something that was found.
struct Finding {
    kind: ProposalKind,
    reason: String,
    evidence: Vec<ProposalEvidence>,
    sources: Vec<ProposalSource>,
    /// The paths of the sources that the change changes. Two proposals that wait never change the same one.
    changed: Vec<String>,
    action: Action,
}

/// The notes of the stored proposals, by which known findings are left out.
#[derive(Default)]
struct Known {
    ids: HashSet<String>,
    /// Those of proposals that do not exist for the caller, whose files are not replaced.
    unseen_ids: HashSet<String>,
    /// The kinds and sources of the proposals about single notes.
    single: HashSet<(ProposalKind, String, String)>,
    /// The files that proposals which wait change.
    changed: HashSet<String>,
    /// The files that proposals which wait are made of.
    used: HashSet<String>,
    waiting: usize,
}

impl Known {
    /// Notes the stored proposals, without those that wait and whose notes changed since: they can only be made anew.
    fn of(proposals: &[Proposal], outdated: &HashSet<String>) -> Self {
        let mut known = Self::default();
        for proposal in proposals {
            if outdated.contains(&proposal.id) {
                known.waiting += 1;
                continue;
            }
            known.ids.insert(proposal.id.clone());
            for source in &proposal.sources {
                known.single.insert((proposal.kind, source.path.clone(), source.hash.to_string()));
            }
            if proposal.state != ProposalState::Waiting {
                continue;
            }
            known.waiting += 1;
            known.used.extend(proposal.sources.iter().map(|source| source.path.clone()));
            let sources: HashSet<&str> = proposal.sources.iter().map(|source| source.path.as_str()).collect();
            known.changed.extend(proposal.paths().into_iter().filter(|path| sources.contains(path.as_str())));
        }
        known
    }

    /// Returns whether a note had a proposal of a kind before, with the same content.
    fn has(&self, kind: ProposalKind, note: &Compared) -> bool {
        self.single.contains(&(kind, note.path().to_owned(), note.source.hash.to_string()))
    }

    /// Returns whether a finding changes what another proposal that waits is made of, or the other way round.
    fn is_taken(&self, finding: &Finding) -> bool {
        finding.changed.iter().any(|path| self.used.contains(path))
            || finding.sources.iter().any(|source| self.changed.contains(&source.path))
    }

    fn take(&mut self, finding: &Finding) {
        self.changed.extend(finding.changed.iter().cloned());
        self.used.extend(finding.sources.iter().map(|source| source.path.clone()));
    }
}

impl Proposals<'_> {
    /// Looks for everything that a person could consolidate, and keeps a proposal for each finding. What was proposed
    /// before does not come back unless a source changes.
    ///
    /// # Errors
    /// `NotFound` if the folder does not exist; `Io` if notes cannot be read or proposals cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn consolidate(&self, request: &ConsolidateRequest) -> Result<ConsolidateReply> {
        if !request.dry_run {
            self.core.vault.refuse_read_only()?;
        }
        if request.kinds.contains(&ProposalKind::Change) {
            let kinds = ProposalKind::ALL.into_iter().filter(|kind| *kind != ProposalKind::Change);
            let kinds: Vec<&str> = kinds.map(ProposalKind::name).collect();
            return Err(Error::invalid("changes are asked for, and no consolidation finds them")
                .with_hint(format!("use one of: {}", kinds.join(", "))));
        }
        IndexSync::of(self.core).refresh()?;
        let notes = self.compared(request)?;
        let stored = self.stored()?;
        let outdated = self.outdated(&stored.proposals)?;
        let mut known = Known::of(&stored.proposals, &outdated.iter().cloned().collect());
        known.ids.extend(stored.damaged_ids);
        known.unseen_ids.extend(stored.unseen_ids);
        let mut reply = ConsolidateReply {
            proposals: Vec::new(),
            counts: BTreeMap::new(),
            known: 0,
            later: 0,
            notes: notes.len(),
            waiting: 0,
            outdated: Vec::new(),
            notices: stored.damaged,
        };
        let wants = |kind: ProposalKind| request.kinds.is_empty() || request.kinds.contains(&kind);
        let mut findings = Vec::new();
        let pairs = facts::related_pairs(&notes);
        findings.extend(duplicates::find(&notes, &pairs));
        findings.extend(facts::find(&notes, &pairs));
        findings.extend(handoffs::find(self, &notes)?);
        findings.extend(single::find(self, &notes, &known)?);
        findings.extend(clusters::find(&notes, &known));
        findings.extend(links::find(self, &notes, request, &mut reply.notices)?);
        for proposal in stored.proposals.iter().filter(|proposal| outdated.contains(&proposal.id)) {
            // What a consolidation proposed, it finds again where it looks.
            let is_replaced = proposal.author == AUTHOR && wants(proposal.kind) && request.folder.is_none();
            if is_replaced {
                known.waiting -= 1;
                if !request.dry_run {
                    self.discard(&proposal.id)?;
                }
            }
            reply.outdated.push(proposal.id.clone());
        }
        for finding in findings.into_iter().filter(|finding| wants(finding.kind)) {
            self.core.check_cancelled()?;
            self.keep(finding, &mut known, request.dry_run, &mut reply)?;
        }
        reply.waiting = known.waiting + reply.proposals.len();
        Ok(reply)
    }

    /// Lists the ids of the proposals that wait and of which a note changed, moved or was removed since.
    fn outdated(&self, proposals: &[Proposal]) -> Result<Vec<String>> {
        let mut outdated = Vec::new();
        for proposal in proposals.iter().filter(|proposal| proposal.state == ProposalState::Waiting) {
            if !self.changed_sources(proposal)?.is_empty() {
                outdated.push(proposal.id.clone());
            }
        }
        Ok(outdated)
    }

    /// Makes a proposal of a finding unless it is known, or its notes are taken by another one.
    fn keep(
        &self,
        finding: Finding,
        known: &mut Known,
        dry_run: bool,
        reply: &mut ConsolidateReply,
    ) -> Result<()> {
        let mut draft = Draft {
            kind: finding.kind,
            reason: finding.reason.clone(),
            evidence: finding.evidence.clone(),
            sources: finding.sources.clone(),
            recipe: match &finding.action {
                Action::Merge { from, into, title } => {
                    Recipe::Merge { from: from.clone(), into: into.clone(), title: title.clone() }
                }
                _ => Recipe::Plan,
            },
            plan: match &finding.action {
                Action::Plan(plan) => plan.clone(),
                _ => ChangeSet::default(),
            },
        };
        if known.unseen_ids.contains(&draft.id()?) {
            return Ok(());
        }
        if known.ids.contains(&draft.id()?) {
            reply.known += 1;
            return Ok(());
        }
        if known.is_taken(&finding) {
            reply.later += 1;
            return Ok(());
        }
        let kept = self.plan_of(&finding.action).and_then(|plan| {
            draft.plan = plan;
            self.proposal_of(draft, AUTHOR)
        });
        let proposal = match kept {
            Ok(proposal) if proposal.plan.is_empty() => return Ok(()),
            Ok(proposal) => proposal,
            Err(error) => {
                let paths: Vec<&str> = finding.sources.iter().map(|source| source.path.as_str()).collect();
                reply.notices.push(format!("{} cannot be consolidated: {error}", paths.join(", ")));
                return Ok(());
            }
        };
        if !dry_run {
            self.store(&proposal)?;
        }
        known.take(&finding);
        known.ids.insert(proposal.id.clone());
        *reply.counts.entry(proposal.kind.name()).or_default() += 1;
        reply.proposals.push(ProposalItem::from(&proposal));
        Ok(())
    }

    /// Plans what a finding would do.
    fn plan_of(&self, action: &Action) -> Result<ChangeSet> {
        let changes = Changes::of(self.core);
        match action {
            Action::Merge { from, into, title } => {
                changes.plan(&merge_operation(from, into, title.as_deref()))
            }
            Action::Edit(name, edits) => {
                let plan = changes.plan(&Operation::EditMany(edits.clone()))?;
                Ok(ChangeSet { operation: (*name).to_owned(), ..plan })
            }
            Action::Retitle { note, title } => {
                let request = ReviseRequest {
                    note: note.clone(),
                    title: Some(title.clone()),
                    ..ReviseRequest::default()
                };
                changes.plan(&Operation::Revise(request))
            }
            Action::New(request) => changes.plan(&Operation::New(request.clone())),
            Action::Plan(plan) => Ok(plan.clone()),
        }
    }

    /// Reads the notes that are compared: the active ones, without those that the settings exclude.
    fn compared(&self, request: &ConsolidateRequest) -> Result<Vec<Compared>> {
        let now = self.core.clock.now();
        let hidden = Inactive { forgotten: true, archived: true };
        let filter = Filter { folder: request.folder.clone(), hidden, ..Filter::default() };
        let filter = Lookup::of(self.core).with_canonical_folder(&filter)?;
        if let Some(folder) = &filter.folder
            && NotePath::from_disk(folder).is_none_or(|path| !self.core.vault.disk_path(&path).is_dir())
        {
            return Err(Error::not_found(format!("there is no folder {folder:?} in the vault"))
                .with_hint("give the path of a folder from the root of the vault"));
        }
        let mut rows: Vec<FileRow> = self.core.index.catalog().select(&filter)?;
        rows.retain(|row| !row.excluded && row.path.is_note());
        rows.sort_by(|one, other| one.path.cmp(&other.path));
        let over = invalidities(self.core, rows.iter().map(|row| row.id), now)?;
        let weights = MemoryWeights::of(self.core);
        let memories = weights.weigh(rows, now)?;
        let read = |(): &mut (), memory: &Memory| -> Option<(Source, Option<Statement>, WordSketch)> {
            let bytes = match self.core.read_bytes(&memory.row.path) {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.core.warn_unless_gone(&error);
                    return None;
                }
            };
            let source = Source::unplaced(memory.row.path.clone(), &bytes);
            // A file that is not rewritten cannot be consolidated.
            source.refusal().is_none().then(|| {
                let (statement, sketch) = (Statement::of(source.body()), WordSketch::of_body(source.body()));
                (source, statement, sketch)
            })
        };
        let read = parallel::map(&memories, 16, || (), read);
        self.core.check_cancelled()?;
        let note = |(memory, read): (Memory, Option<(Source, Option<Statement>, WordSketch)>)| {
            let (source, statement, sketch) = read?;
            let (date, is_own) = (NoteDate::of(&memory.row), weights.is_own(&memory));
            let is_over = over.contains_key(&memory.row.id);
            Some(Compared { memory, source, date, statement, sketch, is_own, is_over })
        };
        Ok(memories.into_iter().zip(read).filter_map(note).collect())
    }
}

/// Returns an edit that sets a property of a note.
fn set_property(note: &str, name: &str, value: Value) -> EditRequest {
    EditRequest { note: note.to_owned(), edit: NoteEdit::Set(name.to_owned(), value), expect: None }
}

/// Returns a link to a note by its whole path, which means the same wherever it stands.
fn link_to(path: &NotePath) -> String {
    format!("[[{}]]", path.as_str().strip_suffix(".md").unwrap_or(path.as_str()))
}
