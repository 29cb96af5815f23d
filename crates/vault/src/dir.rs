//! Directory handles: `openat`-style access in which no symbolic link is followed.
//!
//! For tests, `SIDENOTE_FAILPOINT=n` kills the process right before its n-th step: a file system change in this module, or a
//! statement that `share` sends to the database. `SIDENOTE_FAULT=n` lets the n-th file system change fail, `n-` also all later.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform::{Attributes, FileMetadata, HeldFile, OpenMode};
use sidenote_base::{parallel, platform, safe_open};
use sidenote_markdown::path::NotePath;

use crate::Vault;
use crate::symlinks::{LinkTarget, resolve_link};

/// The maximum number of folder handles that a [`DirTree`] keeps open.
const MAX_OPEN_DIRS: usize = 128;
/// The number of folder handles that a [`DirTree`] may keep open even if the limit is low.
const MIN_OPEN_DIRS: usize = 4;
/// The number of handles for which a [`DirTree`] is counted where the limit is low: those of its folders, and as many for the
/// files that it opens.
const HANDLES_PER_TREE: usize = 2 * MIN_OPEN_DIRS;

/// Returns the number of folder handles that a [`DirTree`] may keep open. All trees share half of the process's limit;
/// there are two trees more than threads.
fn folder_budget() -> usize {
    static BUDGET: OnceLock<usize> = OnceLock::new();
    let threads = parallel::core_count().max(parallel::WAITING_THREADS);
    *BUDGET.get_or_init(|| budget(platform::open_file_limit(), threads))
}

/// Divides the process's limit of open files, if there is one, among the trees.
fn budget(limit: Option<usize>, threads: usize) -> usize {
    (limit.unwrap_or(usize::MAX) / 2 / (threads + 2)).clamp(MIN_OPEN_DIRS, MAX_OPEN_DIRS)
}

/// Counts a step that is about to happen, such as a file system change, and kills the process at the one that the test chose.
pub fn failpoint() {
    static FAIL_AT: OnceLock<Option<u64>> = OnceLock::new();
    static DONE: AtomicU64 = AtomicU64::new(0);
    let fail_at = FAIL_AT.get_or_init(|| std::env::var("SIDENOTE_FAILPOINT").ok()?.parse().ok());
    if let Some(fail_at) = *fail_at
        && DONE.fetch_add(1, Ordering::SeqCst) + 1 == fail_at
    {
        platform::kill_this_process();
    }
}

/// Counts a file system change that is about to happen, and lets the one that the test chose fail or kill the process.
fn step() -> io::Result<()> {
    static FAULTS: OnceLock<Option<(u64, bool)>> = OnceLock::new();
    static DONE: AtomicU64 = AtomicU64::new(0);
    failpoint();
    let read = || {
        let text = std::env::var("SIDENOTE_FAULT").ok()?;
        let first = text.trim_end_matches('-');
        Some((first.parse().ok()?, first != text))
    };
    let Some((first, all)) = *FAULTS.get_or_init(read) else { return Ok(()) };
    let at = DONE.fetch_add(1, Ordering::SeqCst) + 1;
    if at == first || all && at > first { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

/// The content and metadata of a regular file.
#[derive(Debug)]
pub(crate) struct FileContents {
    /// The metadata.
    pub(crate) entry: FileMetadata,
    /// The content.
    pub(crate) bytes: Vec<u8>,
    /// The extended attributes.
    pub(crate) attributes: Attributes,
}

/// A handle of an open folder.
#[derive(Debug)]
pub struct Dir(platform::Dir);

impl From<platform::Dir> for Dir {
    fn from(handle: platform::Dir) -> Self {
        Self(handle)
    }
}

impl Dir {
    /// Opens a folder by a trusted path. Symbolic links in the path are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        platform::Dir::open(path).map(Self)
    }

    /// Opens a subfolder. A symbolic link is an error.
    pub(crate) fn open_dir(&self, name: &str) -> io::Result<Self> {
        self.0.open_dir(name.as_ref()).map(Self)
    }

    /// Opens a subfolder, and creates it if it is missing.
    pub fn open_or_create_dir(&self, name: &str) -> io::Result<Self> {
        match self.open_dir(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match self.create_dir(name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
                self.open_dir(name)
            }
            other => other,
        }
    }

    /// Creates a subfolder.
    pub(crate) fn create_dir(&self, name: &str) -> io::Result<()> {
        step()?;
        self.0.create_dir(name)
    }

    /// Returns the metadata of an entry; `None` if there is none. A symbolic link is not followed.
    pub fn entry(&self, name: &str) -> io::Result<Option<FileMetadata>> {
        self.0.entry(name)
    }

    /// Returns the number of the folder's device.
    pub(crate) fn device(&self) -> io::Result<u64> {
        self.0.device()
    }

    /// Checks that an entry is writable; for `.`, that entries can be created and removed.
    pub(crate) fn may_write(&self, name: &str) -> io::Result<()> {
        self.0.check_writable(name)
    }

    /// Lists the names of the entries, in no particular order.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        self.0.names()
    }

    /// Opens a regular file for reading; `InvalidInput` for anything else. Opening a pipe does not block.
    pub fn file(&self, name: &str) -> io::Result<File> {
        safe_open::regular(self.0.open_file(name.as_ref(), OpenMode::Read))
    }

    /// Reads a regular file.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.read_at_most(name, u64::MAX)
    }

    /// Reads a regular file of at most `max` bytes; `FileTooLarge` for more.
    pub fn read_at_most(&self, name: &str, max: u64) -> io::Result<Vec<u8>> {
        safe_open::read_open(self.file(name)?, max)
    }

    /// Reads a regular file with the metadata and attributes that a copy must keep.
    pub(crate) fn read_with_metadata(&self, name: &str) -> io::Result<FileContents> {
        let file = self.file(name)?;
        let (entry, attributes) = (platform::file_metadata(&file)?, Attributes::read(&file)?);
        Ok(FileContents { entry, bytes: safe_open::read_open(file, u64::MAX)?, attributes })
    }

    /// Creates a new file; an existing one is an error.
    pub fn create(&self, name: &str, mode: u32) -> io::Result<File> {
        step()?;
        self.0.open_file(name.as_ref(), OpenMode::CreateNew(mode))
    }

    /// Opens a file for reading and appending, and creates it if it is missing.
    pub fn create_missing(&self, name: &str, text: &str) -> io::Result<()> {
        if self.entry(name)?.is_some() {
            return Ok(());
        }
        match self.create(name, 0o666) {
            Ok(mut file) => file.write_all(text.as_bytes()),
            // Another process created it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens a file for appending, and creates it if it is not there.
    ///
    /// # Errors
    /// The error of the system, and a refusal of a file that has a second name.
    pub fn open_append(&self, name: &str) -> io::Result<File> {
        step()?;
        safe_open::writable(self.0.open_file(name.as_ref(), OpenMode::AppendOrCreate))
    }

    /// Opens a file for reading and writing, and creates it if it is missing.
    pub(crate) fn open_or_create(&self, name: &str) -> io::Result<File> {
        step()?;
        safe_open::writable(self.0.open_file(name.as_ref(), OpenMode::ReadWriteOrCreate(0o666)))
    }

    /// Holds what an entry is now, so that its blocks are freed when the handle is closed and not by a rename that replaces it.
    pub(crate) fn hold(&self, name: &str) -> Option<HeldFile> {
        self.0.hold(name)
    }

    /// Renames an entry and replaces the target.
    pub fn rename_replace(&self, name: &str, to: &Self, to_name: &str) -> io::Result<()> {
        step()?;
        self.0.rename_replace(name, &to.0, to_name)
    }

    /// Renames an entry; an existing target is an error.
    pub fn rename_no_replace(&self, name: &str, to: &Self, to_name: &str) -> io::Result<()> {
        step()?;
        self.0.rename_no_replace(name, &to.0, to_name)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        step()?;
        self.0.remove_file(name)
    }

    /// Removes an empty subfolder.
    pub(crate) fn remove_dir(&self, name: &str) -> io::Result<()> {
        step()?;
        self.0.remove_dir(name)
    }

    /// Flushes the entries of the folder to the disk.
    pub fn sync(&self) -> io::Result<()> {
        step()?;
        self.0.sync()
    }

    /// Flushes the content of a file to the disk.
    pub(crate) fn sync_file(&self, name: &str) -> io::Result<()> {
        self.0.sync_file(name)
    }

    /// Flushes the whole file system of the folder to the disk; `Unsupported` where there is no such call.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        step()?;
        self.0.sync_all()
    }
}

/// Copies permissions, owner and extended attributes of the replaced file to the new one.
pub(crate) fn copy_metadata(file: &File, replaced: &FileContents) -> io::Result<()> {
    replaced.attributes.copy_to(file, &replaced.entry, failpoint)
}

/// Splits a path into its folder, empty for the root, and its name.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A cache of open folder handles below a root.
#[derive(Debug)]
pub(crate) struct DirTree {
    root: Arc<Dir>,
    /// The canonical path of the root.
    path: PathBuf,
    /// Whether symbolic links to folders outside the vault are followed.
    follow_outside: bool,
    open: HashMap<String, Arc<Dir>>,
}

impl DirTree {
    /// Opens the root of a vault.
    pub(crate) fn open(vault: &Vault) -> Result<Self> {
        let path = vault.root().to_owned();
        let root = Dir::open(&path).map_err(|error| Error::io("open", &path, error))?;
        Ok(Self { root: Arc::new(root), path, follow_outside: vault.follows_outside(), open: HashMap::new() })
    }

    /// Closes all handles below the root. It must be called after a folder was renamed.
    pub(crate) fn close_all(&mut self) {
        self.open.clear();
    }

    /// Opens a folder by its path from the root, one component at a time; `None` if it does not exist.
    ///
    /// # Errors
    /// `Invalid` with the code `symlink` if a component is a symbolic link, unless it leads outside the vault and such
    /// links are followed; `Invalid` also if a component is not a folder.
    pub(crate) fn find_dir(&mut self, path: &str) -> Result<Option<Arc<Dir>>> {
        if path.is_empty() {
            return Ok(Some(Arc::clone(&self.root)));
        }
        if let Some(folder) = self.open.get(path) {
            return Ok(Some(Arc::clone(folder)));
        }
        let mut folder = Arc::clone(&self.root);
        let mut end = 0;
        for name in path.split('/') {
            end += name.len();
            let here = path.get(..end).unwrap_or(path);
            end += 1;
            if let Some(known) = self.open.get(here) {
                folder = Arc::clone(known);
                continue;
            }
            let child = match folder.open_dir(name) {
                Ok(child) => Arc::new(child),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => match self.outside(here) {
                    Some(outside) => Arc::new(outside),
                    None => return Err(open_dir_error(&folder, name, here, error)),
                },
            };
            if self.open.len() >= folder_budget() {
                self.open.clear();
            }
            self.open.insert(here.to_owned(), Arc::clone(&child));
            folder = child;
        }
        Ok(Some(folder))
    }

    /// Opens the folder outside the vault that a symbolic link leads to; `None` if the link is not followed. The resolved
    /// path is then opened without following a link.
    fn outside(&self, path: &str) -> Option<Dir> {
        let is_visible = NotePath::from_disk(path).is_some();
        if !self.follow_outside || !is_visible {
            return None;
        }
        let disk = self.path.join(path);
        let Ok(LinkTarget::Outside(real)) = resolve_link(&self.path, &disk) else { return None };
        // Through a folder that contains the vault, every file would have two paths.
        if !disk.is_symlink() || self.path.starts_with(&real) {
            return None;
        }
        safe_open::absolute_folder(&real).ok().map(Dir::from)
    }

    /// Opens a folder that must exist.
    ///
    /// # Errors
    /// `NotFound` if it does not exist, and the errors of [`DirTree::find_dir`].
    pub(crate) fn folder(&mut self, path: &str) -> Result<Arc<Dir>> {
        self.find_dir(path)?.ok_or_else(|| Error::not_found(format!("the folder {path} does not exist")))
    }

    /// Opens the parent folder of a path, and returns it with the name of the entry.
    pub(crate) fn parent<'a>(&mut self, path: &'a str) -> Result<(Arc<Dir>, &'a str)> {
        let (folder, name) = split_path(path);
        Ok((self.folder(folder)?, name))
    }

    /// Returns the metadata of a path; `None` if it does not exist.
    pub(crate) fn entry(&mut self, path: &str) -> Result<Option<FileMetadata>> {
        let (folder, name) = split_path(path);
        match self.find_dir(folder)? {
            Some(folder) => folder.entry(name).map_err(|error| Error::io("look at", path, error)),
            None => Ok(None),
        }
    }
}

/// Returns the error for a path component that could not be opened as a folder.
fn open_dir_error(parent: &Dir, name: &str, path: &str, error: io::Error) -> Error {
    match parent.entry(name) {
        Ok(Some(entry)) if entry.is_symlink() => symlink_error(path),
        Ok(Some(entry)) if !entry.is_dir() => Error::invalid(format!("{path} is not a folder")),
        _ => Error::io("open", path, error),
    }
}

/// Returns the error for a write through a symbolic link.
pub(crate) fn symlink_error(path: &str) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!("{path} is a symbolic link, and sidenote never writes through one (symlink)"),
    )
    .with_hint("change the file that the link leads to")
}

/// Removes a folder if it exists and is empty.
pub(crate) fn remove_if_empty(tree: &mut DirTree, path: &str) -> Result<()> {
    let (folder, name) = split_path(path);
    let Some(folder) = tree.find_dir(folder)? else { return Ok(()) };
    tree.close_all();
    match folder.remove_dir(name) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory
            ) =>
        {
            Err(Error::io("remove the folder", path, error))
        }
        _ => Ok(()),
    }
}

/// The minimum number of files for one thread.
pub(crate) const MIN_FILES_PER_THREAD: usize = 32;

/// Runs `work` on every item, in parallel if there are many, each thread with its own [`DirTree`]. All items are tried;
/// the first error is returned.
pub(crate) fn parallel_in_tree<T: Sync, R: Send>(
    vault: &Vault,
    items: &[T],
    work: impl Fn(&mut DirTree, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let done = parallel::map(items, MIN_FILES_PER_THREAD, || DirTree::open(vault), in_tree(work));
    done.into_iter().collect()
}

/// Does the same, for work that mostly waits for the disk. A rename that replaces a file frees its blocks, and some file systems
/// tell the disk so before the call returns.
pub(crate) fn waiting_in_tree<T: Sync, R: Send>(
    vault: &Vault,
    items: &[T],
    work: impl Fn(&mut DirTree, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let handles = platform::open_file_limit().unwrap_or(usize::MAX) / 2;
    let most_threads = (handles / HANDLES_PER_TREE).clamp(1, parallel::WAITING_THREADS);
    let bounds = (MIN_FILES_PER_THREAD, most_threads);
    let done = parallel::map_waiting(items, bounds, || DirTree::open(vault), in_tree(work));
    done.into_iter().collect()
}

/// Returns `work` for a tree that may have failed to open.
fn in_tree<T, R>(
    work: impl Fn(&mut DirTree, &T) -> Result<R> + Sync,
) -> impl Fn(&mut Result<DirTree>, &T) -> Result<R> + Sync {
    move |tree, item| match tree {
        Ok(tree) => work(tree, item),
        Err(error) => Err(Error::new(error.kind(), error.message())),
    }
}
