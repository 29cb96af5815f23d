//! Clues from the history of git, and from what the working tree changed since the last commit (spec/git.md 3, evidence
//! 3 to 5).
//!
//! A link is looked up in the tree of a commit in which it was right. The file that it led to is followed from there to the
//! present, commit by commit.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use crate::error::Result;
use crate::git::{BlamedLine, FileStep, ObjectId, Objects, PathChange, Repository};
use crate::index::catalog::FileKind;
use crate::store::change::repair::evidence::{Certainty, Clue, EvidenceKind, Fate};
use crate::store::change::repair::moved_files::{FileMove, MARGIN, pair_equal, pair_similar};
use crate::store::change::repair::present::{LinkCase, Present, file_of, is_judged};
use crate::store::core::Core;
use crate::store::source::Source;
use crate::text::content_similarity::ContentPieces;
use crate::text::dialect::{LinkPlace, split_query};
use crate::text::link::{Link, LinkForm, LinkSyntax};
use crate::text::path::NotePath;
use crate::text::resolve::FileNames;

/// The number of last commits in which renames are looked for that made links lead elsewhere.
const RECENT_COMMITS: usize = 20;
/// The most commits that are gone back to find one in which a link was right.
const MAX_STEPS_BACK: usize = 10;
/// The least share of common content of a strong rename, in percent.
const STRONG_PERCENT: u8 = 70;
/// The least length of a body whose content identifies a note, in bytes.
const LEAST_BODY: usize = 64;
/// The most paths whose last removal is looked for in the whole history.
const MAX_FORMER_PATHS: usize = 500;
/// The most new files of a commit that are compared with a file that it removed.
const MAX_CANDIDATES: usize = 500;

/// One step of a file on its way to the present.
#[derive(Debug, Clone)]
struct Step {
    /// The commit; `None` for the working tree.
    commit: Option<ObjectId>,
    moved: FileMove,
}

/// What became of a file since a commit.
#[derive(Debug, Clone)]
struct Followed {
    /// The present path; `None` if the file was deleted.
    at: Option<NotePath>,
    steps: Vec<Step>,
    /// The commit that deleted it; `None` for the working tree.
    deleted_by: Option<ObjectId>,
}

/// A state in which a link was right.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Origin {
    commit: ObjectId,
    /// The path of the linking note in that commit.
    source: NotePath,
}

impl Origin {
    /// Returns the state in which a commit wrote a line.
    fn of(blamed: &BlamedLine) -> Option<Self> {
        let source = blamed.path.as_deref().and_then(NotePath::from_disk)?;
        Some(Self { commit: blamed.commit.clone(), source })
    }
}

/// What git knows of the vault's files.
pub(super) struct GitEvidence<'a> {
    core: &'a Core,
    repository: Repository,
    objects: Objects,
    head: ObjectId,
    head_files: BTreeMap<NotePath, ObjectId>,
    /// Where files of the last commit went in the working tree.
    moved: BTreeMap<NotePath, FileMove>,
    /// The path in the last commit of each file that moved in the working tree.
    moved_from: HashMap<NotePath, NotePath>,
    trees: HashMap<ObjectId, Rc<FileNames>>,
    changes: HashMap<(ObjectId, ObjectId), Rc<Vec<PathChange>>>,
    followed: HashMap<(ObjectId, NotePath), Followed>,
    notes: HashMap<Origin, Option<Rc<Source>>>,
    blamed: HashMap<NotePath, HashMap<usize, BlamedLine>>,
    /// The states in which links were right that lead elsewhere now.
    origins: HashMap<LinkCase, Origin>,
    /// The last commit that removed each path that was asked for.
    last_removals: HashMap<NotePath, Option<FileStep>>,
    /// The notes by the hash of their content, made when it is first asked for.
    by_content: Option<HashMap<[u8; 32], Vec<NotePath>>>,
}

impl<'a> GitEvidence<'a> {
    /// Compares the last commit with the files. Returns `None` before the first commit.
    pub(super) fn new(core: &'a Core, repository: Repository, present: &Present) -> Result<Option<Self>> {
        let Some(head) = repository.head()? else { return Ok(None) };
        let head_files: BTreeMap<NotePath, ObjectId> = repository
            .tree(&head)?
            .into_iter()
            .filter(|file| !file.is_link)
            .filter_map(|file| Some((NotePath::from_disk(&file.path)?, file.blob)))
            .collect();
        let objects = repository.objects()?;
        let mut evidence = Self {
            core,
            repository,
            objects,
            head,
            head_files,
            moved: BTreeMap::new(),
            moved_from: HashMap::new(),
            trees: HashMap::new(),
            changes: HashMap::new(),
            followed: HashMap::new(),
            notes: HashMap::new(),
            blamed: HashMap::new(),
            origins: HashMap::new(),
            last_removals: HashMap::new(),
            by_content: None,
        };
        evidence.moved = evidence.moves_in_working_tree(present)?;
        let clear = evidence.moved.iter().filter(|(_, moved)| moved.is_clear);
        evidence.moved_from = clear.map(|(from, moved)| (moved.to.clone(), from.clone())).collect();
        Ok(Some(evidence))
    }

    /// Returns whether the last commit has a file.
    pub(super) fn is_committed(&self, path: &NotePath) -> bool {
        self.head_files.contains_key(path)
    }

    /// Finds out where the files of the last commit that are gone went.
    fn moves_in_working_tree(&mut self, present: &Present) -> Result<BTreeMap<NotePath, FileMove>> {
        let gone: Vec<(NotePath, ObjectId)> = self
            .head_files
            .iter()
            .filter(|(path, _)| !present.has(path))
            .map(|(path, blob)| (path.clone(), blob.clone()))
            .collect();
        if gone.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut new: Vec<&NotePath> = present.files.keys().filter(|path| !self.is_committed(path)).collect();
        new.sort();
        let mut gone_hashes = Vec::with_capacity(gone.len());
        for (path, blob) in &gone {
            if let Some(content) = self.objects.blob(blob)? {
                gone_hashes.push((path.clone(), blake3::hash(&content)));
            }
        }
        let mut new_hashes = Vec::with_capacity(new.len());
        for path in &new {
            let hash = match present.hash_of(path) {
                Some(hash) => Some(blake3::Hash::from_bytes(hash)),
                None => self.read(path).map(|content| blake3::hash(&content)),
            };
            new_hashes.extend(hash.map(|hash| ((*path).clone(), hash)));
        }
        let mut moves = pair_equal(&gone_hashes, &new_hashes);
        let taken: HashSet<&NotePath> = moves.values().map(|moved| &moved.to).collect();
        let is_text = |path: &NotePath| FileKind::of(path) != FileKind::Attachment;
        let mut left_gone = Vec::new();
        for (path, blob) in gone.iter().filter(|(path, _)| is_text(path) && !moves.contains_key(path)) {
            if let Some(content) = self.objects.blob(blob)? {
                left_gone.push((path.clone(), ContentPieces::of(&content)));
            }
        }
        let left_new = new.iter().filter(|path| is_text(path) && !taken.contains(*path));
        let left_new: Vec<(NotePath, ContentPieces)> = if left_gone.is_empty() {
            Vec::new()
        } else {
            left_new
                .filter_map(|path| Some(((*path).clone(), ContentPieces::of(&self.read(path)?))))
                .collect()
        };
        moves.extend(pair_similar(&left_gone, &left_new));
        Ok(moves)
    }

    fn read(&self, path: &NotePath) -> Option<Vec<u8>> {
        self.core.vault.read(path).inspect_err(|error| self.core.warn_unless_gone(error)).ok()
    }

    /// Finds links that lead to a file, but to another one than before their note, or the file, was renamed.
    pub(super) fn find_misled(&mut self, present: &mut Present) -> Result<()> {
        let mut origins: Vec<(NotePath, Origin)> = Vec::new();
        for (now, from) in &self.moved_from {
            origins.push((now.clone(), Origin { commit: self.head.clone(), source: from.clone() }));
        }
        let head = self.head.clone();
        for (commit, parents) in self.repository.last_commits(&head, RECENT_COMMITS)? {
            // A merge renames nothing that its branches did not.
            let [parent] = parents.as_slice() else { continue };
            for change in self.changes(parent, &commit)?.iter() {
                let PathChange::Renamed { from: Some(from), to: Some(to), .. } = change else { continue };
                let (Some(from), Some(to)) = (NotePath::from_disk(from), NotePath::from_disk(to)) else {
                    continue;
                };
                if let Some(now) = self.follow(&commit, &to)?.at {
                    origins.push((now, Origin { commit: parent.clone(), source: from }));
                }
            }
        }
        origins.retain(|(now, _)| FileKind::of(now) != FileKind::Attachment && present.is_in_scope(now));
        origins.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, origin) in origins {
            self.find_misled_in(present, &path, origin)?;
        }
        Ok(())
    }

    /// Finds the misled links of one note that was renamed.
    fn find_misled_in(&mut self, present: &mut Present, path: &NotePath, origin: Origin) -> Result<()> {
        let Some(then) = self.note(&origin)? else { return Ok(()) };
        let number = match present.number_of(path) {
            Some(number) => number,
            None => {
                let Some(bytes) = self.read(path) else { return Ok(()) };
                present.add(Source::unplaced(path.clone(), &bytes))
            }
        };
        let Some(source) = present.sources.get(number) else { return Ok(()) };
        let names = self.names_in(present, &origin.commit)?;
        let mut misled = Vec::new();
        for (at, link) in source.note.links.iter().enumerate().filter(|(_, link)| is_judged(link)) {
            let leads_to = file_of(&present.names, link, path);
            // A link to nothing, or out of the vault, is judged already.
            if leads_to.is_none() && present.leads_nowhere(link, path) {
                continue;
            }
            if !then.note.links.iter().any(|old| is_same_link(old, link)) {
                continue;
            }
            let Some(target) = file_of(&names, link, &origin.source) else { continue };
            let meant = self.follow(&origin.commit, target)?.at;
            let case = LinkCase { source: number, link: at, is_dead: false };
            if meant.is_some_and(|meant| present.has(&meant) && Some(&meant) != leads_to) {
                misled.push(case);
            }
        }
        for case in misled {
            // The newest rename is found first, and counts.
            if let Entry::Vacant(unknown) = self.origins.entry(case) {
                unknown.insert(origin.clone());
                present.misled.push(case);
            }
        }
        Ok(())
    }

    /// Finds what git says of a link.
    pub(super) fn clues(&mut self, present: &Present, case: &LinkCase) -> Result<Vec<Clue>> {
        let Some((source, link)) = present.sources.get(case.source).zip(present.link(case)) else {
            return Ok(Vec::new());
        };
        let origin = match self.origins.get(case) {
            Some(origin) => Some(origin.clone()),
            None => self.origin(present, source, link)?,
        };
        let Some(origin) = origin else { return self.clues_of_former_paths(present, source, link) };
        let names = self.names_in(present, &origin.commit)?;
        let Some(target) = file_of(&names, link, &origin.source).cloned() else { return Ok(Vec::new()) };
        let followed = self.follow(&origin.commit, &target)?;
        let mut clues = vec![self.clue_of_history(&origin, &target, &followed, source)?];
        // What identifies the note is asked where its way is not certain, and where it may disagree.
        if clues
            .iter()
            .any(|clue| clue.certainty != Certainty::Certain || matches!(clue.fate, Fate::Deleted(_)))
        {
            clues.extend(self.clues_of_content(present, &origin, &target)?);
        }
        Ok(clues)
    }

    /// Returns clues for a link that leads nowhere in any commit that has it: another branch wrote it, and came as one commit.
    /// A file that once had the path of the link is what it meant, most likely.
    fn clues_of_former_paths(
        &mut self,
        present: &Present,
        source: &Source,
        link: &Link,
    ) -> Result<Vec<Clue>> {
        // The folder of a note that was renamed is not the one from which the link was written.
        if self.is_renamed(present, source, link)? {
            return Ok(Vec::new());
        }
        for path in former_paths(present, source, link) {
            let last = match self.last_removals.get(&path) {
                Some(known) => known.clone(),
                None if self.last_removals.len() >= MAX_FORMER_PATHS => return Ok(Vec::new()),
                None => {
                    let found = self.repository.removals(None, &self.head, path.as_str())?.pop();
                    self.last_removals.insert(path.clone(), found.clone());
                    found
                }
            };
            let Some(last) = last else { continue };
            let origin = Origin { commit: last.parent, source: source.path.clone() };
            let followed = self.follow(&origin.commit, &path)?;
            let mut clue = self.clue_of_history(&origin, &path, &followed, source)?;
            clue.certainty = clue.certainty.min(Certainty::Strong);
            return Ok(vec![clue]);
        }
        Ok(Vec::new())
    }

    /// Returns whether a note has another path than when a link in it was written.
    fn is_renamed(&mut self, present: &Present, source: &Source, link: &Link) -> Result<bool> {
        if self.moved_from.contains_key(&source.path) || !self.is_committed(&source.path) {
            return Ok(true);
        }
        let last = Origin { commit: self.head.clone(), source: source.path.clone() };
        let Some(committed) = self.note(&last)? else { return Ok(true) };
        let Some(line) = line_of(&committed, source, link) else { return Ok(true) };
        let written = self.blame(present, &last, line)?.and_then(|blamed| Origin::of(&blamed));
        Ok(written.is_none_or(|written| written.source != source.path))
    }

    /// Returns the clue that a file was followed.
    fn clue_of_history(
        &mut self,
        origin: &Origin,
        target: &NotePath,
        followed: &Followed,
        source: &Source,
    ) -> Result<Clue> {
        let clue = |fate, certainty, detail| Clue {
            kind: EvidenceKind::Git,
            source_then: origin.source.clone(),
            target_then: target.clone(),
            fate,
            certainty,
            detail,
        };
        let Some(now) = &followed.at else {
            let by = match &followed.deleted_by {
                Some(commit) => self.named(commit)?,
                None => "the working tree".to_owned(),
            };
            return Ok(clue(
                Fate::Deleted(by.clone()),
                Certainty::Weak,
                format!("{target} was deleted by {by}"),
            ));
        };
        let is = |kept: fn(&Step) -> bool| followed.steps.iter().all(kept);
        let certainty = if is(|step| step.moved.percent == 100 && step.moved.is_clear) {
            Certainty::Certain
        } else if is(|step| step.moved.percent >= STRONG_PERCENT && step.moved.is_clear) {
            Certainty::Strong
        } else {
            Certainty::Weak
        };
        let mut told = Vec::with_capacity(followed.steps.len());
        let mut from = target;
        for step in &followed.steps {
            let by = match &step.commit {
                Some(commit) => self.named(commit)?,
                None => "the working tree".to_owned(),
            };
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
        Ok(clue(Fate::At(now.clone()), certainty, told.join(", ")))
    }

    /// Names a commit for a person: its short id and the first line of its message.
    fn named(&self, commit: &ObjectId) -> Result<String> {
        let info = self.repository.describe(commit)?;
        let subject: String = info.subject.chars().take(60).collect();
        Ok(format!("{} ({subject})", commit.short()))
    }

    /// Returns clues from the `id` and the content that a note had then.
    fn clues_of_content(
        &mut self,
        present: &Present,
        origin: &Origin,
        target: &NotePath,
    ) -> Result<Vec<Clue>> {
        let Some(bytes) = self.objects.file(&origin.commit, target.as_str())? else { return Ok(Vec::new()) };
        let mut clues = Vec::new();
        let clue = |kind, to: &NotePath, detail| Clue {
            kind,
            source_then: origin.source.clone(),
            target_then: target.clone(),
            fate: Fate::At(to.clone()),
            certainty: Certainty::Certain,
            detail,
        };
        if !target.is_note() {
            return Ok(clues);
        }
        let note = Source::unplaced(target.clone(), &bytes);
        if let Some(id) = note.own_id() {
            let found = self.core.index.catalog().names().with_id(&id)?;
            if let [only] = found.as_slice()
                && only.note_id == id
                && only.path != *target
            {
                clues.push(clue(EvidenceKind::Id, &only.path, format!("it has the id {id}")));
            }
        }
        if note.body().len() >= LEAST_BODY {
            let hash = *blake3::hash(&bytes).as_bytes();
            let by_content = self.by_content.get_or_insert_with(|| {
                let mut by_content: HashMap<[u8; 32], Vec<NotePath>> = HashMap::new();
                for row in present.files.values().flatten() {
                    if let Some(hash) = row.hash {
                        by_content.entry(hash).or_default().push(row.path.clone());
                    }
                }
                by_content
            });
            let found = by_content.get(&hash).map(Vec::as_slice).unwrap_or_default();
            // A copy that was there before is not where the note went.
            if let [only] = found
                && only != target
                && self.objects.blob_at(&origin.commit, only.as_str())?.is_none()
            {
                clues.push(clue(EvidenceKind::Content, only, "it has the same content".to_owned()));
            }
        }
        Ok(clues)
    }

    /// Finds a commit in which a link that is dead now was right: the last one, or the one that wrote it, or one before.
    fn origin(&mut self, present: &Present, source: &Source, link: &Link) -> Result<Option<Origin>> {
        let from = self.moved_from.get(&source.path).unwrap_or(&source.path).clone();
        if !self.is_committed(&from) {
            return Ok(None);
        }
        let last = Origin { commit: self.head.clone(), source: from };
        let Some(committed) = self.note(&last)? else { return Ok(None) };
        let Some(mut line) = line_of(&committed, source, link) else { return Ok(None) };
        if self.leads_somewhere(present, &last, link)? {
            // A note that was renamed may lead to another file by chance; the commit that wrote the link counts.
            let written = self.blame(present, &last, line)?.and_then(|blamed| Origin::of(&blamed));
            let is_renamed = |written: &Origin| written.source != last.source;
            return match written.filter(is_renamed) {
                Some(written) if self.leads_somewhere(present, &written, link)? => Ok(Some(written)),
                _ => Ok(Some(last)),
            };
        }
        let mut at = last;
        for _ in 0..MAX_STEPS_BACK {
            let Some(blamed) = self.blame(present, &at, line)? else { return Ok(None) };
            let Some(written) = Origin::of(&blamed) else { return Ok(None) };
            if self.leads_somewhere(present, &written, link)? {
                return Ok(Some(written));
            }
            // The line was changed, and the link perhaps not.
            let mut before = None;
            for parent in self.repository.parents(&blamed.commit)? {
                let origin = Origin { commit: parent, source: written.source.clone() };
                let Some(note) = self.note(&origin)? else { continue };
                if let Some(old) = note.note.links.iter().find(|old| is_same_link(old, link)) {
                    line = old.line;
                    before = Some(origin);
                    break;
                }
            }
            let Some(before) = before else { return Ok(None) };
            if self.leads_somewhere(present, &before, link)? {
                return Ok(Some(before));
            }
            at = before;
        }
        Ok(None)
    }

    /// Returns whether a link led to a file in a state.
    fn leads_somewhere(&mut self, present: &Present, origin: &Origin, link: &Link) -> Result<bool> {
        let names = self.names_in(present, &origin.commit)?;
        Ok(file_of(&names, link, &origin.source).is_some())
    }

    /// Finds the commit that wrote a line. For the last commit, all lines with dead links are asked for at once.
    fn blame(&mut self, present: &Present, at: &Origin, line: usize) -> Result<Option<BlamedLine>> {
        if at.commit != self.head {
            return Ok(self.repository.blame(&at.commit, at.source.as_str(), &[line])?.remove(&line));
        }
        if !self.blamed.contains_key(&at.source) {
            let mut lines = BTreeSet::from([line]);
            if let Some(committed) = self.note(at)? {
                let from = |path: &NotePath| self.moved_from.get(path).unwrap_or(path) == &at.source;
                for case in &present.dead {
                    let found = present.sources.get(case.source).zip(present.link(case));
                    let Some((source, link)) = found.filter(|(source, _)| from(&source.path)) else {
                        continue;
                    };
                    lines.extend(line_of(&committed, source, link));
                }
            }
            let lines: Vec<usize> = lines.into_iter().collect();
            let blamed = self.repository.blame(&at.commit, at.source.as_str(), &lines)?;
            self.blamed.insert(at.source.clone(), blamed);
        }
        Ok(self.blamed.get(&at.source).and_then(|lines| lines.get(&line)).cloned())
    }

    /// Returns a note as it was in a commit.
    fn note(&mut self, origin: &Origin) -> Result<Option<Rc<Source>>> {
        if let Some(known) = self.notes.get(origin) {
            return Ok(known.clone());
        }
        let bytes = self.objects.file(&origin.commit, origin.source.as_str())?;
        let note = bytes.map(|bytes| Rc::new(Source::unplaced(origin.source.clone(), &bytes)));
        self.notes.insert(origin.clone(), note.clone());
        Ok(note)
    }

    /// Returns the files of a commit by name.
    fn names_in(&mut self, present: &Present, commit: &ObjectId) -> Result<Rc<FileNames>> {
        /// The most trees that are kept.
        const MOST: usize = 64;
        if let Some(known) = self.trees.get(commit) {
            return Ok(Rc::clone(known));
        }
        let mut names = present.names.empty_table();
        let mut add = |path: &NotePath| {
            names.insert(path);
            names.insert_folders_above(path);
        };
        if *commit == self.head {
            self.head_files.keys().for_each(&mut add);
        } else {
            let files = self.repository.tree(commit)?;
            files.iter().filter_map(|file| NotePath::from_disk(&file.path)).for_each(|path| add(&path));
        }
        if self.trees.len() >= MOST {
            self.trees.clear();
        }
        let names = Rc::new(names);
        self.trees.insert(commit.clone(), Rc::clone(&names));
        Ok(names)
    }

    /// Returns what a commit changed, with renames.
    fn changes(&mut self, parent: &ObjectId, commit: &ObjectId) -> Result<Rc<Vec<PathChange>>> {
        let between = (parent.clone(), commit.clone());
        if let Some(known) = self.changes.get(&between) {
            return Ok(Rc::clone(known));
        }
        let changes = Rc::new(self.repository.changes(parent, commit, true)?);
        self.changes.insert(between, Rc::clone(&changes));
        Ok(changes)
    }

    /// Follows a file from a commit to the present.
    fn follow(&mut self, commit: &ObjectId, path: &NotePath) -> Result<Followed> {
        /// The most renames of one file.
        const MOST: usize = 64;
        let wanted = (commit.clone(), path.clone());
        if let Some(known) = self.followed.get(&wanted) {
            return Ok(known.clone());
        }
        let (mut at, mut since) = (path.clone(), commit.clone());
        let mut followed = Followed { at: None, steps: Vec::new(), deleted_by: None };
        let mut is_lost = false;
        while !self.is_committed(&at) && followed.steps.len() < MOST {
            let mut removals = self.repository.removals(Some(&since), &self.head, at.as_str())?.into_iter();
            let Some(removal) = removals.next() else {
                is_lost = true;
                break;
            };
            match self.moved_by(&removal.parent, &removal.commit, &at)? {
                Some(mut moved) => {
                    // Another branch may have moved it elsewhere.
                    for other in removals {
                        let other = self.moved_by(&other.parent, &other.commit, &at)?;
                        moved.is_clear &= other.is_none_or(|other| other.to == moved.to);
                    }
                    at = moved.to.clone();
                    followed.steps.push(Step { commit: Some(removal.commit.clone()), moved });
                    since = removal.commit;
                }
                None => {
                    followed.deleted_by = Some(removal.commit);
                    is_lost = true;
                    break;
                }
            }
        }
        if !is_lost && self.is_committed(&at) {
            if self.core.vault.disk_path(&at).symlink_metadata().is_ok() {
                followed.at = Some(at);
            } else if let Some(moved) = self.moved.get(&at) {
                followed.at = Some(moved.to.clone());
                followed.steps.push(Step { commit: None, moved: moved.clone() });
            }
        }
        self.followed.insert(wanted, followed.clone());
        Ok(followed)
    }

    /// Returns where a commit moved a file that it removed from its path.
    fn moved_by(
        &mut self,
        parent: &ObjectId,
        commit: &ObjectId,
        path: &NotePath,
    ) -> Result<Option<FileMove>> {
        let changes = self.changes(parent, commit)?;
        let renamed = changes.iter().find_map(|change| match change {
            PathChange::Renamed { from: Some(from), to: Some(to), before, percent, .. }
                if from == path.as_str() =>
            {
                Some((NotePath::from_disk(to)?, before.clone(), *percent))
            }
            _ => None,
        });
        let Some((to, before, percent)) = renamed else { return Ok(None) };
        let new: Vec<(NotePath, ObjectId)> = changes
            .iter()
            .filter_map(|change| match change {
                PathChange::Renamed { to: Some(to), after, .. } => Some((to, after)),
                PathChange::Added { path, blob } => Some((path, blob)),
                _ => None,
            })
            .filter_map(|(path, blob)| Some((NotePath::from_disk(path)?, blob.clone())))
            .filter(|(other, _)| *other != to)
            .collect();
        if percent == 100 {
            // Git takes one of several copies, that with the same name if there is one.
            let copies: Vec<&NotePath> =
                new.iter().filter(|(_, blob)| *blob == before).map(|(path, _)| path).collect();
            let has_name = |other: &&NotePath| other.name() == path.name();
            let is_clear = copies.is_empty() || (has_name(&&to) && !copies.iter().any(has_name));
            return Ok(Some(FileMove { to, percent, is_clear }));
        }
        let is_clear = self.is_far_ahead(&before, percent, &to, &new)?;
        Ok(Some(FileMove { to, percent, is_clear }))
    }

    /// Returns whether no other new file of a commit comes near the one that git takes for a renamed file.
    fn is_far_ahead(
        &mut self,
        before: &ObjectId,
        percent: u8,
        to: &NotePath,
        others: &[(NotePath, ObjectId)],
    ) -> Result<bool> {
        let Some(content) = self.objects.blob(before)? else { return Ok(false) };
        let content = ContentPieces::of(&content);
        let alike = others.iter().filter(|(path, _)| path.extension() == to.extension());
        let ids: Vec<ObjectId> = alike.map(|(_, blob)| blob.clone()).collect();
        if ids.len() > MAX_CANDIDATES {
            return Ok(false);
        }
        let contents = self.objects.blobs(&ids)?;
        let nearest =
            contents.iter().flatten().map(|other| content.percent_in_common(&ContentPieces::of(other)));
        Ok(nearest.max().unwrap_or(0).saturating_add(MARGIN) <= percent)
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

/// Returns whether two links are written with the same destination.
fn is_same_link(one: &Link, other: &Link) -> bool {
    one.path == other.path
        && one.form.syntax() == other.form.syntax()
        && is_wiki(one.form) == is_wiki(other.form)
}

fn is_wiki(form: LinkForm) -> bool {
    matches!(form, LinkForm::Wiki)
}

/// Returns the line of a link in an earlier version of its note. Of several equal links, it is the one in the same
/// position among them.
fn line_of(earlier: &Source, source: &Source, link: &Link) -> Option<usize> {
    let position =
        source.note.links.iter().filter(|other| is_same_link(other, link) && other.span < link.span).count();
    let mut same = earlier.note.links.iter().filter(|old| is_same_link(old, link));
    let first = same.next()?;
    Some(same.nth(position.wrapping_sub(1)).unwrap_or(first).line)
}
