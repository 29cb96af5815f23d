//! Owns opening files without following symbolic links: regular files only, and no more bytes than a limit.
//!
//! A vault can be a download, so nothing in it may decide which file of the user is opened, or make opening one wait.
//! The folder that a call begins with (`base`) is one that the user chose; links on the way to it are followed.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;

/// How a file is opened to be read: without following a link, and without waiting for a pipe.
const TO_READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Why a file was not opened although it is there.
const LINK: &str = "it is a symbolic link, which is not followed here (symlink)";

fn is_link() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, LINK)
}

fn is_irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")
}

fn is_too_large(max: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {max} bytes"))
}

/// Says whether an error of this module means that something else than a file of ours stands there.
pub fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge)
}

/// Makes an error of one met while `doing` something to `path`: `Invalid` where something else than a file of ours stands
/// there, else as [`Error::io`].
pub fn failed(doing: &str, path: &Path, error: io::Error) -> Error {
    if is_refusal(&error) {
        Error::invalid(format!("cannot {doing} {}: {error}", path.display()))
            .with_hint("remove it, or put a regular file of your own in its place")
    } else {
        Error::io(doing, path, error)
    }
}

/// A file whose length is more than this, and more than so many times what it takes up on the disk, is nothing but holes.
const LARGE: u64 = 64 << 20;
const HOLES: u64 = 64;

/// Says whether this is a regular file whose length is not feigned: reading a file of holes takes memory and time for
/// nothing.
pub fn is_regular(found: &Metadata) -> bool {
    let is_hollow =
        found.len() > LARGE && found.blocks().saturating_mul(512).saturating_mul(HOLES) < found.len();
    found.is_file() && !is_hollow
}

/// Opens a folder by its path below `base`, part by part; a symbolic link is an error.
///
/// # Errors
/// `InvalidInput` where a part is a symbolic link or leads up, `NotADirectory` where it is a file; those of the system.
pub fn folder(base: &Path, inner: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = fs::open(base, flags, Mode::empty())?;
    for part in inner.components() {
        let Component::Normal(name) = part else { return Err(is_irregular()) };
        folder = match fs::openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(child) => child,
            Err(Errno::LOOP) => return Err(is_link()),
            Err(Errno::NOTDIR) => {
                let found = fs::statat(&folder, name, fs::AtFlags::SYMLINK_NOFOLLOW)?;
                let is_symlink = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
                return Err(if is_symlink { is_link() } else { Errno::NOTDIR.into() });
            }
            Err(error) => return Err(error.into()),
        };
    }
    Ok(folder)
}

/// Opens a regular file to read by its path below `base`; no part of that path may be a symbolic link.
///
/// # Errors
/// `InvalidInput` where a part is a symbolic link, or the file is no regular one; those of the system.
pub fn open(base: &Path, inner: impl AsRef<Path>) -> io::Result<File> {
    let inner = inner.as_ref();
    let folder = folder(base, inner.parent().unwrap_or(Path::new("")))?;
    let name = inner.file_name().ok_or_else(is_irregular)?;
    regular(fs::openat(folder.as_fd(), name, TO_READ, Mode::empty()))
}

/// Opens a regular file to read, in a folder that is trusted.
///
/// # Errors
/// As [`open`].
pub fn open_in_place(path: &Path) -> io::Result<File> {
    regular(fs::open(path, TO_READ, Mode::empty()))
}

/// Opens a regular file to write, in a folder that is trusted, and makes it with these permissions where it is missing.
/// What it holds stays.
///
/// # Errors
/// As [`open`].
pub fn open_or_create(path: &Path, permissions: u32) -> io::Result<File> {
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    regular(fs::open(path, flags, Mode::from_raw_mode(permissions as fs::RawMode)))
}

/// Opens a regular file that is there to read and to write, in a folder that is trusted.
///
/// # Errors
/// As [`open`].
pub fn open_to_write(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    regular(fs::open(path, flags, Mode::empty()))
}

/// Makes a regular file anew, in a folder that is trusted; what it held is gone.
///
/// # Errors
/// As [`open`].
pub fn create(path: &Path) -> io::Result<File> {
    let file = open_or_create(path, 0o666)?;
    file.set_len(0)?;
    Ok(file)
}

/// Checks that a regular file was opened.
fn regular(opened: rustix::io::Result<OwnedFd>) -> io::Result<File> {
    let file = match opened {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(is_link()),
        // A socket cannot be opened at all, and a folder not to be written.
        Err(Errno::NXIO | Errno::ISDIR) => return Err(is_irregular()),
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(is_irregular()) }
}

/// Reads a regular file of at most `max` bytes by its path below `base`.
///
/// # Errors
/// As [`open`]; `FileTooLarge` beyond `max`.
pub fn read(base: &Path, inner: impl AsRef<Path>, max: u64) -> io::Result<Vec<u8>> {
    read_open(open(base, inner)?, max)
}

/// Reads a regular file of at most `max` bytes, in a folder that is trusted.
///
/// # Errors
/// As [`read`].
pub fn read_in_place(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_open(open_in_place(path)?, max)
}

/// Reads an open file of at most `max` bytes.
///
/// # Errors
/// `FileTooLarge` beyond `max`; those of the system.
pub fn read_open(file: File, max: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > max {
        return Err(is_too_large(max));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    // The file may grow while it is read.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(is_too_large(max)) } else { Ok(bytes) }
}

/// Says whether a file was not opened because a part of its path is a symbolic link.
pub fn is_link_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.to_string() == LINK)
}

/// Says whether the system knows no call such as the one that [`open_at_once`] makes, or allows none.
#[cfg(target_os = "linux")]
pub fn is_unknown_call(error: &io::Error) -> bool {
    let refused = [Errno::NOSYS, Errno::PERM, Errno::INVAL, Errno::TOOBIG];
    error.raw_os_error().is_some_and(|code| refused.iter().any(|errno| errno.raw_os_error() == code))
}

/// Opens a regular file to read, no part of whose path is a symbolic link, by one call.
///
/// # Errors
/// As [`open`], and what [`is_unknown_call`] tells.
#[cfg(target_os = "linux")]
pub fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = TO_READ.difference(OFlags::NOFOLLOW);
    regular(fs::openat2(fs::CWD, path, flags, Mode::empty(), fs::ResolveFlags::NO_SYMLINKS))
}
