//! The undo log: before-images of committed operations, and the change sets that undo them.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_markdown::edit::{ChangeSet, Content, ContentHash, Edit, FileChange, FileLocation, FolderMove};
use sidenote_markdown::path::NotePath;

use crate::Vault;
use crate::apply_result::Applied;
use crate::dir::Dir;
use crate::manifest::{ChangedFile, Manifest, MovedFolder, patch_of};
use crate::transaction_records::{COMMITTED, IMAGES, MANIFEST, UNDO, read_manifest, remove_transaction};
use crate::write_lock::WriteLock;

/// One file of an operation, with what is needed to undo the change.
#[derive(Debug, Clone)]
pub struct FileUndo {
    /// The location before the operation; `None` for a new file.
    pub from: Option<FileLocation>,
    /// The location after the operation; `None` for a removed file.
    pub to: Option<FileLocation>,
    /// The hash of the bytes after the operation.
    pub after: Option<ContentHash>,
    /// The bytes before the operation, if they were changed or removed.
    pub image: Option<Vec<u8>>,
    /// The edits that turned these bytes into the new ones, if they are known.
    pub patch: Vec<Edit>,
}

/// An operation as its before-images record it.
#[derive(Debug, Clone)]
pub struct UndoRecord {
    /// The folders that moved.
    pub folders: Vec<FolderMove>,
    /// The files that changed.
    pub files: Vec<FileUndo>,
}

/// The bytes of one file before and after an operation that was made elsewhere, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct FetchedContents {
    /// The bytes before it.
    pub before: Option<Vec<u8>>,
    /// The bytes after it.
    pub after: Option<Vec<u8>>,
}

/// The undo log in one records folder.
#[derive(Debug)]
pub struct UndoLog {
    records: PathBuf,
    folder: Option<Dir>,
}

impl FileUndo {
    /// Returns the change that undoes this one. It expects the file to be as the operation left it.
    pub fn inverse(self) -> FileChange {
        let content = self.image.map_or(Content::Keep, Content::Whole);
        FileChange { from: self.to, to: self.from, before: self.after, content }
    }
}

/// Returns the moves that undo `folders`.
pub fn inverse_moves(folders: &[FolderMove]) -> Vec<FolderMove> {
    folders.iter().map(|folder| FolderMove { from: folder.to.clone(), to: folder.from.clone() }).collect()
}

impl UndoLog {
    /// Opens the undo log of a records folder. It is empty if the folder does not exist.
    ///
    /// # Errors
    /// `Io` if the before-images cannot be read.
    pub fn open(records: &Path) -> Result<Self> {
        let failed = |error| Error::io("open", records, error);
        let folder = match Dir::open(records).and_then(|folder| folder.open_dir(UNDO)) {
            Ok(folder) => Some(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { records: records.to_owned(), folder })
    }

    fn failed(&self) -> impl Fn(io::Error) -> Error + '_ {
        |error| Error::io("read the before-images in", &self.records, error)
    }

    /// Saves the bytes that a file had before another program changed it, so that the change can be undone like an
    /// operation. The caller adds it to the journal next; otherwise it is added by [`sidenote_journal::Journal::record_missing`].
    ///
    /// # Errors
    /// `Io` if the before-image cannot be written.
    pub fn save_before_image(
        lock: &WriteLock,
        event: &str,
        operation: &str,
        path: &NotePath,
        (before, after): (&[u8], &[u8]),
        at: Timestamp,
    ) -> Result<Applied> {
        let place = Some(FileLocation::Vault(path.clone()));
        let file = ChangedFile {
            from: place.clone(),
            to: place,
            before: Some(ContentHash::of(before)),
            after: Some(ContentHash::of(after)),
            image: Some((0, before.len() as u64)),
            patch: patch_of(&Content::Whole(after.to_vec()), before),
            temporary: None,
            inode: None,
        };
        let manifest = Manifest {
            id: event.to_owned(),
            operation: operation.to_owned(),
            undoes: None,
            at: at.millis(),
            folders: Vec::new(),
            made: Vec::new(),
            files: vec![file],
            more: serde_json::Map::new(),
        };
        let write = || {
            let folder = lock.folder.open_or_create_dir(UNDO)?.open_or_create_dir(&manifest.id)?;
            // The manifest is written last, because a folder without one is ignored.
            for (name, bytes) in [(IMAGES, before.to_vec()), (COMMITTED, serde_json::to_vec(&manifest)?)] {
                let mut file = folder.create(name, 0o600)?;
                file.write_all(&bytes)?;
                file.sync_data()?;
            }
            folder.sync()
        };
        write().map_err(|error| Error::io("write the before-images in", lock.records(), error))?;
        Ok(Applied::of(&manifest, Vec::new()))
    }

    /// Saves the before-images of an operation that was made elsewhere, so that it can be undone here. `contents` has the
    /// bytes of each file before and after it, as far as they are known. The journal has the operation already.
    ///
    /// # Errors
    /// `Io` if the before-images cannot be written.
    pub fn save_fetched(vault: &Vault, applied: &Applied, contents: &[FetchedContents]) -> Result<()> {
        let records = vault.records();
        let (mut images, mut files) = (Vec::new(), Vec::new());
        for (file, FetchedContents { before, after }) in applied.files.iter().zip(contents) {
            let is_replaced = file.to.is_none() || file.before != file.after;
            let image = before.as_ref().filter(|_| is_replaced).map(|bytes| {
                let offset = images.len() as u64;
                images.extend_from_slice(bytes);
                (offset, bytes.len() as u64)
            });
            let patch = match (before, after) {
                (Some(before), Some(after)) if before != after => {
                    patch_of(&Content::Whole(after.clone()), before)
                }
                _ => Vec::new(),
            };
            files.push(ChangedFile {
                from: file.from.clone(),
                to: file.to.clone(),
                before: file.before,
                after: file.after,
                image,
                patch,
                temporary: None,
                inode: None,
            });
        }
        let moved = |paths: &FolderMove| MovedFolder { paths: paths.clone(), inode: 0 };
        let manifest = Manifest {
            id: applied.id.clone(),
            operation: applied.operation.clone(),
            undoes: applied.undoes.clone(),
            at: applied.at.millis(),
            folders: applied.folders.iter().map(moved).collect(),
            made: applied.made.clone(),
            files,
            more: applied.more.clone(),
        };
        let records_folder = vault.create_records_dir(&records)?;
        let write = || {
            let folder = records_folder.open_or_create_dir(UNDO)?.open_or_create_dir(&manifest.id)?;
            // The manifest is written last, because a folder without one is ignored.
            for (name, bytes) in [(IMAGES, images), (MANIFEST, serde_json::to_vec(&manifest)?)] {
                if folder.entry(name)?.is_some() {
                    folder.remove(name)?;
                }
                let mut file = folder.create(name, 0o600)?;
                file.write_all(&bytes)?;
                file.sync_data()?;
            }
            folder.sync()
        };
        write().map_err(|error| Error::io("write the before-images in", &records, error))
    }

    /// Lists the ids of the operations that can be undone, oldest first.
    ///
    /// # Errors
    /// `Io` if the before-images cannot be read.
    pub fn ids(&self) -> Result<BTreeSet<String>> {
        self.ids_with(&[MANIFEST, COMMITTED])
    }

    /// Says whether an operation can be undone, without listing all.
    ///
    /// # Errors
    /// `Io` if the before-images cannot be read.
    pub fn has(&self, id: &str) -> Result<bool> {
        let Some(folder) = self.folder.as_ref().filter(|_| is_id(id)) else { return Ok(false) };
        let inner = match folder.open_dir(id) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(self.failed())?,
        };
        for file in [MANIFEST, COMMITTED] {
            if inner.entry(file).map_err(self.failed())?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists the names in the undo folder without reading the operations.
    ///
    /// # Errors
    /// `Io` if the before-images cannot be read.
    pub fn names(&self) -> Result<Vec<String>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let names = folder.names().map_err(self.failed())?;
        Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    fn ids_with(&self, files: &[&str]) -> Result<BTreeSet<String>> {
        let Some(folder) = &self.folder else { return Ok(BTreeSet::new()) };
        let mut ids = BTreeSet::new();
        for name in folder.names().map_err(self.failed())? {
            let Some(name) = name.into_string().ok() else { continue };
            let is_folder = folder.entry(&name).map_err(self.failed())?.is_some_and(|entry| entry.is_dir());
            if !is_folder {
                continue;
            }
            let inner = folder.open_dir(&name).map_err(self.failed())?;
            for file in files {
                if inner.entry(file).map_err(self.failed())?.is_some() {
                    ids.insert(name.clone());
                }
            }
        }
        Ok(ids)
    }

    fn read(&self, id: &str) -> Result<(Dir, Manifest)> {
        let missing = || {
            Error::not_found(format!("there are no before-images of operation {id}")).with_hint(
                "before-images are kept for a limited time; see the settings undo.days and undo.operations",
            )
        };
        if !is_id(id) {
            return Err(missing());
        }
        let folder = match self.folder.as_ref().ok_or_else(missing)?.open_dir(id) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing()),
            Err(error) => return Err(self.failed()(error)),
        };
        for name in [MANIFEST, COMMITTED] {
            if let Some(manifest) = read_manifest(&folder, name, id).map_err(self.failed())? {
                return Ok((folder, manifest));
            }
        }
        Err(missing())
    }

    /// Returns what an operation did.
    ///
    /// # Errors
    /// `NotFound` if its before-images were removed.
    pub fn applied(&self, id: &str) -> Result<Applied> {
        Ok(Applied::of(&self.read(id)?.1, Vec::new()))
    }

    /// Lists the folders that an operation created, outer ones first, by their paths after an undo.
    pub(crate) fn created_dirs(&self, id: &str) -> Result<Vec<String>> {
        Ok(self.read(id)?.1.made)
    }

    /// Reads what an operation did, with the bytes before it.
    ///
    /// # Errors
    /// `NotFound` if its before-images were removed, `Corrupt` if they are damaged.
    pub fn record(&self, id: &str) -> Result<UndoRecord> {
        let (folder, manifest) = self.read(id)?;
        let images = folder.read(IMAGES).map_err(self.failed())?;
        let mut record = UndoRecord {
            folders: manifest.folders.into_iter().map(|folder| folder.paths).collect(),
            files: Vec::new(),
        };
        for file in manifest.files {
            let image = match file.image {
                None => None,
                Some((offset, len)) => {
                    let image = usize::try_from(offset)
                        .ok()
                        .zip(usize::try_from(len).ok())
                        .and_then(|(offset, len)| images.get(offset..offset.checked_add(len)?));
                    let is_whole = |image: &&[u8]| Some(ContentHash::of(image)) == file.before;
                    let Some(image) = image.filter(is_whole) else {
                        return Err(Error::corrupt(format!(
                            "the before-images of {id} in {} are damaged",
                            self.records.display()
                        )));
                    };
                    Some(image.to_vec())
                }
            };
            let (from, to, after, patch) = (file.from, file.to, file.after, file.patch);
            record.files.push(FileUndo { from, to, after, image, patch });
        }
        Ok(record)
    }

    /// Returns the change set that undoes an operation. It expects the files to be as the operation left them.
    ///
    /// # Errors
    /// `NotFound` if its before-images were removed, `Corrupt` if they are damaged.
    pub fn inverse(&self, id: &str) -> Result<ChangeSet> {
        let record = self.record(id)?;
        let mut plan = ChangeSet { undoes: Some(id.to_owned()), ..ChangeSet::new("undo") };
        plan.folders = inverse_moves(&record.folders);
        plan.files = record.files.into_iter().map(FileUndo::inverse).collect();
        Ok(plan)
    }

    /// Lists the operations that may be missing from the journal, because the process ended between commit and append.
    ///
    /// # Errors
    /// `Io` if the before-images cannot be read.
    pub fn unjournaled(&self) -> Result<BTreeSet<String>> {
        self.ids_with(&[COMMITTED])
    }

    /// Marks an operation as recorded in the journal.
    ///
    /// # Errors
    /// `Io` if the mark cannot be written.
    pub fn mark_journaled(&self, id: &str) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let settled = folder.open_dir(id).and_then(|inner| inner.rename_replace(COMMITTED, &inner, MANIFEST));
        match settled {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed()(error)),
            _ => Ok(()),
        }
    }

    /// Removes all before-images of a copy, which is made again and then gets them. No change is carried out meanwhile.
    ///
    /// # Errors
    /// `Io` if they cannot be removed.
    pub fn clear(&self) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        for name in self.names()? {
            remove_transaction(folder, &name)
                .map_err(|error| Error::io("remove the before-images of", Path::new(&name), error))?;
        }
        Ok(())
    }

    /// Removes the before-images of an operation, so that it cannot be undone any more.
    ///
    /// # Errors
    /// `Io` if they cannot be removed, `Conflict` if the lock belongs to another records folder.
    pub fn remove(&self, lock: &WriteLock, id: &str) -> Result<()> {
        if lock.records() != self.records {
            return Err(Error::new(ErrorKind::Conflict, "the write lock belongs to another records folder"));
        }
        match &self.folder {
            Some(folder) => remove_transaction(folder, id)
                .map_err(|error| Error::io("remove the before-images of", Path::new(id), error)),
            None => Ok(()),
        }
    }
}

/// Says whether a text can be the name of a folder of before-images.
fn is_id(text: &str) -> bool {
    !text.contains(['/', '\0']) && !text.starts_with('.')
}
