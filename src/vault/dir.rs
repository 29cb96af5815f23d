//! Owns access beneath a folder handle: every name is opened in its folder, and no symbolic link is followed.
//!
//! `SIDENOTE_FAILPOINT=n`, an aid for tests, kills the process right before its n-th change of the file system here.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, Access, AtFlags, FileType, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::text::path::NotePath;
use crate::vault::Vault;
use crate::vault::symlinks::{LinkTarget, resolve_link};
use crate::{parallel, safe_open};

/// How many folder handles a [`DirTree`] keeps open at most, and at least.
const MOST_FOLDERS: usize = 128;
const LEAST_FOLDERS: usize = 4;

/// Gives how many folder handles a [`DirTree`] may keep open: half of what the process may have open is for all trees, of
/// which there is one for each core and two more.
fn folder_budget() -> usize {
    static BUDGET: OnceLock<usize> = OnceLock::new();
    *BUDGET.get_or_init(|| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        budget(limit, parallel::core_count())
    })
}

/// Divides the handles that a process may have open, where there is a limit.
fn budget(limit: Option<u64>, cores: usize) -> usize {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    (limit / 2 / (cores + 2)).clamp(LEAST_FOLDERS, MOST_FOLDERS)
}

/// Counts a change of the file system that is about to be made, and ends the process where the test says so.
fn failpoint() {
    static FAIL_AT: OnceLock<Option<u64>> = OnceLock::new();
    static DONE: AtomicU64 = AtomicU64::new(0);
    let fail_at = FAIL_AT.get_or_init(|| std::env::var("SIDENOTE_FAILPOINT").ok()?.parse().ok());
    if let Some(fail_at) = *fail_at
        && DONE.fetch_add(1, Ordering::SeqCst) + 1 == fail_at
    {
        let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        debug_assert!(killed.is_ok(), "a process may end itself");
    }
}

/// What stands under a name, not followed where it is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirEntry {
    kind: FileType,
    /// The file's number on its device.
    pub(crate) inode: u64,
    /// The device.
    pub(crate) device: u64,
    /// The number of bytes.
    pub(crate) size: u64,
    /// Seconds and nanoseconds of the last change of the bytes.
    pub(crate) modified: (i64, i64),
    /// The permission bits.
    pub(crate) mode: u32,
    /// User and group.
    pub(crate) owner: (u32, u32),
}

impl DirEntry {
    fn of(metadata: &Metadata) -> Self {
        Self {
            kind: FileType::from_raw_mode(metadata.mode() as fs::RawMode),
            inode: metadata.ino(),
            device: metadata.dev(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            mode: metadata.mode() & 0o7777,
            owner: (metadata.uid(), metadata.gid()),
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }

    pub(crate) fn is_symlink(&self) -> bool {
        self.kind == FileType::Symlink
    }

    /// Says whether this looks like the same file with the same bytes; a rename in between does not matter.
    pub(crate) fn is_unchanged_since(&self, earlier: &Self) -> bool {
        (self.kind, self.inode, self.device, self.size, self.modified)
            == (earlier.kind, earlier.inode, earlier.device, earlier.size, earlier.modified)
    }
}

/// Extended attributes: names and values.
pub(crate) type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// A regular file as it was read.
#[derive(Debug)]
pub(crate) struct FileContents {
    /// What the system says of it.
    pub(crate) entry: DirEntry,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Its extended attributes.
    pub(crate) xattrs: Xattrs,
}

/// The handle of an open folder.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

impl From<OwnedFd> for Dir {
    fn from(handle: OwnedFd) -> Self {
        Self(handle)
    }
}

impl Dir {
    /// Opens a folder by a path that the user trusts; links in it are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens a folder in this one; a symbolic link is an error.
    pub(crate) fn open_dir(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Opens a folder in this one, and makes it where it is missing.
    pub(crate) fn open_or_create_dir(&self, name: &str) -> io::Result<Self> {
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

    /// Makes a folder.
    pub(crate) fn create_dir(&self, name: &str) -> io::Result<()> {
        failpoint();
        Ok(fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?)
    }

    /// Looks at a name.
    pub(crate) fn entry(&self, name: &str) -> io::Result<Option<DirEntry>> {
        let stat = match fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
        Ok(Some(DirEntry {
            kind: FileType::from_raw_mode(stat.st_mode),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            mode: stat.st_mode as u32 & 0o7777,
            owner: (stat.st_uid as u32, stat.st_gid as u32),
        }))
    }

    /// Says which device the folder is on.
    pub(crate) fn device(&self) -> io::Result<u64> {
        #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
        Ok(fs::fstat(&self.0)?.st_dev as u64)
    }

    /// Says whether the system would let us write to a name, or with `.` change the folder.
    pub(crate) fn may_write(&self, name: &str) -> io::Result<()> {
        let access = if name == "." { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
        Ok(fs::accessat(&self.0, name, access, AtFlags::EACCESS)?)
    }

    /// Lists the names, in no order.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Opens a regular file to read; `InvalidInput` for anything else. Pipes do not hold it up.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.0, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular_file()) }
    }

    /// Reads a regular file.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(name)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a regular file of at most `max` bytes; `FileTooLarge` beyond.
    pub(crate) fn read_at_most(&self, name: &str, max: u64) -> io::Result<Vec<u8>> {
        safe_open::read_open(self.file(name)?, max)
    }

    /// Reads a regular file with all that a copy of it has to keep.
    pub(crate) fn read_with_metadata(&self, name: &str) -> io::Result<FileContents> {
        let mut file = self.file(name)?;
        let entry = DirEntry::of(&file.metadata()?);
        let mut bytes = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0) + 1);
        file.read_to_end(&mut bytes)?;
        Ok(FileContents { entry, bytes, xattrs: xattrs(&file)? })
    }

    /// Makes a file that is not there yet.
    pub(crate) fn create(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        failpoint();
        Ok(File::from(fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode as fs::RawMode))?))
    }

    /// Opens a file of ours to read and to append to, and makes it where it is missing.
    pub(crate) fn open_append(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        failpoint();
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(fs::openat(&self.0, name, flags, Mode::from_raw_mode(0o666))?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular_file()) }
    }

    /// Renames, replacing what stands under the new name.
    pub(crate) fn rename_replace(&self, name: &str, to: &Self, to_name: &str) -> io::Result<()> {
        failpoint();
        Ok(fs::renameat(&self.0, name, &to.0, to_name)?)
    }

    /// Renames to a name that nothing has yet.
    pub(crate) fn rename_no_replace(&self, name: &str, to: &Self, to_name: &str) -> io::Result<()> {
        failpoint();
        match rename_noreplace(&self.0, name, &to.0, to_name) {
            // Some file systems know no such rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            other => return Ok(other?),
        }
        if to.entry(to_name)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        Ok(fs::renameat(&self.0, name, &to.0, to_name)?)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        failpoint();
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub(crate) fn remove_dir(&self, name: &str) -> io::Result<()> {
        failpoint();
        Ok(fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Waits until the names in the folder are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        failpoint();
        Ok(fs::fsync(&self.0)?)
    }

    /// Waits until everything on the folder's file system is on the disk; `Unsupported` where there is no such call.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        failpoint();
        #[cfg(target_os = "linux")]
        return Ok(fs::syncfs(&self.0)?);
        #[cfg(not(target_os = "linux"))]
        return Err(io::ErrorKind::Unsupported.into());
    }
}

fn not_regular_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_noreplace(from: &OwnedFd, name: &str, to: &OwnedFd, to_name: &str) -> Result<(), Errno> {
    fs::renameat_with(from, name, to, to_name, fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_noreplace(_: &OwnedFd, _: &str, _: &OwnedFd, _: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Reads the extended attributes of an open file; none where the file system has no such thing.
fn xattrs(file: &File) -> io::Result<Xattrs> {
    let size = match fs::flistxattr_query(file) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(size) => size,
        Err(error) => return Err(error.into()),
    };
    let mut names = vec![0_u8; size];
    let size = fs::flistxattr(file, &mut names)?;
    names.truncate(size);
    let mut found = Vec::new();
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let read = fs::fgetxattr_query(file, name).and_then(|size| {
            let mut value = vec![0_u8; size];
            let size = if size == 0 { 0 } else { fs::fgetxattr(file, name, &mut value)? };
            value.truncate(size);
            Ok(value)
        });
        match read {
            Ok(value) => found.push((name.to_vec(), value)),
            // An attribute that we may not read is one that we could not set either.
            Err(_) if !name.starts_with(b"user.") => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Gives a new file the permissions, the owner and the extended attributes of the one that it replaces.
pub(crate) fn copy_metadata(file: &File, entry: &DirEntry, xattrs: &Xattrs) -> io::Result<()> {
    let metadata = file.metadata()?;
    if (metadata.uid(), metadata.gid()) != entry.owner {
        let (user, group) = (fs::Uid::from_raw(entry.owner.0), fs::Gid::from_raw(entry.owner.1));
        failpoint();
        match fs::fchown(file.as_fd(), Some(user), Some(group)) {
            // Only the superuser gives files away; the content is what counts.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    failpoint();
    fs::fchmod(file.as_fd(), Mode::from_raw_mode(entry.mode as fs::RawMode))?;
    for (name, value) in xattrs {
        failpoint();
        match fs::fsetxattr(file.as_fd(), name.as_slice(), value, XattrFlags::empty()) {
            Ok(()) => {}
            Err(error @ (Errno::NOSPC | Errno::DQUOT)) => return Err(error.into()),
            // What the system itself attached may be beyond us, and is attached again by the system.
            Err(_) if !name.starts_with(b"user.") => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Cuts a path into its folder, empty for the root, and its name.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A folder and all that is below it, with a few handles kept open.
#[derive(Debug)]
pub(crate) struct DirTree {
    root: Arc<Dir>,
    /// The root's place, without links in it.
    place: PathBuf,
    /// Whether symbolic links to folders outside of the vault are followed.
    follow_outside: bool,
    open: HashMap<String, Arc<Dir>>,
}

impl DirTree {
    /// Opens the tree of a vault.
    pub(crate) fn open(vault: &Vault) -> Result<Self> {
        let place = vault.root().to_owned();
        let root = Dir::open(&place).map_err(|error| Error::io("open", &place, error))?;
        Ok(Self {
            root: Arc::new(root),
            place,
            follow_outside: vault.follows_outside(),
            open: HashMap::new(),
        })
    }

    /// Closes the handles below the root: names may lead elsewhere from now on.
    pub(crate) fn close_all(&mut self) {
        self.open.clear();
    }

    /// Opens a folder by its path from the root, each part in the one before; `None` where it is not there.
    ///
    /// # Errors
    /// `Invalid` with the code `symlink` where a part is a symbolic link, unless it leads out of the vault and such links
    /// are followed; `Invalid` too where a part is no folder.
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

    /// Opens the folder outside of the vault that a symbolic link leads to; `None` where no link is followed here. Each
    /// part of the way to what the link led to is opened without following a link.
    fn outside(&self, path: &str) -> Option<Dir> {
        let is_visible = NotePath::from_disk(path).is_some();
        if !self.follow_outside || !is_visible {
            return None;
        }
        let disk = self.place.join(path);
        let Ok(LinkTarget::Outside(real)) = resolve_link(&self.place, &disk) else { return None };
        // A folder that holds the vault would let every file be reached in two ways.
        if !disk.is_symlink() || self.place.starts_with(&real) {
            return None;
        }
        safe_open::folder(Path::new("/"), real.strip_prefix("/").ok()?).ok().map(Dir::from)
    }

    /// Opens a folder that has to be there.
    ///
    /// # Errors
    /// `NotFound` where it is not, and as [`DirTree::find_dir`].
    pub(crate) fn folder(&mut self, path: &str) -> Result<Arc<Dir>> {
        self.find_dir(path)?.ok_or_else(|| Error::not_found(format!("there is no folder {path}")))
    }

    /// Opens the folder that a path lies in, and gives its name there.
    pub(crate) fn parent<'a>(&mut self, path: &'a str) -> Result<(Arc<Dir>, &'a str)> {
        let (folder, name) = split_path(path);
        Ok((self.folder(folder)?, name))
    }

    /// Looks at a path; `None` where nothing is there.
    pub(crate) fn entry(&mut self, path: &str) -> Result<Option<DirEntry>> {
        let (folder, name) = split_path(path);
        match self.find_dir(folder)? {
            Some(folder) => folder.entry(name).map_err(|error| Error::io("look at", path, error)),
            None => Ok(None),
        }
    }
}

/// Says why a part of a path could not be opened as a folder.
fn open_dir_error(parent: &Dir, name: &str, path: &str, error: io::Error) -> Error {
    match parent.entry(name) {
        Ok(Some(entry)) if entry.is_symlink() => symlink_error(path),
        Ok(Some(entry)) if !entry.is_dir() => Error::invalid(format!("{path} is no folder")),
        _ => Error::io("open", path, error),
    }
}

/// Refuses to write through a symbolic link.
pub(crate) fn symlink_error(path: &str) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!("{path} is a symbolic link, which is never written through (symlink)"),
    )
    .with_hint("change the file where it really is")
}

/// Removes a folder if it is there and empty.
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

/// At least so many files are looked at or written by one thread.
pub(crate) const MIN_FILES_PER_THREAD: usize = 32;

/// Does something to every item, on all cores where there are many, each with folder handles of its own. All are tried;
/// the first error is given.
pub(crate) fn parallel_in_tree<T: Sync, R: Send>(
    vault: &Vault,
    items: &[T],
    work: impl Fn(&mut DirTree, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let start = || DirTree::open(vault);
    let done = parallel::map(items, MIN_FILES_PER_THREAD, start, |tree, item| match tree {
        Ok(tree) => work(tree, item),
        Err(error) => Err(Error::new(error.kind(), error.message())),
    });
    done.into_iter().collect()
}
