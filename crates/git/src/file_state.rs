//! The states of single files of the working tree in git, before they are committed. The user's own configuration
//! counts, such as filters and line ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use sidenote_base::error::Result;
use sidenote_base::platform;

use crate::Repository;
use crate::user_command::UserCall;

/// The bytes of paths that one call of git gets as arguments. Windows takes about 32,000 characters.
const ARGUMENT_BYTES: usize = 20_000;

/// The current folder before a path.
const HERE: &[u8] = b"./";

/// The state of a file in git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// The file is as in HEAD.
    Committed,
    /// There is no such file, neither on the disk nor in git.
    Absent,
    /// The file is not in git.
    Untracked,
    /// The file is not in git, and git ignores it.
    Ignored,
    /// The file differs from the index of git.
    Changed,
    /// The index of git differs from HEAD.
    Staged,
    /// The file is in conflict after a merge.
    Unmerged,
    /// Git was told not to look at the file.
    Unwatched,
    /// The file is in a submodule, or in another repository inside this one.
    OtherRepository,
    /// The file is behind a symbolic link to a folder.
    BehindLink,
}

impl fmt::Display for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Committed => "it is as in HEAD",
            Self::Absent => "there is no such file",
            Self::Untracked => "it was not in git before",
            Self::Ignored => "git ignores it",
            Self::Changed => "it was changed before and not committed",
            Self::Staged => "it was staged before",
            Self::Unmerged => "it is in conflict after a merge",
            Self::Unwatched => "git is told not to look at it (assume-unchanged or skip-worktree)",
            Self::OtherRepository => "it is in a submodule or another repository",
            Self::BehindLink => "it is behind a symbolic link",
        })
    }
}

/// The states of files in git, and where HEAD is.
#[derive(Debug, Clone, Default)]
pub struct FileStates {
    /// The state of each file, by its path from the top of the working tree. Below the folders that were asked for, only
    /// files that git knows or would take are listed.
    pub files: BTreeMap<Vec<u8>, FileState>,
    /// The files that the index of git has.
    pub tracked: BTreeSet<Vec<u8>>,
    /// Whether HEAD is detached from any branch.
    pub is_detached: bool,
}

impl FileStates {
    /// Returns the state of a file that was asked for.
    pub fn of(&self, path: &[u8]) -> FileState {
        self.files.get(path).copied().unwrap_or(FileState::Absent)
    }
}

impl Repository {
    /// Returns the path of a file of the folder in the working tree, as git names it.
    pub fn tree_path(&self, path: &str) -> Vec<u8> {
        self.in_tree(path).into_bytes()
    }

    /// Returns the path on the disk of a file that git names.
    pub fn disk_path(&self, path: &[u8]) -> PathBuf {
        self.work_tree.join(platform::os_string(path))
    }

    /// Finds out how files stand, and all files below some folders. Paths are from the top of the working tree.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if git is too old or refuses.
    pub fn file_states(&self, files: &[Vec<u8>], folders: &[Vec<u8>]) -> Result<FileStates> {
        let mut states = FileStates::default();
        let mut parents = ParentFolders::new(&self.work_tree);
        let mut asked: Vec<&[u8]> = Vec::new();
        for file in files {
            match parents.obstacle(file) {
                Some(state) => drop(states.files.insert(file.clone(), state)),
                None => asked.push(file),
            }
        }
        // A folder that cannot be committed from has no files of this repository.
        let folders =
            folders.iter().filter(|folder| parents.obstacle(&[folder, &b"/x"[..]].concat()).is_none());
        let asked_folders: Vec<&[u8]> = folders.map(Vec::as_slice).collect();
        let everything: Vec<&[u8]> = asked.iter().chain(&asked_folders).copied().collect();
        // HEAD is of interest even without a file.
        let chunks = if everything.is_empty() { vec![Vec::new()] } else { chunks(&everything) };
        for chunk in chunks {
            self.read_tags(&chunk, &mut states)?;
            self.read_status(&chunk, &mut states)?;
        }
        let mut unknown = Vec::new();
        for file in asked {
            if states.files.contains_key(file) {
                continue;
            }
            let is_there = self.disk_path(file).symlink_metadata().is_ok_and(|found| !found.is_dir());
            states
                .files
                .insert(file.to_vec(), if is_there { FileState::Untracked } else { FileState::Absent });
            unknown.push(file);
        }
        for ignored in self.ignored(&unknown)? {
            states.files.insert(ignored, FileState::Ignored);
        }
        Ok(states)
    }

    /// Reads what the index has of some files.
    fn read_tags(&self, paths: &[&[u8]], states: &mut FileStates) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let call = UserCall::new(self).arguments(["ls-files", "-v", "--stage", "-z", "--full-name", "--"]);
        let listed = call.pathspecs(paths).read()?;
        for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            // `H 100644 ID 0<tab>PATH`; the letter is small for a file that is assumed to be unchanged.
            let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
            let (fields, path) = (&entry[..tab], entry[tab + 1..].to_vec());
            let tag = fields.first().copied().unwrap_or(b'H');
            let is_module = fields.get(2..).is_some_and(|mode| mode.starts_with(b"160000"));
            let state = match tag {
                _ if is_module => FileState::OtherRepository,
                b'M' => FileState::Unmerged,
                b'S' => FileState::Unwatched,
                tag if tag.is_ascii_lowercase() => FileState::Unwatched,
                _ => FileState::Committed,
            };
            states.tracked.insert(path.clone());
            states.files.insert(path, state);
        }
        Ok(())
    }

    /// Reads what differs: the index from HEAD, and the files from the index.
    fn read_status(&self, paths: &[&[u8]], states: &mut FileStates) -> Result<()> {
        let untracked = if paths.is_empty() { "--untracked-files=no" } else { "--untracked-files=all" };
        let options = ["status", "--porcelain=v2", "-z", "--branch", "--no-renames", untracked];
        let mut call = UserCall::new(self).arguments(options);
        if !paths.is_empty() {
            call = call.arguments(["--"]).pathspecs(paths);
        }
        let said = call.read()?;
        for entry in said.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            if let Some(head) = entry.strip_prefix(b"# branch.head ") {
                states.is_detached |= head == b"(detached)";
            }
            let field = |count: usize| {
                // The path is the last field, and may have spaces.
                entry.splitn(count, |byte| *byte == b' ').nth(count - 1).map(<[u8]>::to_vec)
            };
            let (path, state) = match entry.first() {
                Some(b'?') => (field(2), FileState::Untracked),
                Some(b'u') => (field(11), FileState::Unmerged),
                Some(b'1') if entry.get(2) != Some(&b'.') => (field(9), FileState::Staged),
                Some(b'1') => (field(9), FileState::Changed),
                _ => continue,
            };
            let Some(path) = path.filter(|_| !paths.is_empty()) else { continue };
            let known = states.files.entry(path).or_insert(state);
            // A file that git does not look at can be staged, too. Its earlier state says more, and stays.
            if !matches!(known, FileState::Unwatched | FileState::OtherRepository) {
                *known = state;
            }
        }
        Ok(())
    }

    /// Returns those of some files that are not in git and that git ignores.
    fn ignored(&self, paths: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        // A path with a folder before it has no magic.
        let input: Vec<u8> = paths.iter().flat_map(|path| [HERE, *path, b"\0"].concat()).collect();
        // It ends with 1 if none is ignored.
        let call = UserCall::new(self).arguments(["check-ignore", "-z", "--stdin"]);
        let found = call.read_or(&input, &[0, 1])?;
        let found = found.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(HERE));
        Ok(found.map(<[u8]>::to_vec).collect())
    }
}

/// Divides paths so that each part fits into the arguments of one call.
fn chunks<'p>(paths: &[&'p [u8]]) -> Vec<Vec<&'p [u8]>> {
    let mut chunks: Vec<Vec<&[u8]>> = Vec::new();
    let mut left = 0_usize;
    for path in paths {
        let length = path.len() + 20;
        match chunks.last_mut().filter(|_| left >= length) {
            Some(chunk) => chunk.push(path),
            None => {
                chunks.push(vec![path]);
                left = ARGUMENT_BYTES;
            }
        }
        left = left.saturating_sub(length);
    }
    chunks
}

/// The folders above files, each looked at once.
struct ParentFolders<'r> {
    work_tree: &'r Path,
    known: BTreeMap<Vec<u8>, Option<FileState>>,
}

impl<'r> ParentFolders<'r> {
    fn new(work_tree: &'r Path) -> Self {
        Self { work_tree, known: BTreeMap::new() }
    }

    /// Returns why git takes no file from the folders above a path, if it takes none.
    fn obstacle(&mut self, path: &[u8]) -> Option<FileState> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends {
            let folder = &path[..end];
            let state = match self.known.get(folder) {
                Some(state) => *state,
                None => {
                    let disk = self.work_tree.join(platform::os_string(folder));
                    let is_link = disk.symlink_metadata().is_ok_and(|found| found.is_symlink());
                    let is_other = disk.join(".git").symlink_metadata().is_ok();
                    let state = match (is_link, is_other) {
                        (true, _) => Some(FileState::BehindLink),
                        (_, true) => Some(FileState::OtherRepository),
                        _ => None,
                    };
                    self.known.insert(folder.to_vec(), state);
                    state
                }
            };
            if state.is_some() {
                return state;
            }
        }
        None
    }
}
