//! The commits that touched one file, under all its names and through merges.
//!
//! The walk goes backwards. If a commit has the file and a parent does not, git's rename detection finds the name that
//! the file has in the parent.

use std::collections::{BinaryHeap, HashMap, HashSet};

use sidenote_base::error::Result;

use crate::history::lines_of;
use crate::{CommitInfo, ObjectId, Objects, PathChange, Repository};

/// A file as one commit has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// The path from the repository's folder.
    pub path: String,
    /// The content.
    pub blob: ObjectId,
}

/// A commit that touched a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCommit {
    /// The commit.
    pub commit: CommitInfo,
    /// The file before: in the first parent that has it. `None` if the commit made the file.
    pub before: Option<FileVersion>,
    /// The file in the commit; `None` if the commit removed it.
    pub after: Option<FileVersion>,
}

/// A commit on the walk, with the path that the file has there.
type Step = (ObjectId, String);

/// The commits of which some may have touched a path, as git lists them.
struct PathCommits {
    /// The newest one.
    first: Option<ObjectId>,
    /// What is known of each.
    infos: HashMap<ObjectId, CommitInfo>,
    /// The nearest commits before each that may have touched the path.
    earlier: HashMap<ObjectId, Vec<ObjectId>>,
}

/// The state of a walk.
struct Walk<'a> {
    repository: &'a Repository,
    objects: Objects,
    seen: HashSet<Step>,
    found: Vec<FileCommit>,
    /// Pairs of a commit and one before it.
    order: Vec<(ObjectId, ObjectId)>,
    times: HashMap<ObjectId, i64>,
}

impl Repository {
    /// Lists the commits before `head`, and itself, that touched a file, the newest first. `path` is the path of the file in
    /// `head`, or the last that it had. A merge is among them only if it has another content than each of its parents.
    ///
    /// # Errors
    /// Those of running git.
    pub fn file_history(&self, head: &ObjectId, path: &str) -> Result<Vec<FileCommit>> {
        let mut walk = Walk {
            repository: self,
            objects: self.objects()?,
            seen: HashSet::new(),
            found: Vec::new(),
            order: Vec::new(),
            times: HashMap::new(),
        };
        let mut starts = vec![(None, (head.clone(), path.to_owned()))];
        while let Some((later, (start, path))) = starts.pop() {
            let listed = self.path_commits(&start, &path)?;
            if let (Some(later), Some(first)) = (later, &listed.first) {
                walk.order.push((later, first.clone()));
            }
            starts.extend(walk.follow(&listed, &path)?);
        }
        Ok(sorted(walk.found, &walk.order, &walk.times))
    }

    /// Lists the commits that may have touched a path, merges included.
    fn path_commits(&self, start: &ObjectId, path: &str) -> Result<PathCommits> {
        let said = self.read([
            "rev-list",
            "--topo-order",
            "--full-history",
            "--parents",
            start.as_str(),
            "--",
            &self.in_tree(path),
        ])?;
        let mut listed = PathCommits { first: None, infos: HashMap::new(), earlier: HashMap::new() };
        let mut commits = Vec::new();
        for line in lines_of(&said) {
            let mut ids = line.split(' ').filter_map(ObjectId::parse);
            let Some(commit) = ids.next() else { continue };
            listed.earlier.insert(commit.clone(), ids.collect());
            commits.push(commit);
        }
        listed.first = commits.first().cloned();
        // The parents in the list above are those among the listed commits, and these are the real ones.
        let infos = self.describe_all(&commits)?;
        listed.infos = infos.into_iter().map(|info| (info.id.clone(), info)).collect();
        Ok(listed)
    }
}

impl Walk<'_> {
    /// Follows a path from the newest of the listed commits. Returns where to go on under other names, each with the commit
    /// that gave the file its later name.
    fn follow(&mut self, listed: &PathCommits, path: &str) -> Result<Vec<(Option<ObjectId>, Step)>> {
        let mut renamed = Vec::new();
        let mut open: Vec<ObjectId> = listed.first.iter().cloned().collect();
        while let Some(commit) = open.pop() {
            if !self.seen.insert((commit.clone(), path.to_owned())) {
                continue;
            }
            let Some(info) = listed.infos.get(&commit) else { continue };
            self.times.insert(commit.clone(), info.committed_at);
            let sources = self.look(info, path)?;
            for before in self.earlier_under_name(listed, info, path, &sources)? {
                self.order.push((commit.clone(), before.clone()));
                open.push(before);
            }
            renamed.extend(sources.into_iter().map(|source| (Some(commit.clone()), source)));
        }
        Ok(renamed)
    }

    /// Compares a commit with its parents, and adds it if it touched the file. Returns the parents that have the file under
    /// another name.
    fn look(&mut self, info: &CommitInfo, path: &str) -> Result<Vec<Step>> {
        let after = self.objects.blob_at(&info.id, path)?;
        let after = after.map(|blob| FileVersion { path: path.to_owned(), blob });
        let mut befores: Vec<Option<FileVersion>> = Vec::new();
        let mut sources = Vec::new();
        for parent in &info.parents {
            let blob = self.objects.blob_at(parent, path)?;
            let mut before = blob.map(|blob| FileVersion { path: path.to_owned(), blob });
            if before.is_none() && after.is_some() {
                before = self.source(parent, &info.id, path)?;
                sources.extend(before.iter().map(|found| (parent.clone(), found.path.clone())));
            }
            befores.push(before);
        }
        // A merge that took the file from one parent as it was there did not touch it.
        let is_taken = befores.contains(&after);
        if !is_taken && (after.is_some() || info.parents.len() == 1) {
            let before = befores.into_iter().flatten().next();
            let after = match (after, &before) {
                (None, Some(before)) => self.target(info, before)?,
                (after, _) => after,
            };
            self.found.push(FileCommit { commit: info.clone(), before, after });
        }
        Ok(sources)
    }

    /// Returns the file of a parent that a commit renamed to `path`.
    fn source(&self, parent: &ObjectId, commit: &ObjectId, path: &str) -> Result<Option<FileVersion>> {
        let changes = self.repository.changes(parent, commit, true)?;
        Ok(changes.into_iter().find_map(|change| match change {
            PathChange::Renamed { from: Some(from), to: Some(to), before, .. } if to == path => {
                Some(FileVersion { path: from, blob: before })
            }
            _ => None,
        }))
    }

    /// Returns what a commit renamed a file to that it took away from its path.
    fn target(&self, info: &CommitInfo, file: &FileVersion) -> Result<Option<FileVersion>> {
        let Some(parent) = info.parents.first() else { return Ok(None) };
        let changes = self.repository.changes(parent, &info.id, true)?;
        Ok(changes.into_iter().find_map(|change| match change {
            PathChange::Renamed { from: Some(from), to: Some(to), after, .. } if from == file.path => {
                Some(FileVersion { path: to, blob: after })
            }
            _ => None,
        }))
    }

    /// Returns the nearest listed commits before a commit, except those through parents that have the file under
    /// another name: a file that had this name there is another file.
    fn earlier_under_name(
        &self,
        listed: &PathCommits,
        info: &CommitInfo,
        path: &str,
        sources: &[Step],
    ) -> Result<Vec<ObjectId>> {
        if sources.is_empty() {
            return Ok(listed.earlier.get(&info.id).cloned().unwrap_or_default());
        }
        let others = info.parents.iter().filter(|parent| sources.iter().all(|(source, _)| source != *parent));
        let mut earlier = Vec::new();
        for parent in others {
            let arguments = ["rev-list", "--topo-order", "--full-history", "--parents", "--max-count=1"];
            let path = self.repository.in_tree(path);
            let said = self.repository.read(arguments.into_iter().chain([parent.as_str(), "--", &path]))?;
            earlier.extend(lines_of(&said).filter_map(|line| ObjectId::parse(line.split(' ').next()?)));
        }
        Ok(earlier)
    }
}

/// Orders commits so that each is after those that it is before in the history, and the newest first otherwise.
fn sorted(
    mut found: Vec<FileCommit>,
    order: &[(ObjectId, ObjectId)],
    times: &HashMap<ObjectId, i64>,
) -> Vec<FileCommit> {
    let mut earlier: HashMap<&ObjectId, Vec<&ObjectId>> = HashMap::new();
    let mut later: HashMap<&ObjectId, usize> = times.keys().map(|id| (id, 0)).collect();
    for (child, parent) in order {
        earlier.entry(child).or_default().push(parent);
        if let Some(count) = later.get_mut(parent) {
            *count += 1;
        }
    }
    let entry = |id: &'_ ObjectId| (times.get(id).copied().unwrap_or(0), id.clone());
    let mut ready: BinaryHeap<(i64, ObjectId)> =
        later.iter().filter(|(_, count)| **count == 0).map(|(id, _)| entry(id)).collect();
    let mut rank: HashMap<ObjectId, usize> = HashMap::new();
    while let Some((_, id)) = ready.pop() {
        for parent in earlier.get(&id).into_iter().flatten() {
            if let Some(count) = later.get_mut(*parent) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.push(entry(parent));
                }
            }
        }
        let place = rank.len();
        rank.insert(id, place);
    }
    found.sort_by_key(|commit| rank.get(&commit.commit.id).copied().unwrap_or(usize::MAX));
    found
}
