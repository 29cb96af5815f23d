//! Clues from the history of git, and from what the working tree changed since the last commit (docs/spec/git.md 3,
//! evidence 3 to 5).
//!
//! A link is looked up in a commit in which it was right. The file that it led to is followed from there to the present,
//! commit by commit.

mod contents;
mod following;
mod line_history;
mod misled;
mod sections;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use sidenote_base::error::Result;
use sidenote_git::{CommitIndex, ObjectId, Repository};
use sidenote_language::graphemes::shortened;
use sidenote_links::dialect::{LinkPlace, split_query};
use sidenote_links::resolve::{FileNames, name_keys, strict_places};
use sidenote_links::rewrite::LinkedPlace;
use sidenote_markdown::link::{Link, LinkSyntax};
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::Core;
use sidenote_open_vault::source::Source;

use crate::evidence::{Certainty, Clue, EvidenceKind, TargetState};
use crate::git_evidence::line_history::trace_dead_links;
use crate::git_evidence::sections::MovedSections;
use crate::history_reader::{HistoryProblem, HistoryReader, PiecesCache};
use crate::history_walk::{HistoryWalk, PathEventKind, keys_below};
use crate::moved_files::FileMove;
use crate::present::{LinkCase, Present, place_of};
use crate::working_tree::WorkingTreeMoves;

/// The least share of common content of a strong rename, in percent.
const STRONG_PERCENT: u8 = 70;
/// The least length of a body whose content identifies a note, in bytes.
const LEAST_BODY: usize = 64;
/// The most paths whose last removal is looked for in the whole history.
const MAX_FORMER_PATHS: usize = 20_000;
/// The most new files of a commit that are compared with a file that it removed.
const MAX_CANDIDATES: usize = 500;
/// The most files of a folder that are followed.
const MAX_FOLDER_FILES: usize = 2_000;
/// The last commit, which a walk begins with.
const HEAD: CommitIndex = 0;

/// One step of a file on its way to the present.
#[derive(Debug, Clone)]
struct Step {
    /// The commit; `None` for the working tree.
    commit: Option<CommitIndex>,
    moved: FileMove,
}

/// What became of a file since a commit.
#[derive(Debug, Clone)]
struct Followed {
    /// The present path; `None` if the file was deleted.
    at: Option<NotePath>,
    steps: Vec<Step>,
    /// The commit that deleted it, or the last one that touched the path at which its way ends; `None` for the working tree.
    deleted_by: Option<CommitIndex>,
    /// The last commit that is known to have it, and its path there.
    last: (CommitIndex, NotePath),
}

/// A state of a note with a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Origin {
    commit: CommitIndex,
    /// The path of the linking note in that commit.
    source: NotePath,
}

/// The evidence of git about the vault's files.
// size: all questions of a repair about the history, in a file for each topic.
pub(super) struct GitEvidence<'a> {
    core: &'a Core,
    repository: Repository,
    walk: HistoryWalk,
    reader: HistoryReader,
    head_files: BTreeMap<NotePath, ObjectId>,
    working: WorkingTreeMoves,
    /// All paths of the last commit and of the walked ones, by the key of their file name.
    by_name: HashMap<String, BTreeSet<NotePath>>,
    followed: HashMap<(CommitIndex, NotePath), Followed>,
    notes: HashMap<Origin, Option<Rc<Source>>>,
    /// The states of a note in which each dead link was written, the newest first.
    written: HashMap<LinkCase, Vec<Origin>>,
    /// The states before the commits that renamed the note of a traced link, by the commit: the parent, and the path there.
    note_paths: HashMap<usize, BTreeMap<CommitIndex, Origin>>,
    /// The states in which links were right that lead elsewhere now, each with the highest certainty that it can give.
    misled_since: HashMap<LinkCase, (Origin, Certainty)>,
    /// The sections that recently moved to another note.
    sections: MovedSections,
    /// The evidence about links whose file exists, while the heading that they name does not.
    section_clues: HashMap<LinkCase, Clue>,
    subjects: HashMap<CommitIndex, String>,
    /// The pieces of the present contents that were compared.
    present_pieces: PiecesCache<NotePath>,
    former: usize,
}

impl<'a> GitEvidence<'a> {
    /// Compares the last commit with the files, and traces the dead links back to the commits that wrote them. Returns
    /// `None` before the first commit.
    pub(super) fn new(core: &'a Core, repository: Repository, present: &Present) -> Result<Option<Self>> {
        let Some(mut walk) = HistoryWalk::new(&repository)? else { return Ok(None) };
        let Some(head) = walk.graph.id(HEAD).cloned() else { return Ok(None) };
        let head_files = walk.head_files()?;
        let mut reader = HistoryReader::new(repository.clone(), head);
        reader.set_head_blobs(head_files.values());
        let working = WorkingTreeMoves::find(core, &head_files, present, &mut reader, &walk.owners)?;
        let mut evidence = Self {
            core,
            repository,
            walk,
            reader,
            head_files,
            working,
            by_name: HashMap::new(),
            followed: HashMap::new(),
            notes: HashMap::new(),
            written: HashMap::new(),
            note_paths: HashMap::new(),
            misled_since: HashMap::new(),
            sections: MovedSections::default(),
            section_clues: HashMap::new(),
            subjects: HashMap::new(),
            present_pieces: PiecesCache::default(),
            former: 0,
        };
        trace_dead_links(&mut evidence, present)?;
        Ok(Some(evidence))
    }

    /// Returns whether the last commit has a file.
    pub(super) fn is_committed(&self, path: &NotePath) -> bool {
        self.head_files.contains_key(path)
    }

    /// Returns what git could not tell.
    pub(super) fn problems(&self) -> Vec<HistoryProblem> {
        let mut problems = self.walk.problems();
        problems.extend(self.reader.problems());
        problems
    }

    /// Returns the path that a present file has in the last commit.
    fn path_in_head<'p>(&'p self, path: &'p NotePath) -> &'p NotePath {
        self.working.moved_from.get(path).unwrap_or(path)
    }

    /// Finds what git says of a link.
    pub(super) fn clues(&mut self, present: &Present, case: &LinkCase) -> Result<Vec<Clue>> {
        let Some((source, link)) = present.sources.get(case.source).zip(present.link(case)) else {
            return Ok(Vec::new());
        };
        if let Some(clue) = self.section_clues.get(case) {
            return Ok(vec![clue.clone()]);
        }
        let origins = match self.misled_since.get(case) {
            Some((origin, _)) => vec![origin.clone()],
            None => self.origins(present, case, source, link)?,
        };
        if origins.is_empty() {
            return self.clues_of_former_paths(present, case, source, link);
        }
        let mut clues = Vec::new();
        for origin in origins {
            let Some(place) = self.place_at(present, &origin, link)? else { continue };
            match place {
                LinkedPlace::File(target) => {
                    let followed = self.follow(origin.commit, &target)?;
                    let mut clue = self.clue_of_history(&origin, &target, &followed, source)?;
                    if let Some((_, most)) = self.misled_since.get(case) {
                        clue.certainty = clue.certainty.min(*most);
                    }
                    let is_proven =
                        clue.certainty == Certainty::Certain && matches!(clue.state, TargetState::At(_));
                    let by = followed.deleted_by;
                    clues.extend(self.add_section_clue(present, (source, link), &target, clue, by)?);
                    // The id and the content of the note are compared where its way is not certain, and where they may disagree.
                    if !is_proven && !self.misled_since.contains_key(case) {
                        clues.extend(self.clues_of_content(present, &origin, &target, &followed)?);
                    }
                }
                LinkedPlace::Folder(folder) => clues.extend(self.clue_of_folder(&origin, &folder)?),
                LinkedPlace::Outside(path) => {
                    clues.extend(self.clue_of_outside(present, &origin, &path, link, source)?);
                }
            }
        }
        if !clues.is_empty() && clues.iter().all(|clue| clue.target().is_none()) {
            clues.extend(self.clue_of_successor(present, case, source, link)?);
        }
        Ok(clues)
    }

    /// Returns the clue that a new file was written at the path of the one that a link meant, which was deleted: the link led
    /// to it until it moved.
    fn clue_of_successor(
        &mut self,
        present: &Present,
        case: &LinkCase,
        source: &Source,
        link: &Link,
    ) -> Result<Option<Clue>> {
        let last = Origin { commit: HEAD, source: self.path_in_head(&source.path).clone() };
        let Some(state) = self.last_right_state(present, case, last, link)? else { return Ok(None) };
        let Some(LinkedPlace::File(target)) = self.place_at(present, &state, link)? else { return Ok(None) };
        let followed = self.follow(state.commit, &target)?;
        let clue = self.clue_of_history(&state, &target, &followed, source)?;
        let certainty = clue.certainty.min(Certainty::Strong);
        Ok(clue.target().is_some().then_some(Clue { certainty, ..clue }))
    }

    /// Finds the states in which a dead link was right: the newest state in which it was written and led to a file, or
    /// the last commit, if its file came later. If the state that wrote it first led elsewhere, that one is added.
    fn origins(
        &mut self,
        present: &Present,
        case: &LinkCase,
        source: &Source,
        link: &Link,
    ) -> Result<Vec<Origin>> {
        let from = self.path_in_head(&source.path).clone();
        if !self.is_committed(&from) {
            return Ok(Vec::new());
        }
        let last = Origin { commit: HEAD, source: from };
        // A link that the last commit does not have was not traced.
        let Some(written) = self.written.get(case).cloned() else { return Ok(Vec::new()) };
        let mut right = Vec::new();
        for state in &written {
            if self.place_at(present, state, link)?.is_some() {
                right.push(state.clone());
                break;
            }
        }
        if let (Some(first), Some(found)) = (written.last(), right.first())
            && first != found
            && self.place_at(present, first, link)?.is_some()
        {
            right.push(first.clone());
        }
        if right.is_empty() {
            // Its file was made after it.
            right.extend(self.last_right_state(present, case, last, link)?);
        }
        Ok(right)
    }

    /// Finds the newest state since a link was written in which it led to a file that was created at the path, not one
    /// that was moved there. That state is the last commit, or the one before the file or the note left its path.
    fn last_right_state(
        &mut self,
        present: &Present,
        case: &LinkCase,
        last: Origin,
        link: &Link,
    ) -> Result<Option<Origin>> {
        /// The most states that are looked at, so that a name that many files had takes little time.
        const MOST: usize = 64;
        let Some(written) = self.written.get(case).and_then(|states| states.last()).cloned() else {
            return Ok(None);
        };
        let names = self.note_paths.get(&case.source).cloned().unwrap_or_default();
        // The states before commits that took a file from a path that the link can mean, or renamed its note.
        let mut states: BTreeSet<(CommitIndex, CommitIndex)> =
            names.iter().map(|(commit, before)| (*commit, before.commit)).collect();
        let mut sources: BTreeSet<NotePath> = names.into_values().map(|before| before.source).collect();
        sources.insert(last.source.clone());
        for source in &sources {
            for path in self.paths_meant(present, source, link) {
                let gone = self.walk.known_events_of(&path).iter();
                let gone = gone.filter(|event| !matches!(event.kind, PathEventKind::Added));
                states.extend(gone.map(|event| (event.commit, event.parent)));
            }
        }
        let parents = states.into_iter().map(|(_, parent)| parent).take(MOST);
        for commit in std::iter::once(HEAD).chain(parents) {
            if !self.walk.contains(commit, written.commit) {
                continue;
            }
            let state = Origin { commit, source: self.note_path_at(case, commit, &last.source) };
            if let Some(LinkedPlace::File(target)) = self.place_at(present, &state, link)?
                && !self.was_moved_to(&target, commit)
            {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// Returns the path that the note of a link had in a commit.
    fn note_path_at(&mut self, case: &LinkCase, commit: CommitIndex, in_head: &NotePath) -> NotePath {
        let names = self.note_paths.get(&case.source).cloned().unwrap_or_default();
        // The oldest rename that is not before the commit gives the path.
        let older = names.into_values().rev().find(|before| self.walk.contains(before.commit, commit));
        older.map_or_else(|| in_head.clone(), |before| before.source)
    }

    /// Lists the paths of files, present or past, that a link of a note can mean.
    fn paths_meant(&mut self, present: &Present, source: &NotePath, link: &Link) -> BTreeSet<NotePath> {
        if self.is_read_as_path(present, source, link) {
            let places = strict_places(present.names.dialects(), &link.path, source);
            return places.iter().filter_map(|place| NotePath::from_disk(place)).collect();
        }
        self.add_names();
        let keys = name_keys(&link.path);
        keys.iter().filter_map(|key| self.by_name.get(key)).flatten().cloned().collect()
    }

    /// Returns whether a link of a note is read as a path, and not looked up by name.
    fn is_read_as_path(&self, present: &Present, source: &NotePath, link: &Link) -> bool {
        let unit = present.names.dialects().unit_of(source);
        link.form.syntax() == LinkSyntax::Markdown && unit.dialect.follows_paths()
    }

    /// Returns clues for a link that leads nowhere in any commit that has it, because another branch wrote it and was
    /// merged as one commit. Most likely, it meant the file that once had its path.
    fn clues_of_former_paths(
        &mut self,
        present: &Present,
        case: &LinkCase,
        source: &Source,
        link: &Link,
    ) -> Result<Vec<Clue>> {
        // The folder of a note that was renamed is not the one from which the link was written.
        let written = self.written.get(case).and_then(|states| states.last()).cloned();
        let is_renamed = self.working.moved_from.contains_key(&source.path)
            || !self.is_committed(&source.path)
            || written.as_ref().is_none_or(|state| state.source != source.path);
        if is_renamed {
            return Ok(Vec::new());
        }
        for path in former_paths(present, source, link) {
            if self.former >= MAX_FORMER_PATHS {
                return Ok(Vec::new());
            }
            self.former += 1;
            let events = self.walk.all_events(&path);
            let last = events.iter().find(|event| matches!(event.kind, PathEventKind::Removed(_))).cloned();
            let Some(last) = last else { continue };
            // A file that came to the path after the link was written, and left it again, was not meant.
            if written.as_ref().is_some_and(|written| self.walk.contains(last.parent, written.commit)) {
                continue;
            }
            let origin = Origin { commit: last.parent, source: source.path.clone() };
            let followed = self.follow(origin.commit, &path)?;
            let mut clue = self.clue_of_history(&origin, &path, &followed, source)?;
            clue.certainty = clue.certainty.min(Certainty::Strong);
            return Ok(vec![clue]);
        }
        Ok(Vec::new())
    }

    /// Returns the clue that a file was followed.
    fn clue_of_history(
        &mut self,
        origin: &Origin,
        target: &NotePath,
        followed: &Followed,
        source: &Source,
    ) -> Result<Clue> {
        let clue = |state, certainty, detail| Clue {
            kind: EvidenceKind::Git,
            source_then: origin.source.clone(),
            target_then: LinkedPlace::File(target.clone()),
            state,
            certainty,
            detail,
        };
        let Some(now) = &followed.at else {
            let by = self.named(followed.deleted_by)?;
            return Ok(clue(
                TargetState::Deleted(by.clone()),
                Certainty::Weak,
                format!("{target} was deleted by {by}"),
            ));
        };
        let mut told = Vec::with_capacity(followed.steps.len());
        let mut from = target;
        for step in &followed.steps {
            let by = self.named(step.commit)?;
            let alike = if step.moved.percent == 100 {
                String::new()
            } else {
                format!(" ({} %)", step.moved.percent)
            };
            told.push(format!("{from} became {} in {by}{alike}", step.moved.to));
            from = &step.moved.to;
        }
        if told.is_empty() {
            told.push(format!("{} was renamed to {}", origin.source, source.path));
        }
        let state = TargetState::At(LinkedPlace::File(now.clone()));
        Ok(clue(state, certainty_of(&followed.steps), told.join(", ")))
    }

    /// Returns the clue that all files of a folder went to another one.
    fn clue_of_folder(&mut self, origin: &Origin, folder: &NotePath) -> Result<Option<Clue>> {
        let files = self.files_below(origin.commit, folder)?;
        if files.is_empty() || files.len() > MAX_FOLDER_FILES {
            return Ok(None);
        }
        let (mut certainty, mut to, mut last) = (Certainty::Certain, None, None);
        for file in &files {
            let followed = self.follow(origin.commit, file)?;
            let rest = file.as_str().get(folder.as_str().len()..).unwrap_or_default();
            let now =
                followed.at.as_ref().and_then(|now| NotePath::from_disk(now.as_str().strip_suffix(rest)?));
            let Some(now) = now.filter(|now| to.is_none() || to.as_ref() == Some(now)) else {
                return Ok(None);
            };
            to = Some(now);
            certainty = certainty.min(certainty_of(&followed.steps));
            last = followed.steps.last().cloned().or(last);
        }
        let Some(to) = to else { return Ok(None) };
        let detail = match last {
            Some(step) => {
                let count = crate::files_phrase(files.len());
                format!("{folder} became {to} in {} ({count})", self.named(step.commit)?)
            }
            None => format!("{} was renamed", origin.source),
        };
        Ok(Some(Clue {
            kind: EvidenceKind::Git,
            source_then: origin.source.clone(),
            target_then: LinkedPlace::Folder(folder.clone()),
            state: TargetState::At(LinkedPlace::Folder(to)),
            certainty,
            detail,
        }))
    }

    /// Lists the files below a folder in a commit.
    fn files_below(&mut self, commit: CommitIndex, folder: &NotePath) -> Result<Vec<NotePath>> {
        self.walk.walk_past(commit);
        let mut known: BTreeSet<NotePath> = keys_below(&self.head_files, folder).cloned().collect();
        known.extend(self.walk.paths_below(folder).cloned());
        let mut found = Vec::new();
        for path in known {
            if self.exists_at(commit, &path)? {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Returns the clue for a link that led out of the vault before its note moved: its file is there still.
    fn clue_of_outside(
        &mut self,
        present: &Present,
        origin: &Origin,
        path: &str,
        link: &Link,
        source: &Source,
    ) -> Result<Option<Clue>> {
        let outside = LinkedPlace::Outside(path.to_owned());
        if place_of(&present.names, link, &source.path).as_ref() == Some(&outside) {
            return Ok(None);
        }
        let Some(top) = self.path_at_top(path) else { return Ok(None) };
        let is_there = self.is_at_top(HEAD, &top)? && self.repository.work_tree().join(&top).exists();
        Ok(is_there.then(|| Clue {
            kind: EvidenceKind::Git,
            source_then: origin.source.clone(),
            target_then: outside.clone(),
            state: TargetState::At(outside),
            certainty: Certainty::Certain,
            detail: format!("{} was renamed to {}", origin.source, source.path),
        }))
    }

    /// Returns the path from the top of the repository of a path from the root of the vault; `None` outside of it.
    fn path_at_top(&self, path: &str) -> Option<String> {
        let mut parts: Vec<&str> =
            self.repository.prefix().split('/').filter(|part| !part.is_empty()).collect();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => _ = parts.pop()?,
                part => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }

    /// Returns whether a commit has a file or folder at a path from the top of the repository.
    fn is_at_top(&mut self, commit: CommitIndex, top: &str) -> Result<bool> {
        let Some(id) = self.walk.graph.id(commit).cloned() else { return Ok(false) };
        Ok(!top.is_empty() && self.reader.has_at_top(&id, top)?)
    }

    /// Names a commit for a person: its short id and the first line of its message.
    fn named(&mut self, commit: Option<CommitIndex>) -> Result<String> {
        let Some((at, id)) = commit.and_then(|at| Some((at, self.walk.graph.id(at).cloned()?))) else {
            return Ok("the working tree".to_owned());
        };
        if !self.subjects.contains_key(&at) {
            let subject = self.reader.subject(&id)?;
            self.subjects.insert(at, shortened(&subject, 60));
        }
        Ok(format!("{} ({})", id.short(), self.subjects.get(&at).map_or("", String::as_str)))
    }

    /// Returns a note as it was in a commit.
    fn note(&mut self, origin: &Origin) -> Result<Option<Rc<Source>>> {
        if let Some(known) = self.notes.get(origin) {
            return Ok(known.clone());
        }
        let bytes = if origin.commit == HEAD {
            match self.head_files.get(&origin.source).cloned() {
                Some(id) => self.reader.blob(&id)?,
                None => None,
            }
        } else {
            let Some(id) = self.walk.graph.id(origin.commit).cloned() else { return Ok(None) };
            self.reader.file(&id, origin.source.as_str())?
        };
        let note = bytes.map(|bytes| Rc::new(Source::unplaced(origin.source.clone(), &bytes)));
        self.notes.insert(origin.clone(), note.clone());
        Ok(note)
    }

    /// Returns whether a commit has a file.
    fn exists_at(&mut self, commit: CommitIndex, path: &NotePath) -> Result<bool> {
        let is_committed = self.is_committed(path);
        if commit == HEAD {
            return Ok(is_committed);
        }
        let events = self.walk.events_since(commit, path);
        if events.iter().all(|event| matches!(event.kind, PathEventKind::Replaced { .. })) {
            return Ok(is_committed);
        }
        let Some(id) = self.walk.graph.id(commit).cloned() else { return Ok(false) };
        Ok(self.reader.blob_at(&id, path.as_str())?.is_some())
    }

    /// Returns whether a commit has a folder.
    fn has_folder_at(&mut self, commit: CommitIndex, folder: &str) -> Result<bool> {
        if commit == HEAD {
            let Some(folder) = NotePath::from_disk(folder) else { return Ok(false) };
            return Ok(keys_below(&self.head_files, &folder).next().is_some());
        }
        let Some(id) = self.walk.graph.id(commit).cloned() else { return Ok(false) };
        let path = format!("{}{folder}", self.repository.prefix());
        self.reader.has_folder(&id, &path)
    }

    /// Returns the place that a link led to in a state.
    fn place_at(&mut self, present: &Present, origin: &Origin, link: &Link) -> Result<Option<LinkedPlace>> {
        let names = self.names_for(present, origin, link)?;
        let place = place_of(&names, link, &origin.source);
        Ok(match place {
            Some(LinkedPlace::Outside(path)) => {
                let Some(top) = self.path_at_top(&path) else { return Ok(None) };
                self.is_at_top(origin.commit, &top)?.then_some(LinkedPlace::Outside(path))
            }
            Some(LinkedPlace::Folder(_)) | Some(LinkedPlace::File(_)) | None => place,
        })
    }

    /// Returns the files and folders of a commit that a link can mean, by name.
    fn names_for(&mut self, present: &Present, origin: &Origin, link: &Link) -> Result<FileNames> {
        let mut names = present.names.empty_table();
        self.walk.walk_past(origin.commit);
        if self.is_read_as_path(present, &origin.source, link) {
            for place in strict_places(present.names.dialects(), &link.path, &origin.source) {
                let Some(path) = NotePath::from_disk(&place) else { continue };
                if self.exists_at(origin.commit, &path)? {
                    names.insert(&path);
                    names.insert_folders_above(&path);
                } else if self.has_folder_at(origin.commit, path.as_str())? {
                    names.insert_folder(path.as_str());
                }
            }
            return Ok(names);
        }
        for path in self.paths_meant(present, &origin.source, link) {
            if self.exists_at(origin.commit, &path)? {
                names.insert(&path);
                names.insert_folders_above(&path);
            }
        }
        Ok(names)
    }

    /// Adds the paths that the walk found since the last call to the table of names.
    fn add_names(&mut self) {
        if self.by_name.is_empty() {
            for path in self.head_files.keys() {
                self.by_name.entry(key(path.name())).or_default().insert(path.clone());
            }
        }
        for path in self.walk.take_new_paths() {
            self.by_name.entry(key(path.name())).or_default().insert(path);
        }
    }
}

/// Returns how certain the result of some steps is.
fn certainty_of(steps: &[Step]) -> Certainty {
    if steps.iter().all(|step| step.moved.percent == 100 && step.moved.is_clear) {
        Certainty::Certain
    } else if steps.iter().all(|step| step.moved.percent >= STRONG_PERCENT && step.moved.is_clear) {
        Certainty::Strong
    } else {
        Certainty::Weak
    }
}

/// Lists the paths that a dead link can mean exactly as it is written.
fn former_paths(present: &Present, source: &Source, link: &Link) -> Vec<NotePath> {
    let unit = present.names.dialects().unit_of(&source.path);
    let is_path = link.form.syntax() == LinkSyntax::Markdown && unit.dialect.follows_paths();
    let (plain, _) = split_query(&link.path);
    let paths = if is_path {
        match unit.place_of(plain, &source.path) {
            LinkPlace::Inside(place) => unit.files_at(&place).into_iter().map(|(path, _)| path).collect(),
            LinkPlace::Elsewhere(_) => Vec::new(),
        }
    } else if link.path.contains('/') {
        vec![link.path.clone(), format!("{}.md", link.path)]
    } else {
        Vec::new()
    };
    paths.iter().filter_map(|path| NotePath::from_disk(path)).collect()
}
