//! The reader of contents of the repository for repairs. What git cannot read is recorded, and reported in the reply.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::rc::Rc;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_git::{ObjectId, Objects, Repository, TreeEntry, is_silence};
use sidenote_links::content_similarity::ContentPieces;

use crate::moved_files::{MAX_COMPARED, is_mostly_in};

/// A part of the history that is not evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HistoryProblem {
    /// Git cannot read it; what git said.
    Unreadable(String),
    /// It has more commits than are looked at.
    TooLong,
    /// The clone has only its last part.
    Shallow,
    /// Some contents are not in this clone, which fetches them when they are needed.
    NotFetched(usize),
    /// Some contents are damaged or gone.
    MissingContents(usize),
    /// Git cannot read the contents that some commits removed or added, so it found no renames in them.
    WithoutRenames(usize),
}

impl HistoryProblem {
    /// Returns the sentence that says what is missing, and what to do.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Unreadable(said) => format!(
                "the history of git cannot be read ({said}), so older moves are no evidence; `git fsck` tells what is damaged"
            ),
            Self::TooLong => "only the last 100000 commits were looked at".to_owned(),
            Self::Shallow => "the clone has only the last part of its history, so git says nothing of older moves; a full clone has the rest".to_owned(),
            Self::NotFetched(count) => format!(
                "{count} old versions of files are not in this partial clone, so they are no evidence; a clone without a filter has them"
            ),
            Self::MissingContents(count) => format!(
                "git cannot read {count} old versions of files, so they are no evidence; `git fsck` tells what is damaged"
            ),
            Self::WithoutRenames(count) => format!(
                "git cannot read a content that {count} {} added or removed, so files that were renamed and changed there are not followed; `git fsck` tells what is damaged, and a clone without a filter has all contents",
                if *count == 1 { "commit" } else { "commits" }
            ),
        }
    }
}

/// Returns the sentence for an error that keeps git from being evidence at all.
pub(super) fn no_evidence(error: &Error) -> String {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("git is no evidence: {error}{hint}")
}

/// The number of contents that are read before the first one is compared.
const GROUP: usize = 256;

/// The files and folders of a tree by name: the id of each, and whether it is a folder.
type Tree = HashMap<String, (ObjectId, bool)>;

/// The pieces of contents that were compared, by what names a content. Those that do not fit are cut again.
pub(super) struct PiecesCache<K> {
    found: HashMap<K, Rc<ContentPieces>>,
    /// How many bytes they take.
    bytes: usize,
}

impl<K> Default for PiecesCache<K> {
    fn default() -> Self {
        Self { found: HashMap::new(), bytes: 0 }
    }
}

impl<K: Hash + Eq> PiecesCache<K> {
    pub(super) fn get(&self, key: &K) -> Option<Rc<ContentPieces>> {
        self.found.get(key).cloned()
    }

    pub(super) fn keep(&mut self, key: K, pieces: ContentPieces) -> Rc<ContentPieces> {
        /// The most memory that pieces take: those of some 50,000 notes of two kilobytes.
        const MAX_BYTES: usize = 128 << 20;
        let size = pieces.memory();
        if self.bytes + size > MAX_BYTES {
            self.found.clear();
            self.bytes = 0;
        }
        let pieces = Rc::new(pieces);
        if self.found.insert(key, Rc::clone(&pieces)).is_none() {
            self.bytes += size;
        }
        pieces
    }
}

/// Reads contents by one process of git, which is started when it is first needed.
pub(super) struct HistoryReader {
    repository: Repository,
    objects: Option<Objects>,
    /// The contents of the last commit.
    head_blobs: HashSet<ObjectId>,
    /// The last commit.
    head: ObjectId,
    missing: HashSet<String>,
    /// The trees of the commits that were asked for.
    roots: HashMap<ObjectId, Option<ObjectId>>,
    /// The trees that were read, by their ids.
    trees: HashMap<ObjectId, Rc<Tree>>,
    /// How many entries they have.
    tree_entries: usize,
    /// The pieces of the contents that were compared.
    pieces: PiecesCache<ObjectId>,
    /// How many contents were compared with one that moved.
    compared: usize,
}

impl HistoryReader {
    pub(super) fn new(repository: Repository, head: ObjectId) -> Self {
        Self {
            repository,
            objects: None,
            head_blobs: HashSet::new(),
            head,
            missing: HashSet::new(),
            roots: HashMap::new(),
            trees: HashMap::new(),
            tree_entries: 0,
            pieces: PiecesCache::default(),
            compared: 0,
        }
    }

    pub(super) fn set_head_blobs<'o>(&mut self, blobs: impl Iterator<Item = &'o ObjectId>) {
        self.head_blobs = blobs.cloned().collect();
    }

    /// Returns whether a file of the last commit has a content.
    pub(super) fn is_head_blob(&self, id: &ObjectId) -> bool {
        self.head_blobs.contains(id)
    }

    /// Returns the id that git gives to a content.
    pub(super) fn blob_id(&self, bytes: &[u8]) -> ObjectId {
        self.head.of_content(bytes)
    }

    /// Asks the process. One that ended because of a damaged object is started again.
    fn ask<T>(&mut self, what: &str, ask: impl FnOnce(&mut Objects) -> Result<T>) -> Result<Option<T>> {
        if self.objects.is_none() {
            self.objects = Some(self.repository.objects()?);
        }
        let Some(objects) = &mut self.objects else { return Ok(None) };
        match ask(objects) {
            Ok(found) => Ok(Some(found)),
            // Whatever is asked next, it will not be answered.
            Err(error) if error.kind() == ErrorKind::Invalid || is_silence(&error) => Err(error),
            Err(error) => {
                tracing::debug!("git cannot read {what}: {error}");
                self.objects = None;
                self.missing.insert(what.to_owned());
                Ok(None)
            }
        }
    }

    /// Reads a content by its id; `None` if it cannot be read.
    pub(super) fn blob(&mut self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        let found = self.ask(id.as_str(), |objects| objects.blob(id))?.flatten();
        if found.is_none() {
            self.missing.insert(id.as_str().to_owned());
        }
        Ok(found)
    }

    /// Reads several contents by their ids, in order.
    pub(super) fn blobs(&mut self, ids: &[ObjectId]) -> Result<Vec<Option<Vec<u8>>>> {
        match self.ask("contents", |objects| objects.blobs(ids))? {
            Some(found) => Ok(found),
            // One of them is damaged.
            None => ids.iter().map(|id| self.blob(id)).collect(),
        }
    }

    /// Reads the sizes of several contents, in order.
    pub(super) fn sizes(&mut self, ids: &[ObjectId]) -> Result<Vec<Option<u64>>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.ask("sizes", |objects| objects.sizes(ids))?.unwrap_or_default())
    }

    /// Reads a file of a commit; `None` if it has none.
    pub(super) fn file(&mut self, commit: &ObjectId, path: &str) -> Result<Option<Vec<u8>>> {
        let Some(id) = self.blob_at(commit, path)? else { return Ok(None) };
        self.blob(&id)
    }

    /// Returns the id of a file's content in a commit; `None` if it has no such file.
    pub(super) fn blob_at(&mut self, commit: &ObjectId, path: &str) -> Result<Option<ObjectId>> {
        let top = format!("{}{path}", self.repository.prefix());
        Ok(self.entry_at(commit, &top)?.filter(|(_, is_folder)| !is_folder).map(|(id, _)| id))
    }

    /// Returns whether a commit has a folder of this path from the top of the repository.
    pub(super) fn has_folder(&mut self, commit: &ObjectId, path: &str) -> Result<bool> {
        Ok(self.entry_at(commit, path)?.is_some_and(|(_, is_folder)| is_folder))
    }

    /// Returns whether a commit has a file or folder of this path from the top of the repository.
    pub(super) fn has_at_top(&mut self, commit: &ObjectId, path: &str) -> Result<bool> {
        Ok(self.entry_at(commit, path)?.is_some())
    }

    /// Returns the id of what a commit has at a path from the top of the repository, and whether it is a folder. Git would read
    /// all trees on the way for each path, so they are kept.
    fn entry_at(&mut self, commit: &ObjectId, path: &str) -> Result<Option<(ObjectId, bool)>> {
        let root = match self.roots.get(commit) {
            Some(root) => root.clone(),
            None => {
                let found = self.ask(commit.as_str(), |objects| objects.tree_of(commit))?.flatten();
                let root = found.map(|(id, entries)| {
                    self.keep(&id, entries);
                    id
                });
                self.roots.insert(commit.clone(), root.clone());
                root
            }
        };
        let Some(root) = root else { return Ok(None) };
        let mut at = (root, true);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if !at.1 {
                return Ok(None);
            }
            let Some(tree) = self.tree(&at.0)? else { return Ok(None) };
            let Some(found) = tree.get(name) else { return Ok(None) };
            at = found.clone();
        }
        Ok(Some(at))
    }

    /// Reads a tree by its id. Commits share those of folders that did not change.
    fn tree(&mut self, id: &ObjectId) -> Result<Option<Rc<Tree>>> {
        if let Some(tree) = self.trees.get(id) {
            return Ok(Some(Rc::clone(tree)));
        }
        let found = self.ask(id.as_str(), |objects| objects.tree(id))?.flatten();
        if found.is_none() {
            self.missing.insert(id.as_str().to_owned());
        }
        Ok(found.map(|entries| self.keep(id, entries)))
    }

    fn keep(&mut self, id: &ObjectId, entries: Vec<TreeEntry>) -> Rc<Tree> {
        /// The most entries of trees that are kept: some 30 MB.
        const MOST: usize = 200_000;
        self.tree_entries += entries.len();
        if self.tree_entries > MOST {
            self.trees.clear();
            self.tree_entries = entries.len();
        }
        let tree = entries.into_iter().map(|entry| (entry.name, (entry.id, entry.is_folder)));
        let tree = Rc::new(tree.collect::<Tree>());
        self.trees.insert(id.clone(), Rc::clone(&tree));
        tree
    }

    /// Returns how much of their content two objects have in common, in percent: 100 only if they are the same, and 0 if one
    /// cannot be read.
    pub(super) fn percent_in_common(&mut self, one: &ObjectId, other: &ObjectId) -> Result<u8> {
        if one == other {
            return Ok(100);
        }
        let found = self.pieces_of(&[one, other])?;
        let [Some(one), Some(other)] = found.as_slice() else { return Ok(0) };
        Ok(one.percent_in_common(other).min(99))
    }

    /// Returns the pieces of some contents, in order. Pieces are cached while they fit.
    pub(super) fn pieces_of(&mut self, ids: &[&ObjectId]) -> Result<Vec<Option<Rc<ContentPieces>>>> {
        let mut found: HashMap<&ObjectId, Rc<ContentPieces>> =
            ids.iter().filter_map(|id| Some((*id, self.pieces.get(id)?))).collect();
        let unknown: BTreeSet<&ObjectId> = ids.iter().copied().filter(|id| !found.contains_key(id)).collect();
        let unknown: Vec<&ObjectId> = unknown.into_iter().collect();
        for group in unknown.chunks(GROUP) {
            let wanted: Vec<ObjectId> = group.iter().map(|id| (*id).clone()).collect();
            for (id, content) in group.iter().zip(self.blobs(&wanted)?) {
                let Some(content) = content else { continue };
                found.insert(id, self.pieces.keep((*id).clone(), ContentPieces::of(&content)));
            }
        }
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// Returns whether `count` more contents may be compared with one that moved. A repair compares a limited number.
    pub(super) fn may_compare(&mut self, count: usize) -> bool {
        self.compared += count;
        self.compared <= MAX_COMPARED
    }

    /// Returns whether a content is for the most part in one of some others, and was not in what these were before. Where that
    /// would take too long, it may be.
    pub(super) fn is_mostly_in_one(
        &mut self,
        content: &ObjectId,
        others: &[(Option<&ObjectId>, &ObjectId)],
    ) -> Result<bool> {
        if others.is_empty() {
            return Ok(false);
        }
        let Some(content) = self.pieces_of(&[content])?.pop().flatten() else { return Ok(true) };
        for group in others.chunks(GROUP) {
            if !self.may_compare(group.len()) {
                return Ok(true);
            }
            let after: Vec<&ObjectId> = group.iter().map(|(_, after)| *after).collect();
            for ((before, _), after) in group.iter().zip(self.pieces_of(&after)?) {
                if !after.is_some_and(|after| is_mostly_in(&content, &after)) {
                    continue;
                }
                let before = before.map_or(Ok(Vec::new()), |before| self.pieces_of(&[before]))?;
                if !before.into_iter().flatten().any(|before| is_mostly_in(&content, &before)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the first line of a commit's message.
    pub(super) fn subject(&mut self, commit: &ObjectId) -> Result<String> {
        Ok(self.ask(commit.as_str(), |objects| objects.subject(commit))?.unwrap_or_default())
    }

    /// Returns what could not be read.
    pub(super) fn problems(&self) -> Vec<HistoryProblem> {
        let mut problems = Vec::new();
        if !self.missing.is_empty() {
            let count = self.missing.len();
            problems.push(match self.repository.is_partial() {
                true => HistoryProblem::NotFetched(count),
                false => HistoryProblem::MissingContents(count),
            });
        }
        if self.repository.is_shallow() {
            problems.push(HistoryProblem::Shallow);
        }
        problems
    }
}
