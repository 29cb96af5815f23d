//! Unix: `openat`-style access, inodes, permission bits, extended attributes and signals.
//!
//! A system call that a signal interrupts is made again, as the standard library does for its own.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{self, Access, AtFlags, FileType, Mode, OFlags, XattrFlags};
#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::{StatxAttributes, StatxFlags};
use rustix::io::{Errno, retry_on_intr as retry};

use super::{FileKind, FileMetadata, FolderState, OpenMode};

/// The flags for every open: do not follow a symbolic link, do not wait for a pipe, and do not pass the handle on.
const COMMON_FLAGS: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

const DIR_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl OpenMode {
    fn flags(self) -> OFlags {
        COMMON_FLAGS
            | match self {
                Self::Read => OFlags::RDONLY,
                Self::ReadWrite => OFlags::RDWR,
                Self::ReadWriteOrCreate(_) => OFlags::RDWR | OFlags::CREATE,
                Self::CreateNew(_) => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
                Self::AppendOrCreate => OFlags::RDWR | OFlags::APPEND | OFlags::CREATE,
            }
    }

    fn permissions(self) -> Mode {
        match self {
            Self::Read | Self::ReadWrite => Mode::empty(),
            Self::ReadWriteOrCreate(mode) | Self::CreateNew(mode) => Mode::from_raw_mode(mode as fs::RawMode),
            Self::AppendOrCreate => Mode::from_raw_mode(0o666),
        }
    }
}

fn kind_of(mode: fs::RawMode) -> FileKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

impl From<&Metadata> for FileMetadata {
    fn from(found: &Metadata) -> Self {
        Self {
            kind: kind_of(found.mode() as fs::RawMode),
            size: found.size(),
            allocated: found.blocks().saturating_mul(512),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            device: found.dev(),
            inode: found.ino(),
            links: found.nlink(),
            mode: found.mode() & 0o7777,
            owner: (found.uid(), found.gid()),
        }
    }
}

impl From<&fs::Stat> for FileMetadata {
    #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
    fn from(found: &fs::Stat) -> Self {
        Self {
            kind: kind_of(found.st_mode),
            size: found.st_size as u64,
            allocated: (found.st_blocks as u64).saturating_mul(512),
            modified: (found.st_mtime as i64, found.st_mtime_nsec as i64),
            changed: (found.st_ctime as i64, found.st_ctime_nsec as i64),
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
            links: found.st_nlink as u64,
            mode: found.st_mode as u32 & 0o7777,
            owner: (found.st_uid as u32, found.st_gid as u32),
        }
    }
}

/// Reads the metadata of an open file.
pub fn file_metadata(file: &File) -> io::Result<FileMetadata> {
    Ok((&file.metadata()?).into())
}

/// Returns the kind of the file system of a folder if it can change without events: one of another machine, or one that a program
/// serves (FUSE). `None` for a local one.
pub fn unnotified_file_system(folder: &Path) -> Option<String> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
        let device = std::fs::metadata(folder).ok()?.dev();
        let device = format!("{}:{}", fs::major(device), fs::minor(device));
        super::unnotified_mount(&String::from_utf8_lossy(&mounts), &device)
    }
    #[cfg(target_vendor = "apple")]
    {
        const LOCAL: u32 = 0x1000;
        let found = fs::statfs(folder).ok()?;
        (found.f_flags & LOCAL == 0).then(|| "a network file system".to_owned())
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    {
        let _ = folder;
        None
    }
}

/// Moves to the next part of a file that the disk holds, from an offset on, and returns its start and end; `None` if a hole
/// reaches to the end. Where the system does not tell holes, it is all from the offset on.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<(u64, u64)>> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple", target_os = "freebsd"))]
    match fs::seek(file, fs::SeekFrom::Data(from)) {
        Ok(data) => {
            let hole = fs::seek(file, fs::SeekFrom::Hole(data))?;
            return Ok(Some((fs::seek(file, fs::SeekFrom::Start(data))?, hole)));
        }
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::NOTSUP) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Some((fs::seek(file, fs::SeekFrom::Start(from))?, u64::MAX)))
}

/// Reads the metadata of what a path leads to.
pub fn metadata(path: &Path) -> io::Result<FileMetadata> {
    Ok((&std::fs::metadata(path)?).into())
}

/// Reads the metadata of a directory entry. A symbolic link is not followed.
pub fn entry_metadata(path: &Path) -> io::Result<FileMetadata> {
    Ok((&std::fs::symlink_metadata(path)?).into())
}

/// An open folder whose entries are listed, and the path by which it was opened. A scan looks at every file of a vault, so an
/// entry is looked at by its name in the open folder, and no more is allocated for it than that name.
#[derive(Debug, Clone)]
pub struct ListedFolder(Arc<(OwnedFd, PathBuf)>);

impl ListedFolder {
    /// Opens a folder by a path. Symbolic links in the path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new((retry(|| fs::open(path, DIR_FLAGS, Mode::empty()))?, path.to_owned()))))
    }

    /// Returns what tells whether the entries are those of before; `None` where the system does not promise it. It is known of
    /// local file systems of Linux. Network file systems, those in user space, FAT, overlays, whose lower layers may change
    /// unseen, and encrypted folders, whose names depend on whether they are unlocked, are not trusted.
    pub fn state(&self) -> Option<FolderState> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            // The numbers of ext4, XFS, Btrfs, F2FS, tmpfs, ZFS and bcachefs; statfs(2) and the sources of the latter two.
            const KEEPING_TIMES: [u64; 7] =
                [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x2FC1_2FC1, 0xCA45_1A4E];
            #[allow(
                clippy::cast_sign_loss,
                clippy::unnecessary_cast,
                reason = "the type differs between processors"
            )]
            let kind = |found: fs::StatFs| u64::from(found.f_type as u32);
            let keeps_times =
                retry(|| fs::fstatfs(&self.0.0)).is_ok_and(|found| KEEPING_TIMES.contains(&kind(found)));
            let look = || retry(|| fs::statx(&self.0.0, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS));
            let is_plain = |found: fs::Statx| !found.stx_attributes.contains(StatxAttributes::ENCRYPTED);
            if !keeps_times || !look().is_ok_and(is_plain) {
                return None;
            }
            let found = FileMetadata::from(&retry(|| fs::fstat(&self.0.0)).ok()?);
            Some(FolderState { id: found.id(), modified: found.modified, changed: found.changed })
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        None
    }

    /// Lists the entries.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<ListedEntry>> + use<>> {
        let entries = fs::Dir::new(self.0.0.try_clone()?)?;
        let folder = self.clone();
        let is_inside = |entry: &fs::DirEntry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
        Ok(entries.filter(move |entry| entry.as_ref().map_or(true, is_inside)).map(move |entry| {
            let entry = entry?;
            let kind = match entry.file_type() {
                FileType::Unknown => None,
                known => Some(kind_of(known.as_raw_mode())),
            };
            Ok(ListedEntry { folder: folder.clone(), name: entry.file_name().to_owned(), kind })
        }))
    }

    /// Returns the entry with a name, of which the kind is known, without looking at it.
    pub fn entry(&self, name: &str, kind: FileKind) -> io::Result<ListedEntry> {
        Ok(ListedEntry { folder: self.clone(), name: CString::new(name)?, kind: Some(kind) })
    }
}

/// An entry of a listed folder.
#[derive(Debug)]
pub struct ListedEntry {
    folder: ListedFolder,
    name: CString,
    /// The kind, where the listing has it.
    kind: Option<FileKind>,
}

impl ListedEntry {
    /// Returns the name.
    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.name.to_bytes())
    }

    /// Returns the path: that of the folder with the name.
    pub fn path(&self) -> PathBuf {
        self.folder.0.1.join(self.name())
    }

    /// Returns the kind, without a system call where the listing has it.
    pub fn kind(&self) -> io::Result<FileKind> {
        self.kind.map_or_else(|| Ok(self.metadata()?.kind), Ok)
    }

    /// Returns the metadata. A symbolic link is not followed.
    pub fn metadata(&self) -> io::Result<FileMetadata> {
        let look = || fs::statat(&self.folder.0.0, self.name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        Ok((&retry(look)?).into())
    }
}

/// Lists a folder.
pub fn read_dir(path: &Path) -> io::Result<impl Iterator<Item = io::Result<ListedEntry>>> {
    ListedFolder::open(path)?.entries()
}

/// Returns the canonical absolute path: without links, `.` and `..`.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Creates a symbolic link to `target` at `path`.
pub fn create_symlink(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

/// A handle of an open folder. Entries are named relative to it, so no link on the way is ever followed.
#[derive(Debug)]
pub struct Dir(OwnedFd);

/// A file that is kept until this is dropped, even if it has no name any more.
pub type HeldFile = OwnedFd;

impl Dir {
    /// Opens a folder by a trusted path. Symbolic links in the path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(retry(|| fs::open(path, DIR_FLAGS, Mode::empty()))?))
    }

    /// Opens a subfolder. A symbolic link is an error that [`is_symlink_refusal`] recognizes.
    pub fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
        match retry(|| fs::openat(&self.0, name, DIR_FLAGS | OFlags::NOFOLLOW, Mode::empty())) {
            Ok(child) => Ok(Self(child)),
            // Systems disagree about the error for a link where a folder is wanted.
            Err(Errno::NOTDIR) => {
                let found = retry(|| fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW))?;
                let is_symlink = kind_of(found.st_mode) == FileKind::Symlink;
                Err(if is_symlink { Errno::LOOP } else { Errno::NOTDIR }.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file.
    pub fn open_file(&self, name: &OsStr, how: OpenMode) -> io::Result<File> {
        Ok(File::from(retry(|| fs::openat(&self.0, name, how.flags(), how.permissions()))?))
    }

    /// Creates a subfolder.
    pub fn create_dir(&self, name: &str) -> io::Result<()> {
        Ok(retry(|| fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777)))?)
    }

    /// Returns the metadata of an entry; `None` if there is none. A symbolic link is not followed.
    pub fn entry(&self, name: &str) -> io::Result<Option<FileMetadata>> {
        let stat = match retry(|| fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some((&stat).into()))
    }

    /// Returns the number of the folder's device.
    pub fn device(&self) -> io::Result<u64> {
        #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
        Ok(retry(|| fs::fstat(&self.0))?.st_dev as u64)
    }

    /// Checks that an entry is writable; for `.`, that entries can be created and removed.
    pub fn check_writable(&self, name: &str) -> io::Result<()> {
        let access = if name == "." { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
        Ok(retry(|| fs::accessat(&self.0, name, access, AtFlags::EACCESS))?)
    }

    /// Lists the names of the entries, in no particular order.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in retry(|| fs::Dir::read_from(&self.0))? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Renames an entry and replaces the target.
    pub fn rename_replace(&self, name: &str, to: &Self, to_name: &str) -> io::Result<()> {
        Ok(retry(|| fs::renameat(&self.0, name, &to.0, to_name))?)
    }

    /// Renames an entry; an existing target is an error.
    pub fn rename_no_replace(&self, name: &str, to: &Self, to_name: &str) -> io::Result<()> {
        match rename_noreplace(&self.0, name, &to.0, to_name) {
            // Some file systems do not support this rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            other => return Ok(other?),
        }
        if to.entry(to_name)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        Ok(retry(|| fs::renameat(&self.0, name, &to.0, to_name))?)
    }

    /// Holds what an entry is now: a rename that replaces it does not free its blocks before the handle is closed. `None`
    /// where the system has no such handle, none is left, or the file would get a name of its own until then (NFS).
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn hold(&self, name: &str) -> Option<HeldFile> {
        if retry(|| fs::fstatfs(&self.0)).ok()?.f_type == fs::NFS_SUPER_MAGIC {
            return None;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        retry(|| fs::openat(&self.0, name, flags, Mode::empty())).ok()
    }

    /// Holds nothing, for this system has no handle that neither reads nor writes.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn hold(&self, _: &str) -> Option<HeldFile> {
        None
    }

    /// Removes a file.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(retry(|| fs::unlinkat(&self.0, name, AtFlags::empty()))?)
    }

    /// Removes an empty subfolder.
    pub fn remove_dir(&self, name: &str) -> io::Result<()> {
        Ok(retry(|| fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR))?)
    }

    /// Flushes the entries of the folder to the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(retry(|| fs::fsync(&self.0))?)
    }

    /// Flushes the content of a file to the disk.
    pub fn sync_file(&self, name: &str) -> io::Result<()> {
        self.open_file(name.as_ref(), OpenMode::Read)?.sync_data()
    }

    /// Flushes the whole file system of the folder to the disk; `Unsupported` where there is no such call.
    pub fn sync_all(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return Ok(retry(|| fs::syncfs(&self.0))?);
        #[cfg(not(target_os = "linux"))]
        return Err(io::ErrorKind::Unsupported.into());
    }
}

/// Flushes the file system of a folder to the disk: everything at once, instead of file by file.
pub fn sync_file_system(folder: &Path) -> io::Result<()> {
    let dir = Dir::open(folder)?;
    match dir.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            fs::sync();
            Ok(())
        }
        synced => synced,
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_noreplace(from: &OwnedFd, name: &str, to: &OwnedFd, to_name: &str) -> Result<(), Errno> {
    retry(|| fs::renameat_with(from, name, to, to_name, fs::RenameFlags::NOREPLACE))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_noreplace(_: &OwnedFd, _: &str, _: &OwnedFd, _: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Opens a file in a trusted folder. The file itself may not be a symbolic link.
pub fn open_in_place(path: &Path, how: OpenMode) -> io::Result<File> {
    Ok(File::from(retry(|| fs::open(path, how.flags(), how.permissions()))?))
}

/// Opens a file for reading by one call that follows no symbolic link in any component; `None` where the system does
/// not support or permit such a call.
pub fn open_without_links(path: &Path) -> Option<io::Result<File>> {
    match openat2(path) {
        Ok(file) => Some(Ok(File::from(file))),
        // Kernels before 5.6, some sandboxes, and other systems.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG) => None,
        Err(error) => Some(Err(error.into())),
    }
}

#[cfg(target_os = "linux")]
fn openat2(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OpenMode::Read.flags().difference(OFlags::NOFOLLOW);
    retry(|| fs::openat2(fs::CWD, path, flags, Mode::empty(), fs::ResolveFlags::NO_SYMLINKS))
}

#[cfg(not(target_os = "linux"))]
fn openat2(_: &Path) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

fn is_errno(error: &io::Error, codes: &[Errno]) -> bool {
    error.raw_os_error().is_some_and(|code| codes.iter().any(|errno| errno.raw_os_error() == code))
}

/// Says whether an open failed because the entry is a symbolic link.
pub fn is_symlink_refusal(error: &io::Error) -> bool {
    is_errno(error, &[Errno::LOOP])
}

/// Says whether an open failed because the entry is of a kind that cannot be opened as a file: a socket, or a folder for
/// writing.
pub fn is_not_openable(error: &io::Error) -> bool {
    is_errno(error, &[Errno::NXIO, Errno::ISDIR])
}

/// Says whether a call failed because the process or the system has too many files open.
pub fn is_too_many_open_files(error: &io::Error) -> bool {
    is_errno(error, &[Errno::MFILE, Errno::NFILE])
}

/// Returns the number of files that the process may have open; `None` if there is no limit.
pub fn open_file_limit() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The extended attributes of a file, which a copy that replaces it must keep.
#[derive(Debug, Default)]
pub struct Attributes(Vec<(Vec<u8>, Vec<u8>)>);

impl Attributes {
    /// Reads the attributes of an open file; none if the file system does not support them.
    pub fn read(file: &File) -> io::Result<Self> {
        let size = match fs::flistxattr_query(file) {
            Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Self::default()),
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
                // An attribute that is not readable could not be set either.
                Err(_) if !name.starts_with(b"user.") => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self(found))
    }

    /// Gives owner, permissions and these attributes of the replaced file to the new one. `before_each` is called before
    /// each change.
    pub fn copy_to(&self, file: &File, replaced: &FileMetadata, before_each: impl Fn()) -> io::Result<()> {
        if file_metadata(file)?.owner != replaced.owner {
            let (user, group) = (fs::Uid::from_raw(replaced.owner.0), fs::Gid::from_raw(replaced.owner.1));
            before_each();
            match retry(|| fs::fchown(file.as_fd(), Some(user), Some(group))) {
                // Only the superuser can change the owner. The content matters more.
                Ok(()) | Err(Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        before_each();
        retry(|| fs::fchmod(file.as_fd(), Mode::from_raw_mode(replaced.mode as fs::RawMode)))?;
        for (name, value) in &self.0 {
            before_each();
            match retry(|| fs::fsetxattr(file.as_fd(), name.as_slice(), value, XattrFlags::empty())) {
                Ok(()) => {}
                Err(error @ (Errno::NOSPC | Errno::DQUOT)) => return Err(error.into()),
                // Attributes outside `user.` may not be settable. The system sets them again.
                Err(_) if !name.starts_with(b"user.") => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Reads exactly the bytes at an offset of a file.
pub fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Writes bytes at an offset of a file.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Takes the exclusive lock of a file; `false` if another process holds it.
pub fn try_lock(file: &File) -> io::Result<bool> {
    locked(|| file.try_lock())
}

/// Takes a shared lock of a file; `false` if another process holds the exclusive one.
pub fn try_lock_shared(file: &File) -> io::Result<bool> {
    locked(|| file.try_lock_shared())
}

fn locked(lock: impl Fn() -> Result<(), std::fs::TryLockError>) -> io::Result<bool> {
    loop {
        match lock() {
            Ok(()) => return Ok(true),
            Err(std::fs::TryLockError::WouldBlock) => return Ok(false),
            Err(std::fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Releases the lock of a file.
pub fn unlock(file: &File) -> io::Result<()> {
    file.unlock()
}

/// Says whether this user may write to a file or folder.
pub fn is_writable(path: &Path) -> bool {
    fs::access(path, Access::WRITE_OK).is_ok()
}

/// Says whether a path is on a file system that is mounted read-only; `None` if the system does not tell.
pub fn is_on_read_only_file_system(path: &Path) -> Option<bool> {
    let mounted = fs::statvfs(path).ok()?;
    Some(mounted.f_flag.contains(fs::StatVfsMountFlags::RDONLY))
}

/// Returns the number of folders that all programs of the user may watch together; `None` if there is no limit.
pub fn watch_limit() -> Option<usize> {
    #[cfg(target_os = "linux")]
    return std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?.trim().parse().ok();
    #[cfg(not(target_os = "linux"))]
    return None;
}

/// Says whether no other user may read or write an existing file.
pub fn is_private(path: &Path) -> io::Result<bool> {
    Ok(metadata(path)?.mode & 0o077 == 0)
}

/// Takes the rights of all other users on an open file away.
pub fn restrict_to_user(file: &File) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_mode(0o600);
    file.set_permissions(permissions)
}

/// Takes the rights of all other users on a folder away. The path is trusted, and no symbolic link.
pub fn restrict_folder(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
}

/// Says whether a path is a folder of this user, and no symbolic link to one, in which no other user may write.
pub fn is_own_folder(folder: &Path) -> io::Result<bool> {
    let found = entry_metadata(folder)?;
    let is_own = found.owner.0 == rustix::process::getuid().as_raw();
    Ok(found.is_dir() && is_own && found.mode & 0o022 == 0)
}

/// Returns the number of bytes that this user may still write to the file system of a path; `None` if the system does not
/// tell.
pub fn free_space(path: &Path) -> Option<u64> {
    let mounted = fs::statvfs(path).ok()?;
    Some(mounted.f_bavail.saturating_mul(mounted.f_frsize))
}

/// Lets all users read an open file.
pub fn share_for_reading(file: &File) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_mode(0o644);
    file.set_permissions(permissions)
}

/// Creates a folder that no other user can read. A folder of another user is an error.
pub fn make_private_dir(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = entry_metadata(folder)?;
    if found.is_dir() && found.owner.0 == rustix::process::getuid().as_raw() {
        Ok(fs::access(folder, Access::WRITE_OK)?)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Returns a text that no other user of this machine has: the number of the user.
pub fn user_key() -> String {
    rustix::process::getuid().as_raw().to_string()
}

/// Ends this process at once, without any cleanup, as a power failure would.
pub fn kill_this_process() {
    let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    debug_assert!(killed.is_ok(), "a process may kill itself");
}

/// Returns bytes as the name of a file.
pub fn os_string(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

/// Lets a program begin a group of processes, which the terminal does not interrupt and which can be ended as a whole. No
/// process of the group can read from the terminal.
pub fn begin_process_group(command: &mut Command) {
    command.process_group(0);
}

/// Asks the group of a program that [`begin_process_group`] started to end, and kills what still runs after `wait_limit`.
pub fn end_process_group(child: &mut Child, wait_limit: Duration) -> io::Result<()> {
    use rustix::process::Signal;
    signal_process_group(child, Signal::TERM)?;
    // A process that waits for the terminal is stopped, and must go on to see the signal.
    signal_process_group(child, Signal::CONT)?;
    let end = Instant::now() + wait_limit;
    while child.try_wait()?.is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal_process_group(child, Signal::KILL)?;
    child.wait().map(drop)
}

/// Kills the group of a program that [`begin_process_group`] started and that was not waited for, and does not wait for it.
pub fn kill_process_group(child: &mut Child) -> io::Result<()> {
    signal_process_group(child, rustix::process::Signal::KILL)
}

fn signal_process_group(child: &Child, signal: rustix::process::Signal) -> io::Result<()> {
    use rustix::process::{Pid, kill_process_group};
    match i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        Some(group) => match kill_process_group(group, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(io::Error::from(error)),
        },
        None => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Sets whether the system may give this process memory in huge pages. A process that ends soon is better off without:
/// clearing pages of two megabytes, of which little is used, takes a third of its time. So is a server, whose memory lies
/// scattered after a while, and would keep whole pages of which little is used.
pub fn allow_huge_pages(allow: bool) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(!allow) {
        tracing::debug!(%error, "the size of memory pages stays as it is");
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = allow;
}

/// Gives the calling thread the lowest priority, where a thread has one of its own.
pub fn lower_thread_priority() {
    #[cfg(target_os = "linux")]
    {
        let thread = rustix::thread::gettid();
        if let Err(error) = rustix::process::setpriority_process(Some(thread), 19) {
            tracing::debug!(%error, "embedding in the background runs at full priority");
        }
    }
}

/// Limits the memory, the time and the files of this process for good.
pub(super) fn limit_resources(limits: super::Confinement) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = |resource, most: u64| {
        // A limit that holds already can only be lowered.
        let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(io::Error::from)
    };
    // What the allocator has reserved counts, and is more than what the process uses.
    limit(Resource::Data, limits.memory.saturating_add(reserved_memory()))?;
    limit(Resource::Cpu, limits.seconds)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Core, 0)
}

/// Returns whether the system ended a process because its processor time was used up.
pub fn is_out_of_time(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(rustix::process::Signal::XCPU.as_raw())
}

/// Returns the memory in bytes that counts for the limit of this process already, where the system tells (proc(5), `statm`).
fn reserved_memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(5).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// Returns whether a process ended by what it did itself, such as an access to memory that it has not, and not because another
/// process ended it.
pub fn is_own_fault(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::Signal;
    let own = [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL, Signal::FPE, Signal::TRAP];
    status.signal().is_some_and(|signal| own.iter().any(|own| own.as_raw() == signal))
}
