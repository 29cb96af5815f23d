//! The state of a repository as its files tell: what is unfinished, and where HEAD is. No program is run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sidenote_base::safe_open;

use crate::Repository;

/// The largest file of git's state that is read, in bytes.
const MAX_STATE_FILE: u64 = 4096;

/// An operation of git that is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// A merge.
    Merge,
    /// A rebase, or patches that are applied.
    Rebase,
    /// A cherry-pick.
    CherryPick,
    /// A revert.
    Revert,
    /// A bisection.
    Bisect,
    /// A command that holds the lock of git's index.
    Locked,
}

impl Unfinished {
    /// The files and folders in the repository's data that show an unfinished operation.
    const MARKS: [(&'static str, Self); 7] = [
        ("MERGE_HEAD", Self::Merge),
        ("rebase-merge", Self::Rebase),
        ("rebase-apply", Self::Rebase),
        ("CHERRY_PICK_HEAD", Self::CherryPick),
        ("REVERT_HEAD", Self::Revert),
        ("BISECT_LOG", Self::Bisect),
        ("index.lock", Self::Locked),
    ];

    /// Returns whether it can leave conflict marks in files.
    pub fn leaves_conflict_marks(self) -> bool {
        matches!(self, Self::Merge | Self::Rebase | Self::CherryPick | Self::Revert)
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Merge => "a merge",
            Self::Rebase => "a rebase",
            Self::CherryPick => "a cherry-pick",
            Self::Revert => "a revert",
            Self::Bisect => "a bisection",
            Self::Locked => "a command of git",
        })
    }
}

impl Repository {
    /// Returns the operation of git that is not finished, if there is one.
    pub fn unfinished(&self) -> Option<Unfinished> {
        let is_there = |name: &str| self.git_dir.join(name).symlink_metadata().is_ok();
        Unfinished::MARKS.into_iter().find(|(name, _)| is_there(name)).map(|(_, what)| what)
    }

    /// Returns the folder of the data that all worktrees of the repository share.
    pub(crate) fn common_dir(&self) -> PathBuf {
        // The data of a worktree name it.
        match read(&self.git_dir.join("commondir")) {
            Some(common) => without_parents(&self.git_dir.join(common.trim())),
            None => self.git_dir.clone(),
        }
    }

    /// Returns whether the clone has only the last part of the history.
    pub fn is_shallow(&self) -> bool {
        self.common_dir().join("shallow").symlink_metadata().is_ok()
    }

    /// Returns whether contents that the clone left out are fetched when they are needed.
    pub fn is_partial(&self) -> bool {
        let packs = std::fs::read_dir(self.common_dir().join("objects/pack")).into_iter().flatten();
        packs.flatten().any(|pack| pack.path().extension().is_some_and(|extension| extension == "promisor"))
    }

    /// Returns the time at which HEAD last moved; `None` if the repository does not record it.
    pub fn head_moved_at(&self) -> Option<SystemTime> {
        // Each move of HEAD appends a line to its log.
        let modified =
            |name: &str| self.git_dir.join(name).metadata().and_then(|found| found.modified()).ok();
        modified("logs/HEAD").or_else(|| modified("HEAD"))
    }
}

/// Resolves the `..` of a path, as it is written.
fn without_parents(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        if part != std::path::Component::ParentDir || !resolved.pop() {
            resolved.push(part);
        }
    }
    resolved
}

fn read(path: &Path) -> Option<String> {
    String::from_utf8(safe_open::read_in_place(path, MAX_STATE_FILE).ok()?).ok()
}
