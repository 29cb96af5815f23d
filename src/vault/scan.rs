//! Owns the walk over a vault: which files there are, with size and times (spec/obsidian.md 1.4).
//!
//! Opens no file. What could not be looked at is told apart from what is not there, so that nobody takes a folder
//! that cannot be read for an empty one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::convert::Infallible;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Error, Result};
use crate::text::path::{MOST_PARTS, NotePath, is_too_deep};
use crate::vault::Vault;
use crate::vault::symlinks::{HOW_TO_FOLLOW, Target, target};

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
    /// Whether symbolic links that lead out of the vault are followed.
    pub follow_outside: bool,
}

/// A link to a folder outside of the vault that a scan followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedLink {
    /// The link, as a path from the root.
    pub path: String,
    /// The folder that it leads to, without links on the way.
    pub target: PathBuf,
}

impl Default for ScanOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (below, hidden) = (String::new(), String::new());
        Self { below, recursive: true, threads: cores.clamp(2, 4), hidden, follow_outside: false }
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

/// One folder as a scan found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Where it is, as a path from the root; empty for the root.
    pub path: String,
    /// The files in it, ordered by path; links to files are among them.
    pub files: Vec<FileStat>,
    /// The paths of the folders in it, in order; without links, and without the hidden one.
    pub folders: Vec<String>,
    /// Whether more may be in it, for it could not be listed to its end.
    pub is_cut: bool,
}

/// What a scan could not look at, or left out.
#[derive(Debug, Default)]
pub struct Gaps {
    /// Why each of these places could not be looked at: paths from the root, empty for the root itself. The files at or
    /// below them must be taken to be as they were.
    pub unseen: BTreeMap<String, Error>,
    /// What was left out on purpose, one sentence each.
    pub warnings: Vec<String>,
    /// The links to folders outside of the vault that were followed.
    pub followed: Vec<FollowedLink>,
}

impl Gaps {
    /// Says whether a file or folder is at or below a place that could not be looked at.
    pub fn cover(&self, path: &str) -> bool {
        let above = path.match_indices('/').filter_map(|(slash, _)| path.get(..slash));
        ["", path].into_iter().chain(above).any(|place| self.unseen.contains_key(place))
    }

    fn fail(&mut self, place: &str, disk: &Path, error: io::Error) {
        self.unseen.insert(place.to_owned(), Error::io("look into", disk, error));
    }
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// The files, ordered by path.
    pub files: Vec<FileStat>,
    /// The folders that were listed, in no order.
    pub folders: Vec<String>,
    /// What is not there, and why.
    pub gaps: Gaps,
}

/// Lists the files of a vault, or of one folder of it; none where a scan of the whole vault would not go.
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

/// As [`scan`], but hands over each folder as it is listed, in no order but that a folder comes before those in it. No
/// more is held than a few folders at a time.
///
/// # Errors
/// Those of `visit`, which end the scan.
pub fn scan_each<E>(
    root: &Path,
    options: &ScanOptions,
    mut visit: impl FnMut(Listing) -> Result<(), E>,
) -> Result<Gaps, E> {
    let mut gaps = Gaps::default();
    let is_visible = options.below.is_empty()
        || NotePath::from_disk(&options.below).is_some() && !lies_in(&options.below, &options.hidden);
    if !is_visible || leads_back(root, &options.below).unwrap_or(false) {
        return Ok(gaps);
    }
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut trees = Trees::of(root);
    let mut folders = vec![options.below.clone()];
    while !folders.is_empty() {
        let links = walk(root, &real, std::mem::take(&mut folders), options, &mut gaps, &mut visit)?;
        // Links are followed in the order of their paths, so that of two with one target always the same is taken.
        for link in links {
            let disk = on_disk(root, &link);
            let led = target(&real, &disk);
            if !options.follow_outside && matches!(led, Ok(Target::Outside(_))) {
                gaps.warnings
                    .push(format!("{link} is not followed: it leads out of the vault; {HOW_TO_FOLLOW}"));
                continue;
            }
            match led.and_then(|led| Ok((led, trees.add(&disk)?))) {
                Ok((Target::Outside(target), true)) => {
                    folders.push(link.clone());
                    gaps.followed.push(FollowedLink { path: link, target });
                }
                // A folder of the vault is listed by its own path.
                Ok((Target::Inside(_), _)) => {}
                Ok(_) => gaps.warnings.push(format!(
                    "{link} is not followed: it links to a folder that is, holds or lies in one already scanned"
                )),
                Err(error) => gaps.fail(&link, &disk, error),
            }
        }
    }
    gaps.warnings.sort();
    Ok(gaps)
}

/// Looks at one file; `None` where a scan would not list it.
///
/// # Errors
/// `Io` where nothing can be said of it: where the file system refuses, or a symbolic link on the way leads to what is
/// not there. Whoever knows of the file must take it to be as it was.
pub fn stat(vault: &Vault, path: &NotePath) -> Result<Option<FileStat>> {
    let root = vault.root();
    let disk = root.join(path.as_str());
    let look = || -> io::Result<Option<FileStat>> {
        let mut metadata = match fs::symlink_metadata(&disk) {
            Err(error) if is_absence(&error) => {
                // The target of a link may be away for the moment, as a drive is that is not mounted.
                return if has_dangling_folder(root, path.folder()) { Err(error) } else { Ok(None) };
            }
            found => found?,
        };
        let symlink = metadata.is_symlink();
        if symlink {
            metadata = fs::metadata(&disk)?;
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        let is_listed = match vault.lists_folder(path.folder()) {
            // It went away between the two looks.
            Err(error) if is_absence(&error) => false,
            listed => listed?,
        } && (!symlink || leaves_vault(root, &disk, vault.follows_outside())?.is_none());
        Ok(is_listed.then(|| file_stat(path.clone(), &metadata, symlink)))
    };
    look().map_err(|error| Error::io("look at", path.as_str(), error))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Says whether a folder on the way to a place is a symbolic link to what is not there.
fn has_dangling_folder(root: &Path, folder: &str) -> bool {
    let above = folder.match_indices('/').filter_map(|(slash, _)| folder.get(..slash));
    let mut ways = above.chain(Some(folder).filter(|folder| !folder.is_empty())).map(|way| root.join(way));
    ways.find(|way| fs::metadata(way).is_err()).is_some_and(|way| way.is_symlink())
}

/// Says why a link to a file is not followed; nothing where it is.
fn leaves_vault(root: &Path, link: &Path, follow_outside: bool) -> io::Result<Option<String>> {
    Ok(match target(root, link)? {
        Target::Outside(_) if !follow_outside => Some(format!("it leads out of the vault; {HOW_TO_FOLLOW}")),
        Target::Hidden => Some("it leads to a hidden place of the vault".to_owned()),
        _ => None,
    })
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

/// Gives the place of a folder that is named by its path from the root.
pub(super) fn on_disk(root: &Path, folder: &str) -> PathBuf {
    if folder.is_empty() { root.to_owned() } else { root.join(folder) }
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

/// Lists the identities of a folder and of all folders above it.
fn chain(folder: &Path) -> io::Result<Vec<(u64, u64)>> {
    let identity = |folder: &Path| fs::metadata(folder).map(|metadata| (metadata.dev(), metadata.ino()));
    folder.canonicalize()?.ancestors().map(identity).collect()
}

/// Folders that wait to be listed, shared by the threads of a walk.
struct Queue {
    folders: Vec<String>,
    /// How many threads are listing a folder, and may yet add some.
    busy: usize,
}

/// Says that a thread lists a folder, until it is done or panics: the others wait for that.
struct Busy<'a> {
    queue: &'a Mutex<Queue>,
    ready: &'a Condvar,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        lock(self.queue).busy -= 1;
        self.ready.notify_all();
    }
}

/// So many listings wait for the one who asked for them.
const WAITING: usize = 4;

/// Lists the folders and all below them for `visit`, and gives the links to folders that it met, in order.
fn walk<E>(
    root: &Path,
    real: &Path,
    folders: Vec<String>,
    options: &ScanOptions,
    gaps: &mut Gaps,
    visit: &mut impl FnMut(Listing) -> Result<(), E>,
) -> Result<BTreeSet<String>, E> {
    let queue = Mutex::new(Queue { folders, busy: 0 });
    let ready = Condvar::new();
    let work = |listings: SyncSender<Listed>| {
        while let Some(folder) = next(&queue, &ready) {
            let _busy = Busy { queue: &queue, ready: &ready };
            let listed = list(root, real, folder, options);
            let inner = if options.recursive { listed.listing.folders.clone() } else { Vec::new() };
            let is_wanted = listings.send(listed).is_ok();
            let mut queue = lock(&queue);
            if is_wanted {
                // The last is taken first.
                queue.folders.extend(inner.into_iter().rev());
            } else {
                queue.folders.clear();
            }
        }
    };
    // A thread that panicked would leave its folders out in silence, so the scope lets the panic go on here.
    thread::scope(|threads| {
        let (sender, listings) = sync_channel(WAITING);
        for _ in 0..options.threads.max(1) {
            let sender = sender.clone();
            threads.spawn(|| work(sender));
        }
        drop(sender);
        let mut links = BTreeSet::new();
        for mut listed in listings {
            links.extend(listed.links);
            gaps.unseen.append(&mut listed.gaps.unseen);
            gaps.warnings.append(&mut listed.gaps.warnings);
            visit(listed.listing)?;
        }
        Ok(links)
    })
}

/// Takes a folder to list, and waits for one while others may add some; `None` once all is done.
fn next(queue: &Mutex<Queue>, ready: &Condvar) -> Option<String> {
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

/// A folder with what is in it besides.
struct Listed {
    listing: Listing,
    /// The paths of links to folders.
    links: Vec<String>,
    gaps: Gaps,
}

/// Lists one folder; `real` is the root without links.
fn list(root: &Path, real: &Path, path: String, options: &ScanOptions) -> Listed {
    let disk = on_disk(root, &path);
    let listing = Listing { path, ..Listing::default() };
    let mut listed = Listed { listing, links: Vec::new(), gaps: Gaps::default() };
    let end = fs::read_dir(&disk).and_then(|entries| {
        for entry in entries {
            listed.add(&entry?, real, options);
        }
        Ok(())
    });
    let Listed { listing, links, gaps } = &mut listed;
    if let Err(error) = end {
        gaps.fail(&listing.path, &disk, error);
        listing.is_cut = true;
    }
    if !options.recursive {
        links.clear();
    }
    listing.folders.retain(|folder| !lies_in(folder, &options.hidden));
    listing.folders.sort_unstable();
    listing.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // A folder in which names change meanwhile may give one twice.
    listing.folders.dedup();
    listing.files.dedup_by(|a, b| a.path == b.path);
    listed
}

impl Listed {
    /// Sorts in one entry of the folder.
    fn add(&mut self, entry: &DirEntry, root: &Path, options: &ScanOptions) {
        let Self { listing, links, gaps } = self;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            return;
        }
        let Some(name) = name.to_str() else {
            gaps.warnings.push(format!("{} is skipped: its name is no UTF-8", entry.path().display()));
            return;
        };
        let path = if listing.path.is_empty() { name.to_owned() } else { format!("{}/{name}", listing.path) };
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) => return gaps.fail(&path, &entry.path(), error),
        };
        let too_deep = || format!("{path} is skipped: it lies deeper than {} folders", MOST_PARTS - 1);
        if kind.is_dir() {
            // A path of what is in it would have one part more.
            if is_too_deep(&format!("{path}/")) {
                return gaps.warnings.push(too_deep());
            }
            return listing.folders.push(path);
        }
        let symlink = kind.is_symlink();
        match if symlink { fs::metadata(entry.path()) } else { entry.metadata() } {
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
                None => gaps.warnings.push(format!("{path} is skipped: it is no regular file")),
            },
            // A file that went away between the two looks is gone. The target of a link may be away for the moment, as
            // a drive is that is not mounted.
            Err(error) if !symlink && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => gaps.fail(&path, &entry.path(), error),
        }
    }
}
