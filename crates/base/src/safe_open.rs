//! Opening regular files without following symbolic links, and reading them up to a size limit.
//!
//! A vault can be a download: nothing in it may redirect a read to another file of the user or block an open.
//! The `base` folder of a call is chosen by the user, so symbolic links on the way to it are followed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::platform;
use crate::platform::{Dir, FileMetadata, OpenMode};

/// The message of an error for a symbolic link, by which [`is_link_error`] recognizes it.
const LINK: &str = "it is a symbolic link, which is not followed here (symlink)";

fn link_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, LINK)
}

fn not_regular_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

fn other_name_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "it has a second name (hard link), so writing to it would change another file",
    )
}

fn sparse_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is a sparse file, of which the disk holds only a small part",
    )
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

/// The most bytes of one file that are read into memory, whatever the settings say: a text of this size takes several times
/// as much memory while it is parsed.
pub const MAX_IN_MEMORY: u64 = 1 << 30;
/// The most memory that is taken for a file before any of it is read. The size that a file system states is not trusted.
const FIRST_PIECE: usize = 1 << 20;
/// Files up to this length are never treated as sparse.
const MIN_SPARSE_LEN: u64 = 64 << 20;
/// A large file is sparse if its length is more than this many times its allocated size.
const SPARSE_RATIO: u64 = 64;

/// Says whether this is a regular file that is not sparse. Reading a sparse file would cost memory and time for nothing.
pub fn is_regular(found: &FileMetadata) -> bool {
    let is_sparse = found.size > MIN_SPARSE_LEN && found.allocated.saturating_mul(SPARSE_RATIO) < found.size;
    found.is_file() && !is_sparse
}

/// Opens a folder by its path relative to `base`, one component at a time. A symbolic link is an error.
///
/// # Errors
/// `InvalidInput` if a component is a symbolic link or `..`, `NotADirectory` if it is a file, and system errors.
pub fn folder(base: &Path, inner: &Path) -> io::Result<Dir> {
    let mut folder = Dir::open(base)?;
    for part in inner.components() {
        let Component::Normal(name) = part else { return Err(not_regular_error()) };
        folder = folder.open_dir(name).map_err(name_link)?;
    }
    Ok(folder)
}

/// Splits an absolute path into the root of its file system and the path from there.
fn split_root(path: &Path) -> (PathBuf, PathBuf) {
    let is_root = |part: &Component<'_>| matches!(part, Component::Prefix(_) | Component::RootDir);
    path.components().partition(is_root)
}

/// Opens a folder by its absolute path. No component may be a symbolic link.
///
/// # Errors
/// The errors of [`folder`].
pub fn absolute_folder(path: &Path) -> io::Result<Dir> {
    let (root, inner) = split_root(path);
    folder(&root, &inner)
}

/// Opens a regular file for reading by its absolute path. No component may be a symbolic link.
///
/// # Errors
/// The errors of [`open`].
pub fn open_absolute(path: &Path) -> io::Result<File> {
    let (root, inner) = split_root(path);
    open(&root, inner)
}

/// Opens a regular file for reading by its path relative to `base`. No component may be a symbolic link.
///
/// # Errors
/// `InvalidInput` if a component is a symbolic link or the file is not regular, and system errors.
pub fn open(base: &Path, inner: impl AsRef<Path>) -> io::Result<File> {
    let inner = inner.as_ref();
    let folder = folder(base, inner.parent().unwrap_or(Path::new("")))?;
    let name = inner.file_name().ok_or_else(not_regular_error)?;
    regular(folder.open_file(name, OpenMode::Read))
}

/// Opens a regular file for reading in a trusted folder. The file itself may not be a symbolic link.
///
/// # Errors
/// The errors of [`open`].
pub fn open_in_place(path: &Path) -> io::Result<File> {
    regular(platform::open_in_place(path, OpenMode::Read))
}

/// Opens a regular file for reading and writing in a trusted folder, and creates it with these permissions if it is
/// missing. Its content is kept.
///
/// # Errors
/// The errors of [`writable`].
pub fn open_or_create(path: &Path, permissions: u32) -> io::Result<File> {
    writable(platform::open_in_place(path, OpenMode::ReadWriteOrCreate(permissions)))
}

/// Opens an existing regular file for reading and writing in a trusted folder.
///
/// # Errors
/// The errors of [`writable`].
pub fn open_to_write(path: &Path) -> io::Result<File> {
    writable(platform::open_in_place(path, OpenMode::ReadWrite))
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

/// Gives the error of an open that met a symbolic link the message by which [`is_link_error`] recognizes it.
fn name_link(error: io::Error) -> io::Error {
    if platform::is_symlink_refusal(&error) { link_error() } else { error }
}

/// Checks that the opened file is a regular file.
///
/// # Errors
/// `InvalidInput` if it is not, or was not opened because it is a symbolic link; the error of the open otherwise.
pub fn regular(opened: io::Result<File>) -> io::Result<File> {
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(not_regular_error()),
        Err(error) if platform::is_not_openable(&error) => Err(not_regular_error()),
        Err(error) => Err(name_link(error)),
    }
}

/// Checks that a file that was opened for writing is a regular file with one name. A file with a second name, such as one
/// in an unpacked archive, is also another file of the vault or the user.
///
/// # Errors
/// The errors of [`regular`]; `InvalidInput` for a file with a second name.
pub fn writable(opened: io::Result<File>) -> io::Result<File> {
    let file = regular(opened)?;
    if platform::file_metadata(&file)?.links > 1 { Err(other_name_error()) } else { Ok(file) }
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

/// Reads a regular file of at most `max` bytes in a trusted folder from the byte `first` on; nothing if it is shorter.
///
/// # Errors
/// The errors of [`read_in_place`].
pub fn read_in_place_from(path: &Path, first: u64, max: u64) -> io::Result<Vec<u8>> {
    let mut file = open_in_place(path)?;
    file.seek(io::SeekFrom::Start(first))?;
    let mut bytes = Vec::new();
    file.take(max.saturating_sub(first).saturating_add(1)).read_to_end(&mut bytes)?;
    if first + bytes.len() as u64 > max { Err(too_large_error(max)) } else { Ok(bytes) }
}

/// Returns the BLAKE3 hash of a regular file in a trusted folder, which is never in memory as a whole.
///
/// # Errors
/// The errors of [`open_in_place`], and of reading.
pub fn hash_in_place(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(open_in_place(path)?)?;
    Ok(hasher.finalize())
}

/// Device, inode, and the time of change in seconds and nanoseconds since 1970.
pub type FileIdentity = (u64, u64, i64, i64);

/// Returns what tells a regular file from all others and from what it was before it was changed; `None` if there is none.
/// Nobody can choose the change time of a file, so a file with the same identity is unchanged.
pub fn file_identity(path: &Path) -> Option<FileIdentity> {
    let found = platform::entry_metadata(path).ok().filter(is_regular)?;
    Some((found.device, found.inode, found.changed.0, found.changed.1))
}

/// Reads an open file of at most `max` bytes, and never more than fits in memory.
///
/// # Errors
/// `FileTooLarge` beyond `max`, `InvalidInput` for a sparse file, and system errors.
pub fn read_open(file: File, max: u64) -> io::Result<Vec<u8>> {
    let max = max.min(MAX_IN_MEMORY);
    let found = platform::file_metadata(&file)?;
    if found.size > max {
        return Err(too_large_error(max));
    }
    if found.is_file() && !is_regular(&found) {
        return Err(sparse_error());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.size).unwrap_or(0).min(FIRST_PIECE) + 1);
    // The file may grow while it is read.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_large_error(max)) } else { Ok(bytes) }
}

/// Says whether a file was not opened because a component of its path is a symbolic link.
pub fn is_link_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.to_string() == LINK)
}

/// Opens a regular file for reading by one call that follows no symbolic link in any component; `None` where the system
/// does not support or permit such a call.
pub fn open_without_links(path: &Path) -> Option<io::Result<File>> {
    platform::open_without_links(path).map(regular)
}
