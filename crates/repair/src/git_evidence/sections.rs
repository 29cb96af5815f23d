//! Sections that moved from one note to another without a change, and what links to their headings meant
//! (docs/spec/git.md 3, *strong*).
//!
//! They are looked for in the recent commits and in the working tree, like links that lead elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use sidenote_base::error::Result;
use sidenote_git::{CommitIndex, ObjectId, PathChange};
use sidenote_links::anchor::{AnchorTable, AnchorTarget};
use sidenote_links::dialect::LinkDialect;
use sidenote_links::rewrite::LinkedPlace;
use sidenote_markdown::link::{Link, LinkSyntax};
use sidenote_markdown::note::heading_key;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::subpath::{SubpathTable, SubpathTarget};
use sidenote_open_vault::Core;
use sidenote_open_vault::source::Source;

use super::{GitEvidence, HEAD, LEAST_BODY, MAX_CANDIDATES};
use crate::evidence::{Certainty, Clue, EvidenceKind, TargetState};
use crate::history_reader::HistoryReader;
use crate::present::{LinkCase, Present, is_judged, place_of};
use crate::working_tree::read;

/// The most changed notes of a commit in which moved sections are looked for.
const MAX_CHANGED: usize = 100;

/// A section that left a note and is in another one, with the same text.
#[derive(Clone)]
struct MovedSection {
    /// The note that had it, before it left.
    then: Rc<Source>,
    /// The index of its heading in that note.
    heading: usize,
    /// The commit that moved it; `None` for the working tree.
    commit: Option<CommitIndex>,
    /// The present path of the note that has it.
    to: NotePath,
}

/// The sections that moved, by the note that had them.
#[derive(Default)]
pub(super) struct MovedSections {
    /// By the present path of the note.
    of_notes: BTreeMap<NotePath, Vec<MovedSection>>,
    /// By the last path of a note that was deleted, and the commit that deleted it.
    of_deleted: HashMap<(NotePath, Option<CommitIndex>), Vec<MovedSection>>,
    /// What was looked for, and what was found.
    found: HashMap<WantedPart, Option<MovedSection>>,
}

/// A note before and after a change.
struct NoteChange {
    before: Option<Rc<Source>>,
    after: Option<Source>,
}

/// A section by the numbers of its note and of its heading.
type SectionPlace = (usize, usize);

impl MovedSections {
    /// Follows the two notes of a moved section to the present, and keeps the section.
    fn add(
        &mut self,
        git: &mut GitEvidence<'_>,
        changes: &[NoteChange],
        commit: Option<CommitIndex>,
        (from, heading): SectionPlace,
        to: usize,
    ) -> Result<()> {
        let to = changes.get(to).and_then(|change| change.after.as_ref());
        let Some((from, to)) = changes.get(from).zip(to) else { return Ok(()) };
        let Some(then) = from.before.clone() else { return Ok(()) };
        let mut now = |path: &NotePath| match commit {
            Some(commit) => Ok(git.follow(commit, path)?.at),
            None => Ok(Some(path.clone())),
        };
        let Some(to) = now(&to.path)? else { return Ok(()) };
        let moved = MovedSection { heading, commit, to, then: Rc::clone(&then) };
        match &from.after {
            Some(after) => {
                if let Some(note) = now(&after.path)? {
                    self.of_notes.entry(note).or_default().push(moved);
                }
            }
            None => {
                self.of_deleted.entry((then.path.clone(), commit)).or_default().push(moved);
            }
        }
        Ok(())
    }

    /// Finds the new note of a section that a link names and that its own note, present or deleted, does not have. Each
    /// name is looked for once.
    fn moved_part(&mut self, core: &Core, wanted: &WantedPart) -> Option<MovedSection> {
        let moved = match wanted.deleted_by {
            None => self.of_notes.get(&wanted.note)?,
            Some(commit) => self.of_deleted.get(&(wanted.note.clone(), commit))?,
        };
        if let Some(known) = self.found.get(wanted) {
            return known.clone();
        }
        let is_there = wanted.deleted_by.is_none() && has_part(core, &wanted.note, wanted);
        let found = if is_there { None } else { self.follow_part(core, wanted, moved) };
        self.found.insert(wanted.clone(), found.clone());
        found
    }

    fn follow_part<'s>(
        &'s self,
        core: &Core,
        wanted: &WantedPart,
        mut moved: &'s Vec<MovedSection>,
    ) -> Option<MovedSection> {
        /// The most times that a section moves on.
        const MOST: usize = 8;
        for _ in 0..MOST {
            let is_it = |moved: &&MovedSection| wanted.heading_in(&moved.then) == Some(moved.heading);
            // The working tree is newer than all commits, and the newest commit has the least number.
            let newest = moved.iter().filter(is_it).min_by_key(|moved| moved.commit)?;
            if has_part(core, &newest.to, wanted) {
                return Some(newest.clone());
            }
            moved = self.of_notes.get(&newest.to)?;
        }
        None
    }
}

impl MovedSection {
    /// Returns the clue that it is. `by` names the commit.
    fn clue(&self, by: &str, source_then: NotePath, target_then: NotePath) -> Clue {
        let heading = self.then.note.headings.get(self.heading).map_or("", |heading| heading.text.as_str());
        Clue {
            kind: EvidenceKind::Git,
            source_then,
            target_then: LinkedPlace::File(target_then),
            state: TargetState::At(LinkedPlace::File(self.to.clone())),
            certainty: Certainty::Strong,
            detail: format!("the section {heading} went from {} to {} in {by}", self.then.path, self.to),
        }
    }
}

/// A part of a note that a link names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct WantedPart {
    note: NotePath,
    /// The commit that deleted the note, if it was deleted.
    deleted_by: Option<Option<CommitIndex>>,
    subpath: String,
    /// The dialect by which the subpath is an anchor; `None` where it names the part itself.
    dialect: Option<LinkDialect>,
}

impl WantedPart {
    /// Returns what a link names in a note.
    fn of_link(present: &Present, source: &NotePath, link: &Link, note: &NotePath) -> Self {
        let dialect = present.names.dialects().unit_of(source).dialect;
        let is_anchor = dialect.follows_paths() && link.form.syntax() == LinkSyntax::Markdown;
        Self {
            note: note.clone(),
            deleted_by: None,
            subpath: link.subpath.clone(),
            dialect: is_anchor.then_some(dialect),
        }
    }

    /// Returns whether a note has the part.
    fn is_in(&self, note: &Source) -> bool {
        match self.dialect {
            None => SubpathTable::new(&note.note).find(&self.subpath).is_some(),
            Some(dialect) => AnchorTable::new(dialect, &note.text, &note.note).find(&self.subpath).is_some(),
        }
    }

    /// Returns the index of the heading of a note that it is.
    fn heading_in(&self, note: &Source) -> Option<usize> {
        match self.dialect {
            None => match SubpathTable::new(&note.note).find(&self.subpath)? {
                SubpathTarget::Heading(heading) => Some(heading),
                SubpathTarget::Block(_) | SubpathTarget::Footnote(_) => None,
            },
            Some(dialect) => match AnchorTable::new(dialect, &note.text, &note.note).find(&self.subpath)? {
                AnchorTarget::Heading(heading) => Some(heading),
                AnchorTarget::Other(_) => None,
            },
        }
    }
}

/// Returns whether a note has a part now.
fn has_part(core: &Core, note: &NotePath, wanted: &WantedPart) -> bool {
    read(core, note).is_some_and(|bytes| wanted.is_in(&Source::unplaced(note.clone(), &bytes)))
}

impl GitEvidence<'_> {
    /// Finds the sections that moved, and the links to their headings that are dead since. The recent commits have to be
    /// walked, as the search for misled links does.
    pub(crate) fn find_moved_sections(&mut self, present: &mut Present) -> Result<()> {
        let mut sections = MovedSections::default();
        for walked in self.walk.recent_commits() {
            // What a merge took is of the commits that it merged.
            let [(_, changes)] = walked.changes.as_slice() else { continue };
            let changed = notes_of_commit(&mut self.reader, changes.all())?;
            for (from, heading, to) in moved_sections(&changed) {
                sections.add(self, &changed, Some(walked.commit), (from, heading), to)?;
            }
        }
        let changed = notes_of_working_tree(self, present)?;
        for (from, heading, to) in moved_sections(&changed) {
            sections.add(self, &changed, None, (from, heading), to)?;
        }
        self.sections = sections;
        let notes: Vec<NotePath> = self.sections.of_notes.keys().cloned().collect();
        for note in notes {
            find_links(self, present, &note)?;
        }
        Ok(())
    }

    /// Adds to the clues of a link with an anchor where the section went that it names, if the note that it meant is
    /// there without the section, or was deleted.
    pub(super) fn add_section_clue(
        &mut self,
        present: &Present,
        (source, link): (&Source, &Link),
        target: &NotePath,
        clue: Clue,
        deleted_by: Option<CommitIndex>,
    ) -> Result<Vec<Clue>> {
        if link.subpath.is_empty() {
            return Ok(vec![clue]);
        }
        let wanted = |note: &NotePath| WantedPart::of_link(present, &source.path, link, note);
        let found = match &clue.state {
            TargetState::At(LinkedPlace::File(now)) => self.sections.moved_part(self.core, &wanted(now)),
            TargetState::At(LinkedPlace::Folder(_) | LinkedPlace::Outside(_)) => None,
            TargetState::Deleted(_) => {
                let wanted = WantedPart { deleted_by: Some(deleted_by), ..wanted(target) };
                self.sections.moved_part(self.core, &wanted)
            }
        };
        let Some(moved) = found else { return Ok(vec![clue]) };
        let by = self.named(moved.commit)?;
        let mut section = moved.clue(&by, clue.source_then.clone(), target.clone());
        Ok(match clue.state {
            TargetState::At(_) => {
                // The way of the note counts, too.
                section.certainty = section.certainty.min(clue.certainty);
                section.detail = format!("{}, {}", clue.detail, section.detail);
                vec![section]
            }
            TargetState::Deleted(_) => vec![section, clue],
        })
    }
}

/// Finds the links of other notes to sections that left a note, and what they meant.
fn find_links(git: &mut GitEvidence<'_>, present: &mut Present, note: &NotePath) -> Result<()> {
    let sources = git.core.index.catalog().links().sources_of(std::slice::from_ref(note))?;
    let sources: BTreeSet<NotePath> = sources.into_iter().filter(|path| present.is_in_scope(path)).collect();
    for path in sources {
        let number = match present.number_of(&path) {
            Some(number) => number,
            None => {
                let Some(bytes) = read(git.core, &path) else { continue };
                present.add(Source::unplaced(path.clone(), &bytes))
            }
        };
        let Some(source) = present.sources.get(number) else { continue };
        let mut found = Vec::new();
        for (at, link) in source.note.links.iter().enumerate() {
            let case = LinkCase { source: number, link: at, is_dead: false };
            let leads_here = is_judged(link)
                && !link.subpath.is_empty()
                && place_of(&present.names, link, &path).as_ref() == Some(&LinkedPlace::File(note.clone()));
            if !leads_here || git.misled_since.contains_key(&case) {
                continue;
            }
            let wanted = WantedPart::of_link(present, &path, link, note);
            if let Some(moved) = git.sections.moved_part(git.core, &wanted) {
                found.push((case, moved));
            }
        }
        for (case, moved) in found {
            let by = git.named(moved.commit)?;
            git.section_clues.insert(case, moved.clue(&by, path.clone(), note.clone()));
            present.misled.push(case);
        }
    }
    Ok(())
}

/// Reads the notes that a commit changed, before and after. A commit that changed very many is left out.
fn notes_of_commit(reader: &mut HistoryReader, changes: &[PathChange]) -> Result<Vec<NoteChange>> {
    let versions = changes.iter().map(|change| match change {
        PathChange::Added { path, blob } => (None, Some((path, blob))),
        PathChange::Removed { path, blob } => (Some((path, blob)), None),
        PathChange::Changed { path, before, after } => (Some((path, before)), Some((path, after))),
        PathChange::Renamed { from, to, before, after, .. } => {
            (from.as_ref().zip(Some(before)), to.as_ref().zip(Some(after)))
        }
    });
    let note = |version: Option<(&String, &ObjectId)>| {
        let (path, blob) = version?;
        Some((NotePath::from_disk(path).filter(NotePath::is_note)?, blob.clone()))
    };
    let versions: Vec<_> = versions
        .map(|(before, after)| (note(before), note(after)))
        .filter(|(before, after)| {
            let blob =
                |version: &Option<(NotePath, ObjectId)>| version.as_ref().map(|(_, blob)| blob.clone());
            blob(before) != blob(after)
        })
        .collect();
    // Without a note that lost text and one that gained some, no section moved.
    let can_move = versions.len() > 1
        && versions.iter().any(|(before, _)| before.is_some())
        && versions.iter().any(|(_, after)| after.is_some());
    if !can_move || versions.len() > MAX_CHANGED {
        return Ok(Vec::new());
    }
    let sides = || versions.iter().flat_map(|(before, after)| [before, after]).flatten();
    let ids: Vec<ObjectId> = sides().map(|(_, blob)| blob.clone()).collect();
    let contents = reader.blobs(&ids)?;
    let mut contents = sides()
        .zip(contents)
        .map(|((path, _), bytes)| bytes.map(|bytes| Source::unplaced(path.clone(), &bytes)));
    let mut read = Vec::with_capacity(versions.len());
    for (before, after) in &versions {
        let before = before.as_ref().and_then(|_| contents.next().flatten()).map(Rc::new);
        let after = after.as_ref().and_then(|_| contents.next().flatten());
        read.push(NoteChange { before, after });
    }
    Ok(read)
}

/// Reads the notes that differ from the last commit in length, and those that are new or gone.
fn notes_of_working_tree(git: &mut GitEvidence<'_>, present: &Present) -> Result<Vec<NoteChange>> {
    let committed: Vec<(NotePath, ObjectId)> = git
        .head_files
        .iter()
        .filter(|(path, _)| path.is_note())
        .map(|(path, id)| (path.clone(), id.clone()))
        .collect();
    let ids: Vec<ObjectId> = committed.iter().map(|(_, id)| id.clone()).collect();
    let sizes = git.reader.sizes(&ids)?;
    let row = |path: &NotePath| present.files.get(path).and_then(Option::as_ref);
    // The path in the last commit, and the present one.
    let mut changed: Vec<(Option<NotePath>, Option<NotePath>)> = Vec::new();
    for ((path, _), size) in committed.into_iter().zip(sizes) {
        // A note that moved is the same one elsewhere.
        let now = match git.working.moved.get(&path) {
            Some(moved) => Some(moved.to.clone()),
            None => present.has(&path).then(|| path.clone()),
        };
        let is_same = now.as_ref().and_then(row).is_some_and(|row| Some(row.size) == size);
        if !is_same {
            changed.push((Some(path), now));
        }
    }
    let is_new = |path: &&NotePath| {
        path.is_note()
            && !git.head_files.contains_key(*path)
            && !git.working.moved_from.contains_key(*path)
            && row(path).is_some()
    };
    let mut new: Vec<NotePath> = present.files.keys().filter(is_new).cloned().collect();
    new.sort();
    if changed.is_empty() || changed.len() + new.len() > MAX_CANDIDATES {
        return Ok(Vec::new());
    }
    changed.extend(new.into_iter().map(|path| (None, Some(path))));
    let mut read_notes = Vec::with_capacity(changed.len());
    for (before, after) in changed {
        let before = match before {
            Some(path) => git.note(&super::Origin { commit: HEAD, source: path })?,
            None => None,
        };
        let after = after.and_then(|path| {
            let bytes = read(git.core, &path)?;
            Some(Source::unplaced(path, &bytes))
        });
        read_notes.push(NoteChange { before, after });
    }
    Ok(read_notes)
}

/// Finds the sections that one note lost and another one gained: the number of the note that had it with the index of the
/// heading there, and the number of the note that has it. A section that several notes lost or gained is left out.
fn moved_sections(changes: &[NoteChange]) -> Vec<(usize, usize, usize)> {
    let mut lost: HashMap<blake3::Hash, Vec<SectionPlace>> = HashMap::new();
    let mut gained: HashMap<blake3::Hash, Vec<usize>> = HashMap::new();
    for (number, change) in changes.iter().enumerate() {
        let before = change.before.as_deref().map_or_else(Vec::new, section_hashes);
        let after = change.after.as_ref().map_or_else(Vec::new, section_hashes);
        for (heading, hash) in before.iter().filter(|(_, hash)| !after.iter().any(|(_, now)| now == hash)) {
            lost.entry(*hash).or_default().push((number, *heading));
        }
        for (_, hash) in after.iter().filter(|(_, hash)| !before.iter().any(|(_, then)| then == hash)) {
            gained.entry(*hash).or_default().push(number);
        }
    }
    let mut found = Vec::new();
    for (hash, places) in lost {
        if let ([(from, heading)], Some([to])) = (places.as_slice(), gained.get(&hash).map(Vec::as_slice))
            && from != to
        {
            found.push((*from, *heading, *to));
        }
    }
    found.sort_unstable();
    found
}

/// Returns the hash of each section of a note that is long enough to be identified by its text, with the index of its
/// heading. Line ends, blank lines around it and the levels of its headings do not count.
fn section_hashes(note: &Source) -> Vec<(usize, blake3::Hash)> {
    let mut hashes = Vec::new();
    for (at, heading) in note.note.headings.iter().enumerate() {
        let Some(span) = note.note.section_span(&note.text, at) else { continue };
        let body = note.text.get(heading.span.end..span.end).unwrap_or_default().trim();
        if body.len() < LEAST_BODY {
            continue;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(heading_key(&heading.text).as_bytes());
        for line in body.lines() {
            let line = line.trim_end();
            let unlevelled = line.trim_start_matches('#');
            let is_heading = unlevelled.len() < line.len() && unlevelled.starts_with(' ');
            hasher.update(b"\n").update(if is_heading { unlevelled } else { line }.as_bytes());
        }
        hashes.push((at, hasher.finalize()));
    }
    hashes
}
