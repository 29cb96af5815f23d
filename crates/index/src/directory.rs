//! The index folder: where it is, its lock, the files in it, and the identity of the open catalog.

use std::fs::File;
use std::io::{ErrorKind as ErrorName, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use sidenote_base::atomic_file::remove_if_there;
use sidenote_base::clock::wall_nanos;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{platform, safe_open};
use sidenote_config as config;
use sidenote_vault::STATE_DIR;
use sidenote_vault::watch::MARKER_DIR;

use crate::checksums;

/// The process that holds the lock of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// The command that the process runs, without its arguments.
    pub command: String,
}

/// The staged catalog, which a load writes and which then replaces the published one.
pub(super) const STAGED: &str = "catalog.new";
/// Its copy without free space, before it takes its place.
pub(super) const PACKED: &str = "catalog.packed";
/// The files of SQLite beside both while they are open.
const STAGED_SQLITE_FILES: [&str; 5] = [
    "catalog.new-wal",
    "catalog.new-shm",
    "catalog.packed-journal",
    "catalog.packed-wal",
    "catalog.packed-shm",
];
/// The files of SQLite beside the catalog while it is open.
const SQLITE_FILES: [&str; 3] = ["catalog.db-wal", "catalog.db-shm", "catalog.db-journal"];

/// The identity of the open catalog, by which another index in the same folder is noticed.
#[derive(Debug)]
pub(super) struct Identity {
    folder: PathBuf,
    /// Device and inode of the open catalog.
    open: Mutex<Option<(u64, u64)>>,
}

impl Identity {
    /// Creates an identity without an open catalog.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: Mutex::default() }
    }

    /// Returns whether the folder contains another catalog than the open one, or none.
    pub(super) fn is_displaced(&self) -> bool {
        // The folder is examined while the lock is held, because the writer of this process may be replacing the
        // catalog.
        let open = self.open();
        identity_of(&self.folder) != *open
    }

    /// Sets the identity of the open catalog, as returned by [`identity_of`].
    pub(super) fn adopt(&self, open: Option<(u64, u64)>) {
        *self.open() = open;
    }

    /// Replaces the catalog with the staged one. The log of the old catalog is removed first, because SQLite would
    /// take it for the log of the new one.
    ///
    /// # Errors
    /// `Conflict` if the folder contains the catalog of another process, or none; `Io` if the folder cannot be
    /// written.
    pub(super) fn replace_catalog(&self) -> Result<()> {
        let mut open = self.open();
        if identity_of(&self.folder) != *open {
            return Err(displaced());
        }
        for log in SQLITE_FILES {
            remove_if_there(&self.folder.join(log))?;
        }
        let (staged, path) = (self.folder.join(STAGED), self.folder.join("catalog.db"));
        // The permissions that the user set are kept.
        let kept = std::fs::metadata(&path).map(|found| found.permissions());
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        let moved = kept
            .and_then(|permissions| std::fs::set_permissions(&staged, permissions))
            .and_then(|()| std::fs::rename(&staged, &path));
        moved.map_err(|error| Error::io("write", &path, error))?;
        *open = identity_of(&self.folder);
        Ok(())
    }

    fn open(&self) -> MutexGuard<'_, Option<(u64, u64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error that another process replaced the index.
pub(super) fn displaced() -> Error {
    Error::new(ErrorKind::Conflict, "another process replaced the index")
        .with_hint("it is opened again in a moment")
}

/// Returns device and inode of the catalog in an index folder.
pub(super) fn identity_of(folder: &Path) -> Option<(u64, u64)> {
    Some(platform::metadata(&folder.join("catalog.db")).ok()?.id())
}

/// Returns the index folder within a vault.
pub(super) fn vault_index_folder(root: &Path) -> PathBuf {
    root.join(STATE_DIR).join("index")
}

/// Returns the default index folder of a vault: in the vault, or in the user's cache folder if the vault cannot be
/// written or `is_read_only` is set. A symbolic link in the vault is refused, because a vault may be a download,
/// and the link could lead writes elsewhere.
pub(super) fn default_index_folder(root: &Path, is_read_only: bool) -> Result<PathBuf> {
    let index = vault_index_folder(root);
    let state = root.join(STATE_DIR);
    refuse_links(root, &index)?;
    let lock = index.join("lock");
    let there = [&lock, &index, &state].into_iter().find(|path| path.exists());
    if !is_read_only && platform::is_writable(there.map_or(root, PathBuf::as_path)) {
        return Ok(index);
    }
    let made = folders_elsewhere(root).find(|place| platform::make_private_dir(place).is_ok());
    made.ok_or_else(|| {
        Error::new(
            ErrorKind::Io,
            format!("{} is read-only, and no folder for the index can be written", root.display()),
        )
        .with_hints(
            "name a folder that can be written: --index PATH",
            "ask the user to give the index a folder that can be written to",
        )
    })
}

/// Returns the folders for the index of a vault that cannot be written: in the user's cache folder, or else in the
/// temporary folder.
fn folders_elsewhere(root: &Path) -> impl Iterator<Item = PathBuf> {
    let temporary = std::env::temp_dir().join(format!("sidenote-{}", platform::user_key()));
    [config::cache_folder(root, None), config::cache_folder(root, Some(&temporary))].into_iter().flatten()
}

/// Returns the folder in which a vault has its index, or would have it in the vault. Nothing is created.
pub(super) fn present_index_folder(root: &Path) -> PathBuf {
    let inside = vault_index_folder(root);
    let holds_index = |folder: &PathBuf| folder.join("catalog.db").exists();
    if holds_index(&inside) {
        return inside;
    }
    folders_elsewhere(root).find(holds_index).unwrap_or(inside)
}

/// Refuses an index folder that a symbolic link in the vault leads to, or that contains anything but folders and
/// regular files with one name. SQLite, tantivy and usearch open files by path: they would follow a symbolic link, wait
/// for a pipe, and write into a note through a hard link.
///
/// # Errors
/// `Invalid` with the path that is refused; `Io` if the folder cannot be listed.
pub(super) fn refuse_links(root: &Path, folder: &Path) -> Result<()> {
    let refused = |path: &Path, what: &str| {
        Err(Error::invalid(format!("{} is {what}, so no index is used there", path.display())).with_hints(
            "remove it, or put the index elsewhere: --index PATH",
            "ask the user to remove it, or to put the index elsewhere",
        ))
    };
    if let Ok(inner) = folder.strip_prefix(root) {
        for place in inner.ancestors().filter(|place| !place.as_os_str().is_empty()) {
            let place = root.join(place);
            if std::fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink()) {
                return refused(&place, "a symbolic link (symlink)");
            }
        }
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        let entries = match std::fs::read_dir(&inner) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorName::NotFound | ErrorName::NotADirectory) => continue,
            Err(error) => return Err(Error::io("list", &inner, error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| Error::io("list", &inner, error))?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    if platform::entry_metadata(&entry.path()).is_ok_and(|found| found.links > 1) {
                        return refused(&entry.path(), "also another file (hard link)");
                    }
                }
                Ok(kind) if kind.is_symlink() => return refused(&entry.path(), "a symbolic link (symlink)"),
                Ok(_) => return refused(&entry.path(), "not a regular file"),
                // Another process removed the file since it was listed.
                Err(error) if error.kind() == ErrorName::NotFound => {}
                Err(error) => return Err(Error::io("look at", entry.path(), error)),
            }
        }
    }
    Ok(())
}

/// The maximum number of bytes that are read of a lock file.
const MAX_LOCK_BYTES: u64 = 65_536;

/// The names by which an index folder is recognised: each is of a file that only an index has, or of one that begins it.
const MARKER_FILES: &[&str] = &["lock", ".gitignore", "catalog.db", checksums::NAME];

/// Refuses a folder that contains foreign files, because creating or rebuilding an index would remove them.
fn refuse_foreign(folder: &Path) -> Result<()> {
    // The folder is listed once, because another process may be creating an index in it, which begins with
    // `.gitignore`.
    let entries = std::fs::read_dir(folder);
    let names: Vec<_> = entries.into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    let is_ours = names.iter().any(|name| MARKER_FILES.iter().any(|marker| name == marker));
    // The marker files of the watch may exist before the other files.
    let holds_something = names.iter().any(|name| name != MARKER_DIR);
    if holds_something && !is_ours {
        return Err(Error::invalid(format!(
            "{} contains other files, so no index is created there",
            folder.display()
        ))
        .with_hints(
            "name an empty or new folder: --index PATH",
            "ask the user to give the index an empty or new folder",
        ));
    }
    Ok(())
}

/// Takes the lock of the index, and writes the process id and the command (`verb`) into it. Returns `None` if
/// another process holds the lock. Arguments are not written, because they may be private.
pub(super) fn take_lock(root: &Path, folder: &Path, verb: &str) -> Result<Option<File>> {
    refuse_links(root, folder)?;
    refuse_foreign(folder)?;
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own folder")]
    let made = std::fs::create_dir_all(folder);
    let path = folder.join("lock");
    let ignore = folder.join(".gitignore");
    if made.is_ok() && std::fs::symlink_metadata(&ignore).is_err() {
        // No temporary file is used: several processes may begin at the same time, and all write the same content.
        let text = b"# Derived from the notes; safe to delete.\n*\n";
        let written = safe_open::create(&ignore).and_then(|mut file| file.write_all(text));
        written.map_err(|error| safe_open::failed("write", &ignore, error))?;
    }
    let mut file = match safe_open::open_or_create(&path, 0o600) {
        Ok(file) => file,
        Err(error) if safe_open::is_refusal(&error) => return Err(safe_open::failed("write", &path, error)),
        // A vault on a read-only disk is searched with the existing index.
        Err(_) if folder.join("catalog.db").exists() => return Ok(None),
        Err(error) => {
            return Err(Error::io("write", &path, error).with_hints(
                "put the index elsewhere: --index PATH",
                "ask the user to put the index elsewhere",
            ));
        }
    };
    if !platform::try_lock(&file).map_err(|error| Error::io("lock", &path, error))? {
        return Ok(None);
    }
    let verb = if verb.is_empty() { "sidenote" } else { verb };
    let holder = serde_json::json!({ "pid": std::process::id(), "command": verb });
    file.set_len(0)
        .and_then(|()| {
            // An earlier version left the file readable by everyone.
            platform::restrict_to_user(&file)
        })
        .and_then(|()| file.write_all(holder.to_string().as_bytes()))
        .map_err(|error| Error::io("write", &path, error))?;
    Ok(Some(file))
}

/// Returns whether the lock was taken or released less than `age` ago.
pub(super) fn is_lock_newer_than(folder: &Path, age: Duration) -> bool {
    let Ok(found) = platform::metadata(&folder.join("lock")) else { return false };
    wall_nanos().saturating_sub(found.modified_ns()) < i64::try_from(age.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn holder(folder: &Path) -> Option<Holder> {
    let path = folder.join("lock");
    let file = safe_open::open_in_place(&path).ok()?;
    // A lock that can be shared is not held; its content is that of a process that has ended.
    if platform::try_lock_shared(&file).is_ok_and(|shared| shared) {
        return None;
    }
    let value: serde_json::Value =
        serde_json::from_slice(&safe_open::read_open(file, MAX_LOCK_BYTES).ok()?).ok()?;
    Some(Holder {
        pid: u32::try_from(value.get("pid")?.as_u64()?).ok()?,
        command: value.get("command")?.as_str()?.to_owned(),
    })
}

pub(super) fn folder_size(folder: &Path) -> Result<u64> {
    let mut total = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        let entries = match std::fs::read_dir(&inner) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("list", &inner, error)),
        };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) => total += meta.len(),
                // The file was removed since it was listed, so it takes no space.
                Err(_) => {}
            }
        }
    }
    Ok(total)
}

/// Removes what packing a staged catalog left.
pub(super) fn remove_packed(folder: &Path) -> Result<()> {
    let left = STAGED_SQLITE_FILES.iter().filter(|name| name.starts_with(PACKED)).chain([&PACKED]);
    left.copied().try_for_each(|name| remove_if_there(&folder.join(name)))
}

/// Removes the staged catalog of a load that was stopped or killed.
pub(super) fn remove_staged(folder: &Path) -> Result<()> {
    STAGED_SQLITE_FILES
        .iter()
        .chain([&STAGED, &PACKED])
        .try_for_each(|name| remove_if_there(&folder.join(name)))
}

/// Removes the catalog and the full text, so that the next sync rebuilds them. Vectors are kept, because they
/// belong to texts.
pub(super) fn wipe(folder: &Path) -> Result<()> {
    checksums::remove_seal(folder)?;
    for name in SQLITE_FILES.iter().chain(&["catalog.db"]) {
        remove_if_there(&folder.join(name))?;
    }
    let bm25 = folder.join("bm25");
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own folder")]
    match std::fs::remove_dir_all(&bm25) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &bm25, error)),
        _ => Ok(()),
    }
}
