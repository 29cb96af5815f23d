//! The folders of the journal: operations and votes are shared through git, all else stays in the working copy
//! (docs/spec/git.md 2).
//!
//! Each clone appends to a folder of its own, so that merges never meet in one file.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use sidenote_vault::Vault;
use sidenote_vault::dir::Dir;
use sidenote_vault::write_lock::{create_local_dir, lock_folder};

use crate::event::{Event, OP_MOVED};
use crate::is_month;

/// The file in the local folder that names this clone.
const CLONE_FILE: &str = "clone";
/// The folder of moves by other programs, in the local folder. They are apart from uses, which are many more.
const MOVES_DIR: &str = "moves";
/// The length of the name of a clone.
const NAME_LEN: usize = 12;
/// The maximum size of the file that names the clone.
const MAX_CLONE_FILE: u64 = 65_536;

/// A folder with month files of the journal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JournalFolder {
    /// The records folder itself, to which versions before clones had folders appended all events.
    Root,
    /// The folder of one clone: operations and votes.
    Clone(String),
    /// The local folder: uses, tiers and contexts.
    Uses,
    /// The moves by other programs, in the local folder.
    Moves,
}

/// One file of the journal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JournalFile {
    pub(super) folder: JournalFolder,
    /// The name of the file, such as `2026-09.jsonl`.
    pub(super) month: String,
}

impl fmt::Display for JournalFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let month = &self.month;
        match &self.folder {
            JournalFolder::Root => write!(f, "records/{month}"),
            JournalFolder::Clone(name) => write!(f, "records/{name}/{month}"),
            JournalFolder::Uses => write!(f, "local/{month}"),
            JournalFolder::Moves => write!(f, "local/{MOVES_DIR}/{month}"),
        }
    }
}

/// Says whether an event stays in this working copy, and in which folder.
fn local_folder(event: &Event) -> Option<JournalFolder> {
    let is_change = !event.files.is_empty() || !event.folders.is_empty() || event.undoes.is_some();
    match event.op.as_str() {
        OP_MOVED => Some(JournalFolder::Moves),
        // An importance that was written belongs to the change that wrote it.
        "vote" | "importance" => None,
        _ => (!is_change).then_some(JournalFolder::Uses),
    }
}

/// The right to rewrite files of the local folder. Dropping it releases the lock.
#[derive(Debug)]
pub struct LocalLock {
    file: std::fs::File,
    pub(super) folder: Dir,
}

impl Drop for LocalLock {
    fn drop(&mut self) {
        if let Err(error) = platform::unlock(&self.file) {
            tracing::debug!("the lock of the local folder could not be released: {error}");
        }
    }
}

/// The folders of the journal of one vault.
#[derive(Debug, Clone)]
pub(super) struct JournalFolders {
    vault: Vault,
    records: PathBuf,
}

impl JournalFolders {
    /// Names the folders of a journal by the records folder. None of them need exist.
    pub(super) fn new(vault: &Vault, records: &Path) -> Self {
        Self { vault: vault.clone(), records: records.to_owned() }
    }

    /// Returns the local folder, which is beside the records folder.
    fn local(&self) -> PathBuf {
        self.records.with_file_name("local")
    }

    /// Returns the path of a folder.
    pub(super) fn path_of(&self, folder: &JournalFolder) -> PathBuf {
        match folder {
            JournalFolder::Root => self.records.clone(),
            JournalFolder::Clone(name) => self.records.join(name),
            JournalFolder::Uses => self.local(),
            JournalFolder::Moves => self.local().join(MOVES_DIR),
        }
    }

    /// Returns the path of a file.
    pub(super) fn file_path(&self, file: &JournalFile) -> PathBuf {
        self.path_of(&file.folder).join(&file.month)
    }

    /// Opens a folder for reading; `None` if it does not exist.
    pub(super) fn open(&self, folder: &JournalFolder) -> Result<Option<Dir>> {
        self.vault.open_records(&self.path_of(folder))
    }

    /// Opens a folder for writing. A missing one is created.
    pub(super) fn create(&self, folder: &JournalFolder) -> Result<Dir> {
        let path = self.path_of(folder);
        let failed = |error| Error::io("make", &path, error);
        match folder {
            JournalFolder::Root => self.vault.create_records_dir(&self.records),
            JournalFolder::Clone(name) => {
                let records = self.vault.create_records_dir(&self.records)?;
                let folder = records.open_or_create_dir(name).map_err(failed)?;
                // Two branches of one clone append to the same file.
                folder.create_missing(".gitattributes", "*.jsonl merge=union\n").map_err(failed)?;
                Ok(folder)
            }
            JournalFolder::Uses => create_local_dir(&self.vault, &path),
            JournalFolder::Moves => {
                create_local_dir(&self.vault, &self.local())?.open_or_create_dir(MOVES_DIR).map_err(failed)
            }
        }
    }

    /// Lists the folders that exist.
    pub(super) fn list(&self) -> Result<Vec<JournalFolder>> {
        let mut folders = vec![JournalFolder::Root, JournalFolder::Uses, JournalFolder::Moves];
        if let Some(records) = self.open(&JournalFolder::Root)? {
            let names = records.names().map_err(|error| Error::io("list", &self.records, error))?;
            let names = names.iter().filter_map(|name| name.to_str()).filter(|name| is_clone_name(name));
            folders.extend(names.map(|name| JournalFolder::Clone(name.to_owned())));
        }
        Ok(folders)
    }

    /// Lists the months of a folder, oldest first.
    pub(super) fn months(&self, folder: &JournalFolder) -> Result<Vec<String>> {
        let Some(opened) = self.open(folder)? else { return Ok(Vec::new()) };
        let failed = |error| Error::io("list", self.path_of(folder), error);
        let names = opened.names().map_err(failed)?;
        let names = names.iter().filter_map(|name| name.to_str());
        let mut months: Vec<String> = names.filter(|name| is_month(name)).map(str::to_owned).collect();
        months.sort();
        Ok(months)
    }

    /// Lists all files of the journal.
    pub(super) fn files(&self) -> Result<Vec<JournalFile>> {
        let mut files = Vec::new();
        for folder in self.list()? {
            let file = |month| JournalFile { folder: folder.clone(), month };
            files.extend(self.months(&folder)?.into_iter().map(file));
        }
        Ok(files)
    }

    /// Groups events by the folder to which they are appended.
    pub(super) fn by_folder<'a>(
        &self,
        events: &'a [Event],
    ) -> Result<BTreeMap<JournalFolder, Vec<&'a Event>>> {
        let mut own = None;
        let mut groups: BTreeMap<JournalFolder, Vec<&Event>> = BTreeMap::new();
        for event in events {
            groups.entry(self.folder_of(event, &mut own)?).or_default().push(event);
        }
        Ok(groups)
    }

    /// Returns the folder to which an event is appended. `own` keeps the folder of this clone for the next call.
    pub(super) fn folder_of(&self, event: &Event, own: &mut Option<JournalFolder>) -> Result<JournalFolder> {
        match (local_folder(event), &own) {
            (Some(local), _) => Ok(local),
            (None, Some(own)) => Ok(own.clone()),
            (None, None) => Ok(own.insert(JournalFolder::Clone(self.clone_name()?)).clone()),
        }
    }

    /// Returns the name of this clone: random, and kept in the local folder with the place of the vault. A copy of the
    /// whole folder lies elsewhere, and gets a name of its own.
    pub(super) fn clone_name(&self) -> Result<String> {
        let path = self.local().join(CLONE_FILE);
        let folder = self.create(&JournalFolder::Uses)?;
        let inode = platform::entry_metadata(&self.local())
            .map_err(|error| Error::io("look at", self.local(), error))?;
        // Another machine with which the folder is synchronised may have it at the same path, but not at the same inode.
        let place = format!("{} {}", inode.id().1, self.vault.root().display());
        let written = |text: &str| {
            let (name, rest) = text.split_once('\n')?;
            (is_clone_name(name) && rest.trim_end() == place).then(|| name.to_owned())
        };
        let read = || -> Result<Option<String>> {
            match folder.file(CLONE_FILE) {
                Ok(file) => {
                    let mut text = String::new();
                    let read = file.take(MAX_CLONE_FILE).read_to_string(&mut text);
                    // A damaged file is replaced.
                    Ok(read.ok().and_then(|_| written(&text)))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(safe_open::failed("read", &path, error)),
            }
        };
        if let Some(name) = read()? {
            return Ok(name);
        }
        let mut random = uuid::Uuid::new_v4().simple().to_string();
        let fresh = format!("{CLONE_FILE}.{random}");
        random.truncate(NAME_LEN);
        let failed = |error| Error::io("write", &path, error);
        let mut file = folder.create(&fresh, 0o666).map_err(failed)?;
        let text = format!("{random}\n{place}\n");
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        drop(file);
        let renamed = if folder.entry(CLONE_FILE).map_err(failed)?.is_some() {
            folder.rename_replace(&fresh, &folder, CLONE_FILE)
        } else {
            folder.rename_no_replace(&fresh, &folder, CLONE_FILE)
        };
        match renamed {
            Ok(()) => {
                folder.sync().map_err(failed)?;
                Ok(random)
            }
            // Another process named the clone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                folder.remove(&fresh).map_err(failed)?;
                read()?.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Takes the lock of the local folder, and waits some seconds if another process holds it.
    ///
    /// # Errors
    /// `Conflict` naming the holder if it keeps the lock; `Io` if the folder cannot be written.
    pub(super) fn lock_local(&self) -> Result<LocalLock> {
        let folder = self.create(&JournalFolder::Uses)?;
        let file = lock_folder(&folder, &self.local())?;
        Ok(LocalLock { file, folder })
    }
}

/// Says whether a folder among the records has a name of the form that [`JournalFolders::clone_name`] makes.
fn is_clone_name(name: &str) -> bool {
    name.len() == NAME_LEN && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
