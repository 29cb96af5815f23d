//! Compares two states of a vault in the terms of notes: which notes were made, removed, renamed and changed, and where
//! links lead now.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use globset::GlobSet;
use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_base::parallel;
use sidenote_git::{NamedCommit, PathChange};
use sidenote_links::note_diff::{LinkEnd, NoteDiff, NoteState};
use sidenote_markdown::path::NotePath;
use sidenote_search::path_glob;

use crate::revision::Revisions;
use crate::revision::renames::{NamedContent, is_document, renames};
pub use crate::revision::side::DiffSide;
use crate::revision::side::{GROUP, Place, ReadNote, Side, SideNames};

/// What to compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffRequest {
    /// The first revision: what `git rev-parse` takes, or a date.
    pub from: String,
    /// The second revision; without it, the files as they are.
    pub to: Option<String>,
    /// Whether the first revision is replaced by the common ancestor of both.
    pub since_common_ancestor: bool,
    /// Paths, folders or globs. Without any, the whole vault is compared.
    pub paths: Vec<String>,
}

/// What became of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NoteChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has another path.
    Renamed,
    /// Its content differs.
    Changed,
    /// Only what its links lead to differs.
    Affected,
}

/// A note that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoteChange {
    /// The path; of a removed note, the one that it had.
    pub path: String,
    /// The path before a rename.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// What became of it.
    pub change: NoteChangeKind,
    /// The differences.
    #[serde(flatten)]
    pub diff: NoteDiff,
}

/// The sums of all differences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiffTotals {
    /// Notes that are new.
    pub added: usize,
    /// Notes that are gone.
    pub removed: usize,
    /// Notes with another path.
    pub renamed: usize,
    /// Notes whose content differs.
    pub changed: usize,
    /// Notes of which only the targets of links differ.
    pub affected: usize,
    /// Links that are new.
    pub links_added: usize,
    /// Links that are gone.
    pub links_removed: usize,
    /// Links that lead to another place.
    pub links_retargeted: usize,
    /// Links that are written in another way and lead to the same place.
    pub links_rewritten: usize,
    /// Links that lead to nothing now, new ones included.
    pub links_dead: usize,
    /// Links that led to nothing before.
    pub links_revived: usize,
    /// Words that are new.
    pub words_added: usize,
    /// Words that are gone.
    pub words_removed: usize,
}

/// The differences of two states of a vault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffReply {
    /// The state before.
    pub from: DiffSide,
    /// The state after.
    pub to: DiffSide,
    /// The sums.
    pub totals: DiffTotals,
    /// The notes that differ, by path.
    pub notes: Vec<NoteChange>,
}

/// A note on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NotePair {
    before: Option<NotePath>,
    after: Option<NotePath>,
    is_same_content: bool,
}

/// The files that have another path on the other side.
#[derive(Debug, Default)]
struct FileMoves {
    /// The new path of each renamed file.
    to: HashMap<String, String>,
    /// The new paths.
    targets: HashSet<String>,
    /// Whether the two sides have different files.
    differ: bool,
}

impl FileMoves {
    fn insert(&mut self, from: &NotePath, to: &NotePath) {
        self.to.insert(from.as_str().to_owned(), to.as_str().to_owned());
        self.targets.insert(to.as_str().to_owned());
    }

    /// Returns the name by which a path of the first side is known on both.
    fn identity(&self, path: &str) -> String {
        match self.to.get(path) {
            Some(to) => to.clone(),
            // Another file has taken this path.
            None if self.targets.contains(path) => format!("\0{path}"),
            None => path.to_owned(),
        }
    }
}

impl Revisions {
    /// Compares two states of the vault.
    ///
    /// # Errors
    /// `NotFound` if the repository has no such revision; `Invalid` for a malformed path; `Io` if the cache cannot be
    /// written; those of running git.
    #[tracing::instrument(skip_all)]
    pub fn diff(&self, request: &DiffRequest) -> Result<DiffReply> {
        let globs = request.paths.iter().map(|path| path_glob(path)).collect::<Result<Vec<_>>>()?;
        let now = self.clock.now();
        let from = self.repository.named_commit(&request.from, now)?;
        let to = request.to.as_deref().map(|to| self.repository.named_commit(to, now)).transpose()?;
        let from =
            if request.since_common_ancestor { self.common_ancestor(from, to.as_ref())? } else { from };
        let mut before = Side::of(self, Some(from))?;
        let mut after = Side::of(self, to)?;
        let (mut pairs, moves) = self.pairs(&mut before, &mut after)?;
        if !moves.differ && before.names().dialects().units() == after.names().dialects().units() {
            pairs.retain(|pair| !pair.is_same_content);
        }
        pairs.retain(|pair| is_asked_for(pair, &globs));
        let mut notes = Vec::new();
        for group in pairs.chunks(GROUP) {
            notes.extend(compare(group, &mut before, &mut after, &moves)?);
        }
        notes.sort_by(|one, other| one.path.cmp(&other.path).then(one.change.cmp(&other.change)));
        Ok(DiffReply { totals: totals(&notes), from: before.shown, to: after.shown, notes })
    }

    /// Returns the common ancestor of two revisions; the second is HEAD for the files as they are.
    fn common_ancestor(&self, from: NamedCommit, to: Option<&NamedCommit>) -> Result<NamedCommit> {
        let other = match to {
            Some(to) => Some(to.id.clone()),
            None => self.repository.head()?,
        };
        let base = match &other {
            Some(other) => self.repository.merge_base(&from.id, other)?,
            None => None,
        };
        let id = base.ok_or_else(|| {
            Error::not_found(format!("{} has no common ancestor with the other revision", from.name))
                .with_hint("write two dots to compare the revisions themselves")
        })?;
        Ok(NamedCommit { name: from.name, id })
    }

    /// Finds which files of both sides are one, and returns the notes among them.
    fn pairs(&self, before: &mut Side, after: &mut Side) -> Result<(Vec<NotePair>, FileMoves)> {
        let moved = match (&before.commit, &after.commit) {
            (Some(from), Some(to)) => self
                .repository
                .changes(from, to, true)?
                .into_iter()
                .filter_map(|change| match change {
                    PathChange::Renamed { from: Some(from), to: Some(to), .. } => {
                        Some((NotePath::from_disk(&from)?, NotePath::from_disk(&to)?))
                    }
                    _ => None,
                })
                .collect(),
            _ => moved_on_disk(before, after)?,
        };
        let mut moves = FileMoves::default();
        let mut taken: BTreeMap<&NotePath, &NotePath> = BTreeMap::new();
        for (from, to) in &moved {
            // A link that git followed in place of a file is in neither list.
            if before.files.contains_key(from) && after.files.contains_key(to) {
                moves.insert(from, to);
                taken.insert(to, from);
            }
        }
        let gone: BTreeSet<&NotePath> = taken.values().copied().collect();
        let mut pairs = Vec::new();
        for (path, place) in &after.files {
            let was = match taken.get(path) {
                Some(from) => Some(*from),
                None => before.files.contains_key(path).then_some(path).filter(|path| !gone.contains(path)),
            };
            moves.differ |= was != Some(path);
            if !is_document(path) && !was.is_some_and(is_document) {
                continue;
            }
            let before_place = was.and_then(|was| before.files.get(was));
            pairs.push(NotePair {
                before: was.filter(|was| is_document(was)).cloned(),
                after: Some(path).filter(|path| is_document(path)).cloned(),
                is_same_content: *place != Place::Disk && before_place == Some(place),
            });
        }
        for path in before.files.keys() {
            if gone.contains(path) || (after.files.contains_key(path) && !taken.contains_key(path)) {
                continue;
            }
            moves.differ = true;
            if is_document(path) {
                pairs.push(NotePair { before: Some(path.clone()), after: None, is_same_content: false });
            }
        }
        Ok((pairs, moves))
    }
}

/// Finds the renames between a commit and the files on the disk.
fn moved_on_disk(before: &mut Side, after: &mut Side) -> Result<Vec<(NotePath, NotePath)>> {
    let missing = |these: &Side, those: &Side| -> Vec<NotePath> {
        these.files.keys().filter(|path| !those.files.contains_key(*path)).cloned().collect()
    };
    let (removed, added) = (missing(before, after), missing(after, before));
    if removed.is_empty() || added.is_empty() {
        return Ok(Vec::new());
    }
    let read = |side: &mut Side, paths: &[NotePath]| -> Result<Vec<NamedContent>> {
        let contents = side.read(paths)?;
        let files = paths.iter().zip(contents);
        Ok(files
            .map(|(path, content)| NamedContent { path: path.clone(), content: content.unwrap_or_default() })
            .collect())
    };
    let (gone, new) = (read(before, &removed)?, read(after, &added)?);
    let found = renames(&gone, &new).into_iter();
    Ok(found
        .filter_map(|(one, other)| Some((gone.get(one)?.path.clone(), new.get(other)?.path.clone())))
        .collect())
}

/// Returns whether a note is among the paths of the request, under either of its names.
fn is_asked_for(pair: &NotePair, globs: &[GlobSet]) -> bool {
    let mut paths = [&pair.before, &pair.after].into_iter().flatten();
    globs.is_empty() || paths.any(|path| globs.iter().any(|glob| glob.is_match(path.as_str())))
}

/// A note on both sides, with its contents.
struct ReadPair<'a> {
    pair: &'a NotePair,
    before: Vec<u8>,
    /// `None` if it is the content before.
    after: Option<Vec<u8>>,
}

/// Compares some notes.
fn compare(
    pairs: &[NotePair],
    before: &mut Side,
    after: &mut Side,
    moves: &FileMoves,
) -> Result<Vec<NoteChange>> {
    let old: Vec<NotePath> = pairs.iter().filter_map(|pair| pair.before.clone()).collect();
    let new = pairs.iter().filter(|pair| !pair.is_same_content);
    let new: Vec<NotePath> = new.filter_map(|pair| pair.after.clone()).collect();
    let (mut old, mut new) = (before.read(&old)?.into_iter(), after.read(&new)?.into_iter());
    let read: Vec<ReadPair<'_>> = pairs
        .iter()
        .map(|pair| {
            let was = pair.before.as_ref().and_then(|_| old.next().flatten()).unwrap_or_default();
            let is = match &pair.after {
                _ if pair.is_same_content => None,
                after => after.as_ref().and_then(|_| new.next().flatten()).or_else(|| Some(Vec::new())),
            };
            let after = is.filter(|is| pair.before != pair.after || *is != was);
            ReadPair { pair, before: was, after }
        })
        .collect();
    let (before, after) = (before.names(), after.names());
    let compared = parallel::map(&read, 16, || (), |(), read| compare_one(read, before, after, moves));
    Ok(compared.into_iter().flatten().collect())
}

/// Compares one note. Returns `None` if nothing differs.
fn compare_one(
    read: &ReadPair<'_>,
    before: &SideNames,
    after: &SideNames,
    moves: &FileMoves,
) -> Option<NoteChange> {
    let pair = read.pair;
    let parse = |path: &Option<NotePath>, content: &[u8]| {
        path.as_ref().map_or_else(ReadNote::none, |path| ReadNote::of(path, content))
    };
    let one = parse(&pair.before, &read.before);
    let other = read.after.as_deref().map(|content| parse(&pair.after, content));
    let old_ends = pair
        .before
        .as_ref()
        .map_or_else(Vec::new, |path| before.ends(path, &one.note, |path| moves.identity(path)));
    let is_same_text = other.is_none();
    let other = other.as_ref().unwrap_or(&one);
    let new_ends =
        pair.after.as_ref().map_or_else(Vec::new, |path| after.ends(path, &other.note, str::to_owned));
    let is_same_end = |(one, other): (&LinkEnd, &LinkEnd)| one.identity() == other.identity();
    if is_same_text && old_ends.iter().zip(&new_ends).all(is_same_end) && pair.before == pair.after {
        return None;
    }
    let diff = NoteDiff::of(
        NoteState { text: &one.text, note: &one.note, ends: &old_ends },
        NoteState { text: &other.text, note: &other.note, ends: &new_ends },
    );
    let is_same_text = is_same_text || is_same_but_line_ends(&read.before, read.after.as_deref());
    change_of(pair, is_same_text, diff)
}

/// Returns whether two contents differ in their line ends at most, which git may convert.
fn is_same_but_line_ends(one: &[u8], other: Option<&[u8]>) -> bool {
    let other = other.unwrap_or(one);
    let is_other = |byte: &&u8| **byte != b'\r';
    one.iter().filter(is_other).eq(other.iter().filter(is_other))
}

/// Returns the change of a note; `None` if nothing differs.
fn change_of(pair: &NotePair, is_same_text: bool, diff: NoteDiff) -> Option<NoteChange> {
    let (path, was, change) = match (&pair.before, &pair.after) {
        (None, Some(after)) => (after, None, NoteChangeKind::Added),
        (Some(before), None) => (before, None, NoteChangeKind::Removed),
        (Some(before), Some(after)) if before != after => (after, Some(before), NoteChangeKind::Renamed),
        (Some(_), Some(after)) if !is_same_text => (after, None, NoteChangeKind::Changed),
        (Some(_), Some(after)) if !diff.is_empty() => (after, None, NoteChangeKind::Affected),
        _ => return None,
    };
    Some(NoteChange { path: path.to_string(), was: was.map(NotePath::to_string), change, diff })
}

fn totals(notes: &[NoteChange]) -> DiffTotals {
    let mut totals = DiffTotals::default();
    for note in notes {
        let count = match note.change {
            NoteChangeKind::Added => &mut totals.added,
            NoteChangeKind::Removed => &mut totals.removed,
            NoteChangeKind::Renamed => &mut totals.renamed,
            NoteChangeKind::Changed => &mut totals.changed,
            NoteChangeKind::Affected => &mut totals.affected,
        };
        *count += 1;
        let links = &note.diff.links;
        totals.links_added += links.added.len();
        totals.links_removed += links.removed.len();
        totals.links_retargeted += links.retargeted.len();
        totals.links_rewritten += links.rewritten.len();
        totals.links_revived += links.revived.len();
        totals.links_dead += links.dead.len() + links.added.iter().filter(|link| link.dead).count();
        totals.words_added += note.diff.words.added;
        totals.words_removed += note.diff.words.removed;
    }
    totals
}
