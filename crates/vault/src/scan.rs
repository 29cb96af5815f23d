//! The directory walk of a vault: its files with size and times (docs/spec/obsidian.md 1.4).
//!
//! No file is opened. A path that cannot be read is reported as a gap, so that it is never treated as deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use sidenote_base::clock::is_racy;
use sidenote_base::error::{Error, Result};
use sidenote_base::parallel::start_some;
use sidenote_base::platform;
use sidenote_base::platform::{FileKind, FileMetadata, FolderState, ListedEntry, ListedFolder};
use sidenote_markdown::path::{MAX_SEGMENTS, NotePath, is_too_deep};

use crate::Vault;
use crate::below::lies_in;
use crate::fence::Fence;
use crate::folder_fingerprint::{FolderFingerprint, KnownFolders};
use crate::folder_listings::FolderListing;
use crate::symlinks::{HOW_TO_FOLLOW, LinkTarget, resolve_link};

/// Options of a scan.
#[derive(Debug, Clone)]
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
    /// The files that exist for the reader; all without it.
    pub fence: Option<Arc<Fence>>,
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
        Self {
            below,
            recursive: true,
            threads: cores.clamp(2, 4),
            hidden,
            follow_outside: false,
            fence: None,
        }
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
    /// Whether the path is a symbolic link. Size and times are those of its target.
    pub symlink: bool,
}

/// The content of one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirListing {
    /// The path from the root; empty for the root.
    pub path: String,
    /// The files in it, links to files included, ordered by path; empty if they are unchanged.
    pub files: Vec<FileStat>,
    /// The number of files that are left out, because the fingerprint of the folder is the known one.
    pub unchanged: usize,
    /// The paths of the folders in it, in order, without links and without the hidden folder.
    pub folders: Vec<String>,
    /// Whether the listing is incomplete because reading the folder failed.
    pub is_incomplete: bool,
    /// The entries, if they are kept for the next scan or come from the last one.
    pub entries: ListedEntries,
}

/// Where the entries of a folder come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListedEntries {
    /// The folder was listed, and its entries are not kept: nothing would tell whether they changed.
    #[default]
    Unkept,
    /// The folder was listed, and these entries can be kept.
    Fresh(FolderListing),
    /// The last scan listed them.
    FromLastScan,
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
    let Ok(gaps) = scan_each(root, options, None, |listing| {
        scan.files.extend(listing.files);
        scan.folders.push(listing.path);
        Ok::<_, Infallible>(())
    });
    scan.gaps = gaps;
    scan.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    scan
}

/// Scans like [`scan`], but passes each folder to `visit` as it is listed. A folder comes before its subfolders; there
/// is no other order. Only a few listings are in memory at a time. The files of a folder whose fingerprint is `known` are
/// left out.
///
/// # Errors
/// The errors of `visit`, which end the scan.
pub fn scan_each<E>(
    root: &Path,
    options: &ScanOptions,
    known: Option<&KnownFolders<'_>>,
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
        let context = WalkContext { root, real: &real, options, known };
        let links = walk(&context, std::mem::take(&mut folders), &mut gaps, &mut visit)?;
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
/// Those of [`ListedFolders::stat`].
pub fn stat(vault: &Vault, path: &NotePath) -> Result<Option<FileStat>> {
    ListedFolders::default().stat(vault, path)
}

/// Tells which files a scan would list, and looks at each folder once.
#[derive(Debug, Default)]
pub struct ListedFolders(HashMap<String, bool>);

impl ListedFolders {
    /// Reads the metadata of one file; `None` if a scan would not list it.
    ///
    /// # Errors
    /// `Io` if the state of the file is unknown, because the file system returned an error or a symbolic link on the way
    /// is dangling. The caller must treat the file as unchanged.
    pub fn stat(&mut self, vault: &Vault, path: &NotePath) -> Result<Option<FileStat>> {
        self.look(vault, path).map_err(|error| Error::io("look at", path.as_str(), error))
    }

    fn look(&mut self, vault: &Vault, path: &NotePath) -> io::Result<Option<FileStat>> {
        let root = vault.root();
        let disk = root.join(path.as_str());
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
        let is_listed = match self.lists(vault, path.folder()) {
            // The file was removed between the two calls.
            Err(error) if is_absence(&error) => false,
            listed => listed?,
        } && (!symlink || leaves_vault(root, &disk, vault.follows_outside())?.is_none());
        Ok(is_listed.then(|| file_stat(path.clone(), &metadata, symlink)))
    }

    /// Says whether a scan lists the files of a folder.
    fn lists(&mut self, vault: &Vault, folder: &str) -> io::Result<bool> {
        if let Some(known) = self.0.get(folder) {
            return Ok(*known);
        }
        let lists = vault.lists_folder(folder)?;
        self.0.insert(folder.to_owned(), lists);
        Ok(lists)
    }
}

/// Finds the spelling under which files and folders are listed. A file system that does not distinguish case opens a
/// file by every spelling of its name, but lists it under one. Each folder is listed once.
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
                entries => entries?
                    .map(|entry| entry.map(|entry| entry.name().to_owned()))
                    .collect::<io::Result<_>>()?,
            };
            self.folders.insert(folder.to_owned(), names);
        }
        Ok(self.folders.entry(folder.to_owned()).or_default())
    }
}

/// Returns whether a path is only another spelling of a second one: they differ only in case, and no folder lists the
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
    let mut context = above.chain(Some(folder).filter(|folder| !folder.is_empty())).map(|way| root.join(way));
    context.find(|way| std::fs::metadata(way).is_err()).is_some_and(|way| way.is_symlink())
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

/// The capacity of the channel of listings. The threads that list go on while the paths of the index are checked.
const CHANNEL_CAPACITY: usize = 256;

/// What the threads of a walk share.
struct WalkContext<'a> {
    root: &'a Path,
    /// The canonical root.
    real: &'a Path,
    options: &'a ScanOptions,
    known: Option<&'a KnownFolders<'a>>,
}

/// Lists the folders and all their subfolders for `visit`, and returns the links to folders in path order.
fn walk<E>(
    context: &WalkContext<'_>,
    folders: Vec<String>,
    gaps: &mut ScanGaps,
    visit: &mut impl FnMut(DirListing) -> Result<(), E>,
) -> Result<BTreeSet<String>, E> {
    let queue = Mutex::new(WalkQueue { folders, busy: 0 });
    let ready = Condvar::new();
    let work = |listings: SyncSender<ListedDir>| {
        while let Some(folder) = next(&queue, &ready) {
            let _busy = BusyGuard { queue: &queue, ready: &ready };
            let listed = list(context, folder);
            let inner = if context.options.recursive { listed.listing.folders.clone() } else { Vec::new() };
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
        let start = |_| {
            let sender = sender.clone();
            thread::Builder::new().spawn_scoped(threads, || work(sender)).map(drop)
        };
        if let Err(error) = start_some(context.options.threads, start) {
            // Without a thread no folder can be listed now.
            for folder in std::mem::take(&mut lock(&queue).folders) {
                gaps.fail(&folder, &on_disk(context.root, &folder), io::Error::from(error.kind()));
            }
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
    /// The names of the files, one after the other.
    names: String,
    files: Vec<ListedFile>,
    /// Whether an entry is not there, or is of another kind than the list of entries says.
    is_other: bool,
}

/// A file of a folder that is being listed.
struct ListedFile {
    /// Where its name begins and ends among the names.
    name: (usize, usize),
    metadata: FileMetadata,
    symlink: bool,
}

/// Lists one folder.
fn list(context: &WalkContext<'_>, path: String) -> ListedDir {
    let WalkContext { root, options, known, .. } = *context;
    let disk = on_disk(root, &path);
    let mut listed = ListedDir::new(path);
    let end = listed.add_entries(&disk, context);
    let is_whole = end.is_ok();
    if let Err(error) = end {
        listed.gaps.fail(&listed.listing.path, &disk, error);
        listed.listing.is_incomplete = true;
    }
    if !options.recursive {
        listed.links.clear();
    }
    let folders = &mut listed.listing.folders;
    folders.retain(|folder| !lies_in(folder, &options.hidden));
    folders.sort_unstable();
    // A folder that changes while it is read may return a name twice.
    folders.dedup();
    if is_whole && known.is_some_and(|known| listed.is_known(known)) {
        listed.listing.unchanged = listed.files.len();
        (listed.names, listed.files) = (String::new(), Vec::new());
    } else {
        listed.add_files();
    }
    listed
}

impl ListedDir {
    fn new(path: String) -> Self {
        Self {
            listing: DirListing { path, ..DirListing::default() },
            links: Vec::new(),
            gaps: ScanGaps::default(),
            names: String::new(),
            files: Vec::new(),
            is_other: false,
        }
    }

    fn path_of(&self, name: &str) -> String {
        if self.listing.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.listing.path) }
    }

    /// Says whether the files have the fingerprint that is known of the folder.
    fn is_known(&self, known: &KnownFolders<'_>) -> bool {
        let Some(Some(wanted)) = known.fingerprints.get(&self.listing.path) else { return false };
        let mut found = FolderFingerprint::default();
        for file in &self.files {
            let name = self.names.get(file.name.0..file.name.1).unwrap_or_default();
            let is_excluded = known.is_excluded.is_some_and(|is_excluded| {
                NotePath::from_disk(&self.path_of(name)).is_some_and(|path| is_excluded(&path))
            });
            let times = (file.metadata.modified_ns(), file.metadata.changed_ns());
            found.add(name, file.metadata.size, times, is_excluded);
        }
        found == *wanted
    }

    /// Adds the files to the listing.
    fn add_files(&mut self) {
        let mut files = Vec::with_capacity(self.files.len());
        for file in std::mem::take(&mut self.files) {
            let path = self.path_of(self.names.get(file.name.0..file.name.1).unwrap_or_default());
            match NotePath::from_disk(&path) {
                Some(path) => files.push(file_stat(path, &file.metadata, file.symlink)),
                None if file.symlink => {}
                None => self.gaps.warnings.push(format!("{path} is skipped: it is not a regular file")),
            }
        }
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        self.listing.files = files;
    }

    fn keep(&mut self, name: &str, metadata: FileMetadata, symlink: bool) {
        let start = self.names.len();
        self.names.push_str(name);
        self.files.push(ListedFile { name: (start, self.names.len()), metadata, symlink });
    }

    /// Adds the entries of the folder: those of the last scan, if it is unchanged since.
    fn add_entries(&mut self, disk: &Path, context: &WalkContext<'_>) -> io::Result<()> {
        let WalkContext { real, options, known, .. } = *context;
        let folder = ListedFolder::open(disk)?;
        let state = known.and_then(|_| folder.state());
        let last = known.zip(state).and_then(|(known, state)| known.listings.get(&self.listing.path, state));
        if let Some(last) = last {
            for (name, kind) in last.entries() {
                let entry = folder.entry(name, kind)?;
                // What is listed as a file is looked at anyway.
                if kind != FileKind::File {
                    self.is_other |= entry.metadata().map_or(true, |found| found.kind != kind);
                }
                self.add(&entry, real, options);
            }
            if !self.is_other {
                self.listing.entries = ListedEntries::FromLastScan;
                return Ok(());
            }
            // Its entries are others, whatever its times say.
            *self = Self::new(std::mem::take(&mut self.listing.path));
        }
        // The state is read before the entries, so that any later change gives the folder another one.
        let is_settled = |state: &FolderState| !is_racy(state.modified_ns(), state.changed_ns());
        let mut fresh = state.filter(is_settled).map(FolderListing::new);
        for entry in folder.entries()? {
            let entry = entry?;
            self.add(&entry, real, options);
            if entry.name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            match (entry.name().to_str(), entry.kind()) {
                (Some(name), Ok(kind)) => fresh.iter_mut().for_each(|fresh| fresh.push(name, kind)),
                _ => fresh = None,
            }
        }
        self.listing.entries = fresh.map_or(ListedEntries::Unkept, ListedEntries::Fresh);
        Ok(())
    }

    /// Adds one directory entry.
    fn add(&mut self, entry: &ListedEntry, root: &Path, options: &ScanOptions) {
        let name = entry.name();
        if name.as_encoded_bytes().starts_with(b".") {
            return;
        }
        // Nothing is said of what does not exist for the reader.
        let exists = |fence: &Arc<Fence>| {
            let path = self.path_of(&name.to_string_lossy());
            if entry.kind().is_ok_and(|kind| kind == FileKind::Dir) {
                fence.may_hold(&path)
            } else {
                fence.may_show(&path)
                    || fence.may_hold(&path) && entry.kind().is_ok_and(|kind| kind == FileKind::Symlink)
            }
        };
        if !options.fence.as_ref().is_none_or(exists) {
            return;
        }
        let Some(name) = name.to_str() else {
            let skipped = format!("{} is skipped: its name is not UTF-8", entry.path().display());
            return self.gaps.warnings.push(skipped);
        };
        let kind = match entry.kind() {
            Ok(kind) => kind,
            Err(error) => {
                let path = self.path_of(name);
                return self.gaps.fail(&path, &entry.path(), error);
            }
        };
        if kind == FileKind::Dir {
            let path = self.path_of(name);
            // The path of an entry in it has one more component.
            if is_too_deep(&format!("{path}/")) {
                return self.gaps.warnings.push(too_deep(&path));
            }
            return self.listing.folders.push(path);
        }
        let symlink = kind == FileKind::Symlink;
        let metadata = if symlink { platform::metadata(&entry.path()) } else { entry.metadata() };
        if let Ok(metadata) = &metadata
            && !symlink
            && metadata.is_file()
        {
            return self.keep(name, *metadata, false);
        }
        let path = self.path_of(name);
        let is_gone = metadata.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        self.is_other |= !symlink && (kind == FileKind::File || is_gone);
        let Self { links, gaps, .. } = self;
        match metadata {
            Ok(metadata) if symlink && metadata.is_dir() && is_too_deep(&format!("{path}/")) => {
                gaps.warnings.push(too_deep(&path));
            }
            Ok(metadata) if symlink && metadata.is_dir() => links.push(path),
            Ok(metadata) if symlink && metadata.is_file() => {
                match leaves_vault(root, &entry.path(), options.follow_outside) {
                    Ok(None) => self.keep(name, metadata, true),
                    Ok(Some(why)) => gaps.warnings.push(format!("{path} is not read: {why}")),
                    Err(error) => gaps.fail(&path, &entry.path(), error),
                }
            }
            Ok(_) => gaps.warnings.push(format!("{path} is skipped: it is not a regular file")),
            // A file that was removed between the two calls is gone. The target of a link may be missing only for the
            // moment, for example on a drive that is not mounted.
            Err(_) if !symlink && is_gone => {}
            Err(error) => gaps.fail(&path, &entry.path(), error),
        }
    }
}

fn too_deep(path: &str) -> String {
    format!("{path} is skipped: it is nested in more than {} folders", MAX_SEGMENTS - 1)
}
