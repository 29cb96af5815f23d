//! The commits before a commit with their parents, listed once and kept in memory.

use std::collections::HashMap;

use sidenote_base::error::Result;

use crate::history::lines_of;
use crate::{ObjectId, Repository};

/// A commit of a graph, by its position in [`CommitGraph`].
pub type CommitIndex = usize;

/// Commits in topological order: each comes before its parents.
#[derive(Debug, Clone)]
pub struct CommitGraph {
    commits: Vec<Commit>,
    index: HashMap<ObjectId, CommitIndex>,
    /// What git said when it could not read the rest of the history.
    unreadable: Option<String>,
}

#[derive(Debug, Clone)]
struct Commit {
    id: ObjectId,
    tree: ObjectId,
    parents: Vec<CommitIndex>,
}

impl Repository {
    /// Lists the commits before and including HEAD, at most `limit`. Returns `None` before the first commit. Where git cannot
    /// read all of them, HEAD alone counts.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if git refuses to read the repository.
    pub fn commit_graph(&self, limit: usize) -> Result<Option<CommitGraph>> {
        let count = format!("--max-count={limit}");
        let format = "--format=%H %T %P";
        let list = |order| {
            // The count comes first, because it takes `--no-walk` back.
            self.try_read(["rev-list", &count, order, "--no-commit-header", format, "HEAD", "--"], None)
        };
        let said = list("--topo-order")?;
        // A branch without commits is not a failure.
        if said.code != 0 && self.is_unborn(&said.stderr) {
            return Ok(None);
        }
        // Sorted, git lists nothing if it cannot read one of the commits.
        let mut listed = listed_in(&said.stdout);
        if said.code != 0 {
            listed = listed_in(&list("--no-walk")?.stdout);
        }
        if listed.is_empty() {
            return Err(self.refusal(&said.stderr));
        }
        let index: HashMap<ObjectId, CommitIndex> =
            listed.iter().enumerate().filter_map(|(at, ids)| Some((ids.first()?.clone(), at))).collect();
        let commit = |ids: Vec<ObjectId>| {
            let parents = ids.iter().skip(2).filter_map(|id| index.get(id).copied()).collect();
            let mut ids = ids.into_iter();
            Some(Commit { id: ids.next()?, tree: ids.next()?, parents })
        };
        let commits = listed.into_iter().filter_map(commit).collect();
        let unreadable = (said.code != 0).then(|| self.refusal(&said.stderr).to_string());
        Ok(Some(CommitGraph { commits, index, unreadable }))
    }

    /// Returns whether git says of HEAD that it has no commit yet.
    fn is_unborn(&self, stderr: &str) -> bool {
        let names_head = ["bad revision 'HEAD'", "ambiguous argument 'HEAD'"];
        names_head.iter().any(|said| stderr.contains(said)) && !self.git_dir().join("HEAD").is_dir()
    }
}

/// Reads the ids in the lines of `git rev-list`: a commit, its tree and its parents.
fn listed_in(stdout: &[u8]) -> Vec<Vec<ObjectId>> {
    lines_of(stdout)
        .map(|line| line.split(' ').filter_map(ObjectId::parse).collect::<Vec<_>>())
        .filter(|ids| ids.len() >= 2)
        .collect()
}

impl CommitGraph {
    /// Returns the number of commits.
    pub fn len(&self) -> usize {
        self.commits.len()
    }

    /// Returns whether there are no commits.
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// Returns what git said when it could not read the rest of the history.
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Returns the position of a commit.
    pub fn position(&self, id: &ObjectId) -> Option<CommitIndex> {
        self.index.get(id).copied()
    }

    /// Returns the id of a commit.
    pub fn id(&self, at: CommitIndex) -> Option<&ObjectId> {
        self.commits.get(at).map(|commit| &commit.id)
    }

    /// Returns the id of the tree of a commit.
    pub fn tree(&self, at: CommitIndex) -> Option<&ObjectId> {
        self.commits.get(at).map(|commit| &commit.tree)
    }

    /// Lists the parents of a commit that are in the graph.
    pub fn parents(&self, at: CommitIndex) -> &[CommitIndex] {
        self.commits.get(at).map_or(&[], |commit| &commit.parents)
    }

    /// Returns, for each commit, whether it is an ancestor of a commit, or that commit itself.
    pub fn ancestors(&self, of: CommitIndex) -> Vec<bool> {
        let mut is_ancestor = vec![false; self.commits.len()];
        if let Some(own) = is_ancestor.get_mut(of) {
            *own = true;
        }
        // A commit comes before its parents.
        for at in of..self.commits.len() {
            if is_ancestor.get(at) != Some(&true) {
                continue;
            }
            for parent in self.parents(at) {
                if let Some(mark) = is_ancestor.get_mut(*parent) {
                    *mark = true;
                }
            }
        }
        is_ancestor
    }
}
