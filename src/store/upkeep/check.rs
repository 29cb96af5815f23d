//! Checks a vault for broken links, ambiguous names, invalid frontmatter, conflict markers of git, and duplicates.
//!
//! Reads every note once, in parallel, and keeps of each only what the checks need. Changes no note.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use serde::Serialize;

use crate::error::{ErrorKind, Result};
use crate::index::catalog::{FileKind, FileRow, Filter};
use crate::parallel;
use crate::store::sync::IndexSync;
use crate::store::upkeep::Upkeep;
use crate::store::upkeep::conflicts::ConflictCopies;
use crate::text::anchor::AnchorTable;
use crate::text::decode::decode;
use crate::text::dialect::{DialectUnit, LinkDialect};
use crate::text::link::{Link, LinkForm, LinkSyntax};
use crate::text::link_syntax::is_external;
use crate::text::merge::first_conflict;
use crate::text::note::Note;
use crate::text::path::{NotePath, clean, key};
use crate::text::resolve::FileNames;
use crate::text::rewrite::{fits_in_wikilink, parse};
use crate::text::subpath::SubpathTable;
use crate::text::word_sketch::{ALIKE, WordSketch};
use crate::vault::undo_log::UndoLog;

/// The number of notes above which a shared sequence counts as part of a template.
const CROWD: usize = 40;

/// The severity of a problem, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It may be intended.
    Info,
    /// It may mislead.
    Warning,
    /// Something is broken or lost.
    Error,
}

impl Severity {
    /// Returns the name in replies and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A kind of problem that `check` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemCode {
    /// The stable code.
    pub code: &'static str,
    /// The severity of the problem.
    pub severity: Severity,
    /// A phrase that describes the problem.
    pub meaning: &'static str,
}

const fn code(severity: Severity, code: &'static str, meaning: &'static str) -> ProblemCode {
    ProblemCode { code, severity, meaning }
}

/// All codes that `check` can report, by severity and name.
pub const CODES: &[ProblemCode] = &[
    code(Severity::Error, "broken-link", "a link leads to no file"),
    code(Severity::Error, "broken-subpath", "a link names a heading, block or footnote that is not there"),
    code(Severity::Error, "conflict-markers", "git left two versions of a passage in the note"),
    code(
        Severity::Error,
        "damaged-before-images",
        "an operation cannot be undone: its before-images are damaged",
    ),
    code(Severity::Error, "damaged-journal", "lines of the journal cannot be read"),
    code(Severity::Error, "duplicate-id", "two notes have one id"),
    code(Severity::Error, "invalid-utf8", "the file is not UTF-8, so it is never rewritten"),
    code(Severity::Error, "json-unparsable", "a canvas cannot be read"),
    code(Severity::Error, "name-clash", "two names differ in case or accents alone"),
    code(Severity::Error, "unreadable", "the file cannot be read"),
    code(Severity::Error, "utf-16", "the file is UTF-16, which is not read"),
    code(Severity::Error, "yaml-unparsable", "the frontmatter cannot be read"),
    code(Severity::Warning, "ambiguous-link", "a link could mean several files"),
    code(Severity::Warning, "conflict-copy", "a synchronisation program left a second version of a note"),
    code(Severity::Warning, "name-not-linkable", "no link can name the file"),
    code(Severity::Warning, "nested-too-deep", "a passage is nested too deep to be read"),
    code(Severity::Info, "index-behind", "files changed since they were indexed"),
    code(Severity::Info, "near-duplicate", "two notes say about the same"),
    code(Severity::Info, "orphan", "a note has no links, and none lead to it"),
    code(Severity::Info, "wikilink-as-text", "wikilinks are plain text where the notes are published"),
];

/// Returns the severity of a code.
fn severity_of(code: &str) -> Severity {
    let known = CODES.iter().find(|known| known.code == code);
    debug_assert!(known.is_some(), "{code} is missing in CODES");
    known.map_or(Severity::Error, |known| known.severity)
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The path of the note; the index folder for problems of the index.
    pub path: String,
    /// The line, counted from 1; 0 for a problem of the whole file.
    pub line: usize,
    /// A stable code, one of [`CODES`].
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// A sentence for a person.
    pub message: String,
}

impl Problem {
    fn new(path: String, line: usize, code: &'static str, message: String) -> Self {
        Self { path, line, code, severity: severity_of(code), message }
    }
}

/// The result of a check.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReply {
    /// The number of notes that were checked.
    pub notes: usize,
    /// The number of canvases that were checked.
    pub canvases: usize,
    /// Problems by code.
    pub counts: BTreeMap<&'static str, usize>,
    /// The problems, by path and line.
    pub problems: Vec<Problem>,
    /// The number of files that differed from the index before.
    pub behind: usize,
    /// Whether the index agrees with the files now.
    pub fixed: bool,
}

/// What a check keeps of a note.
#[derive(Default)]
struct CheckedNote {
    problems: Vec<Problem>,
    /// The links into notes with a subpath, by their target.
    parts: Vec<(NotePath, PartLink)>,
    /// A sample of its word sequences.
    sketch: WordSketch,
}

/// A link to a part of a note.
struct PartLink {
    /// The path of the note with the link.
    source: String,
    line: usize,
    subpath: String,
    /// The link as written.
    text: String,
    /// The dialect by which the subpath is an anchor. Otherwise it names the part itself.
    anchor: Option<LinkDialect>,
}

impl Upkeep<'_> {
    /// Checks the vault and its index. The index is updated first; with `fix`, it is no problem that it was behind.
    /// Notes are never changed.
    ///
    /// # Errors
    /// `Io` if the vault cannot be listed.
    #[tracing::instrument(skip_all)]
    pub fn check(&self, fix: bool) -> Result<CheckReply> {
        let is_new = self.core.index.generation()? == 0;
        let behind = self.core.index.drift(&self.core.vault)?.len();
        // The problems are those of the current files, so the index is updated if this process may write it.
        let is_in_step = behind == 0 || IndexSync::of(self.core).refresh()? == 0;
        let catalog = self.core.index.catalog();
        let rows = catalog.select(&Filter { with_canvases: true, ..Filter::default() })?;
        let all: Vec<NotePath> = catalog.paths().all()?.into_iter().map(|(path, _)| path).collect();
        let orphans = catalog.links().orphans()?;
        let mut names = FileNames::default().with_dialects(Arc::new(catalog.links().dialects()?));
        drop(catalog);
        for path in &all {
            names.insert(path);
            names.insert_folders_above(path);
        }
        let looked = parallel::map(&rows, 16, || (), |(), row: &FileRow| self.look(row, &names));
        let mut problems = Vec::new();
        let mut parts: BTreeMap<NotePath, Vec<PartLink>> = BTreeMap::new();
        let mut sketches = Vec::new();
        for looked in looked {
            problems.extend(looked.problems);
            for (target, link) in looked.parts {
                parts.entry(target).or_default().push(link);
            }
            sketches.push(looked.sketch);
        }
        problems.extend(self.broken_parts(&parts));
        problems.extend(clashes(&all));
        problems.extend(twice(&rows));
        problems.extend(near_duplicates(&rows, &sketches));
        let copies = ConflictCopies::of(self.core, &rows).find();
        problems.extend(copies.iter().map(|copy| problem(&copy.copy, 0, "conflict-copy", copy.describe())));
        let alone = |row: FileRow| {
            problem(&row.path, 0, "orphan", "links to no note, and no note links to it".into())
        };
        problems.extend(orphans.into_iter().map(alone));
        if !is_in_step || (behind > 0 && !fix && !is_new) {
            let message = format!("{behind} files differed from the index");
            let path = self.core.index.folder().display().to_string();
            problems.push(Problem::new(path, 0, "index-behind", message));
        }
        problems.extend(self.damaged_records()?);
        problems.sort();
        let mut counts = BTreeMap::new();
        for problem in &problems {
            *counts.entry(problem.code).or_default() += 1;
        }
        let notes = rows.iter().filter(|row| row.kind == FileKind::Note).count();
        let canvases = rows.len() - notes;
        Ok(CheckReply { notes, canvases, counts, problems, behind, fixed: is_in_step })
    }

    /// Finds invalid lines of the journal, and before-images that cannot be read.
    fn damaged_records(&self) -> Result<Vec<Problem>> {
        let records = self.core.vault.records();
        let named = |name: &str| records.join(name).display().to_string();
        let journal = self.core.journal().damage()?.into_iter().map(|(path, lines)| {
            let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
            let message = format!("{lines} cannot be read and are skipped");
            Problem::new(path.display().to_string(), 0, "damaged-journal", message)
        });
        let mut problems: Vec<Problem> = journal.collect();
        let kept = UndoLog::open(&records)?;
        for id in kept.ids()? {
            if let Err(error) = kept.record(&id) {
                let path = named(&format!("undo/{id}"));
                let message = format!("the operation cannot be undone: {error}");
                problems.push(Problem::new(path, 0, "damaged-before-images", message));
            }
        }
        Ok(problems)
    }

    /// Reads a note and keeps its problems.
    fn look(&self, row: &FileRow, names: &FileNames) -> CheckedNote {
        let path = &row.path;
        let mut looked = CheckedNote::default();
        let bytes = match self.core.vault.read(path) {
            Ok(bytes) => bytes,
            // A note that was removed meanwhile has no problems.
            Err(error) if error.kind() == ErrorKind::NotFound => return looked,
            Err(error) => {
                looked.problems.push(problem(path, 0, "unreadable", error.to_string()));
                return looked;
            }
        };
        let decoded = decode(&bytes);
        let note = parse(path, &decoded.text);
        let lines = crate::text::line::Lines::new(&decoded.text);
        for found in note.problems.iter().chain(&decoded.problem) {
            let line = found.span.map_or(0, |span| lines.of(span.start));
            looked.problems.push(problem(path, line, found.code, found.message.clone()));
        }
        for link in &note.links {
            look_at_link(link, &decoded.text, path, names, &mut looked);
        }
        looked.problems.extend(dead_wikilinks(&note, path, names));
        looked.problems.extend(conflict(path, &decoded.text));
        if !fits_in_wikilink(path.as_str()) {
            let message =
                "no wikilink can name it: a name with # ^ | [[ ]] or %% ends or splits a link".to_owned();
            looked.problems.push(problem(path, 0, "name-not-linkable", message));
        }
        looked.sketch = WordSketch::of(&note, &decoded.text);
        looked
    }

    /// Finds links to headings, blocks and footnotes that do not exist.
    fn broken_parts(&self, parts: &BTreeMap<NotePath, Vec<PartLink>>) -> Vec<Problem> {
        let targets: Vec<_> = parts.iter().collect();
        let broken = parallel::map(
            &targets,
            16,
            || (),
            |(), (target, links)| {
                let Ok(bytes) = self.core.vault.read(target) else { return Vec::new() };
                let decoded = decode(&bytes);
                let note = Note::parse(&decoded.text);
                let parts = SubpathTable::new(&note);
                let mut anchors: BTreeMap<LinkDialect, AnchorTable> = BTreeMap::new();
                let mut is_there = |link: &PartLink| match link.anchor {
                    None => parts.find(&link.subpath).is_some(),
                    Some(dialect) => {
                        let table = anchors
                            .entry(dialect)
                            .or_insert_with(|| AnchorTable::new(dialect, &decoded.text, &note));
                        link.subpath == "#" || table.find(&link.subpath).is_some()
                    }
                };
                let missing = links.iter().filter(|link| !is_there(link));
                missing
                    .map(|link| {
                        let message = format!("{target} has no {}: {}", link.subpath, link.text);
                        Problem::new(link.source.clone(), link.line, "broken-subpath", message)
                    })
                    .collect()
            },
        );
        broken.into_iter().flatten().collect()
    }
}

fn problem(path: &NotePath, line: usize, code: &'static str, message: String) -> Problem {
    Problem::new(path.to_string(), line, code, message)
}

fn look_at_link(link: &Link, text: &str, path: &NotePath, names: &FileNames, looked: &mut CheckedNote) {
    // `[[## text]]` is a typing aid of an editor.
    if is_external(&link.path) || (link.path.is_empty() && link.subpath.starts_with("##")) {
        return;
    }
    let written = link.span.of(text).to_owned();
    let unit = names.dialects().unit_of(path);
    let is_path = link.form.syntax() == LinkSyntax::Markdown && unit.dialect.follows_paths();
    let target = if clean(&link.path).is_empty() {
        path
    } else {
        match names.follow(link, path) {
            Some(found) => {
                if found.unstable {
                    let message = format!(
                        "more than one file fits, of equal right; {} is taken: {written}",
                        found.path
                    );
                    looked.problems.push(problem(path, link.line, "ambiguous-link", message));
                }
                found.path
            }
            None if is_path && leads_beyond(unit, link, path, names) => return,
            None => {
                looked.problems.push(problem(
                    path,
                    link.line,
                    "broken-link",
                    format!("no such file: {written}"),
                ));
                return;
            }
        }
    };
    if !link.subpath.is_empty() && target.is_note() {
        let part = PartLink {
            source: path.to_string(),
            line: link.line,
            subpath: link.subpath.clone(),
            text: written,
            anchor: is_path.then_some(unit.dialect),
        };
        looked.parts.push((target.clone(), part));
    }
}

/// Returns whether a link that is followed as a path leads to a folder, or out of what the vault contains.
fn leads_beyond(unit: &DialectUnit, link: &Link, path: &NotePath, names: &FileNames) -> bool {
    let has_folder = |folder: &str| Ok::<_, Infallible>(names.has_folder(folder));
    unit.leads_beyond_files(&link.path, path, has_folder).unwrap_or_else(|never| match never {})
}

/// Reports wikilinks in a note that is published where they are plain text.
fn dead_wikilinks(note: &Note, path: &NotePath, names: &FileNames) -> Option<Problem> {
    let unit = names.dialects().unit_of(path);
    let mut wikilinks = note.links.iter().filter(|link| link.form == LinkForm::Wiki);
    let first = wikilinks.next().filter(|_| unit.dialect.follows_paths() && !unit.is_assumed())?;
    let count = 1 + wikilinks.count();
    let what = if count == 1 { "1 wikilink is".to_owned() } else { format!("{count} wikilinks are") };
    let message = format!("{what} plain text where the links are those of {}", unit.dialect);
    Some(problem(path, first.line, "wikilink-as-text", message))
}

/// Finds conflict markers of git.
fn conflict(path: &NotePath, text: &str) -> Option<Problem> {
    let message = "two versions stand in the note, between marks of git".to_owned();
    first_conflict(text).map(|line| problem(path, line, "conflict-markers", message))
}

/// Finds names that differ only in case or accents, which some file systems do not distinguish.
fn clashes(all: &[NotePath]) -> Vec<Problem> {
    let mut by_key: HashMap<String, Vec<&NotePath>> = HashMap::new();
    for path in all {
        by_key.entry(key(path.as_str())).or_default().push(path);
    }
    let clashing = by_key.into_values().filter(|paths| paths.len() > 1);
    clashing
        .flat_map(|paths| {
            let first = paths.iter().min().copied().cloned();
            paths.into_iter().filter(move |path| Some(*path) != first.as_ref()).cloned().collect::<Vec<_>>()
        })
        .map(|path| {
            let message = "another file's name differs in case or accents alone".to_owned();
            problem(&path, 0, "name-clash", message)
        })
        .collect()
}

/// Finds notes with the same id.
fn twice(rows: &[FileRow]) -> Vec<Problem> {
    let mut first: HashMap<String, &NotePath> = HashMap::new();
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| row.kind == FileKind::Note) {
        match first.get(&key(&row.note_id)) {
            Some(other) => {
                found.push(problem(
                    &row.path,
                    0,
                    "duplicate-id",
                    format!("{other} has the id {} too", row.note_id),
                ));
            }
            None => {
                first.insert(key(&row.note_id), &row.path);
            }
        }
    }
    found
}

/// Finds notes with almost the same text. Only notes that share one of their four smallest hashes are compared, so the
/// cost grows linearly with the number of notes.
fn near_duplicates(rows: &[FileRow], sketches: &[WordSketch]) -> Vec<Problem> {
    let mut holding: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, sketch) in sketches.iter().enumerate() {
        for hash in sketch.smallest() {
            holding.entry(hash).or_default().push(at);
        }
    }
    let mut pairs: HashSet<(usize, usize)> = HashSet::new();
    for group in holding.values().filter(|group| group.len() <= CROWD) {
        for (place, &one) in group.iter().enumerate() {
            pairs.extend(group.iter().skip(place + 1).map(|&other| (one, other)));
        }
    }
    let mut found = Vec::new();
    for (one, other) in pairs {
        let (Some(a), Some(b)) = (sketches.get(one), sketches.get(other)) else { continue };
        let (Some(row), Some(twin)) = (rows.get(one), rows.get(other)) else { continue };
        let share = a.share(b);
        if share >= ALIKE {
            let message = format!(
                "has about the same text as {} ({:.0} % of its word sequences)",
                row.path,
                share * 100.0
            );
            found.push(problem(&twin.path, 0, "near-duplicate", message));
        }
    }
    found
}
