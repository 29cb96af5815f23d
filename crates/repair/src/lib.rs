//! Repairs of links that are dead, or lead elsewhere than they were meant to (docs/spec/git.md 3). It finds out what
//! each link meant, by evidence of the index, the journal and git, and makes the edits that follow from it. Only
//! `change` writes them.

pub mod dead_link;
mod commit_changes;
mod content_owners;
mod evidence;
mod git_evidence;
mod history_reader;
mod history_walk;
mod journal_evidence;
mod moved_files;
mod present;
mod working_tree;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_change::Changes;
use sidenote_change::follow_headings::{SettledNotes, follow_headings};
use sidenote_change::move_files::add_edits;
use sidenote_change::operation::ChangeReply;
use sidenote_git::{Repository, Unfinished};
use sidenote_links::link_part::{LinkPart, NoteParts};
use sidenote_links::merge::first_conflict;
use sidenote_links::rewrite::{LinkedPlace, Relink, relink};
use sidenote_markdown::edit::{ChangeSet, Content, Edit, FileLocation, apply};
use sidenote_markdown::line::Lines;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;
use sidenote_open_vault::Core;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;
use sidenote_open_vault::sync::IndexSync;

pub use crate::evidence::{Certainty, Evidence, EvidenceKind};
use crate::evidence::{Clue, LinkMeaning};
use crate::git_evidence::GitEvidence;
use crate::history_reader::{HistoryProblem, no_evidence};
use crate::journal_evidence::{find_captured, journal_clues};
use crate::present::{LinkCase, Present};

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
    /// The link as it is after the repair, if it is repaired, or would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_link: Option<String>,
    /// The anchor that the repaired path does not have, so that the link still leads to no place in the note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_anchor: Option<String>,
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
    /// The number of files that were looked at for names and folders: a measure of the work.
    #[serde(skip)]
    pub work: usize,
}

/// Repairs the links of a vault.
#[derive(Debug, Clone, Copy)]
pub struct Repairs<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Repairs<'a> {
    /// Repairs the links of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

impl Repairs<'_> {
    /// Returns whether the caller knows of all notes. An agent that knows of a part cannot tell a dead link from a hidden note.
    pub fn sees_all(&self) -> bool {
        self.core.for_owner().is_none()
    }

    /// Finds links that are dead or lead elsewhere than they meant, and repairs those that the request names. The reply to
    /// a request that repairs nothing has the plan for all links that are certain or strong.
    ///
    /// # Errors
    /// `NotFound` if a path of the request is none; `Conflict` if a note changed meanwhile or another process
    /// holds the write lock; `Io` if files cannot be read or written. A failure of git is not an error: the other
    /// evidence is used then.
    #[tracing::instrument(skip_all)]
    pub fn repair(&self, request: &RepairRequest) -> Result<RepairReply> {
        self.repair_choosing(request, |_| Ok(Vec::new()))
    }

    /// Does the same, and asks for targets of the links that were found. The evidence is collected once. Without a chosen
    /// target and a certainty to apply, nothing is changed.
    ///
    /// # Errors
    /// Those of [`Repairs::repair`], and those of `choose`.
    #[tracing::instrument(skip_all)]
    pub fn repair_choosing(
        &self,
        request: &RepairRequest,
        choose: impl FnOnce(&[RepairItem]) -> Result<Vec<ChosenTarget>>,
    ) -> Result<RepairReply> {
        let mut notices = Vec::new();
        let repository = self.repository(&mut notices);
        let waits_for = repository.as_ref().filter(|_| request.is_automatic).and_then(waits_for);
        if waits_for.is_some() {
            let change = ChangeReply::of(ChangeSet::new(OP_REPAIR));
            return Ok(RepairReply {
                links: Vec::new(),
                unexplained: 0,
                repaired: 0,
                change,
                waits_for,
                work: 0,
            });
        }
        let view = View::new(self.core)?;
        // What the index just saw move is evidence.
        IndexSync::of(self.core).note_moves();
        let mut present = Present::new(self.core, &view, &request.paths)?;
        let (mut meanings, problems) =
            self.meanings(&mut present, repository.clone(), request.is_automatic, &mut notices)?;
        meanings.sort_by_key(|meaning| (meaning.source, meaning.span));
        let unexplained =
            meanings.iter().filter(|meaning| meaning.is_dead && meaning.is_unexplained()).count();
        // A clone without old commits is of interest where they could say something.
        let is_told = |problem: &&HistoryProblem| **problem != HistoryProblem::Shallow || unexplained > 0;
        notices.extend(problems.iter().filter(is_told).map(HistoryProblem::sentence));
        meanings.retain(|meaning| !meaning.is_unexplained());
        let found = meanings.iter().filter_map(|meaning| Some((meaning, meaning.item(&present)?)));
        let (meanings, mut links): (Vec<&LinkMeaning>, Vec<RepairItem>) = found.unzip();
        let chosen = [request.chosen.clone(), choose(&links)?].concat();
        let is_report = request.apply.is_none() && chosen.is_empty();
        if !is_report && !self.sees_all() {
            return Err(Error::invalid(
                "links are repaired only with all notes in view, and this agent knows of a part",
            )
            .with_hints("run: sidenote repair", "ask the user to repair the links"));
        }
        let least = if is_report { Some(Certainty::Strong) } else { request.apply };
        let mut relinks: BTreeMap<usize, Vec<Relink>> = BTreeMap::new();
        for meaning in &meanings {
            let source = present.sources.get(meaning.source).map(|source| source.path.as_str());
            let is_it =
                |chosen: &&ChosenTarget| Some(chosen.path.as_str()) == source && chosen.span == meaning.span;
            let relink = match chosen.iter().find(is_it) {
                Some(chosen) => {
                    let target = present.chosen_target(&chosen.to)?;
                    Some(meaning.relink_to(LinkedPlace::File(target)))
                }
                None => meaning.relink().filter(|_| least.is_some() && meaning.certainty() >= least),
            };
            if let Some(relink) = relink {
                relinks.entry(meaning.source).or_default().push(relink);
            }
        }
        let unmerged = self.unmerged(repository.as_ref(), &relinks, &mut notices);
        let (mut plan, repaired) = self.repair_plan(&present, &relinks, &unmerged)?;
        follow_headings(&view, &mut plan, &SettledNotes::default())?;
        drop(view);
        let places: Vec<LinkPosition> =
            meanings.iter().map(|meaning| (meaning.source, meaning.span, meaning.relink())).collect();
        add_new_links(&present, &plan, &places, &mut links);
        self.add_dead_anchors(&present, &places, &mut links);
        let mut change = Changes::of(self.core).apply_planned(|_| Ok(plan), request.dry_run || is_report)?;
        change.notices.extend(notices);
        let work = present.work();
        Ok(RepairReply { links, unexplained, repaired, change, waits_for: None, work })
    }

    /// Returns the repository around the vault. A notice says why one cannot be read.
    fn repository(&self, notices: &mut Vec<String>) -> Option<Repository> {
        Repository::discover(self.core.vault.root()).unwrap_or_else(|error| {
            notices.push(no_evidence(&error));
            None
        })
    }

    /// Collects what each link meant, and what git could not tell.
    fn meanings(
        &self,
        present: &mut Present,
        repository: Option<Repository>,
        is_automatic: bool,
        notices: &mut Vec<String>,
    ) -> Result<(Vec<LinkMeaning>, Vec<HistoryProblem>)> {
        let mut clues: BTreeMap<LinkCase, Vec<Clue>> =
            present.dead.iter().map(|case| (*case, Vec::new())).collect();
        let mut git = None;
        if let Some(repository) = repository {
            git = GitEvidence::new(self.core, repository, present).unwrap_or_else(|error| {
                notices.push(no_evidence(&error));
                None
            });
        }
        if let Some(git) = &mut git
            && let Err(error) = git_clues(git, present, &mut clues, is_automatic)
        {
            // What was found until then counts.
            notices.push(no_evidence(&error));
        }
        if !is_automatic {
            find_captured(self.core, present)?;
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
        let problems = git.map_or_else(Vec::new, |git| git.problems());
        Ok((meanings, problems))
    }

    /// Lists the notes to repair that have a conflict that git left to be resolved.
    fn unmerged(
        &self,
        repository: Option<&Repository>,
        relinks: &BTreeMap<usize, Vec<Relink>>,
        notices: &mut Vec<String>,
    ) -> BTreeSet<String> {
        let Some(repository) = repository.filter(|_| !relinks.is_empty()) else { return BTreeSet::new() };
        repository.unmerged().unwrap_or_else(|error| {
            notices.push(no_evidence(&error));
            BTreeSet::new()
        })
    }

    /// Plans the edits of some links. Returns the number of links that they change, too. A note that changes before they are
    /// applied is a conflict. A note in which git left a conflict keeps its bytes, and is reported.
    fn repair_plan(
        &self,
        present: &Present,
        relinks: &BTreeMap<usize, Vec<Relink>>,
        unmerged: &BTreeSet<String>,
    ) -> Result<(ChangeSet, usize)> {
        let (mut plan, mut repaired) = (ChangeSet::new(OP_REPAIR), 0);
        for (at, relinks) in relinks {
            let source = present.sources.get(*at).ok_or_else(|| Error::internal("a note is missing"))?;
            let marks = first_conflict(&source.text);
            if marks.is_some() || unmerged.contains(source.path.as_str()) {
                let place = marks.map_or(0, |marks| marks.start);
                let line = Lines::new(&source.text).of(place);
                let message =
                    "git left a conflict in the note, so it was left as it is; resolve it, then repair again";
                plan.remarks.push(source.remark("conflict-markers", line, place, message.to_owned()));
                continue;
            }
            let linking = (&source.path, source.text.as_str(), &source.note);
            let rewritten = relink(&present.names, self.core.rewrite_options(), linking, relinks);
            if source.refusal().is_none() {
                repaired += rewritten.links;
                plan.leads_to.extend(relinks.iter().filter_map(|relink| match &relink.target {
                    LinkedPlace::File(target) => Some((source.path.clone(), target.clone())),
                    LinkedPlace::Folder(_) | LinkedPlace::Outside(_) => None,
                }));
            }
            add_edits(&mut plan, source, None, rewritten.edits, rewritten.remarks);
        }
        plan.files.sort_by(|a, b| a.from.cmp(&b.from));
        Ok((plan, repaired))
    }

    /// Adds the anchors that the meant notes do not have.
    fn add_dead_anchors(&self, present: &Present, places: &[LinkPosition], links: &mut [RepairItem]) {
        let mut wanted: BTreeMap<&NotePath, Vec<(usize, LinkPart<'_>)>> = BTreeMap::new();
        for (number, (at, span, relink)) in places.iter().enumerate() {
            let Some(Relink { target: LinkedPlace::File(target), .. }) = relink else { continue };
            let Some(source) = present.sources.get(*at).filter(|_| target.is_note()) else { continue };
            let Some(link) = source.note.links.iter().find(|link| link.span == *span) else { continue };
            let unit = present.names.dialects().unit_of(&source.path);
            let Some(part) = LinkPart::of(link, unit) else { continue };
            wanted.entry(target).or_default().push((number, part));
        }
        for (target, named) in wanted {
            let Ok(bytes) = self.core.vault.read(target) else { continue };
            let target = Source::unplaced(target.clone(), &bytes);
            let mut parts = NoteParts::new(&target.text, &target.note);
            for (number, part) in named {
                let is_there = parts.has(&part);
                if let Some(item) = links.get_mut(number).filter(|_| !is_there) {
                    item.dead_anchor = Some(part.subpath.into_owned());
                }
            }
        }
    }
}

/// The number of a note, the place of a link in it, and its repair.
type LinkPosition = (usize, Span, Option<Relink>);

/// Collects what git says of all links.
fn git_clues(
    git: &mut GitEvidence<'_>,
    present: &mut Present,
    clues: &mut BTreeMap<LinkCase, Vec<Clue>>,
    is_automatic: bool,
) -> Result<()> {
    git.find_misled(present, !is_automatic)?;
    // They are strong at most, which an automatic repair leaves.
    if !is_automatic {
        git.find_moved_sections(present)?;
    }
    for case in present.dead.iter().chain(&present.misled) {
        let found = git.clues(present, case)?;
        clues.entry(*case).or_default().extend(found);
    }
    Ok(())
}

/// Adds the new text of each link that a plan changes.
fn add_new_links(present: &Present, plan: &ChangeSet, places: &[LinkPosition], links: &mut [RepairItem]) {
    let mut edits: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
    for file in &plan.files {
        if let (Some(FileLocation::Vault(path)), Content::Edits(found)) = (&file.from, &file.content) {
            let mut found: Vec<&Edit> = found.iter().collect();
            found.sort_by_key(|edit| edit.span.start);
            edits.insert(path.as_str(), found);
        }
    }
    for ((at, span, _), item) in places.iter().zip(links) {
        let Some(source) = present.sources.get(*at) else { continue };
        let own = edits.get(source.path.as_str()).map_or(&[][..], Vec::as_slice);
        let first = own.partition_point(|edit| edit.span.start < span.start);
        let own = own.iter().skip(first).take_while(|edit| edit.span.end <= span.end);
        let own: Vec<Edit> = own
            .map(|edit| {
                let within = Span::new(edit.span.start - span.start, edit.span.end - span.start);
                Edit { span: within, ..(*edit).clone() }
            })
            .collect();
        if own.is_empty() {
            continue;
        }
        let changed = apply(span.of(&source.text).as_bytes(), &own).ok();
        item.new_link = changed.and_then(|changed| String::from_utf8(changed).ok());
    }
}

/// Formats a number of files.
fn files_phrase(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
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
