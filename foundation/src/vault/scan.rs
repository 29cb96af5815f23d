//! The directory walk of a vault: its files with size and times (spec/obsidian.md 1.4).
//!
//! No file is opened. A path that cannot be read is reported as a gap, so that it is never treated as deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use crate::error::{Error, Result};
use crate::platform::{self, FileKind, FileMetadata, ListedEntry};
use crate::text::path::{MAX_SEGMENTS, NotePath, is_too_deep};
use crate::vault::Vault;
use crate::vault::symlinks::{HOW_TO_FOLLOW, LinkTarget, resolve_link};

/// Options of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOptions {
    /// The folder to scan, as a path from the root; empty for the whole vault.
    pub below: String,
    /// Whether subfolders are scanned.
    pub recursive: bool,
    /// The number of threads.
    pub threads: usize,
    /// A folder that is skipped with everything in it, as a path from the root; empty for none.
    pub hidden: String,
    /// Whether symbolic links that lead out of the vault are followed.
    pub follow_outside: bool,
}

/// A symbolic link to a folder outside the vault that a scan followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedLink {
    /// The link, as a path from the root.
    pub path: String,
    /// The canonical path of the folder that it leads to.
    pub target: PathBuf,
}

impl Default for ScanOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (below, hidden) = (String::new(), String::new());
        Self { below, recursive: true, threads: cores.clamp(2, 4), hidden, follow_outside: false }
    }
}

/// A file of the vault with its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// The path of the file.
    pub path: NotePath,
    /// The length in bytes.
    pub size: u64,
    /// The modification time (mtime) in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// The time of the last change of content, name or permissions (ctime) in nanoseconds since 1970.
    pub ctime_ns: i64,
    /// The device number.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
    /// Whether the path is a symbolic link. Size, times and numbers are those of its target.
    pub symlink: bool,
}

/// The content of one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirListing {
    /// The path from the root; empty for the root.
    pub path: String,
    /// The files in it, links to files included, ordered by path.
    pub files: Vec<FileStat>,
    /// The paths of the folders in it, in order, without links and without the hidden folder.
    pub folders: Vec<String>,
    /// Whether the listing is incomplete because reading the folder failed.
    pub is_incomplete: bool,
}

/// The paths that a scan could not read or skipped.
#[derive(Debug, Default)]
pub struct ScanGaps {
    /// The error of each path that could not be read, by path from the root; empty for the root itself. Files at or below
    /// these paths must be treated as unchanged.
    pub unreadable: BTreeMap<String, Error>,
    /// One sentence for each path that was skipped on purpose.
    pub warnings: Vec<String>,
    /// The symbolic links to folders outside the vault that were followed.
    pub followed: Vec<FollowedLink>,
}

impl ScanGaps {
    /// Says whether a file or folder is at or below a path that could not be read.
    pub fn cover(&self, path: &str) -> bool {
        let above = path.match_indices('/').filter_map(|(slash, _)| path.get(..slash));
        ["", path].into_iter().chain(above).any(|place| self.unreadable.contains_key(place))
    }

    fn fail(&mut self, place: &str, disk: &Path, error: io::Error) {
        self.unreadable.insert(place.to_owned(), Error::io("look into", disk, error));
    }
}

/// The result of a scan.
#[derive(Debug, Default)]
pub struct Scan {
    /// The files, ordered by path.
    pub files: Vec<FileStat>,
    /// The folders that were listed, in no particular order.
    pub folders: Vec<String>,
    /// The paths that are missing from the result.
    pub gaps: ScanGaps,
}

/// Lists the files of a vault, or of one folder of it. The result is empty for a folder that a scan of the whole vault
/// would skip.
pub fn scan(root: &Path, options: &ScanOptions) -> Scan {
    let mut scan = Scan::default();
    let Ok(gaps) = scan_each(root, options, |listing| {
        scan.files.extend(listing.files);
        scan.folders.push(listing.path);
        Ok::<_, Infallible>(())
    });
    scan.gaps = gaps;
    scan.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    scan
}

/// Scans like [`scan`], but passes each folder to `visit` as it is listed. A folder comes before its subfolders; there
/// is no other order. Only a few listings are in memory at a time.
///
/// # Errors
/// The errors of `visit`, which end the scan.
pub fn scan_each<E>(
    root: &Path,
    options: &ScanOptions,
    mut visit: impl FnMut(DirListing) -> Result<(), E>,
) -> Result<ScanGaps, E> {
    let mut gaps = ScanGaps::default();
    let is_visible = options.below.is_empty()
        || NotePath::from_disk(&options.below).is_some() && !lies_in(&options.below, &options.hidden);
    if !is_visible || leads_back(root, &options.below).unwrap_or(false) {
        return Ok(gaps);
    }
    let real = platform::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let mut trees = ScanRoots::of(root);
    let mut folders = vec![options.below.clone()];
    while !folders.is_empty() {
        let links = walk(root, &real, std::mem::take(&mut folders), options, &mut gaps, &mut visit)?;
        // Links are followed in path order, so that the choice among links to one target is stable.
        for link in links {
            let disk = on_disk(root, &link);
            let led = resolve_link(&real, &disk);
            if !options.follow_outside && matches!(led, Ok(LinkTarget::Outside(_))) {
                gaps.warnings
                    .push(format!("{link} is not followed: it leads outside the vault; {HOW_TO_FOLLOW}"));
                continue;
            }
            match led.and_then(|led| Ok((led, trees.add(&disk)?))) {
                Ok((LinkTarget::Outside(target), true)) => {
                    folders.push(link.clone());
                    gaps.followed.push(FollowedLink { path: link, target });
                }
                // A folder of the vault is listed under its own path.
                Ok((LinkTarget::Inside(_), _)) => {}
                Ok(_) => gaps.warnings.push(format!(
                    "{link} is not followed: it links to a folder that overlaps one that is already scanned"
                )),
                Err(error) => gaps.fail(&link, &disk, error),
            }
        }
    }
    gaps.warnings.sort();
    Ok(gaps)
}

/// Reads the metadata of one file; `None` if a scan would not list it.
///
/// # Errors
/// `Io` if the state of the file is unknown, because the file system returned an error or a symbolic link on the way
/// is dangling. The caller must treat the file as unchanged.
pub fn stat(vault: &Vault, path: &NotePath) -> Result<Option<FileStat>> {
    let root = vault.root();
    let disk = root.join(path.as_str());
    let look = || -> io::Result<Option<FileStat>> {
        let mut metadata = match platform::entry_metadata(&disk) {
            Err(error) if is_absence(&error) => {
                // The target of a link may be missing only for the moment, for example on a drive that is not mounted.
                return if has_dangling_folder(root, path.folder()) { Err(error) } else { Ok(None) };
            }
            found => found?,
        };
        let symlink = metadata.is_symlink();
        if symlink {
            metadata = platform::metadata(&disk)?;
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        let is_listed = match vault.lists_folder(path.folder()) {
            // The file was removed between the two calls.
            Err(error) if is_absence(&error) => false,
            listed => listed?,
        } && (!symlink || leaves_vault(root, &disk, vault.follows_outside())?.is_none());
        Ok(is_listed.then(|| file_stat(path.clone(), &metadata, symlink)))
    };
    look().map_err(|error| Error::io("look at", path.as_str(), error))
}

/// Tells under which spelling files and folders are listed. A file system that does not distinguish case opens a file by
/// every spelling of its name, but has it under one. Each folder is listed once.
#[derive(Debug)]
pub struct ListedNames<'a> {
    root: &'a Path,
    folders: HashMap<String, HashSet<OsString>>,
}

impl<'a> ListedNames<'a> {
    /// Creates the state for a vault, before any folder is listed.
    pub fn new(vault: &'a Vault) -> Self {
        Self { root: vault.root(), folders: HashMap::new() }
    }

    /// Says whether a path is listed in exactly this spelling, each folder on the way included.
    ///
    /// # Errors
    /// System errors, but a missing folder lists nothing.
    pub fn has(&mut self, path: &NotePath) -> io::Result<bool> {
        let mut folder = "";
        let ends = path.as_str().match_indices('/').map(|(slash, _)| slash).chain([path.as_str().len()]);
        for end in ends {
            let below = path.as_str().get(..end).unwrap_or_default();
            let name = below.get(folder.len()..).unwrap_or_default().trim_start_matches('/');
            if !self.names(folder)?.contains(OsStr::new(name)) {
                return Ok(false);
            }
            folder = below;
        }
        Ok(true)
    }

    fn names(&mut self, folder: &str) -> io::Result<&HashSet<OsString>> {
        if !self.folders.contains_key(folder) {
            let names = match platform::read_dir(&on_disk(self.root, folder)) {
                Err(error) if is_absence(&error) => HashSet::new(),
                entries => {
                    entries?.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<_>>()?
                }
            };
            self.folders.insert(folder.to_owned(), names);
        }
        Ok(self.folders.entry(folder.to_owned()).or_default())
    }
}

/// Says whether a path is only another spelling of a second one: they differ in case alone, and no folder lists the
/// first. A file system that does not distinguish case opens the file by both.
///
/// # Errors
/// `Io` if a folder cannot be listed.
pub fn is_other_spelling(vault: &Vault, path: &NotePath, of: &NotePath) -> Result<bool> {
    if path == of || path.key() != of.key() {
        return Ok(false);
    }
    let listed = ListedNames::new(vault).has(path);
    listed.map(|listed| !listed).map_err(|error| Error::io("look for", path.as_str(), error))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Says whether a folder or one of its parents is a dangling symbolic link.
fn has_dangling_folder(root: &Path, folder: &str) -> bool {
    let above = folder.match_indices('/').filter_map(|(slash, _)| folder.get(..slash));
    let mut ways = above.chain(Some(folder).filter(|folder| !folder.is_empty())).map(|way| root.join(way));
    ways.find(|way| std::fs::metadata(way).is_err()).is_some_and(|way| way.is_symlink())
}

/// Returns the reason why a link to a file is not followed; `None` if it is followed.
fn leaves_vault(root: &Path, link: &Path, follow_outside: bool) -> io::Result<Option<String>> {
    Ok(match resolve_link(root, link)? {
        LinkTarget::Outside(_) if !follow_outside => {
            Some(format!("it leads outside the vault; {HOW_TO_FOLLOW}"))
        }
        LinkTarget::Hidden => Some("it leads to a hidden folder of the vault".to_owned()),
        _ => None,
    })
}

/// Says whether a path is `folder` or is below it. Both are paths from the root; an empty `folder` contains nothing.
pub(super) fn lies_in(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder).filter(|_| !folder.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Says whether a folder is reached through a link back into the vault, which no scan follows.
pub(super) fn leads_back(root: &Path, folder: &str) -> io::Result<bool> {
    let root = platform::canonicalize(root)?;
    let plain = root.join(folder);
    let real = platform::canonicalize(&plain)?;
    Ok(real.starts_with(&root) && real != plain)
}

/// Returns the disk path of a folder from its path relative to the root.
pub(super) fn on_disk(root: &Path, folder: &str) -> PathBuf {
    if folder.is_empty() { root.to_owned() } else { root.join(folder) }
}

fn file_stat(path: NotePath, metadata: &FileMetadata, symlink: bool) -> FileStat {
    FileStat {
        path,
        size: metadata.size,
        mtime_ns: metadata.modified_ns(),
        ctime_ns: metadata.changed_ns(),
        device: metadata.device,
        inode: metadata.inode,
        symlink,
    }
}

/// The roots of the scanned trees and all their ancestors, by device and inode.
struct ScanRoots {
    roots: HashSet<(u64, u64)>,
    above: HashSet<(u64, u64)>,
}

impl ScanRoots {
    fn of(root: &Path) -> Self {
        let mut trees = Self { roots: HashSet::new(), above: HashSet::new() };
        if let Ok(chain) = chain(root) {
            trees.roots.extend(chain.first());
            trees.above.extend(chain);
        }
        trees
    }

    /// Adds the tree that a link leads to, unless it overlaps another tree.
    fn add(&mut self, link: &Path) -> io::Result<bool> {
        let chain = chain(link)?;
        let overlaps = chain.iter().any(|id| self.roots.contains(id))
            || chain.first().is_some_and(|target| self.above.contains(target));
        if !overlaps {
            self.roots.extend(chain.first());
            self.above.extend(chain);
        }
        Ok(!overlaps)
    }
}

/// Lists device and inode of a folder and of all its ancestors.
fn chain(folder: &Path) -> io::Result<Vec<(u64, u64)>> {
    let identity = |folder: &Path| platform::metadata(folder).map(|metadata| metadata.id());
    platform::canonicalize(folder)?.ancestors().map(identity).collect()
}

/// The folders that wait to be listed, shared by the threads of a walk.
struct WalkQueue {
    folders: Vec<String>,
    /// The number of threads that are listing a folder and may add more.
    busy: usize,
}

/// Counts a thread as busy until it is dropped, so that the other threads wait for it even if it panics.
struct BusyGuard<'a> {
    queue: &'a Mutex<WalkQueue>,
    ready: &'a Condvar,
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        lock(self.queue).busy -= 1;
        self.ready.notify_all();
    }
}

/// The capacity of the channel of listings.
const CHANNEL_CAPACITY: usize = 4;

/// Lists the folders and all their subfolders for `visit`, and returns the links to folders in path order.
fn walk<E>(
    root: &Path,
    real: &Path,
    folders: Vec<String>,
    options: &ScanOptions,
    gaps: &mut ScanGaps,
    visit: &mut impl FnMut(DirListing) -> Result<(), E>,
) -> Result<BTreeSet<String>, E> {
    let queue = Mutex::new(WalkQueue { folders, busy: 0 });
    let ready = Condvar::new();
    let work = |listings: SyncSender<ListedDir>| {
        while let Some(folder) = next(&queue, &ready) {
            let _busy = BusyGuard { queue: &queue, ready: &ready };
            let listed = list(root, real, folder, options);
            let inner = if options.recursive { listed.listing.folders.clone() } else { Vec::new() };
            let is_wanted = listings.send(listed).is_ok();
            let mut queue = lock(&queue);
            if is_wanted {
                // The queue is a stack: the last folder is taken first.
                queue.folders.extend(inner.into_iter().rev());
            } else {
                queue.folders.clear();
            }
        }
    };
    // The scope propagates a panic of a thread. Without that, its folders would be missing silently.
    thread::scope(|threads| {
        let (sender, listings) = sync_channel(CHANNEL_CAPACITY);
        for _ in 0..options.threads.max(1) {
            let sender = sender.clone();
            threads.spawn(|| work(sender));
        }
        drop(sender);
        let mut links = BTreeSet::new();
        for mut listed in listings {
            links.extend(listed.links);
            gaps.unreadable.append(&mut listed.gaps.unreadable);
            gaps.warnings.append(&mut listed.gaps.warnings);
            visit(listed.listing)?;
        }
        Ok(links)
    })
}

/// Takes the next folder to list, and waits while busy threads may add more; `None` once all folders are listed.
fn next(queue: &Mutex<WalkQueue>, ready: &Condvar) -> Option<String> {
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

fn lock(queue: &Mutex<WalkQueue>) -> MutexGuard<'_, WalkQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listed folder with its links and gaps.
struct ListedDir {
    listing: DirListing,
    /// The paths of the links to folders in it.
    links: Vec<String>,
    gaps: ScanGaps,
}

/// Lists one folder; `real` is the canonical root.
fn list(root: &Path, real: &Path, path: String, options: &ScanOptions) -> ListedDir {
    let disk = on_disk(root, &path);
    let listing = DirListing { path, ..DirListing::default() };
    let mut listed = ListedDir { listing, links: Vec::new(), gaps: ScanGaps::default() };
    let end = platform::read_dir(&disk).and_then(|entries| {
        for entry in entries {
            listed.add(&entry?, real, options);
        }
        Ok(())
    });
    let ListedDir { listing, links, gaps } = &mut listed;
    if let Err(error) = end {
        gaps.fail(&listing.path, &disk, error);
        listing.is_incomplete = true;
    }
    if !options.recursive {
        links.clear();
    }
    listing.folders.retain(|folder| !lies_in(folder, &options.hidden));
    listing.folders.sort_unstable();
    listing.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // A folder that changes while it is read may return a name twice.
    listing.folders.dedup();
    listing.files.dedup_by(|a, b| a.path == b.path);
    listed
}

impl ListedDir {
    /// Adds one directory entry.
    fn add(&mut self, entry: &ListedEntry, root: &Path, options: &ScanOptions) {
        let Self { listing, links, gaps } = self;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            return;
        }
        let Some(name) = name.to_str() else {
            gaps.warnings.push(format!("{} is skipped: its name is not UTF-8", entry.path().display()));
            return;
        };
        let path = if listing.path.is_empty() { name.to_owned() } else { format!("{}/{name}", listing.path) };
        let kind = match entry.kind() {
            Ok(kind) => kind,
            Err(error) => return gaps.fail(&path, &entry.path(), error),
        };
        let too_deep =
            || format!("{path} is skipped: it is nested in more than {} folders", MAX_SEGMENTS - 1);
        if kind == FileKind::Dir {
            // The path of an entry in it has one more component.
            if is_too_deep(&format!("{path}/")) {
                return gaps.warnings.push(too_deep());
            }
            return listing.folders.push(path);
        }
        let symlink = kind == FileKind::Symlink;
        match if symlink { platform::metadata(&entry.path()) } else { entry.metadata() } {
            Ok(metadata) if symlink && metadata.is_dir() && is_too_deep(&format!("{path}/")) => {
                gaps.warnings.push(too_deep());
            }
            Ok(metadata) if symlink && metadata.is_dir() => links.push(path),
            Ok(metadata) if symlink && metadata.is_file() => {
                match leaves_vault(root, &entry.path(), options.follow_outside) {
                    Ok(None) => listing
                        .files
                        .extend(NotePath::from_disk(&path).map(|path| file_stat(path, &metadata, true))),
                    Ok(Some(why)) => gaps.warnings.push(format!("{path} is not read: {why}")),
                    Err(error) => gaps.fail(&path, &entry.path(), error),
                }
            }
            Ok(metadata) => match NotePath::from_disk(&path).filter(|_| metadata.is_file()) {
                Some(path) => listing.files.push(file_stat(path, &metadata, false)),
                None => gaps.warnings.push(format!("{path} is skipped: it is not a regular file")),
            },
            // A file that was removed between the two calls is gone. The target of a link may be missing only for the
            // moment, for example on a drive that is not mounted.
            Err(error) if !symlink && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => gaps.fail(&path, &entry.path(), error),
        }
    }
}
