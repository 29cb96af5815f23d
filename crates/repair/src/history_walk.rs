//! The walk through the history of git, from the last commit backwards: which commits added, removed and renamed each
//! path. Every commit is read at most once, whatever the number of links.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

use sidenote_base::error::Result;
use sidenote_git::{CommitGraph, CommitIndex, ObjectId, PathChange, Repository, TreeDiffs};
use sidenote_markdown::path::NotePath;

use crate::commit_changes::CommitChanges;
use crate::content_owners::ContentOwners;
use crate::history_reader::HistoryProblem;

/// The most commits that are looked at.
const MAX_COMMITS: usize = 100_000;
/// The number of last commits in which moves are looked for that made links lead elsewhere.
pub(super) const RECENT_COMMITS: CommitIndex = 20;
/// The number of commits that are asked for at a time.
const BATCH: usize = 32;

/// What a commit did to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathEventKind {
    /// It is new.
    Added,
    /// It was removed. The new path and the share of common content, if git calls it a rename.
    Removed(Option<(NotePath, u8)>),
    /// The content is another file's: the old content went to another path, or the new one comes from there.
    Replaced { before: ObjectId, after: ObjectId },
    /// A merge took it, or its absence, from one of its parents.
    Merged,
}

/// A commit that added, removed or replaced the file at a path.
#[derive(Debug, Clone)]
pub(super) struct PathEvent {
    pub(super) commit: CommitIndex,
    /// The first parent.
    pub(super) parent: CommitIndex,
    pub(super) kind: PathEventKind,
}

/// The commits that a commit contains: its ancestors and itself.
#[derive(Debug, Clone)]
struct Contained {
    /// For each commit, whether it is one of them.
    commits: Rc<Vec<bool>>,
    /// The last commit that is none of them.
    last_outside: Option<CommitIndex>,
}

/// A commit with what it changed against each parent.
#[derive(Debug, Clone)]
pub(super) struct WalkedCommit {
    pub(super) commit: CommitIndex,
    pub(super) changes: Vec<(CommitIndex, Rc<CommitChanges>)>,
}

/// The walk, and what it found so far.
pub(super) struct HistoryWalk {
    pub(super) graph: CommitGraph,
    repository: Repository,
    diffs: TreeDiffs,
    /// The commits before this one were looked at.
    looked_at: CommitIndex,
    waiting: VecDeque<WalkedCommit>,
    /// What happened to each path, the newest first.
    events: BTreeMap<NotePath, Vec<PathEvent>>,
    /// The paths of `events` that were not taken yet.
    new_paths: Vec<NotePath>,
    /// The changes of each commit that took a file from its path, against a parent.
    kept: HashMap<(CommitIndex, CommitIndex), Rc<CommitChanges>>,
    /// The recent commits, the newest first.
    recent: Vec<WalkedCommit>,
    /// The files that had each content.
    pub(super) owners: ContentOwners,
    /// Whether a rename without a change certainly concerns one file, by parent, commit and path before. It is filled
    /// on demand.
    pub(super) clear_moves: HashMap<(CommitIndex, CommitIndex, NotePath), bool>,
    /// The number of comparisons of commits without their renames, because git cannot read a content.
    unpaired: usize,
    contained: HashMap<CommitIndex, Contained>,
    problems: Vec<HistoryProblem>,
}

impl HistoryWalk {
    /// Lists the commits. Returns `None` before the first one.
    pub(super) fn new(repository: &Repository) -> Result<Option<Self>> {
        let Some(graph) = repository.commit_graph(MAX_COMMITS)? else { return Ok(None) };
        let mut problems = Vec::new();
        problems.extend(graph.unreadable().map(|said| HistoryProblem::Unreadable(said.to_owned())));
        if graph.len() == MAX_COMMITS {
            problems.push(HistoryProblem::TooLong);
        }
        Ok(Some(Self {
            graph,
            repository: repository.clone(),
            diffs: repository.tree_diffs()?,
            looked_at: 0,
            waiting: VecDeque::new(),
            events: BTreeMap::new(),
            new_paths: Vec::new(),
            kept: HashMap::new(),
            recent: Vec::new(),
            owners: ContentOwners::default(),
            clear_moves: HashMap::new(),
            unpaired: 0,
            contained: HashMap::new(),
            problems,
        }))
    }

    /// Lists the files of the last commit by path.
    pub(super) fn head_files(&mut self) -> Result<BTreeMap<NotePath, ObjectId>> {
        let Some(tree) = self.graph.tree(0).cloned() else { return Ok(Default::default()) };
        let files = self.diffs.files_of(&tree)?.into_iter().filter(|file| !file.is_link);
        let files: BTreeMap<NotePath, ObjectId> =
            files.filter_map(|file| Some((NotePath::from_disk(&file.path)?, file.blob))).collect();
        files.iter().for_each(|(path, blob)| self.owners.add(path, blob));
        Ok(files)
    }

    /// Returns what git could not tell.
    pub(super) fn problems(&self) -> Vec<HistoryProblem> {
        let mut problems = self.problems.clone();
        if self.unpaired > 0 {
            problems.push(HistoryProblem::WithoutRenames(self.unpaired));
        }
        problems
    }

    /// Looks at the next commit. Returns `None` after the last one, or where git cannot read the history.
    pub(super) fn step(&mut self) -> Option<WalkedCommit> {
        if self.waiting.is_empty()
            && let Err(error) = self.look_at_batch()
        {
            self.problems.push(HistoryProblem::Unreadable(error.to_string()));
            // What is older cannot be told.
            self.looked_at = self.graph.len();
        }
        let walked = self.waiting.pop_front()?;
        self.add_events(&walked);
        Some(walked)
    }

    fn look_at_batch(&mut self) -> Result<()> {
        let end = self.graph.len().min(self.looked_at + BATCH);
        let batch = self.looked_at..end;
        let pairs: Vec<(CommitIndex, CommitIndex)> = batch
            .clone()
            .flat_map(|commit| self.graph.parents(commit).iter().map(move |parent| (*parent, commit)))
            .collect();
        let ids: Vec<(&ObjectId, &ObjectId)> = pairs
            .iter()
            .filter_map(|(parent, commit)| self.graph.id(*parent).zip(self.graph.id(*commit)))
            .collect();
        let found = match self.diffs.of_commits(&ids) {
            Ok(found) => found,
            // Git ends at the first content that it cannot read to compare it with another one.
            Err(_) => one_by_one(&self.repository, &mut self.diffs, &ids, &mut self.unpaired)?,
        };
        let mut found = found.into_iter();
        for commit in batch {
            let parents: Vec<CommitIndex> = self.graph.parents(commit).to_vec();
            let mut changes = Vec::with_capacity(parents.len());
            for parent in parents {
                let Some(against) = found.next() else { break };
                changes.push((parent, Rc::new(CommitChanges::of(against))));
            }
            self.waiting.push_back(WalkedCommit { commit, changes });
        }
        self.looked_at = end;
        Ok(())
    }

    fn add_events(&mut self, walked: &WalkedCommit) {
        let commit = walked.commit;
        let Some((first, _)) = walked.changes.first() else { return };
        if commit < RECENT_COMMITS {
            self.recent.push(walked.clone());
        }
        // What a merge brings was written in its branches.
        if let [(_, changes)] = walked.changes.as_slice() {
            self.owners.add_changes(changes);
        }
        let mut found: HashMap<NotePath, (usize, PathEventKind)> = HashMap::new();
        for (parent, changes) in &walked.changes {
            let events = path_events(changes.all());
            let is_left = |kind: &PathEventKind| {
                matches!(kind, PathEventKind::Removed(_) | PathEventKind::Replaced { .. })
            };
            if events.iter().any(|(_, kind)| is_left(kind)) {
                self.kept.insert((*parent, commit), Rc::clone(changes));
            }
            for (path, kind) in events {
                let (count, known) = found.entry(path).or_insert((0, kind.clone()));
                *count += 1;
                if std::mem::discriminant(known) != std::mem::discriminant(&kind) {
                    *known = PathEventKind::Merged;
                }
            }
        }
        for (path, (count, kind)) in found {
            let kind = if count == walked.changes.len() { kind } else { PathEventKind::Merged };
            let events = self.events.entry(path.clone()).or_default();
            if events.is_empty() {
                self.new_paths.push(path);
            }
            events.push(PathEvent { commit, parent: *first, kind });
        }
    }

    /// Returns which commits a commit contains.
    fn contained(&mut self, in_commit: CommitIndex) -> Contained {
        /// The most commits of which this is remembered.
        const MOST: usize = 64;
        if let Some(known) = self.contained.get(&in_commit) {
            return known.clone();
        }
        if self.contained.len() >= MOST {
            self.contained.clear();
        }
        let commits = Rc::new(self.graph.ancestors(in_commit));
        let last_outside = commits.iter().rposition(|is_contained| !is_contained);
        let found = Contained { commits, last_outside };
        self.contained.insert(in_commit, found.clone());
        found
    }

    /// Returns whether another commit is an ancestor of a commit, or that commit itself.
    pub(super) fn contains(&mut self, commit: CommitIndex, other: CommitIndex) -> bool {
        self.contained(commit).commits.get(other) == Some(&true)
    }

    /// Returns whether a file was added, removed or replaced at a path in a commit that one of two commits contains and the other
    /// one does not. A merge alone brings nothing new.
    pub(super) fn differs(&mut self, one: CommitIndex, other: CommitIndex, path: &NotePath) -> bool {
        let (one, other) = (self.walk_past(one), self.walk_past(other));
        self.events.get(path).into_iter().flatten().any(|event| {
            event.kind != PathEventKind::Merged && one.get(event.commit) != other.get(event.commit)
        })
    }

    /// Finds the first later event that renamed a file back to a path from the one `to` which an event moved it: its index, and
    /// its commit.
    pub(super) fn first_return(
        &mut self,
        path: &NotePath,
        event: &PathEvent,
        to: &NotePath,
        later: &[PathEvent],
    ) -> Option<(usize, CommitIndex)> {
        let is_return = |change: &PathChange| matches!(change, PathChange::Renamed { from: Some(from), .. } if from == to.as_str());
        let mut returns =
            later.iter().enumerate().filter(|(_, back)| matches!(back.kind, PathEventKind::Added));
        let (index, back) = returns.find(|(_, back)| {
            let changes = self.kept_changes(back.parent, back.commit);
            changes.is_some_and(|all| all.of_file_now_at(path.as_str()).is_some_and(is_return))
                && self.contains(back.parent, event.commit)
        })?;
        Some((index, back.commit))
    }

    /// Looks at all commits that a commit does not contain.
    pub(super) fn walk_past(&mut self, commit: CommitIndex) -> Rc<Vec<bool>> {
        let Contained { commits, last_outside } = self.contained(commit);
        while last_outside.is_some_and(|last| self.walked() <= last) {
            if self.step().is_none() {
                break;
            }
        }
        commits
    }

    /// Lists what happened to a path in the commits that a commit does not contain, the oldest first.
    pub(super) fn events_since(&mut self, commit: CommitIndex, path: &NotePath) -> Vec<PathEvent> {
        let contained = self.walk_past(commit);
        let is_later = |event: &&PathEvent| contained.get(event.commit) == Some(&false);
        let found = self.events.get(path).into_iter().flatten().rev();
        found.filter(is_later).cloned().collect()
    }

    /// Returns the number of commits whose events are known.
    pub(super) fn walked(&self) -> CommitIndex {
        self.looked_at - self.waiting.len()
    }

    /// Lists what happened to a path in all commits, the newest first. The rest of the history is walked for that.
    pub(super) fn all_events(&mut self, path: &NotePath) -> &[PathEvent] {
        while self.step().is_some() {}
        self.events.get(path).map_or(&[], Vec::as_slice)
    }

    /// Lists the paths below a folder of which something is known, in order.
    pub(super) fn paths_below(&self, folder: &NotePath) -> impl Iterator<Item = &NotePath> {
        keys_below(&self.events, folder)
    }

    /// Lists what is known so far to have happened to a path, the newest first.
    pub(super) fn known_events(&self) -> impl Iterator<Item = (&NotePath, &[PathEvent])> {
        self.events.iter().map(|(path, events)| (path, events.as_slice()))
    }

    /// Lists what is known so far to have happened to one path, the newest first.
    pub(super) fn known_events_of(&self, path: &NotePath) -> &[PathEvent] {
        self.events.get(path).map_or(&[], Vec::as_slice)
    }

    /// Returns the paths that were found since the last call.
    pub(super) fn take_new_paths(&mut self) -> Vec<NotePath> {
        std::mem::take(&mut self.new_paths)
    }

    /// Returns the recent commits that were read, the newest first.
    pub(super) fn recent_commits(&self) -> Vec<WalkedCommit> {
        self.recent.clone()
    }

    /// Returns whether the content of a file shows that a commit renamed it without a change: no other file ever had
    /// the content, or none with that name, or the whole folder moved.
    pub(super) fn content_tells(
        &self,
        (parent, commit): (CommitIndex, CommitIndex),
        (from, to): (&NotePath, &NotePath),
        blob: &ObjectId,
    ) -> bool {
        let Some(changes) = self.kept.get(&(parent, commit)) else { return false };
        if changes.is_unclear(from.as_str()) {
            return false;
        }
        let folders = changes.moved_folders(|blob| self.owners.is_of_one_file(blob));
        self.owners.tells(blob, from, to, folders)
    }

    /// Returns a commit with its first parent before it.
    pub(super) fn first_step(&self, commit: CommitIndex) -> Option<(CommitIndex, CommitIndex)> {
        self.graph.parents(commit).first().map(|parent| (*parent, commit))
    }

    /// Returns the changes of a commit against a parent, if it took a file from its path and was looked at.
    pub(super) fn kept_changes(&self, parent: CommitIndex, commit: CommitIndex) -> Option<Rc<CommitChanges>> {
        self.kept.get(&(parent, commit)).map(Rc::clone)
    }
}

/// Compares commits one after the other. Where git cannot read a content to find renames, files count as one where their
/// content is the same.
fn one_by_one(
    repository: &Repository,
    diffs: &mut TreeDiffs,
    pairs: &[(&ObjectId, &ObjectId)],
    unpaired: &mut usize,
) -> Result<Vec<Vec<PathChange>>> {
    let mut found = Vec::with_capacity(pairs.len());
    *diffs = repository.tree_diffs()?;
    for pair in pairs {
        match diffs.of_commits(std::slice::from_ref(pair)) {
            Ok(changes) => found.extend(changes),
            Err(_) => {
                *diffs = repository.tree_diffs()?;
                found.push(repository.changes(pair.0, pair.1, false)?);
                *unpaired += 1;
            }
        }
    }
    Ok(found)
}

/// Lists the paths below a folder that are keys of a map, in order.
pub(super) fn keys_below<'m, T>(
    map: &'m BTreeMap<NotePath, T>,
    folder: &NotePath,
) -> impl Iterator<Item = &'m NotePath> + use<'m, T> {
    let prefix = format!("{folder}/");
    let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
    let paths = map.range::<str, _>(from).map(|(path, _)| path);
    paths.take_while(move |path| path.as_str().starts_with(&prefix))
}

/// Lists the paths that are new, removed or another file's in some changes.
fn path_events(changes: &[PathChange]) -> Vec<(NotePath, PathEventKind)> {
    let mut found = Vec::new();
    let mut add = |path: &str, kind: PathEventKind| {
        found.extend(NotePath::from_disk(path).map(|path| (path, kind)));
    };
    for change in changes {
        match change {
            PathChange::Added { path, .. } => add(path, PathEventKind::Added),
            PathChange::Removed { path, .. } => add(path, PathEventKind::Removed(None)),
            PathChange::Renamed { from, to, percent, .. } => {
                if let Some(from) = from {
                    let to = to.as_deref().and_then(NotePath::from_disk).map(|to| (to, *percent));
                    add(from, PathEventKind::Removed(to));
                }
                if let Some(to) = to {
                    add(to, PathEventKind::Added);
                }
            }
            PathChange::Changed { .. } => {}
        }
    }
    let is_content_only = |change: &PathChange| matches!(change, PathChange::Changed { .. });
    if !changes.iter().any(is_content_only) {
        return found;
    }
    // A content that is at another path now, or comes from there, shows that the file moved.
    let (mut before, mut after): (HashSet<&ObjectId>, HashSet<&ObjectId>) = Default::default();
    for change in changes {
        match change {
            PathChange::Added { blob, .. } => _ = after.insert(blob),
            PathChange::Removed { blob, .. } => _ = before.insert(blob),
            PathChange::Renamed { before: old, after: new, .. }
            | PathChange::Changed { before: old, after: new, .. } => {
                before.insert(old);
                after.insert(new);
            }
        }
    }
    for change in changes {
        if let PathChange::Changed { path, before: old, after: new } = change
            && old != new
            && (after.contains(old) || before.contains(new))
            && let Some(path) = NotePath::from_disk(path)
        {
            found.push((path, PathEventKind::Replaced { before: old.clone(), after: new.clone() }));
        }
    }
    found
}
