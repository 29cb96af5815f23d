//! Checks a vault for broken links, ambiguous names, invalid frontmatter, conflict markers of git, and duplicates.
//!
//! Reads every note once, in parallel, and keeps of each only what the checks need. Needs no index and changes no note. Where the
//! index is current, only the notes are parsed that can have a problem, and no others are read if their texts tell nothing.

pub mod baseline;
pub mod codes;
pub mod problem;
mod across_notes;
mod okf;
mod candidates;
mod files;
mod git_files;
mod note;
pub mod rules;
pub mod similar_texts;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};
use sidenote_base::parallel;
use sidenote_catalog::CatalogReader;
use sidenote_config::Config;
use sidenote_journal::Journal;
use sidenote_links::dialect::DialectChoice;
use sidenote_links::merge::first_conflict;
use sidenote_links::resolve::FileNames;
use sidenote_markdown::commonmark::has_ignore_comment;
use sidenote_markdown::decode::decode;
use sidenote_markdown::edit::ContentHash;
use sidenote_markdown::note::Note;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::word_sketch::WordSketch;
use sidenote_open_vault::sync::IndexSync;
use sidenote_vault::Vault;
use sidenote_vault::undo_log::UndoLog;

use crate::Upkeep;
use crate::check::across_notes::{duplicate_ids, name_clashes, near_duplicates, orphans};
use crate::check::baseline::{Baseline, BaselineCounts};
use crate::check::candidates::Candidates;
use crate::check::files::CheckedFiles;
use crate::check::git_files::{CheckedRepository, VaultChanges};
use crate::check::note::{CheckedNote, LinkNames, PartLink, broken_parts_of, check_note};
use crate::check::problem::Problem;
use crate::check::rules::Rules;
use crate::compared_text::ComparedText;
use crate::conflicts::{ConflictCopies, ConflictCopy};

/// What is checked, and which problems are reported. By default, all problems of the files on the disk are.
#[derive(Debug, Clone, Default)]
pub struct CheckRequest {
    /// Whether the index is updated, instead of being reported as out of date.
    pub fix: bool,
    /// The notes and folders whose problems are reported, as paths from the root of the vault; all if not given.
    pub paths: Option<Vec<String>>,
    /// The revision of git since which a file must have changed, if one is given. Only problems of these files, and of
    /// links into them, are reported.
    pub since: Option<String>,
    /// Whether the files that git has staged are checked, instead of those on the disk.
    pub is_staged: bool,
    /// The known problems, which are not reported.
    pub baseline: Option<Baseline>,
    /// The codes whose problems are reported; all if not given.
    pub codes: Option<Vec<String>>,
}

impl CheckRequest {
    /// Returns whether problems of a code are reported.
    fn reports(&self, code: &str) -> bool {
        self.codes.as_ref().is_none_or(|codes| codes.iter().any(|wanted| wanted == code))
    }

    /// Returns whether problems of a code are asked for by its name.
    fn names(&self, code: &str) -> bool {
        self.codes.as_ref().is_some_and(|codes| codes.iter().any(|wanted| wanted == code))
    }

    /// Returns whether problems of a code are looked for. A baseline is compared with those of all codes.
    fn wants(&self, code: &str) -> bool {
        self.baseline.is_some() || self.reports(code)
    }
}

/// The result of a check.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReply {
    /// The number of notes that were checked.
    pub notes: usize,
    /// The number of canvases that were checked.
    pub canvases: usize,
    /// Problems by code, of the codes that were asked for.
    pub counts: BTreeMap<&'static str, usize>,
    /// The problems, by path and line.
    pub problems: Vec<Problem>,
    /// How the problems compare with the baseline, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineCounts>,
    /// The number of files that differed from the index before.
    pub behind: usize,
    /// Whether the index agrees with the files now, or there is none.
    pub fixed: bool,
}

impl Upkeep<'_> {
    /// Checks the whole vault and its index. With `fix`, the index is updated first. Notes are never changed.
    ///
    /// # Errors
    /// `Invalid` for settings of `check` that are invalid; `Io` if the vault cannot be listed.
    pub fn check(&self, fix: bool) -> Result<CheckReply> {
        self.check_with(&CheckRequest { fix, ..CheckRequest::default() })
    }

    /// Checks the vault and its index, and reports what the request asks for. Notes are never changed.
    ///
    /// # Errors
    /// `NotFound` if the request names a path or a revision that there is not; `Invalid` for settings of `check` that are
    /// invalid; `Io` if the vault cannot be listed; those of running git if the request needs it.
    #[tracing::instrument(skip_all)]
    pub fn check_with(&self, request: &CheckRequest) -> Result<CheckReply> {
        let core = self.core;
        let is_new = core.index.generation()? == 0;
        let drift = core.index.drift(&core.vault)?;
        let behind = drift.len();
        let is_in_step = if request.fix { IndexSync::of(core).refresh()? == 0 } else { behind == 0 };
        let mut of_index = Vec::new();
        if !is_in_step && !is_new {
            let message = format!("{behind} files differed from the index");
            of_index.push(Problem::of_file(core.index.folder().display(), "index-behind", message));
        }
        let catalog = core.index.catalog();
        let waiting = catalog.totals().waiting()?;
        if waiting > 0 {
            let message = format!("{waiting} attachments are not read yet");
            of_index.push(Problem::of_file(core.index.folder().display(), "index-behind", message));
        }
        of_index.extend(attachment_problems(&catalog)?);
        drop(catalog);
        let known = match is_new {
            true => None,
            false => core.index.catalog().links().dialects()?.chosen_by_links(),
        };
        // A folder that cannot be listed is a problem.
        let is_current =
            is_in_step && !is_new && !drift.has_gaps && !changed_unseen(&core.vault, &core.index.catalog())?;
        let catalog = is_current.then(|| core.index.catalog());
        let indexed = IndexState { dialect: known, current: catalog.as_deref() };
        let reply = check_files(&core.vault, &core.config, request, of_index, indexed)?;
        Ok(CheckReply { behind, fixed: is_in_step, ..reply })
    }
}

/// Lists what keeps the texts of attachments from being found, as it was when they were read.
fn attachment_problems(catalog: &CatalogReader) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for (path, found) in catalog.paths().attachment_problems()? {
        let found: Vec<AttachmentProblem> = serde_json::from_str(&found).map_err(|error| {
            Error::corrupt(format!("the catalog says of {path} what is no problem: {error}"))
        })?;
        problems.extend(found.into_iter().map(|AttachmentProblem { code, message }| {
            let code = if code == SCANNED { SCANNED } else { "attachment-unreadable" };
            Problem::of_file(&path, code, message)
        }));
    }
    Ok(problems)
}

/// The code of attachments with pages that are scans.
const SCANNED: &str = "scanned";

/// A problem of an attachment, as the catalog stores it.
#[derive(Deserialize)]
struct AttachmentProblem {
    code: String,
    message: String,
}

/// Returns whether a file whose stat proves nothing has other bytes than the indexed ones.
fn changed_unseen(vault: &Vault, catalog: &CatalogReader) -> Result<bool> {
    let is_changed = |(path, hash): &(NotePath, Option<[u8; 32]>)| {
        vault.read(path).ok().map(|bytes| ContentHash::of(&bytes).to_bytes()) != *hash
    };
    Ok(catalog.paths().racy()?.iter().any(is_changed))
}

/// Checks a vault without an index. Nothing is written.
///
/// # Errors
/// Those of [`Upkeep::check_with`].
#[tracing::instrument(skip_all)]
pub fn check_without_index(vault: &Vault, config: &Config, request: &CheckRequest) -> Result<CheckReply> {
    check_files(vault, config, request, Vec::new(), IndexState::default())
}

/// What an index knows of the files.
#[derive(Clone, Copy, Default)]
struct IndexState<'a> {
    /// The link dialect that it found by the links.
    dialect: Option<DialectChoice>,
    /// The catalog, if it has every file as it is.
    current: Option<&'a CatalogReader>,
}

/// Checks the files that the request means, and adds problems that were found elsewhere.
fn check_files(
    vault: &Vault,
    config: &Config,
    request: &CheckRequest,
    found: Vec<Problem>,
    indexed: IndexState<'_>,
) -> Result<CheckReply> {
    let rules = Rules::new(config)?;
    let needs_git = request.is_staged || request.since.is_some();
    let repository = needs_git.then(|| CheckedRepository::of(vault)).transpose()?;
    let files = match (&repository, indexed.current) {
        (Some(repository), _) if request.is_staged => repository.staged()?,
        (_, Some(catalog)) => CheckedFiles::indexed(vault, catalog)?,
        _ => CheckedFiles::on_disk(vault),
    };
    let changes = match (&repository, &request.since) {
        (Some(repository), Some(revision)) => {
            Some(repository.changes_since(revision, &files, request.is_staged)?)
        }
        _ => None,
    };
    let known = indexed.dialect;
    let names = files.names(vault, known)?;
    let only = match indexed.current.filter(|_| !needs_git) {
        Some(catalog) => {
            Candidates::of(catalog, vault, |code| request.wants(code), (files.paths(), &names), known)?
        }
        None => None,
    };
    VaultCheck { vault, request, rules, changes, known, names, only }.run(&files, found)
}

/// One check of a vault.
struct VaultCheck<'a> {
    vault: &'a Vault,
    request: &'a CheckRequest,
    rules: Rules,
    /// The changes whose problems are reported; all problems if not given.
    changes: Option<VaultChanges>,
    /// The link dialect that the index found by the links.
    known: Option<DialectChoice>,
    /// The names of the files.
    names: FileNames,
    /// The notes that can have a problem; all if not given.
    only: Option<Candidates>,
}

impl VaultCheck<'_> {
    /// Checks files, and adds problems that were found elsewhere.
    fn run(&self, files: &CheckedFiles<'_>, found: Vec<Problem>) -> Result<CheckReply> {
        self.refuse_unknown_paths(files)?;
        let mut problems = found;
        let notes = files.visible(self.vault);
        problems.extend(self.problems_of(files, &notes)?);
        problems.extend(files.gaps().iter().cloned());
        problems.extend(self.damaged_records()?);
        problems.retain_mut(|problem| self.rules.admit(problem));
        problems.sort();
        let is_there = |path: &str| files.has_file(path);
        let baseline =
            self.request.baseline.as_ref().map(|baseline| baseline.remove_known(&mut problems, is_there));
        problems.retain(|problem| self.request.reports(problem.code) && self.is_reported(problem));
        let mut counts = BTreeMap::new();
        for problem in &problems {
            *counts.entry(problem.code).or_default() += 1;
        }
        let canvases = notes.iter().filter(|path| path.is_canvas()).count();
        let notes = notes.len() - canvases;
        Ok(CheckReply { notes, canvases, counts, problems, baseline, behind: 0, fixed: true })
    }

    /// Finds the problems of these notes. Links of other notes count, too, as links to them.
    fn problems_of(&self, files: &CheckedFiles<'_>, visible: &[&NotePath]) -> Result<Vec<Problem>> {
        let removed = self.changes.as_ref().map(|changes| &changes.removed);
        let former = match removed.filter(|removed| !removed.is_empty()) {
            Some(removed) => {
                let mut former = files.names(self.vault, self.known)?;
                removed.iter().for_each(|path| former.insert(path));
                Some(former)
            }
            None => None,
        };
        let names = LinkNames { present: &self.names, former: former.as_ref() };
        let can_have_problem = |path: &&NotePath| {
            self.only.as_ref().is_none_or(|only| only.reads_others || only.parsed.contains(*path))
        };
        let read: Vec<&NotePath> = files
            .paths()
            .iter()
            .filter(|path| (path.is_note() || path.is_canvas()) && can_have_problem(path))
            .collect();
        let with_sketch = self.request.wants("near-duplicate");
        let mut checked =
            parallel::map(&read, 16, || (), |(), path| self.check_file(files, path, names, with_sketch));
        let is_visible: HashSet<&NotePath> = visible.iter().copied().collect();
        for (path, checked) in read.iter().zip(&mut checked) {
            if !is_visible.contains(path) {
                *checked =
                    CheckedNote { targets: std::mem::take(&mut checked.targets), ..CheckedNote::default() };
            }
        }
        let mut problems = Vec::new();
        let mut parts: BTreeMap<NotePath, Vec<PartLink>> = BTreeMap::new();
        for checked in &mut checked {
            problems.append(&mut checked.problems);
            for (target, link) in checked.parts.drain(..) {
                parts.entry(target).or_default().push(link);
            }
        }
        if self.request.wants("broken-subpath") {
            problems.extend(broken_parts(files, &parts));
        }
        problems.extend(name_clashes(files.paths()));
        let of_visible = || {
            let pairs = read.iter().copied().zip(&checked);
            pairs.filter(|(path, _)| path.is_note() && is_visible.contains(path))
        };
        problems.extend(duplicate_ids(
            of_visible().filter_map(|(path, checked)| Some((path, checked.id.as_deref()?))),
        ));
        if with_sketch {
            let of_visible = read.iter().zip(&checked).filter(|(path, _)| is_visible.contains(*path));
            let sketches: Vec<(&NotePath, &WordSketch)> =
                of_visible.map(|(path, checked)| (*path, &checked.sketch)).collect();
            problems.extend(near_duplicates(&sketches));
        }
        if self.request.wants("conflict-copy") {
            let known: HashMap<&NotePath, &CheckedNote> = read.iter().copied().zip(&checked).collect();
            // A note that cannot be read is a problem of its own.
            problems.extend(conflict_copies(visible, |path| match known.get(path) {
                Some(CheckedNote { id, sketch, .. }) if with_sketch => {
                    Some(ComparedText { id: id.clone(), sketch: sketch.clone() })
                }
                _ => Some(ComparedText::of(path, &decode(&files.read(path).ok()??).text)),
            }));
        }
        problems.extend(self.okf_problems(files, visible));
        let targets: HashSet<&NotePath> = checked.iter().flat_map(|checked| &checked.targets).collect();
        // Notes that were not read have links, too.
        let may_be_orphan =
            |path: &NotePath| self.only.as_ref().is_none_or(|only| only.orphans.contains(path));
        problems.extend(orphans(
            of_visible()
                .filter(|(path, _)| may_be_orphan(path))
                .map(|(path, checked)| (path, !checked.targets.is_empty())),
            &targets,
        ));
        let ignored = ignored_codes(&read, &checked);
        problems.retain(|problem| {
            ignored.get(problem.path.as_str()).is_none_or(|codes| !codes.contains(&problem.code))
        });
        Ok(problems)
    }

    /// Finds what makes these notes no concepts of a bundle, if that is asked for: most vaults are no bundles.
    fn okf_problems(&self, files: &CheckedFiles<'_>, visible: &[&NotePath]) -> Vec<Problem> {
        if !self.request.names(okf::CODE) {
            return Vec::new();
        }
        let notes: Vec<&NotePath> = visible.iter().copied().filter(|path| path.is_note()).collect();
        // A note that cannot be read is a problem of its own.
        let of_note = |(): &mut (), path: &&NotePath| okf::problem_of(path, &files.read(path).ok()??);
        parallel::map(&notes, 16, || (), of_note).into_iter().flatten().collect()
    }

    /// Reads a note and keeps its problems. A note that was removed meanwhile has none.
    fn check_file(
        &self,
        files: &CheckedFiles<'_>,
        path: &NotePath,
        names: LinkNames<'_>,
        with_sketch: bool,
    ) -> CheckedNote {
        let bytes = match files.read(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return CheckedNote::default(),
            Err(error) => {
                let problem = Problem::of_file(path, "unreadable", error.to_string());
                return CheckedNote { problems: vec![problem], ..CheckedNote::default() };
            }
        };
        if self.only.as_ref().is_some_and(|only| !only.parsed.contains(path)) {
            let text = decode(&bytes).text;
            if !has_ignore_comment(&text) && first_conflict(&text).is_none() {
                let ComparedText { id, sketch } =
                    if with_sketch { ComparedText::of(path, &text) } else { ComparedText::default() };
                return CheckedNote { sketch, id, ..CheckedNote::default() };
            }
        }
        check_note(path, &bytes, names, with_sketch)
    }

    /// Finds invalid lines of the journal, and before-images that cannot be read.
    fn damaged_records(&self) -> Result<Vec<Problem>> {
        let records = self.vault.records();
        let journal = Journal::open(self.vault, &records).damage()?.into_iter().map(|(path, lines)| {
            let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
            let message = format!("{lines} cannot be read and are skipped");
            Problem::of_file(path.display(), "damaged-journal", message)
        });
        let mut problems: Vec<Problem> = journal.collect();
        let kept = UndoLog::open(&records)?;
        for id in kept.ids()? {
            if let Err(error) = kept.record(&id) {
                let path = records.join(format!("undo/{id}"));
                let message = format!("the operation cannot be undone: {error}");
                problems.push(Problem::of_file(path.display(), "damaged-before-images", message));
            }
        }
        Ok(problems)
    }

    fn refuse_unknown_paths(&self, files: &CheckedFiles<'_>) -> Result<()> {
        let unknown = self.request.paths.iter().flatten().find(|path| {
            let has_files = |folder: &str| files.paths().iter().any(|file| lies_in(file.as_str(), folder));
            !has_files(path)
        });
        match unknown {
            None => Ok(()),
            Some(path) => Err(Error::not_found(format!("the vault has no note or folder {path}"))
                .with_hint("name it as a path from the root of the vault, like Projects/Plan.md")),
        }
    }

    /// Returns whether the request asks for a problem.
    fn is_reported(&self, problem: &Problem) -> bool {
        let (paths, changes) = (&self.request.paths, &self.changes);
        if problem.is_of_vault() {
            return paths.is_none() && changes.is_none() && !self.request.is_staged;
        }
        let is_in_paths = |paths: &Vec<String>| paths.iter().any(|path| lies_in(&problem.path, path));
        let is_of_changes = |changes: &VaultChanges| {
            let has = |path: &str| changes.changed.contains(path) || changes.removed.contains(path);
            has(&problem.path) || problem.related.iter().any(|path| has(path.as_str()))
        };
        paths.as_ref().is_none_or(is_in_paths) && changes.as_ref().is_none_or(is_of_changes)
    }
}

/// Returns whether a path is that of a file or folder, or below it. The empty path is the root, which holds all.
fn lies_in(path: &str, place: &str) -> bool {
    let below = path.strip_prefix(place);
    place.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the codes that comments turn off for whole notes, by their paths.
fn ignored_codes<'a>(
    read: &[&'a NotePath],
    checked: &'a [CheckedNote],
) -> HashMap<&'a str, &'a [&'static str]> {
    let pairs = read.iter().zip(checked).filter(|(_, checked)| !checked.ignored.is_empty());
    pairs.map(|(path, checked)| (path.as_str(), checked.ignored.as_slice())).collect()
}

/// Finds the second versions of notes that a synchronisation program left. `compared` gives what a note is compared by.
fn conflict_copies(
    visible: &[&NotePath],
    compared: impl Fn(&NotePath) -> Option<ComparedText> + Sync,
) -> Vec<Problem> {
    let of_copy = |copy: &ConflictCopy| {
        Problem::of_file(&copy.copy, "conflict-copy", copy.describe()).related_to([copy.note.clone()])
    };
    ConflictCopies::of(visible.iter().copied(), compared).find().iter().map(of_copy).collect()
}

/// Finds links to headings, blocks and footnotes that do not exist. The links are given by the other notes they lead into.
fn broken_parts(files: &CheckedFiles<'_>, parts: &BTreeMap<NotePath, Vec<PartLink>>) -> Vec<Problem> {
    let targets: Vec<_> = parts.iter().collect();
    let broken = parallel::map(
        &targets,
        16,
        || (),
        |(), (target, links)| {
            // A note that cannot be read is a problem of its own.
            let Ok(Some(bytes)) = files.read(target) else { return Vec::new() };
            let decoded = decode(&bytes);
            broken_parts_of(target, (&decoded.text, &Note::parse(&decoded.text)), links)
        },
    );
    broken.into_iter().flatten().collect()
}
