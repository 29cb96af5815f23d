//! Git: the repository around a folder, what its history says, and commits (docs/spec/git.md 9). It is the only crate
//! that runs the `git` program, and knows no vault.
//!
//! A vault can be a download with a hostile `.git/config`, so reading runs no program that a repository names. Commits
//! run with the user's own configuration, and only where the user's settings ask for them.

mod command;
mod commit_graph;
mod commit;
mod file_history;
mod file_state;
mod first_commits;
mod history;
mod merge_file;
mod objects;
mod process;
mod revision;
mod settings;
mod state;
mod temporary;
mod tree_diffs;
mod user_command;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sha2::Digest as _;
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};

pub use crate::command::MIN_VERSION;
pub use crate::commit::{COMMIT_TIME, CommitRefusal, CommitRequest};
pub use crate::commit_graph::{CommitGraph, CommitIndex};
pub use crate::file_history::{FileCommit, FileVersion};
pub use crate::file_state::{FileState, FileStates};
pub use crate::history::{BlamedLine, CommitInfo, FileStep, PathChange};
pub use crate::merge_file::{ConflictMarkers, FileVersions, MergedFile, merge_file};
pub use crate::objects::{Objects, TreeEntry, TreeFile};
pub use crate::process::is_silence;
pub use crate::revision::NamedCommit;
pub use crate::state::Unfinished;
pub use crate::tree_diffs::TreeDiffs;
pub use crate::versions::CommittedFile;

/// The largest `.git` file that is read, in bytes.
const MAX_GIT_FILE: u64 = 65_536;

/// The id of a commit or of a file's content, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(String);

impl ObjectId {
    /// Reads an id of 40 or 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Self(text.to_ascii_lowercase()))
    }

    /// Returns the id that git gives to the content of a file, in a repository with ids like this one.
    #[must_use]
    pub fn of_content(&self, bytes: &[u8]) -> Self {
        let head = format!("blob {}\0", bytes.len());
        let hash: Vec<u8> = if self.0.len() == 64 {
            let mut hash = sha2::Sha256::new();
            hash.update(head.as_bytes());
            hash.update(bytes);
            hash.finalize().to_vec()
        } else {
            let mut hash = sha1_smol::Sha1::new();
            hash.update(head.as_bytes());
            hash.update(bytes);
            hash.digest().bytes().to_vec()
        };
        Self(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first ten digits, as messages show them.
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }

    /// Returns whether the id is all zeros, which means no object.
    fn is_null(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'0')
    }
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The git repository that a folder belongs to.
///
/// Paths of files are relative to that folder, with forward slashes. What lies outside of the folder is left out.
// size: all questions about one repository, in a file for each topic.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The top folder of the working tree.
    work_tree: PathBuf,
    /// The folder of the repository's data for this working tree.
    git_dir: PathBuf,
    /// The path of the folder in the working tree, with a slash at the end; empty at the top.
    prefix: String,
    /// Whether the caller is a hook of git, whose `GIT_*` variables name the index to read.
    is_in_hook: bool,
    /// Whether its data is known to have no pipe and no device.
    is_checked: Arc<AtomicBool>,
}

impl Repository {
    /// Finds the repository that a folder belongs to, from the files alone: no program is run. Returns `None` if there is
    /// none.
    ///
    /// # Errors
    /// `Io` if a `.git` file cannot be read.
    pub fn discover(folder: &Path) -> Result<Option<Self>> {
        let folder =
            platform::canonicalize(folder).map_err(|error| Error::io("look for git in", folder, error))?;
        for above in folder.ancestors() {
            let git = above.join(".git");
            if git.symlink_metadata().is_err() {
                continue;
            }
            let Some(git_dir) = named_by(git)? else { return Ok(None) };
            let below = folder.strip_prefix(above).unwrap_or(Path::new(""));
            let mut prefix = String::new();
            for part in below.components() {
                let Some(part) = part.as_os_str().to_str() else { return Ok(None) };
                prefix.push_str(part);
                prefix.push('/');
            }
            return Ok(Some(Self {
                work_tree: above.to_owned(),
                git_dir,
                prefix,
                is_in_hook: false,
                is_checked: Arc::default(),
            }));
        }
        Ok(None)
    }

    /// Lets the `GIT_*` variables of the caller count, as a hook of git needs: they name the index of the commit in
    /// progress.
    #[must_use]
    pub fn in_hook(mut self) -> Self {
        self.is_in_hook = true;
        self
    }

    /// Returns the top folder of the working tree.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// Returns the folder of the repository's data for this working tree, such as `.git`.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the path of the folder in the working tree, with a slash at the end; empty at the top.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the path of a file in the working tree.
    fn in_tree(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Returns the path from the folder of a path in the working tree; `None` outside of the folder or if it is not UTF-8.
    fn below(&self, path: &[u8]) -> Option<String> {
        let path = std::str::from_utf8(path).ok()?;
        path.strip_prefix(&self.prefix).map(str::to_owned)
    }
}

/// Returns the folder of a repository's data that a `.git` is or names; `None` for a file that names none, which git refuses,
/// too.
fn named_by(git: PathBuf) -> Result<Option<PathBuf>> {
    if git.is_dir() {
        return Ok(Some(git));
    }
    // A worktree or a submodule has a file that names the folder.
    let text =
        safe_open::read_in_place(&git, MAX_GIT_FILE).map_err(|error| Error::io("read", &git, error))?;
    let text = String::from_utf8_lossy(&text);
    // A vault can be a download, and to look at a path on another machine would be a connection.
    let named = text.strip_prefix("gitdir:").map(str::trim);
    let named = named.filter(|named| !named.is_empty() && !is_remote(named));
    Ok(named.map(|named| git.with_file_name("").join(named)))
}

/// Returns whether a path is one on another machine, as Windows writes it: `\\host\share`.
fn is_remote(path: &str) -> bool {
    let mut first = path.chars().take(2);
    first.all(|sign| matches!(sign, '/' | '\\')) && path.len() > 1
}
