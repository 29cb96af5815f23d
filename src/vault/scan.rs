//! Owns the walk over a vault: which files there are, with size and times (spec/obsidian.md 1.4).
//!
//! Opens no file. What could not be looked at is told apart from what is not there, so that nobody takes a folder
//! that cannot be read for an empty one.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Error, Result};
use crate::text::path::NotePath;

/// What to scan, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOptions {
    /// The folder to scan, as a path from the root; empty for the whole vault.
    pub below: String,
    /// Whether to go into folders.
    pub recursive: bool,
    /// How many threads share the work.
    pub threads: usize,
    /// A folder that is passed over with all that is in it, as a path from the root; empty for none.
    pub hidden: String,
}

impl Default for ScanOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { below: String::new(), recursive: true, threads: cores.clamp(2, 4), hidden: String::new() }
    }
}

/// A file of the vault as the file system describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// Where it is.
    pub path: NotePath,
    /// Its length in bytes.
    pub size: u64,
    /// When its content last changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When its content, name or rights last changed, in nanoseconds since 1970.
    pub ctime_ns: i64,
    /// The device it is on.
    pub device: u64,
    /// Its number on that device.
    pub inode: u64,
    /// Whether the path names a symbolic link; size, times and numbers are those of its target.
    pub symlink: bool,
}

/// Says which files a scan passes over.
pub type Pass<'a> = dyn Fn(&FileStat) -> bool + Sync + 'a;

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// The files, ordered by path; without those that were passed over.
    pub files: Vec<FileStat>,
    /// How many files were passed over.
    pub passed: usize,
    /// The folders that were listed, as they are reached on disk, in no order.
    pub folders: Vec<PathBuf>,
    /// What could not be looked at: the files at or below such a path must be taken to be as they were.
    pub incomplete: Vec<Incomplete>,
    /// What was left out on purpose, one sentence each.
    pub warnings: Vec<String>,
}

/// A place that could not be looked at.
#[derive(Debug)]
pub struct Incomplete {
    /// The path of the folder or file, from the root; empty for the root.
    pub prefix: String,
    /// Why.
    pub error: Error,
}

impl Incomplete {
    /// Says whether `path` is this place or lies below it.
    pub fn covers(&self, path: &NotePath) -> bool {
        let tail = path.as_str().strip_prefix(self.prefix.as_str());
        self.prefix.is_empty() || tail.is_some_and(|tail| tail.is_empty() || tail.starts_with('/'))
    }
}

/// A folder to list: its place on disk and its path in the vault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Folder {
    path: String,
    disk: PathBuf,
}

/// Lists the files of a vault, or of one folder of it; none where a scan of the whole vault would not go.
pub fn scan(root: &Path, options: &ScanOptions) -> Scan {
    scan_past(root, options, &|_| false)
}

/// As [`scan`], but only counts the files that `pass` says to pass over, so that memory grows with the others alone. It
/// is asked from several threads, once for each file.
pub fn scan_past(root: &Path, options: &ScanOptions, pass: &Pass<'_>) -> Scan {
    let mut scan = Scan::default();
    let is_visible = options.below.is_empty()
        || NotePath::from_disk(&options.below).is_some() && !lies_in(&options.below, &options.hidden);
    if !is_visible || leads_back(root, &options.below).unwrap_or(false) {
        return scan;
    }
    let disk = if options.below.is_empty() { root.to_owned() } else { root.join(&options.below) };
    let mut links = walk(vec![Folder { path: options.below.clone(), disk }], options, pass, &mut scan);
    let mut trees = Trees::of(root);
    // Links are followed in the order of their paths, so that of two with one target always the same is taken.
    while !links.is_empty() {
        let mut folders = Vec::new();
        for link in links {
            match fs::metadata(&link.disk) {
                Ok(target) if target.is_dir() && !options.recursive => {}
                Ok(target) if target.is_dir() => match trees.add(&link.disk, &target) {
                    Ok(true) => folders.push(link),
                    Ok(false) => scan.warnings.push(format!(
                        "{} is not followed: it links to a folder that is, holds or lies in one already scanned",
                        link.path
                    )),
                    Err(error) => scan.fail(link, error),
                },
                Ok(target) => {
                    let before = scan.files.len();
                    scan.file(&link.path, &target, true);
                    scan.pass_over(before, pass);
                }
                // The target may be away for the moment, as a drive is that is not mounted.
                Err(error) => scan.fail(link, error),
            }
        }
        links = walk(folders, options, pass, &mut scan);
    }
    scan.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    scan.incomplete.sort_by(|a, b| a.prefix.cmp(&b.prefix));
    scan.warnings.sort();
    scan
}

/// Looks at one file; `None` where a scan would not list it.
///
/// # Errors
/// `Io` where the file system refuses to say.
pub fn stat(root: &Path, path: &NotePath) -> Result<Option<FileStat>> {
    let disk = root.join(path.as_str());
    let look = || -> io::Result<Option<FileStat>> {
        let mut metadata = fs::symlink_metadata(&disk)?;
        let symlink = metadata.is_symlink();
        if symlink {
            metadata = fs::metadata(&disk)?;
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        let hidden = leads_back(root, path.folder())?;
        Ok((!hidden).then(|| file_stat(path.clone(), &metadata, symlink)))
    };
    match look() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        found => found.map_err(|error| Error::io("look at", path.as_str(), error)),
    }
}

/// Says whether a path is that of a folder, or lies below it; both are paths from the root, and no folder holds nothing.
pub(super) fn lies_in(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder).filter(|_| !folder.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Says whether a folder is reached through a link back into the vault, where no scan goes.
pub(super) fn leads_back(root: &Path, folder: &str) -> io::Result<bool> {
    let root = root.canonicalize()?;
    let plain = root.join(folder);
    let real = plain.canonicalize()?;
    Ok(real.starts_with(&root) && real != plain)
}

fn file_stat(path: NotePath, metadata: &Metadata, symlink: bool) -> FileStat {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    FileStat {
        path,
        size: metadata.len(),
        mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        device: metadata.dev(),
        inode: metadata.ino(),
        symlink,
    }
}

impl Scan {
    fn file(&mut self, path: &str, metadata: &Metadata, symlink: bool) {
        match NotePath::from_disk(path) {
            Some(path) if metadata.is_file() => self.files.push(file_stat(path, metadata, symlink)),
            _ => self.warnings.push(format!("{path} is skipped: it is no regular file")),
        }
    }

    fn fail(&mut self, place: Folder, error: io::Error) {
        let error = Error::io("look into", &place.disk, error);
        self.incomplete.push(Incomplete { prefix: place.path, error });
    }

    /// Drops those of the files listed last that are to be passed over.
    fn pass_over(&mut self, before: usize, pass: &Pass<'_>) {
        let listed = self.files.split_off(before);
        let count = listed.len();
        self.files.extend(listed.into_iter().filter(|file| !pass(file)));
        self.passed += count - (self.files.len() - before);
    }

    fn append(&mut self, mut other: Self) {
        self.passed += other.passed;
        self.files.append(&mut other.files);
        self.folders.append(&mut other.folders);
        self.incomplete.append(&mut other.incomplete);
        self.warnings.append(&mut other.warnings);
    }
}

/// The folders whose trees are scanned, by device and inode, and all folders above them.
struct Trees {
    roots: HashSet<(u64, u64)>,
    above: HashSet<(u64, u64)>,
}

impl Trees {
    fn of(root: &Path) -> Self {
        let mut trees = Self { roots: HashSet::new(), above: HashSet::new() };
        if let Ok(chain) = chain(root) {
            trees.roots.extend(chain.first());
            trees.above.extend(chain);
        }
        trees
    }

    /// Adds the tree that a link leads to, unless it overlaps with one of the others.
    fn add(&mut self, link: &Path, target: &Metadata) -> io::Result<bool> {
        let chain = chain(link)?;
        let overlaps =
            chain.iter().any(|id| self.roots.contains(id)) || self.above.contains(&identity(target));
        if !overlaps {
            self.roots.insert(identity(target));
            self.above.extend(chain);
        }
        Ok(!overlaps)
    }
}

/// Lists the identities of a folder and of all folders above it.
fn chain(folder: &Path) -> io::Result<Vec<(u64, u64)>> {
    folder.canonicalize()?.ancestors().map(|folder| Ok(identity(&fs::metadata(folder)?))).collect()
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Folders that wait to be listed, shared by the threads of a walk.
struct Queue {
    folders: Vec<Folder>,
    /// How many threads are listing a folder, and may yet add some.
    busy: usize,
}

/// Lists the folders and all below them into `scan`, and gives the symbolic links met, in order.
fn walk(folders: Vec<Folder>, options: &ScanOptions, pass: &Pass<'_>, scan: &mut Scan) -> BTreeSet<Folder> {
    let queue = Mutex::new(Queue { folders, busy: 0 });
    let ready = Condvar::new();
    let work = || {
        let (mut scan, mut links) = (Scan::default(), Vec::new());
        while let Some(folder) = next(&queue, &ready) {
            let mut inner = Vec::new();
            let before = scan.files.len();
            list(folder, &mut scan, &mut inner, &mut links);
            scan.pass_over(before, pass);
            inner.retain(|folder| !lies_in(&folder.path, &options.hidden));
            let mut queue = lock(&queue);
            if options.recursive {
                queue.folders.append(&mut inner);
            }
            queue.busy -= 1;
            drop(queue);
            ready.notify_all();
        }
        (scan, links)
    };
    let mut links = BTreeSet::new();
    thread::scope(|threads| {
        let others: Vec<_> = (1..options.threads).map(|_| threads.spawn(work)).collect();
        let own = work();
        // A thread that panicked would leave its folders out in silence, so the panic goes on here.
        let joined = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        for (part, found) in std::iter::once(own).chain(joined) {
            scan.append(part);
            links.extend(found);
        }
    });
    links
}

/// Takes a folder to list, and waits for one while others may add some; `None` once all is done.
fn next(queue: &Mutex<Queue>, ready: &Condvar) -> Option<Folder> {
    let mut queue = lock(queue);
    loop {
        if let Some(folder) = queue.folders.pop() {
            queue.busy += 1;
            return Some(folder);
        }
        if queue.busy == 0 {
            return None;
        }
        queue = ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lists one folder: files into `scan`, folders and symbolic links into their lists.
fn list(folder: Folder, scan: &mut Scan, folders: &mut Vec<Folder>, links: &mut Vec<Folder>) {
    scan.folders.push(folder.disk.clone());
    let result = fs::read_dir(&folder.disk).and_then(|entries| {
        for entry in entries {
            add(&entry?, &folder.path, scan, folders, links);
        }
        Ok(())
    });
    if let Err(error) = result {
        scan.fail(folder, error);
    }
}

fn add(entry: &DirEntry, parent: &str, scan: &mut Scan, folders: &mut Vec<Folder>, links: &mut Vec<Folder>) {
    let name = entry.file_name();
    if name.as_encoded_bytes().starts_with(b".") {
        return;
    }
    let Some(name) = name.to_str() else {
        scan.warnings.push(format!("{} is skipped: its name is no UTF-8", entry.path().display()));
        return;
    };
    let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
    let kind = match entry.file_type() {
        Ok(kind) => kind,
        Err(error) => {
            return scan.fail(Folder { path, disk: entry.path() }, error);
        }
    };
    if kind.is_dir() {
        folders.push(Folder { path, disk: entry.path() });
    } else if kind.is_symlink() {
        links.push(Folder { path, disk: entry.path() });
    } else if !kind.is_file() {
        scan.warnings.push(format!("{path} is skipped: it is no regular file"));
    } else {
        match entry.metadata() {
            Ok(metadata) => scan.file(&path, &metadata, false),
            // A file that went away between the two looks is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => scan.fail(Folder { path, disk: entry.path() }, error),
        }
    }
}
