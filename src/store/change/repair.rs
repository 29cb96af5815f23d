//! Repairs links that are dead, or lead elsewhere than they were meant to (spec/git.md 3): what each link meant, by
//! evidence of the index, the journal and git, and the edits that follow from it.

mod evidence;
mod git_evidence;
mod journal_evidence;
mod moved_files;
mod present;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::git::{Repository, Unfinished};
use crate::store::catalog_overlay::View;
use crate::store::change::Changes;
use crate::store::change::move_files::add_edits;
use crate::store::change::operation::ChangeReply;
use crate::store::change::repair::evidence::{Clue, LinkMeaning};
use crate::store::change::repair::git_evidence::GitEvidence;
use crate::store::change::repair::journal_evidence::journal_clues;
use crate::store::change::repair::present::{LinkCase, Present};
use crate::store::sync::IndexSync;
use crate::text::edit::ChangeSet;
use crate::text::path::NotePath;
use crate::text::rewrite::{Relink, relink};
use crate::text::span::Span;

pub use crate::store::change::repair::evidence::{Certainty, Evidence, EvidenceKind};

/// The operation name of a repair in the journal.
const OP_REPAIR: &str = "repair";

/// What to repair.
#[derive(Debug, Clone, Default)]
pub struct RepairRequest {
    /// Only links in these notes and folders; all if it is empty.
    pub paths: Vec<String>,
    /// Links of at least this certainty are repaired. `None` repairs nothing, and only reports.
    pub apply: Option<Certainty>,
    /// Links that are repaired, whatever their certainty, with the target that was chosen for each.
    pub chosen: Vec<ChosenTarget>,
    /// Whether to plan and write nothing.
    pub dry_run: bool,
    /// Whether to wait where git is in the middle of something, as an automatic repair does: nothing is repaired then.
    pub is_automatic: bool,
}

/// A target that a person chose for a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenTarget {
    /// The note with the link.
    pub path: String,
    /// The place of the link in the note.
    pub span: Span,
    /// The path of the file that it has to lead to.
    pub to: String,
}

/// One link that is dead or leads elsewhere, and what it meant.
#[derive(Debug, Clone, Serialize)]
pub struct RepairItem {
    /// The note with the link.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1.
    pub column: usize,
    /// The place of the link in the note, in bytes.
    pub span: Span,
    /// The link as written.
    pub link: String,
    /// Whether the link leads to no file. Otherwise it leads to another one than it meant.
    pub dead: bool,
    /// The path that the meant file had when the link was right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The meant file. `None` if it was deleted, or if several files are possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How certain that is; `None` if nothing speaks for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// The evidence, the strongest first.
    pub evidence: Vec<Evidence>,
    /// The file was deleted on purpose: by which commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<String>,
}

/// The reply to a repair.
#[derive(Debug, Clone, Serialize)]
pub struct RepairReply {
    /// The links of which something is known, by path and place.
    pub links: Vec<RepairItem>,
    /// The number of dead links of which nothing is known. They may be notes to write.
    pub unexplained: usize,
    /// The number of links that were repaired, or would be.
    pub repaired: usize,
    /// The change, or the plan for a dry run or a report.
    pub change: ChangeReply,
    /// Why nothing was repaired now, such as an unfinished merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

impl Changes<'_> {
    /// Finds links that are dead or lead elsewhere than they meant, and repairs those that the request names. The reply to
    /// a request that repairs nothing has the plan for all links that are certain or strong.
    ///
    /// # Errors
    /// `NotFound` if a path of the request is none; `Conflict` if a note changed meanwhile or another process holds the
    /// write lock; `Io` if files cannot be read or written. What git says is no error: without it, the other evidence
    /// counts.
    #[tracing::instrument(skip_all)]
    pub fn repair(&self, request: &RepairRequest) -> Result<RepairReply> {
        let repository = self.repository();
        let waits_for = repository.as_ref().filter(|_| request.is_automatic).and_then(waits_for);
        if waits_for.is_some() {
            let change = ChangeReply::of(ChangeSet::new(OP_REPAIR));
            return Ok(RepairReply { links: Vec::new(), unexplained: 0, repaired: 0, change, waits_for });
        }
        let view = View::new(self.core)?;
        // What the index just saw move is evidence.
        IndexSync::of(self.core).note_moves();
        let mut present = Present::new(self.core, &view, &request.paths)?;
        let is_shallow = repository.as_ref().is_some_and(Repository::is_shallow);
        let mut meanings = self.meanings(&mut present, repository)?;
        meanings.sort_by_key(|meaning| (meaning.source, meaning.span));
        let unexplained =
            meanings.iter().filter(|meaning| meaning.is_dead && meaning.is_unexplained()).count();
        let is_report = request.apply.is_none() && request.chosen.is_empty();
        let least = if is_report { Some(Certainty::Strong) } else { request.apply };
        let mut relinks: BTreeMap<usize, Vec<Relink>> = BTreeMap::new();
        for meaning in &meanings {
            let source = present.sources.get(meaning.source).map(|source| source.path.as_str());
            let is_it =
                |chosen: &&ChosenTarget| Some(chosen.path.as_str()) == source && chosen.span == meaning.span;
            let relink = match request.chosen.iter().find(is_it) {
                Some(chosen) => Some(meaning.relink_to(present.chosen_target(&chosen.to)?)),
                None => meaning.relink().filter(|_| least.is_some() && meaning.certainty() >= least),
            };
            if let Some(relink) = relink {
                relinks.entry(meaning.source).or_default().push(relink);
            }
        }
        let items = meanings.iter().filter(|meaning| !meaning.is_unexplained());
        let links = items.filter_map(|meaning| meaning.item(&present)).collect();
        drop(view);
        let (plan, repaired) = self.repair_plan(&present, &relinks)?;
        let mut change = self.apply_planned(|_| Ok(plan), request.dry_run || is_report)?;
        if is_shallow && unexplained > 0 {
            let notice =
                "the clone has only the last part of its history, so git says nothing of older moves";
            change.notices.push(notice.to_owned());
        }
        Ok(RepairReply { links, unexplained, repaired, change, waits_for: None })
    }

    /// Returns the repository around the vault. A `.git` that cannot be read is logged.
    fn repository(&self) -> Option<Repository> {
        Repository::discover(self.core.vault.root()).unwrap_or_else(|error| {
            tracing::warn!("{error}; git is no evidence");
            None
        })
    }

    /// Collects what each link meant.
    fn meanings(&self, present: &mut Present, repository: Option<Repository>) -> Result<Vec<LinkMeaning>> {
        let mut clues: BTreeMap<LinkCase, Vec<Clue>> =
            present.dead.iter().map(|case| (*case, Vec::new())).collect();
        let mut git = match repository {
            // Without dead links, only files that moved since the last commit are of interest.
            Some(repository) => GitEvidence::new(self.core, repository, present).unwrap_or_else(|error| {
                tracing::warn!("{error}; git is no evidence");
                None
            }),
            None => None,
        };
        if let Some(git) = &mut git {
            git.find_misled(present)?;
            for case in present.dead.iter().chain(&present.misled) {
                let found = git.clues(present, case)?;
                clues.entry(*case).or_default().extend(found);
            }
        }
        let is_committed = |path: &NotePath| git.as_ref().is_some_and(|git| git.is_committed(path));
        for (case, found) in journal_clues(self.core, present, is_committed)? {
            clues.entry(case).or_default().push(found);
        }
        let mut meanings = Vec::with_capacity(clues.len());
        for (case, clues) in clues {
            let mut meaning = LinkMeaning::new(present, &case, clues);
            if case.is_dead && meaning.is_unexplained() {
                meaning.add_namesakes(present, &case);
            }
            meanings.push(meaning);
        }
        Ok(meanings)
    }

    /// Plans the edits of some links. Returns the number of links that they change, too. A note that changes before they are
    /// applied is a conflict.
    fn repair_plan(
        &self,
        present: &Present,
        relinks: &BTreeMap<usize, Vec<Relink>>,
    ) -> Result<(ChangeSet, usize)> {
        let (mut plan, mut repaired) = (ChangeSet::new(OP_REPAIR), 0);
        for (at, relinks) in relinks {
            let source = present.sources.get(*at).ok_or_else(|| Error::internal("a note is missing"))?;
            let linking = (&source.path, source.text.as_str(), &source.note);
            let rewritten = relink(&present.names, self.core.rewrite_options(), linking, relinks);
            if source.refusal().is_none() {
                repaired += rewritten.links;
            }
            add_edits(&mut plan, source, None, rewritten.edits, rewritten.remarks);
        }
        plan.files.sort_by(|a, b| a.from.cmp(&b.from));
        Ok((plan, repaired))
    }
}

/// Returns why an automatic repair waits: git is in the middle of something, or moved to another commit right now.
fn waits_for(repository: &Repository) -> Option<String> {
    /// The time after a move of HEAD in which its program may still write files.
    const SETTLED: std::time::Duration = std::time::Duration::from_secs(2);
    let unfinished = repository.unfinished().map(|what: Unfinished| format!("{what} is not finished"));
    unfinished.or_else(|| {
        let age = repository.head_moved_at()?.elapsed().unwrap_or_default();
        (age < SETTLED).then(|| "git moved to another commit right now".to_owned())
    })
}
