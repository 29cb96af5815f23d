//! The differences between operating systems, behind one interface.
//!
//! No other module has code for one system only. `unix` and `windows` define the same items; this file has what both
//! share. What a system lacks is stated at the item.

use std::io;
use std::path::Path;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as system;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

mod confinement;
mod memory;
mod shell;

pub use confinement::Confinement;
pub use memory::{
    keep_free_memory, keep_free_memory_for_a_second, release_free_memory, release_program_pages,
};
pub use shell::Shell;
pub use system::{
    Attributes, Dir, HeldFile, ListedEntry, ListedFolder, allow_huge_pages, begin_process_group,
    canonicalize, create_symlink, end_process_group, entry_metadata, file_metadata, free_space,
    is_not_openable, is_on_read_only_file_system, is_out_of_time, is_own_fault, is_own_folder, is_private,
    is_symlink_refusal, is_too_many_open_files, is_writable, kill_process_group, kill_this_process,
    lower_thread_priority, make_private_dir, metadata, next_data, open_file_limit, open_in_place,
    open_without_links, os_string, read_dir, read_exact_at, restrict_folder, restrict_to_user,
    share_for_reading, sync_file_system, try_lock, try_lock_shared, unlock, unnotified_file_system, user_key,
    watch_limit, write_all_at,
};

/// What tells whether the entries of a folder are those of before: it differs after an entry was added, removed or renamed,
/// unless that happened within the resolution of the clock. Times are seconds and nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FolderState {
    /// The device and the inode of the folder.
    pub id: (u64, u64),
    /// The time of the last change of its entries.
    pub modified: (i64, i64),
    /// The time of the last change of its entries or of the folder itself, which no program can choose.
    pub changed: (i64, i64),
}

impl FolderState {
    /// Returns the time of modification in nanoseconds since 1970.
    pub fn modified_ns(&self) -> i64 {
        nanoseconds(self.modified)
    }

    /// Returns the time of the last change in nanoseconds since 1970.
    pub fn changed_ns(&self) -> i64 {
        nanoseconds(self.changed)
    }
}

/// Whether one watch of a folder reports the events of all its subfolders. A watch of each subfolder would keep folders
/// from being renamed on Windows.
pub const WATCHES_SUBFOLDERS: bool = cfg!(windows);

/// Whether the system refuses some names of files that others can have.
pub const LIMITS_NAMES: bool = cfg!(windows);

/// Whether a C++ library opens a file by any path, and lets it be replaced meanwhile. On Windows it opens only paths in
/// the code page of the system, and keeps the file from being replaced.
pub const LIBRARIES_OPEN_ANY_PATH: bool = !cfg!(windows);

/// Whether a file can be replaced while SQLite has it open.
pub const REPLACES_OPEN_FILES: bool = !cfg!(windows);

/// Whether some file names are dangerous: they open a device, another stream of a file, or lead to another folder.
pub const HAS_DANGEROUS_NAMES: bool = cfg!(windows);

/// The command that opens an address or a file with the program that the user chose for it.
pub const OPENER: &str = if cfg!(windows) {
    "rundll32 url.dll,FileProtocolHandler"
} else if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// The endings that the file of a program may have beside the name by which it is started.
pub const PROGRAM_ENDINGS: &[&str] = if cfg!(windows) { &["", ".exe", ".cmd"] } else { &[""] };

/// The folder below the user's home in which desktop programs keep their settings; `None` where it is the folder for
/// settings that command-line programs use as well.
pub const APPLICATION_SETTINGS: Option<&str> =
    if cfg!(target_os = "macos") { Some("Library/Application Support") } else { None };

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link; on Windows also a junction.
    Symlink,
    /// A pipe, a socket or a device.
    Other,
}

/// The metadata of a file, folder or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMetadata {
    /// The kind.
    pub kind: FileKind,
    /// The size in bytes.
    pub size: u64,
    /// The number of bytes that the file occupies on the disk.
    pub allocated: u64,
    /// The modification time in seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// The time of the last change of content, name or metadata in seconds and nanoseconds since 1970. No program can
    /// set it to a time of its choice.
    pub changed: (i64, i64),
    /// The number of the device or volume.
    pub device: u64,
    /// The inode number, or on Windows the file index on the volume.
    pub inode: u64,
    /// The number of names that the file has (hard links), where that is known without opening it; otherwise 1.
    pub links: u64,
    /// The permission bits. On Windows 0o444 for a read-only file and 0o666 for any other.
    pub mode: u32,
    /// The ids of user and group; 0 on Windows.
    pub owner: (u32, u32),
}

fn nanoseconds((seconds, rest): (i64, i64)) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

impl FileMetadata {
    /// Says whether this is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == FileKind::File
    }

    /// Says whether this is a folder.
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Dir
    }

    /// Says whether this is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.kind == FileKind::Symlink
    }

    /// Returns the modification time in nanoseconds since 1970.
    pub fn modified_ns(&self) -> i64 {
        nanoseconds(self.modified)
    }

    /// Returns the time of the last change of content, name or metadata in nanoseconds since 1970.
    pub fn changed_ns(&self) -> i64 {
        nanoseconds(self.changed)
    }

    /// Returns device and inode, which no other file has at the same time.
    pub fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Says whether this is the same file with the same size and modification time. Renames in between do not matter.
    pub fn is_unchanged_since(&self, earlier: &Self) -> bool {
        (self.kind, self.id(), self.size, self.modified)
            == (earlier.kind, earlier.id(), earlier.size, earlier.modified)
    }
}

/// How a file is opened. A symbolic link is never followed, and opening a pipe does not block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file for reading.
    Read,
    /// An existing file for reading and writing.
    ReadWrite,
    /// A file for reading and writing, created with these permission bits if it is missing.
    ReadWriteOrCreate(u32),
    /// A new file for writing, with these permission bits; an existing one is an error.
    CreateNew(u32),
    /// A file for reading and appending, created if it is missing.
    AppendOrCreate,
}

/// Returns the system for which this program was built: processor, operating system and C library.
pub fn target() -> String {
    let library = match () {
        () if cfg!(target_env = "gnu") => "-gnu",
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "msvc") => "-msvc",
        () => "",
    };
    format!("{}-{}{library}", std::env::consts::ARCH, std::env::consts::OS)
}

/// Says whether a folder distinguishes names by case, judged by an entry that is there; `None` if no entry tells.
pub fn is_case_sensitive(folder: &Path) -> Option<bool> {
    let swapped =
        |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.contains(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let other: String = name.chars().map(swapped).collect();
        let Ok(found) = entry_metadata(&entry.path()) else { continue };
        return match entry_metadata(&folder.join(other)) {
            Ok(other) => Some(other.id() != found.id()),
            Err(error) => (error.kind() == std::io::ErrorKind::NotFound).then_some(true),
        };
    }
    None
}

/// Returns the kind of the file system with a device number, if it can change without events, from the list of mounts that Linux
/// gives (proc_pid_mountinfo(5)).
pub fn unnotified_mount(mounts: &str, device: &str) -> Option<String> {
    /// The file systems of other machines, of the host of a virtual machine, and of clusters.
    const REMOTE: [&str; 22] = [
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "drvfs",
        "fuse",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "ocfs2",
        "prl_fs",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
    ];
    let kind = mounts.lines().find_map(|mount| {
        let (place, source) = mount.split_once(" - ")?;
        let kind = source.split(' ').next()?;
        (place.split(' ').nth(2)? == device).then_some(kind)
    })?;
    // `fuseblk` is a local disk.
    (REMOTE.contains(&kind) || kind.starts_with("fuse.")).then(|| kind.to_owned())
}

/// Flushes the content of a file in a trusted folder to the disk.
///
/// # Errors
/// System errors; `InvalidInput` if the path has no name.
pub fn sync_file(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Dir::open(folder)?.sync_file(name)
}

/// Returns the path of a file below a folder in the form that notes have, with `/` between the components; `None` if a
/// component is not UTF-8 or is not a plain name.
pub fn slash_path(inner: &Path) -> Option<String> {
    let mut path = String::new();
    for part in inner.components() {
        let std::path::Component::Normal(name) = part else { return None };
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name.to_str()?);
    }
    Some(path)
}

/// Returns whether Windows reserves a name for a device, with or without an extension.
pub fn is_device_name(name: &str) -> bool {
    let device = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    let number = device.strip_prefix("COM").or_else(|| device.strip_prefix("LPT"));
    let is_numbered = number.is_some_and(|rest| {
        let mut rest = rest.chars();
        matches!((rest.next(), rest.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    });
    matches!(device.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") || is_numbered
}
