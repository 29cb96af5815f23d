//! Owns the index folder: where it lies, whose it is, who holds its lock, how large it is, which files are in it, and which
//! of them go together.

use std::fs::File;
use std::io::{ErrorKind as ErrorName, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::clock::wall_nanos;
use crate::config;
use crate::error::{Error, ErrorKind, Result};
use crate::index::checksums;
use crate::index::vectors::remove_if_there;
use crate::platform;
use crate::safe_open;
use crate::vault::STATE_DIR;
use crate::vault::watch::PULSE_DIR;

/// Who writes the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// What it runs.
    pub command: String,
}

/// The catalog that a load makes, before it takes the place of the one that was there.
pub(super) const STAGED: &str = "catalog.new";
/// The files of SQLite for the staged catalog while it is open.
const STAGED_LOGS: [&str; 2] = ["catalog.new-wal", "catalog.new-shm"];
/// The files of SQLite for the catalog while it is open.
const LOGS: [&str; 2] = ["catalog.db-wal", "catalog.db-shm"];

/// Tells the index that is open from another one that stands in its folder.
#[derive(Debug)]
pub(super) struct Identity {
    folder: PathBuf,
    /// Device and inode of the catalog that is open.
    open: Mutex<Option<(u64, u64)>>,
}

impl Identity {
    /// Knows of no open index yet.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: Mutex::default() }
    }

    /// Says whether the open index is not the one that stands in its folder: another one does, or none.
    pub(super) fn is_displaced(&self) -> bool {
        // The folder is looked at with the lock held, for our own writer may be at it.
        let open = self.open();
        identity_of(&self.folder) != *open
    }

    /// Goes over to the catalog that [`identity_of`] told of.
    pub(super) fn adopt(&self, open: Option<(u64, u64)>) {
        *self.open() = open;
    }

    /// Puts the catalog that our own writer made in the place of the one that is open, whose log goes first: it must not
    /// be taken for one of the new catalog's.
    ///
    /// # Errors
    /// `Conflict` where somebody else's stands there, or none; `Io` where the folder cannot be written.
    pub(super) fn renew(&self) -> Result<()> {
        let mut open = self.open();
        if identity_of(&self.folder) != *open {
            return Err(displaced());
        }
        for log in LOGS {
            remove_if_there(&self.folder.join(log))?;
        }
        let (staged, path) = (self.folder.join(STAGED), self.folder.join("catalog.db"));
        // Who may read it stays as the user set it.
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

/// Says that somebody else made the index anew.
pub(super) fn displaced() -> Error {
    Error::new(ErrorKind::Conflict, "the index in the folder was replaced")
        .with_hint("it is opened again in a moment")
}

/// Gives device and inode of the catalog that stands in an index folder.
pub(super) fn identity_of(folder: &Path) -> Option<(u64, u64)> {
    Some(platform::metadata(&folder.join("catalog.db")).ok()?.id())
}

/// Gives the place of the index in a vault.
pub(super) fn kept_folder(root: &Path) -> PathBuf {
    root.join(STATE_DIR).join("index")
}

/// Gives the index folder of a vault: in the vault, or in the user's cache where that can only be read. A vault may be a
/// download, and a link in it must not lead our writes elsewhere. One that is to be read only (`spares`) is not written to
/// even where that could be done.
pub(super) fn own_folder(root: &Path, spares: bool) -> Result<PathBuf> {
    let index = kept_folder(root);
    let state = root.join(STATE_DIR);
    refuse_links(root, &index)?;
    let lock = index.join("lock");
    let there = [&lock, &index, &state].into_iter().find(|path| path.exists());
    if !spares && platform::is_writable(there.map_or(root, PathBuf::as_path)) {
        return Ok(index);
    }
    let elsewhere = std::env::temp_dir().join(format!("sidenote-{}", platform::user_name()));
    let places = [config::cache_folder(root, None), config::cache_folder(root, Some(&elsewhere))];
    let made = places.into_iter().flatten().find(|place| platform::make_private_dir(place).is_ok());
    made.ok_or_else(|| {
        Error::new(
            ErrorKind::Io,
            format!("{} can only be read, and there is no place for an index", root.display()),
        )
        .with_hints(
            "give a folder that can be written to: --index PATH",
            "ask the user to give the index a folder that can be written to",
        )
    })
}

/// Refuses an index folder that a symbolic link in the vault leads to, or that holds anything but files and folders.
/// SQLite, tantivy and usearch open files by their paths and would follow a link, and a pipe would make them wait.
///
/// # Errors
/// `Invalid` naming what stands there; `Io` where the folder cannot be listed.
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
                Ok(kind) if kind.is_file() => {}
                Ok(kind) if kind.is_symlink() => return refused(&entry.path(), "a symbolic link (symlink)"),
                Ok(_) => return refused(&entry.path(), "not a regular file"),
                // Another process removed it since it was listed.
                Err(error) if error.kind() == ErrorName::NotFound => {}
                Err(error) => return Err(Error::io("look at", entry.path(), error)),
            }
        }
    }
    Ok(())
}

/// How many bytes are read of a lock.
const MAX_LOCK: u64 = 65_536;

/// What tells a folder of ours.
const OURS: &[&str] = &["lock", ".gitignore"];

/// Refuses a folder that holds something else: making or rebuilding an index there would remove it.
fn refuse_foreign(folder: &Path) -> Result<()> {
    // One look: another process may be making an index there this moment, and begins with `.gitignore`.
    let entries = std::fs::read_dir(folder);
    let names: Vec<_> = entries.into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    let is_ours = names.iter().any(|name| OURS.iter().any(|ours| name == ours));
    // The watch's marks may be there before the rest is.
    let holds_something = names.iter().any(|name| name != PULSE_DIR);
    if holds_something && !is_ours {
        return Err(Error::invalid(format!(
            "{} holds other files, so no index is made there",
            folder.display()
        ))
        .with_hints(
            "give an empty or new folder: --index PATH",
            "ask the user to give the index an empty or new folder",
        ));
    }
    Ok(())
}

/// Takes the lock of the index; `None` where another process holds it. What it runs (`verb`) is told with its number,
/// and nothing of its arguments, which may be private.
pub(super) fn take_lock(root: &Path, folder: &Path, verb: &str) -> Result<Option<File>> {
    refuse_links(root, folder)?;
    refuse_foreign(folder)?;
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own folder")]
    let made = std::fs::create_dir_all(folder);
    let path = folder.join("lock");
    let ignore = folder.join(".gitignore");
    if made.is_ok() && std::fs::symlink_metadata(&ignore).is_err() {
        // Not by a temporary file: several processes may begin at once, and all write the same.
        let text = b"# Derived from the notes; safe to delete.\n*\n";
        let written = safe_open::create(&ignore).and_then(|mut file| file.write_all(text));
        written.map_err(|error| safe_open::failed("write", &ignore, error))?;
    }
    let mut file = match safe_open::open_or_create(&path, 0o600) {
        Ok(file) => file,
        Err(error) if safe_open::is_refusal(&error) => return Err(safe_open::failed("write", &path, error)),
        // A vault on a read-only disk is searched with the index that is there.
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
            // An earlier version left it readable by everyone.
            platform::restrict_to_user(&file)
        })
        .and_then(|()| file.write_all(holder.to_string().as_bytes()))
        .map_err(|error| Error::io("write", &path, error))?;
    Ok(Some(file))
}

/// Returns whether the lock was taken or given back less than `age` ago.
pub(super) fn is_lock_newer_than(folder: &Path, age: Duration) -> bool {
    let Ok(found) = platform::metadata(&folder.join("lock")) else { return false };
    wall_nanos().saturating_sub(found.modified_ns()) < i64::try_from(age.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn holder(folder: &Path) -> Option<Holder> {
    let path = folder.join("lock");
    let file = safe_open::open_in_place(&path).ok()?;
    // A lock that can be shared is held by nobody; the name in it is of a process that is gone.
    if platform::lock_shared(&file).is_ok_and(|shared| shared) {
        return None;
    }
    let value: serde_json::Value =
        serde_json::from_slice(&safe_open::read_open(file, MAX_LOCK).ok()?).ok()?;
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
                // Removed since it was listed: it takes no space.
                Err(_) => {}
            }
        }
    }
    Ok(total)
}

/// Removes what is left of a load that was given up, or killed.
pub(super) fn remove_staged(folder: &Path) -> Result<()> {
    STAGED_LOGS.iter().chain([&STAGED]).try_for_each(|name| remove_if_there(&folder.join(name)))
}

/// Removes the catalog and the full text, so that the next sync makes them anew. Vectors stay: they belong to texts.
pub(super) fn wipe(folder: &Path) -> Result<()> {
    checksums::break_open(folder)?;
    for name in LOGS.iter().chain(&["catalog.db"]) {
        remove_if_there(&folder.join(name))?;
    }
    let bm25 = folder.join("bm25");
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own folder")]
    match std::fs::remove_dir_all(&bm25) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &bm25, error)),
        _ => Ok(()),
    }
}
