//! Windows: access relative to handles, file indexes, access lists, streams and byte locks.
//!
//! The calls are described in Microsoft's documentation of the Win32 API and of the Windows driver kit. Paths of 260
//! characters and more work, because the standard library and the native calls take them.

mod ffi;

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::windows::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::windows::fs::{FileExt as _, OpenOptionsExt as _};
use std::os::windows::io::{AsHandle as _, BorrowedHandle, OwnedHandle};
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use windows_sys::Wdk::Storage::FileSystem::{
    FILE_CREATE, FILE_DIRECTORY_FILE, FILE_NON_DIRECTORY_FILE, FILE_OPEN, FILE_OPEN_FOR_BACKUP_INTENT,
    FILE_OPEN_IF, FILE_OPEN_REPARSE_POINT, FILE_OVERWRITE_IF, FILE_SYNCHRONOUS_IO_NONALERT,
};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_CALL_NOT_IMPLEMENTED, ERROR_DIRECTORY, ERROR_DIRECTORY_NOT_SUPPORTED,
    ERROR_HANDLE_EOF, ERROR_INVALID_FUNCTION, ERROR_INVALID_NAME, ERROR_INVALID_PARAMETER, ERROR_MORE_DATA,
    ERROR_NOT_SUPPORTED, ERROR_SHARING_VIOLATION, ERROR_STOPPED_ON_SYMLINK, ERROR_TOO_MANY_OPEN_FILES,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_ADD_FILE, FILE_ADD_SUBDIRECTORY, FILE_APPEND_DATA, FILE_ATTRIBUTE_DIRECTORY,
    FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_LIST_DIRECTORY,
    FILE_READ_ATTRIBUTES, FILE_TRAVERSE, FILE_WRITE_DATA, READ_CONTROL, SYNCHRONIZE, WRITE_DAC,
};

use super::{FileKind, FileMetadata, FolderState, OpenMode, is_device_name};

const OPEN_ENTRY: u32 = FILE_OPEN_REPARSE_POINT | FILE_OPEN_FOR_BACKUP_INTENT | FILE_SYNCHRONOUS_IO_NONALERT;
const DIR_ACCESS: u32 = FILE_LIST_DIRECTORY | FILE_TRAVERSE | FILE_READ_ATTRIBUTES | SYNCHRONIZE;
const ATTRIBUTE_ACCESS: u32 = FILE_READ_ATTRIBUTES | SYNCHRONIZE;

/// The bit of a reparse tag that marks a link: the entry stands for another path. Files of cloud drives have other tags.
const NAME_SURROGATE: u32 = 0x2000_0000;

/// The number of attempts of a call that another program disturbs, such as a virus scanner or a sync client.
const ATTEMPTS: u32 = 12;

/// The errors of a listing of streams on a file system that has none, or for a file without any.
const NO_STREAMS: &[u32] = &[
    ERROR_INVALID_FUNCTION,
    ERROR_HANDLE_EOF,
    ERROR_NOT_SUPPORTED,
    ERROR_INVALID_PARAMETER,
    ERROR_CALL_NOT_IMPLEMENTED,
];

/// The maximum length of an alternate stream that a replaced file passes on.
const MAX_STREAM: u64 = 1 << 20;

fn code_error(code: u32) -> io::Error {
    io::Error::from_raw_os_error(code.cast_signed())
}

fn has_code(error: &io::Error, codes: &[u32]) -> bool {
    error.raw_os_error().is_some_and(|code| codes.contains(&code.cast_unsigned()))
}

/// The errors of an open while another program has the file open in a way that excludes it.
const BUSY_TO_OPEN: &[u32] = &[ERROR_SHARING_VIOLATION];

/// The errors of a rename or a removal for the same reason. A right that this user lacks gives the second one, too.
const BUSY_TO_MOVE: &[u32] = &[ERROR_SHARING_VIOLATION, ERROR_ACCESS_DENIED];

/// Repeats a call while it fails with one of the errors, for two seconds at most.
fn retry<T>(busy: &[u32], mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut pause = Duration::from_millis(1);
    for _ in 1..ATTEMPTS {
        match call() {
            Err(error) if has_code(&error, busy) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(300));
            }
            done => return done,
        }
    }
    call()
}

fn wide(name: &OsStr) -> Vec<u16> {
    name.encode_wide().collect()
}

/// Refuses a name that would lead elsewhere: with a separator, or with the colon of a stream.
fn entry_name(name: &OsStr) -> io::Result<Vec<u16>> {
    let units = wide(name);
    let leads_elsewhere = units.iter().any(|&unit| matches!(unit, 0x2f | 0x3a | 0x5c | 0));
    let is_relative = name == "." || name == ".." || units.is_empty();
    if leads_elsewhere || is_relative { Err(code_error(ERROR_INVALID_NAME)) } else { Ok(units) }
}

/// Refuses a new name that other programs of Windows could not open.
fn new_name(name: &str) -> io::Result<Vec<u16>> {
    let is_plain = !name.contains(['<', '>', '"', '|', '?', '*']) && !name.chars().any(char::is_control);
    if is_plain && !name.ends_with(['.', ' ']) && !is_device_name(name) {
        entry_name(name.as_ref())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidFilename, format!("Windows does not allow the name {name}")))
    }
}

/// Converts a time of Windows, in units of 100 ns since 1601, to seconds and nanoseconds since 1970.
fn unix_time(time: i64) -> (i64, i64) {
    const UNITS_PER_SECOND: i64 = 10_000_000;
    const SECONDS_FROM_1601_TO_1970: i64 = 11_644_473_600;
    (time.div_euclid(UNITS_PER_SECOND) - SECONDS_FROM_1601_TO_1970, time.rem_euclid(UNITS_PER_SECOND) * 100)
}

fn kind_of(attributes: u32, tag: u32) -> FileKind {
    if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 && tag & NAME_SURROGATE != 0 {
        FileKind::Symlink
    } else if attributes & FILE_ATTRIBUTE_DIRECTORY != 0 {
        FileKind::Dir
    } else {
        FileKind::File
    }
}

fn mode_of(attributes: u32) -> u32 {
    // The attribute of a folder does not keep anybody from writing in it.
    let is_read_only =
        attributes & (FILE_ATTRIBUTE_READONLY | FILE_ATTRIBUTE_DIRECTORY) == FILE_ATTRIBUTE_READONLY;
    if is_read_only { 0o444 } else { 0o666 }
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn handle_metadata(handle: BorrowedHandle<'_>) -> io::Result<FileMetadata> {
    let (found, basic) = (ffi::identity(handle)?, ffi::basic_info(handle)?);
    let attributes = found.dwFileAttributes;
    let is_reparse_point = attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0;
    let tag = if is_reparse_point { ffi::reparse_tag(handle)? } else { 0 };
    let joined = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    Ok(FileMetadata {
        kind: kind_of(attributes, tag),
        size: joined(found.nFileSizeHigh, found.nFileSizeLow),
        allocated: unsigned(ffi::allocated(handle)?),
        modified: unix_time(basic.LastWriteTime),
        changed: unix_time(basic.ChangeTime),
        device: u64::from(found.dwVolumeSerialNumber),
        inode: joined(found.nFileIndexHigh, found.nFileIndexLow),
        links: u64::from(found.nNumberOfLinks),
        mode: mode_of(attributes),
        owner: (0, 0),
    })
}

/// Reads the metadata of an open file.
pub fn file_metadata(file: &File) -> io::Result<FileMetadata> {
    handle_metadata(file.as_handle())
}

/// Returns nothing: network drives report changes here.
pub fn unnotified_file_system(_: &Path) -> Option<String> {
    None
}

/// Moves to an offset of a file, and returns it: holes are not told here, so the part has no end.
pub fn next_data(mut file: &File, from: u64) -> io::Result<Option<(u64, u64)>> {
    use std::io::Seek as _;
    file.seek(io::SeekFrom::Start(from)).map(|start| Some((start, u64::MAX)))
}

fn path_metadata(path: &Path, flags: u32) -> io::Result<FileMetadata> {
    let flags = FILE_FLAG_BACKUP_SEMANTICS | flags;
    let opened = OpenOptions::new().access_mode(ATTRIBUTE_ACCESS).custom_flags(flags).open(path)?;
    file_metadata(&opened)
}

/// Reads the metadata of what a path leads to.
pub fn metadata(path: &Path) -> io::Result<FileMetadata> {
    path_metadata(path, 0)
}

/// Reads the metadata of a directory entry. A symbolic link is not followed.
pub fn entry_metadata(path: &Path) -> io::Result<FileMetadata> {
    path_metadata(path, FILE_FLAG_OPEN_REPARSE_POINT)
}

/// A folder whose entries are listed.
#[derive(Debug, Clone)]
pub struct ListedFolder(Arc<(Dir, PathBuf)>);

impl ListedFolder {
    /// Opens a folder by a path. Symbolic links in the path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new((Dir::open(path)?, path.to_owned()))))
    }

    /// Returns what tells whether the entries are those of before: nothing. Here the list of entries has their metadata, so
    /// that nothing is saved by keeping it.
    pub fn state(&self) -> Option<FolderState> {
        None
    }

    /// Lists the entries. One call of the system gives the metadata of many.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<ListedEntry>> + use<>> {
        let (folder, path) = &*self.0;
        let (entries, folder) = (list(folder.0.as_handle())?, path.clone());
        let entry = move |(name, found)| Ok(ListedEntry { folder: folder.clone(), name, found });
        Ok(entries.into_iter().map(entry))
    }

    /// Returns the entry with a name.
    pub fn entry(&self, name: &str, _: FileKind) -> io::Result<ListedEntry> {
        let folder = self.0.1.clone();
        let found = entry_metadata(&folder.join(name))?;
        Ok(ListedEntry { folder, name: name.into(), found })
    }
}

/// An entry of a listed folder.
#[derive(Debug)]
pub struct ListedEntry {
    folder: PathBuf,
    name: OsString,
    found: FileMetadata,
}

impl ListedEntry {
    /// Returns the name.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the path: that of the folder with the name.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Returns the kind.
    ///
    /// # Errors
    /// None; other systems may have to look.
    pub fn kind(&self) -> io::Result<FileKind> {
        Ok(self.found.kind)
    }

    /// Returns the metadata. A symbolic link is not followed.
    ///
    /// # Errors
    /// None; other systems may have to look.
    pub fn metadata(&self) -> io::Result<FileMetadata> {
        Ok(self.found)
    }
}

/// Reads numbers of a record at their offsets.
struct Record<'a>(&'a [u8]);

impl Record<'_> {
    fn u32(&self, at: usize) -> u32 {
        self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    }

    fn i64(&self, at: usize) -> i64 {
        self.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_ne_bytes)
    }

    fn name(&self, at: usize, length: u32) -> OsString {
        let bytes = self.0.get(at..at + length as usize).unwrap_or_default();
        let units: Vec<u16> =
            bytes.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect();
        OsString::from_wide(&units)
    }
}

/// Splits a buffer into records, each of which begins with the offset of the next one.
fn records(buffer: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut rest = Some(buffer).filter(|buffer| !buffer.is_empty());
    std::iter::from_fn(move || {
        let record = rest?;
        let next = Record(record).u32(0) as usize;
        rest = record.get(next..).filter(|_| next > 0);
        Some(Record(record))
    })
}

/// Lists the entries of an open folder with their metadata (`FILE_ID_BOTH_DIR_INFO`).
fn list(folder: BorrowedHandle<'_>) -> io::Result<Vec<(OsString, FileMetadata)>> {
    let device = u64::from(ffi::identity(folder)?.dwVolumeSerialNumber);
    let mut entries = Vec::new();
    let mut restart = true;
    loop {
        let buffer = ffi::list(folder, restart)?;
        if buffer.is_empty() {
            return Ok(entries);
        }
        restart = false;
        for record in records(&buffer) {
            let name = record.name(104, record.u32(60));
            if name == "." || name == ".." {
                continue;
            }
            let (attributes, tag) = (record.u32(56), record.u32(64));
            let found = FileMetadata {
                kind: kind_of(attributes, tag),
                size: unsigned(record.i64(40)),
                allocated: unsigned(record.i64(48)),
                modified: unix_time(record.i64(24)),
                changed: unix_time(record.i64(32)),
                device,
                inode: record.i64(96).cast_unsigned(),
                links: 1,
                mode: mode_of(attributes),
                owner: (0, 0),
            };
            entries.push((name, found));
        }
    }
}

/// Lists a folder.
pub fn read_dir(path: &Path) -> io::Result<impl Iterator<Item = io::Result<ListedEntry>>> {
    ListedFolder::open(path)?.entries()
}

/// Returns the canonical absolute path: without links, `.` and `..`, and without the prefix `\\?\` where it is not
/// needed.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    match dunce::canonicalize(path) {
        // Wine 8 names no open file whose path has 260 characters or more.
        Err(error) if has_code(&error, &[ERROR_MORE_DATA]) => canonicalize_long(path),
        found => found,
    }
}

/// Returns the canonical path of a folder or file that is not a link: that of its folder, with the name as the folder
/// lists it.
fn canonicalize_long(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let folder = canonicalize(path.parent().ok_or_else(|| code_error(ERROR_MORE_DATA))?)?;
    let found = entry_metadata(&path)?;
    if found.is_symlink() {
        return Err(code_error(ERROR_MORE_DATA));
    }
    let entries = list(Dir::open(&folder)?.0.as_handle())?;
    let own = entries.into_iter().find(|(_, entry)| entry.id() == found.id());
    own.map(|(name, _)| folder.join(name)).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Creates a symbolic link to `target` at `path`.
///
/// # Errors
/// System errors; without the developer mode only administrators may create links.
pub fn create_symlink(target: &Path, path: &Path) -> io::Result<()> {
    let leads_to_dir = path.parent().is_some_and(|folder| folder.join(target).is_dir());
    if leads_to_dir {
        std::os::windows::fs::symlink_dir(target, path)
    } else {
        std::os::windows::fs::symlink_file(target, path)
    }
}

impl OpenMode {
    /// Returns the rights and the disposition for `NtCreateFile`.
    fn access(self) -> (u32, u32) {
        let append = FILE_GENERIC_READ | FILE_GENERIC_WRITE & !FILE_WRITE_DATA | FILE_APPEND_DATA;
        // What replaces a file gets its access list.
        let write_new = FILE_GENERIC_READ | FILE_GENERIC_WRITE | READ_CONTROL | WRITE_DAC;
        match self {
            Self::Read => (FILE_GENERIC_READ | READ_CONTROL, FILE_OPEN),
            Self::ReadWrite => (FILE_GENERIC_READ | FILE_GENERIC_WRITE, FILE_OPEN),
            Self::ReadWriteOrCreate(_) => (FILE_GENERIC_READ | FILE_GENERIC_WRITE, FILE_OPEN_IF),
            Self::CreateNew(_) => (write_new, FILE_CREATE),
            Self::AppendOrCreate => (append, FILE_OPEN_IF),
        }
    }
}

/// A handle of an open folder. Entries are named relative to it, so no link on the way is ever followed.
#[derive(Debug)]
pub struct Dir(OwnedHandle);

/// A file that is kept until this is dropped. There is none.
#[derive(Debug)]
pub enum HeldFile {}

impl Dir {
    /// Opens a folder by a trusted path. Symbolic links in the path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.access_mode(DIR_ACCESS).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
        let opened = options.open(path)?;
        if file_metadata(&opened)?.is_dir() {
            Ok(Self(opened.into()))
        } else {
            Err(code_error(ERROR_DIRECTORY))
        }
    }

    fn open_entry(&self, name: &OsStr, access: u32, options: u32) -> io::Result<OwnedHandle> {
        ffi::open_at(self.0.as_handle(), &entry_name(name)?, access, FILE_OPEN, OPEN_ENTRY | options)
    }

    /// Opens a subfolder. A symbolic link is an error that [`is_symlink_refusal`] recognizes.
    pub fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
        let opened = self.open_entry(name, DIR_ACCESS, 0)?;
        match handle_metadata(opened.as_handle())?.kind {
            FileKind::Dir => Ok(Self(opened)),
            FileKind::Symlink => Err(code_error(ERROR_STOPPED_ON_SYMLINK)),
            _ => Err(code_error(ERROR_DIRECTORY)),
        }
    }

    /// Opens a file.
    pub fn open_file(&self, name: &OsStr, how: OpenMode) -> io::Result<File> {
        let (access, disposition) = how.access();
        let units = if disposition == FILE_OPEN {
            entry_name(name)?
        } else {
            new_name(name.to_str().ok_or(io::ErrorKind::InvalidFilename)?)?
        };
        let open = |options| {
            let options = FILE_NON_DIRECTORY_FILE | FILE_SYNCHRONOUS_IO_NONALERT | options;
            retry(BUSY_TO_OPEN, || ffi::open_at(self.0.as_handle(), &units, access, disposition, options))
                .map(File::from)
        };
        let file = open(FILE_OPEN_REPARSE_POINT)?;
        followed(file, || open(0))
    }

    /// Creates a subfolder.
    pub fn create_dir(&self, name: &str) -> io::Result<()> {
        let options = FILE_DIRECTORY_FILE | OPEN_ENTRY;
        ffi::open_at(self.0.as_handle(), &new_name(name)?, DIR_ACCESS, FILE_CREATE, options).map(drop)
    }

    /// Returns the metadata of an entry; `None` if there is none. A symbolic link is not followed.
    pub fn entry(&self, name: &str) -> io::Result<Option<FileMetadata>> {
        match self.open_entry(name.as_ref(), ATTRIBUTE_ACCESS, 0) {
            Ok(opened) => handle_metadata(opened.as_handle()).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // No entry can have a name that the system does not allow.
            Err(error) if has_code(&error, &[ERROR_INVALID_NAME]) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of the folder's volume.
    pub fn device(&self) -> io::Result<u64> {
        Ok(u64::from(ffi::identity(self.0.as_handle())?.dwVolumeSerialNumber))
    }

    /// Checks that an entry is writable; for `.`, that entries can be created and removed.
    pub fn check_writable(&self, name: &str) -> io::Result<()> {
        if name == "." {
            self.reopen(FILE_ADD_FILE | FILE_ADD_SUBDIRECTORY | SYNCHRONIZE).map(drop)
        } else {
            self.open_entry(name.as_ref(), FILE_WRITE_DATA | SYNCHRONIZE, 0).map(drop)
        }
    }

    /// Opens the folder itself with other rights: an empty name relative to a handle means the handle's file.
    fn reopen(&self, access: u32) -> io::Result<OwnedHandle> {
        let options = FILE_DIRECTORY_FILE | OPEN_ENTRY;
        ffi::open_at(self.0.as_handle(), &[], access, FILE_OPEN, options)
    }

    /// Lists the names of the entries, in no particular order.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        Ok(list(self.0.as_handle())?.into_iter().map(|(name, _)| name).collect())
    }

    fn rename(&self, name: &str, to: &Self, to_name: &str, replace: bool) -> io::Result<()> {
        let target = new_name(to_name)?;
        retry(BUSY_TO_MOVE, || {
            let entry = self.open_entry(name.as_ref(), DELETE | SYNCHRONIZE, 0)?;
            ffi::rename(entry.as_handle(), to.0.as_handle(), &target, replace)
        })
    }

    /// Holds nothing: a file with a handle could not be replaced.
    pub fn hold(&self, _: &str) -> Option<HeldFile> {
        None
    }

    /// Renames an entry and replaces the target.
    pub fn rename_replace(&self, name: &str, to: &Self, to_name: &str) -> io::Result<()> {
        self.rename(name, to, to_name, true)
    }

    /// Renames an entry; an existing target is an error.
    pub fn rename_no_replace(&self, name: &str, to: &Self, to_name: &str) -> io::Result<()> {
        self.rename(name, to, to_name, false)
    }

    fn remove(&self, name: &str, options: u32) -> io::Result<()> {
        retry(BUSY_TO_MOVE, || {
            let entry = self.open_entry(name.as_ref(), DELETE | SYNCHRONIZE, options)?;
            ffi::delete(entry.as_handle())
        })
    }

    /// Removes a file.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        self.remove(name, FILE_NON_DIRECTORY_FILE)
    }

    /// Removes an empty subfolder.
    pub fn remove_dir(&self, name: &str) -> io::Result<()> {
        self.remove(name, FILE_DIRECTORY_FILE)
    }

    /// Flushes the entries of the folder to the disk, if this user may; NTFS keeps their order in its own journal.
    pub fn sync(&self) -> io::Result<()> {
        let flushed = self.reopen(FILE_GENERIC_WRITE).and_then(|folder| ffi::flush(folder.as_handle()));
        match flushed {
            Err(error) if has_code(&error, &[ERROR_ACCESS_DENIED]) => Ok(()),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) =>
            {
                Ok(())
            }
            flushed => flushed,
        }
    }

    /// Flushes the content of a file to the disk.
    pub fn sync_file(&self, name: &str) -> io::Result<()> {
        self.open_file(name.as_ref(), OpenMode::ReadWrite)?.sync_data()
    }

    /// Flushes the whole file system of the folder to the disk: `Unsupported`, because only administrators may.
    pub fn sync_all(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns an opened file unless it is a link. A file of a cloud drive is a reparse point, too: it is opened anew by
/// `open`, so that the drive fetches its content, and is used if it is still the same file.
fn followed(file: File, open: impl FnOnce() -> io::Result<File>) -> io::Result<File> {
    let found = file_metadata(&file)?;
    if found.is_symlink() {
        return Err(code_error(ERROR_STOPPED_ON_SYMLINK));
    }
    if ffi::basic_info(file.as_handle())?.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT == 0 {
        return Ok(file);
    }
    let opened = open()?;
    if file_metadata(&opened)?.id() == found.id() {
        Ok(opened)
    } else {
        Err(code_error(ERROR_STOPPED_ON_SYMLINK))
    }
}

/// Flushes all files in a folder and its subfolders to the disk.
pub fn sync_file_system(folder: &Path) -> io::Result<()> {
    let dir = Dir::open(folder)?;
    for (name, found) in list(dir.0.as_handle())? {
        match found.kind {
            FileKind::Dir => sync_file_system(&folder.join(name))?,
            // A copy of a read-only file cannot be opened for writing. The system writes it soon.
            FileKind::File if found.mode & 0o222 != 0 => {
                dir.open_file(&name, OpenMode::ReadWrite)?.sync_data()?;
            }
            _ => {}
        }
    }
    dir.sync()
}

/// Opens a file in a trusted folder. The file itself may not be a symbolic link.
pub fn open_in_place(path: &Path, how: OpenMode) -> io::Result<File> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(code_error(ERROR_DIRECTORY_NOT_SUPPORTED));
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Dir::open(folder)?.open_file(name, how)
}

/// Opens a file for reading by one call that follows no symbolic link in any component: `None`, because there is no such
/// call.
pub fn open_without_links(_path: &Path) -> Option<io::Result<File>> {
    None
}

/// Says whether an open failed because the entry is a symbolic link.
pub fn is_symlink_refusal(error: &io::Error) -> bool {
    has_code(error, &[ERROR_STOPPED_ON_SYMLINK])
}

/// Says whether an open failed because the entry is a folder.
pub fn is_not_openable(error: &io::Error) -> bool {
    has_code(error, &[ERROR_DIRECTORY_NOT_SUPPORTED])
}

/// Says whether a call failed because the process has too many files open.
pub fn is_too_many_open_files(error: &io::Error) -> bool {
    has_code(error, &[ERROR_TOO_MANY_OPEN_FILES])
}

/// Returns the number of files that the process may have open: `None`, because memory is the limit.
pub fn open_file_limit() -> Option<usize> {
    None
}

/// What a file has beside its content, which a copy that replaces it must keep: access list, attributes, creation time
/// and alternate streams.
#[derive(Debug)]
pub struct Attributes {
    /// The creation time as the system gives it.
    created: i64,
    /// The attribute bits, such as those of hidden and read-only files.
    bits: u32,
    access_list: Vec<u64>,
    streams: Vec<(Vec<u16>, Vec<u8>)>,
}

impl Attributes {
    /// Reads the attributes of an open file. A file system without streams has none.
    pub fn read(file: &File) -> io::Result<Self> {
        let handle = file.as_handle();
        let basic = ffi::basic_info(handle)?;
        Ok(Self {
            created: basic.CreationTime,
            bits: basic.FileAttributes,
            access_list: ffi::access_list(handle)?,
            streams: read_streams(handle)?,
        })
    }

    /// Gives access list, attributes, creation time and streams of the replaced file to the new one. `before_each` is
    /// called before each change.
    pub fn copy_to(&self, file: &File, _replaced: &FileMetadata, before_each: impl Fn()) -> io::Result<()> {
        let handle = file.as_handle();
        for (name, content) in &self.streams {
            before_each();
            let access = FILE_GENERIC_WRITE;
            let stream = ffi::open_at(handle, name, access, FILE_OVERWRITE_IF, FILE_SYNCHRONOUS_IO_NONALERT)?;
            File::from(stream).write_all(content)?;
        }
        before_each();
        ffi::set_access_list(handle, &self.access_list)?;
        before_each();
        let info = FILE_BASIC_INFO {
            CreationTime: self.created,
            FileAttributes: self.bits & !FILE_ATTRIBUTE_REPARSE_POINT,
            ..FILE_BASIC_INFO::default()
        };
        ffi::set_basic_info(handle, &info)
    }
}

/// Reads the alternate streams of an open file (`FILE_STREAM_INFO`): names such as `:Zone.Identifier:$DATA`, and content.
fn read_streams(file: BorrowedHandle<'_>) -> io::Result<Vec<(Vec<u16>, Vec<u8>)>> {
    let buffer = match ffi::streams(file) {
        Ok(buffer) => buffer,
        Err(error) if has_code(&error, NO_STREAMS) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut streams = Vec::new();
    for record in records(&buffer) {
        let name = record.name(24, record.u32(4));
        if name == "::$DATA" || name.is_empty() {
            continue;
        }
        let units = wide(&name);
        let access = FILE_GENERIC_READ;
        let stream = ffi::open_at(file, &units, access, FILE_OPEN, FILE_SYNCHRONOUS_IO_NONALERT)?;
        let mut content = Vec::new();
        File::from(stream).take(MAX_STREAM + 1).read_to_end(&mut content)?;
        if content.len() as u64 > MAX_STREAM {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("its stream {} has more than {MAX_STREAM} bytes", name.display()),
            ));
        }
        streams.push((units, content));
    }
    Ok(streams)
}

/// Reads exactly the bytes at an offset of a file.
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = bytes.split_at_mut(count).1;
                offset += count as u64;
            }
        }
    }
    Ok(())
}

/// Writes bytes at an offset of a file.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => {
                bytes = bytes.get(count..).unwrap_or_default();
                offset += count as u64;
            }
        }
    }
    Ok(())
}

/// Takes the exclusive lock of a file; `false` if another process holds it.
pub fn try_lock(file: &File) -> io::Result<bool> {
    ffi::try_lock(file, true)
}

/// Takes a shared lock of a file; `false` if another process holds the exclusive one.
pub fn try_lock_shared(file: &File) -> io::Result<bool> {
    ffi::try_lock(file, false)
}

/// Releases the lock of a file.
pub fn unlock(file: &File) -> io::Result<()> {
    ffi::unlock(file)
}

/// Says whether this user may write to a file or folder.
pub fn is_writable(path: &Path) -> bool {
    let access = if path.is_dir() { FILE_ADD_FILE | FILE_ADD_SUBDIRECTORY } else { FILE_WRITE_DATA };
    OpenOptions::new().access_mode(access).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path).is_ok()
}

/// Says whether a path is on a file system that is mounted read-only: `None`, because [`is_writable`] tries it instead.
pub fn is_on_read_only_file_system(_path: &Path) -> Option<bool> {
    None
}

/// Returns the number of folders that may be watched: `None`, because one handle covers a whole tree.
pub fn watch_limit() -> Option<usize> {
    None
}

/// Says whether no other user may read or write an existing file. It trusts the access list that the file inherited:
/// that of the profile folder admits the user, the system and administrators.
pub fn is_private(path: &Path) -> io::Result<bool> {
    metadata(path).map(|_| true)
}

/// Leaves the rights of other users as the folder gives them: in the profile folder, none.
pub fn restrict_to_user(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Leaves the rights of other users as the profile folder gives them: none.
pub fn restrict_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Says whether a path is a folder, and no symbolic link or junction to one. It trusts the access list that the folder
/// inherited.
pub fn is_own_folder(folder: &Path) -> io::Result<bool> {
    entry_metadata(folder).map(|found| found.is_dir())
}

/// Returns the number of bytes that may still be written: `None`, because a failed write shows it.
pub fn free_space(_path: &Path) -> Option<u64> {
    None
}

/// Leaves the rights of other users as the folder gives them.
pub fn share_for_reading(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Creates a folder in the profile folder or the user's temporary folder, which no other user can read.
pub fn make_private_dir(folder: &Path) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a folder of sidenote's own, outside of any vault")]
    std::fs::create_dir_all(folder)?;
    if entry_metadata(folder)?.is_dir() && is_writable(folder) {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Returns a text that no other user of this machine has: the user's name.
pub fn user_key() -> String {
    std::env::var("USERNAME").unwrap_or_else(|_| "user".to_owned())
}

/// Ends this process at once, without any cleanup, as a power failure would.
pub fn kill_this_process() {
    std::process::abort();
}

/// Returns bytes as the name of a file; what is not UTF-8 is replaced.
pub fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Lets a program begin a group of processes, which the console does not interrupt.
pub fn begin_process_group(command: &mut Command) {
    /// CREATE_NEW_PROCESS_GROUP of the Win32 API.
    const NEW_GROUP: u32 = 0x0000_0200;
    command.creation_flags(NEW_GROUP);
}

/// Kills a program that [`begin_process_group`] started. There is no request to end that it would see.
pub fn end_process_group(child: &mut Child, _wait_limit: Duration) -> io::Result<()> {
    child.kill()?;
    child.wait().map(drop)
}

/// Kills a program that [`begin_process_group`] started, and does not wait for it.
pub fn kill_process_group(child: &mut Child) -> io::Result<()> {
    child.kill()
}

/// Does nothing: memory comes in small pages.
pub fn allow_huge_pages(_allow: bool) {}

/// Gives the calling thread a low priority.
pub fn lower_thread_priority() {
    if let Err(error) = ffi::lower_thread_priority() {
        tracing::debug!(%error, "embedding in the background runs at full priority");
    }
}

/// Limits the memory and the time of this process for good, and lets it start no other one.
pub(super) fn limit_resources(limits: super::Confinement) -> io::Result<()> {
    /// The length of a second in the units of the system.
    const SECOND: u64 = 10_000_000;
    let memory = usize::try_from(limits.memory).unwrap_or(usize::MAX);
    let time = i64::try_from(limits.seconds.saturating_mul(SECOND)).unwrap_or(i64::MAX);
    ffi::limit_resources(memory, time)
}

/// Returns false: the system does not tell why it ended a process.
pub fn is_out_of_time(_: ExitStatus) -> bool {
    false
}

/// Returns whether a process ended by what it did itself, such as an access to memory that it has not. Such an exit code has the
/// form of an error of the system (NTSTATUS), and no program chooses one.
pub fn is_own_fault(status: ExitStatus) -> bool {
    /// The severity of an error, in the two highest bits.
    const ERROR: u32 = 0xC000_0000;
    status.code().is_some_and(|code| code.cast_unsigned() & ERROR == ERROR)
}
