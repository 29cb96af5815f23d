//! The shared files of a folder: listing, reading and hashing them, and writing those of a copy.
//!
//! Only a copy is written this way, with what its authority holds already. Nothing here is a change of the vault.

use std::io::{self, Write as _};
use std::sync::Arc;

use sidenote_base::error::{Error, Result};
use sidenote_base::platform::FileMetadata;
use sidenote_markdown::edit::{ContentHash, FileLocation};
use sidenote_markdown::path::{NotePath, SETTINGS_FILES};

use crate::dir::{Dir, DirTree, remove_if_empty, split_path};
use crate::manifest::TEMPORARY;
use crate::{CONFIG_DIR, STATE_DIR, Vault};

/// The folder of deleted notes.
const TRASH_DIR: &str = ".trash";
/// With more files than this, one call that flushes the whole file system is cheaper than one for each file.
const MAX_SINGLE_SYNCS: usize = 12;

/// The path of a file that is shared: a visible file of the vault, one in the trash, or settings that sidenote reads. It
/// cannot lead out of the vault.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedPath(String);

impl SharedPath {
    /// Parses a path from the vault's root. Returns `None` for a file that is not shared.
    pub fn parse(text: &str) -> Option<Self> {
        let is_visible = NotePath::from_disk(text.strip_prefix(".trash/").unwrap_or(text)).is_some();
        (is_visible || SETTINGS_FILES.contains(&text)).then(|| Self(text.to_owned()))
    }

    /// Returns the path as text, from the vault's root and with forward slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns where the file is, as a change names it.
    pub fn location(&self) -> Option<FileLocation> {
        FileLocation::parse(&self.0)
    }

    /// Returns whether this is a file with settings.
    pub fn is_settings(&self) -> bool {
        SETTINGS_FILES.contains(&self.0.as_str())
    }

    /// Returns the path of a visible file; `None` for one in the trash and for settings.
    pub fn in_vault(&self) -> Option<NotePath> {
        NotePath::from_disk(&self.0)
    }
}

impl From<&FileLocation> for SharedPath {
    fn from(location: &FileLocation) -> Self {
        Self(location.to_string())
    }
}

/// The shared files of a folder.
#[derive(Debug)]
pub struct SharedFiles {
    tree: DirTree,
    max_size: u64,
    /// The files that were written since the last flush.
    written: Vec<SharedPath>,
    /// The folders whose entries changed since the last flush.
    removed_from: Vec<String>,
}

impl SharedFiles {
    /// Opens the folder of a vault.
    ///
    /// # Errors
    /// `Io` if it cannot be opened.
    pub fn open(vault: &Vault) -> Result<Self> {
        Ok(Self {
            tree: DirTree::open(vault)?,
            max_size: vault.max_file_size(),
            written: Vec::new(),
            removed_from: Vec::new(),
        })
    }

    /// Lists the files, in no particular order. Symbolic links are left out.
    ///
    /// # Errors
    /// `Io` if a folder cannot be listed.
    pub fn list(&mut self) -> Result<Vec<SharedPath>> {
        Ok(self.entries()?.into_iter().map(|(path, _)| path).collect())
    }

    /// Lists the files as [`Self::list`] does, each with its metadata.
    ///
    /// # Errors
    /// `Io` if a folder cannot be listed.
    pub fn entries(&mut self) -> Result<Vec<(SharedPath, FileMetadata)>> {
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(path) = folders.pop() {
            let Some(folder) = self.tree.find_dir(&path)? else { continue };
            let failed = |error| Error::io("list", &path, error);
            for name in folder.names().map_err(failed)? {
                let Some(name) = name.to_str() else { continue };
                let inner = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
                let is_listed =
                    !name.starts_with('.') || [TRASH_DIR, CONFIG_DIR, STATE_DIR].contains(&inner.as_str());
                let is_file = SharedPath::parse(&inner);
                if !is_listed && is_file.is_none() {
                    continue;
                }
                match folder.entry(name).map_err(failed)? {
                    // Folders of settings have folders that are not shared.
                    Some(entry) if entry.is_dir() && [CONFIG_DIR, STATE_DIR].contains(&path.as_str()) => {}
                    Some(entry) if entry.is_dir() => folders.push(inner),
                    Some(entry) if entry.is_file() => found.extend(is_file.map(|path| (path, entry))),
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// Returns the metadata of what is at a path; `None` if nothing is.
    ///
    /// # Errors
    /// `Invalid` if a folder of the path is a symbolic link; `Io` if it cannot be opened.
    pub fn entry(&mut self, path: &SharedPath) -> Result<Option<FileMetadata>> {
        self.tree.entry(path.as_str())
    }

    /// Removes a folder that holds only folders without files. Returns whether it is gone.
    ///
    /// # Errors
    /// `Io` if a folder cannot be listed or removed.
    pub fn remove_folder_without_files(&mut self, path: &str) -> Result<bool> {
        let mut folders = vec![path.to_owned()];
        let mut at = 0;
        while let Some(inner) = folders.get(at).cloned() {
            at += 1;
            let Some(folder) = self.tree.find_dir(&inner)? else { continue };
            let failed = |error| Error::io("list", &inner, error);
            for name in folder.names().map_err(failed)? {
                let entry = name.to_str().map_or(Ok(None), |name| folder.entry(name)).map_err(failed)?;
                match (entry, name.to_str()) {
                    (Some(entry), Some(name)) if entry.is_dir() => folders.push(format!("{inner}/{name}")),
                    _ => return Ok(false),
                }
            }
        }
        for inner in folders.iter().rev() {
            remove_if_empty(&mut self.tree, inner)?;
        }
        Ok(self.tree.entry(path)?.is_none())
    }

    /// Removes the folders of a path that are empty, the innermost first.
    ///
    /// # Errors
    /// `Io` if an empty folder cannot be removed.
    pub fn remove_empty_folders(&mut self, path: &str) -> Result<()> {
        let mut emptied = split_path(path).0;
        while !emptied.is_empty() {
            remove_if_empty(&mut self.tree, emptied)?;
            emptied = split_path(emptied).0;
        }
        Ok(())
    }

    /// Reads a file; `None` if there is none.
    ///
    /// # Errors
    /// `Io` if it cannot be read, or is larger than the vault allows.
    pub fn read(&mut self, path: &SharedPath) -> Result<Option<Vec<u8>>> {
        let (folder, name) = split_path(path.as_str());
        let Some(folder) = self.tree.find_dir(folder)? else { return Ok(None) };
        let failed = |error| Error::io("read", path.as_str(), error);
        match folder.entry(name).map_err(failed)? {
            Some(entry) if entry.is_file() => {
                folder.read_at_most(name, self.max_size).map(Some).map_err(failed)
            }
            _ => Ok(None),
        }
    }

    /// Returns the hash of a file; `None` if there is none.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub fn hash(&mut self, path: &SharedPath) -> Result<Option<ContentHash>> {
        Ok(self.read(path)?.map(|bytes| ContentHash::of(&bytes)))
    }

    /// Writes a file of a copy, whatever is there. It is durable after [`Self::flush`].
    ///
    /// # Errors
    /// `Io` if it cannot be written; `Invalid` if a folder of the path is a file or a symbolic link.
    pub fn write(&mut self, path: &SharedPath, bytes: &[u8]) -> Result<()> {
        let (parent, name) = split_path(path.as_str());
        let failed = |error| Error::io("write", path.as_str(), error);
        let folder = self.create_dir(parent)?;
        let mut temporary = format!(".{name}.copy{TEMPORARY}");
        if temporary.len() > 255 {
            temporary = format!(".{}.copy{TEMPORARY}", ContentHash::of(name.as_bytes()));
        }
        if folder.entry(&temporary).map_err(failed)?.is_some() {
            // A process that was killed left it.
            folder.remove(&temporary).map_err(failed)?;
        }
        let mut file = folder.create(&temporary, 0o666).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        drop(file);
        if folder.entry(name).map_err(failed)?.is_some_and(|entry| entry.is_dir()) {
            remove_if_empty(&mut self.tree, path.as_str())?;
        }
        folder.rename_replace(&temporary, &folder, name).map_err(failed)?;
        self.written.push(path.clone());
        Ok(())
    }

    /// Removes a file of a copy if it is there, and the folders that this empties.
    ///
    /// # Errors
    /// `Io` if it cannot be removed.
    pub fn remove(&mut self, path: &SharedPath) -> Result<()> {
        let (parent, name) = split_path(path.as_str());
        let Some(folder) = self.tree.find_dir(parent)? else { return Ok(()) };
        let failed = |error| Error::io("remove", path.as_str(), error);
        if folder.entry(name).map_err(failed)?.is_some_and(|entry| !entry.is_dir()) {
            folder.remove(name).map_err(failed)?;
            drop(folder);
            self.remove_empty_folders(path.as_str())?;
            self.removed_from.push(parent.to_owned());
        }
        Ok(())
    }

    /// Flushes everything that was written and removed to the disk.
    ///
    /// # Errors
    /// `Io` if that fails.
    pub fn flush(&mut self) -> Result<()> {
        let written = std::mem::take(&mut self.written);
        let mut folders = std::mem::take(&mut self.removed_from);
        if written.len() > MAX_SINGLE_SYNCS || folders.len() > MAX_SINGLE_SYNCS {
            match self.tree.folder("")?.sync_all() {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                synced => return synced.map_err(|error| Error::io("write to", "the copy", error)),
            }
        }
        for path in &written {
            let failed = |error| Error::io("write", path.as_str(), error);
            let (folder, name) = split_path(path.as_str());
            if let Some(open) = self.tree.find_dir(folder)? {
                open.sync_file(name).map_err(failed)?;
            }
            folders.push(folder.to_owned());
        }
        folders.sort_unstable();
        folders.dedup();
        for path in folders {
            if let Some(folder) = self.tree.find_dir(&path)? {
                folder.sync().map_err(|error| Error::io("write to", &path, error))?;
            }
        }
        Ok(())
    }

    /// Opens a folder, and creates it and those above it if they are missing.
    fn create_dir(&mut self, path: &str) -> Result<Arc<Dir>> {
        if let Some(folder) = self.tree.find_dir(path)? {
            return Ok(folder);
        }
        let (parent, name) = split_path(path);
        let above = self.create_dir(parent)?;
        above.open_or_create_dir(name).map_err(|error| Error::io("create the folder", path, error))?;
        self.tree.folder(path)
    }
}
