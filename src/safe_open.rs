//! Opening regular files without following symbolic links, and reading them up to a size limit.
//!
//! A vault can be a download: nothing in it may redirect a read to another file of the user or block an open.
//! The `base` folder of a call is chosen by the user, so symbolic links on the way to it are followed.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;

/// The flags for opening a file to read: do not follow a symbolic link, and do not wait for a pipe.
const TO_READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The message of an error for a symbolic link, by which [`is_link_error`] recognizes it.
const LINK: &str = "it is a symbolic link, which is not followed here (symlink)";

fn link_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, LINK)
}

fn not_regular_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

fn too_large_error(max: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {max} bytes"))
}

/// Says whether an error of this module means that the path is not a regular file of acceptable size.
pub fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge)
}

/// Converts a system error that occurred while `doing` something to `path`. The kind is `Invalid` if
/// [`is_refusal`] holds, otherwise that of [`Error::io`].
pub fn failed(doing: &str, path: &Path, error: io::Error) -> Error {
    if is_refusal(&error) {
        Error::invalid(format!("cannot {doing} {}: {error}", path.display()))
            .with_hint("remove it, or replace it with a regular file")
    } else {
        Error::io(doing, path, error)
    }
}

/// Files up to this length are never treated as sparse.
const MIN_SPARSE_LEN: u64 = 64 << 20;
/// A large file is sparse if its length is more than this many times its allocated size.
const SPARSE_RATIO: u64 = 64;

/// Says whether this is a regular file that is not sparse. Reading a sparse file would cost memory and time for nothing.
pub fn is_regular(found: &Metadata) -> bool {
    let is_sparse = found.len() > MIN_SPARSE_LEN
        && found.blocks().saturating_mul(512).saturating_mul(SPARSE_RATIO) < found.len();
    found.is_file() && !is_sparse
}

/// Opens a folder by its path relative to `base`, one component at a time. A symbolic link is an error.
///
/// # Errors
/// `InvalidInput` if a component is a symbolic link or `..`, `NotADirectory` if it is a file, and system errors.
pub fn folder(base: &Path, inner: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = fs::open(base, flags, Mode::empty())?;
    for part in inner.components() {
        let Component::Normal(name) = part else { return Err(not_regular_error()) };
        folder = match fs::openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(child) => child,
            Err(Errno::LOOP) => return Err(link_error()),
            Err(Errno::NOTDIR) => {
                let found = fs::statat(&folder, name, fs::AtFlags::SYMLINK_NOFOLLOW)?;
                let is_symlink = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
                return Err(if is_symlink { link_error() } else { Errno::NOTDIR.into() });
            }
            Err(error) => return Err(error.into()),
        };
    }
    Ok(folder)
}

/// Opens a regular file for reading by its path relative to `base`. No component may be a symbolic link.
///
/// # Errors
/// `InvalidInput` if a component is a symbolic link or the file is not regular, and system errors.
pub fn open(base: &Path, inner: impl AsRef<Path>) -> io::Result<File> {
    let inner = inner.as_ref();
    let folder = folder(base, inner.parent().unwrap_or(Path::new("")))?;
    let name = inner.file_name().ok_or_else(not_regular_error)?;
    regular(fs::openat(folder.as_fd(), name, TO_READ, Mode::empty()))
}

/// Opens a regular file for reading in a trusted folder. The file itself may not be a symbolic link.
///
/// # Errors
/// The errors of [`open`].
pub fn open_in_place(path: &Path) -> io::Result<File> {
    regular(fs::open(path, TO_READ, Mode::empty()))
}

/// Opens a regular file for reading and writing in a trusted folder, and creates it with these permissions if it is
/// missing. Its content is kept.
///
/// # Errors
/// The errors of [`open`].
pub fn open_or_create(path: &Path, permissions: u32) -> io::Result<File> {
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    regular(fs::open(path, flags, Mode::from_raw_mode(permissions as fs::RawMode)))
}

/// Opens an existing regular file for reading and writing in a trusted folder.
///
/// # Errors
/// The errors of [`open`].
pub fn open_to_write(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    regular(fs::open(path, flags, Mode::empty()))
}

/// Creates a regular file in a trusted folder, or truncates the one that is there.
///
/// # Errors
/// The errors of [`open`].
pub fn create(path: &Path) -> io::Result<File> {
    let file = open_or_create(path, 0o666)?;
    file.set_len(0)?;
    Ok(file)
}

/// Checks that the opened file is a regular file.
fn regular(opened: rustix::io::Result<OwnedFd>) -> io::Result<File> {
    let file = match opened {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(link_error()),
        // A socket cannot be opened at all, and a folder cannot be opened for writing.
        Err(Errno::NXIO | Errno::ISDIR) => return Err(not_regular_error()),
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular_error()) }
}

/// Reads a regular file of at most `max` bytes by its path relative to `base`.
///
/// # Errors
/// The errors of [`open`], and `FileTooLarge` beyond `max`.
pub fn read(base: &Path, inner: impl AsRef<Path>, max: u64) -> io::Result<Vec<u8>> {
    read_open(open(base, inner)?, max)
}

/// Reads a regular file of at most `max` bytes in a trusted folder.
///
/// # Errors
/// The errors of [`read`].
pub fn read_in_place(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_open(open_in_place(path)?, max)
}

/// Reads an open file of at most `max` bytes.
///
/// # Errors
/// `FileTooLarge` beyond `max`, and system errors.
pub fn read_open(file: File, max: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > max {
        return Err(too_large_error(max));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    // The file may grow while it is read.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_large_error(max)) } else { Ok(bytes) }
}

/// Says whether a file was not opened because a component of its path is a symbolic link.
pub fn is_link_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.to_string() == LINK)
}

/// Says whether the system does not support or permit the call that [`open_with_openat2`] makes.
#[cfg(target_os = "linux")]
pub fn is_unsupported_call(error: &io::Error) -> bool {
    let refused = [Errno::NOSYS, Errno::PERM, Errno::INVAL, Errno::TOOBIG];
    error.raw_os_error().is_some_and(|code| refused.iter().any(|errno| errno.raw_os_error() == code))
}

/// Opens a regular file for reading by one `openat2` call that follows no symbolic link in any component.
///
/// # Errors
/// The errors of [`open`], and those that [`is_unsupported_call`] recognizes.
#[cfg(target_os = "linux")]
pub fn open_with_openat2(path: &Path) -> io::Result<File> {
    let flags = TO_READ.difference(OFlags::NOFOLLOW);
    regular(fs::openat2(fs::CWD, path, flags, Mode::empty(), fs::ResolveFlags::NO_SYMLINKS))
}
