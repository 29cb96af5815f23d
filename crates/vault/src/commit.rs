//! The steps of a transaction on the files: rollback before the commit point, roll forward after it.
//!
//! Every step is idempotent, so after a crash all of them are run again.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write as _};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform::FileMetadata;
use sidenote_markdown::edit::ContentHash;

use crate::Vault;
use crate::dir::{Dir, DirTree, remove_if_empty, split_path, waiting_in_tree};
use crate::manifest::{ChangedFile, Manifest, Removal, Rename};
use crate::replaced_files::ReplacedFiles;
use crate::transaction_records::{COMMITTED, CONFLICTS, MANIFEST, UNDO, remove_transaction};
use crate::write_lock::WriteLock;

/// More folders than this are flushed by one call for the whole file system.
const MAX_SINGLE_SYNCS: usize = 8;

/// The reason why a committed transaction was not carried out in full.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// A rename failed, and the transaction is no longer committed. What is left of it, the next command rolls back.
    RolledBack(Error),
    /// Only a part is done. The transaction stays committed, and the next command finishes the rest.
    Incomplete {
        /// Why.
        error: Error,
        /// One sentence for each file that another program changed meanwhile, as far as the transaction came.
        notices: Vec<String>,
    },
}

/// Rolls back a transaction before its commit point: removes temporary files, new folders and its records.
pub(crate) fn roll_back(tree: &mut DirTree, manifest: &Manifest, pending: &Dir) -> Result<()> {
    tree.close_all();
    for path in manifest.files.iter().filter_map(|file| manifest.path_before(&manifest.temporary(file)?)) {
        let (folder, name) = split_path(&path);
        let Some(folder) = tree.find_dir(folder)? else { continue };
        let failed = |error| Error::io("remove the temporary file", &path, error);
        if folder.entry(name).map_err(failed)?.is_some() {
            folder.remove(name).map_err(failed)?;
        }
    }
    for path in manifest.made.iter().rev() {
        remove_if_empty(tree, path)?;
    }
    remove_transaction(pending, &manifest.id)
        .map_err(|error| Error::io("remove the records of", &manifest.id, error))
}

/// Carries out a committed transaction. `seen` holds the metadata of the files when they were compared; without it
/// every file is read again. `is_first` says whether no step of it was done before. Returns one sentence for each file that another program changed meanwhile.
pub(crate) fn commit(
    vault: &Vault,
    tree: &mut DirTree,
    manifest: &Manifest,
    lock: &WriteLock,
    pending: &Dir,
    seen: Option<Vec<Option<FileMetadata>>>,
    is_first: bool,
) -> Result<Vec<String>, CommitError> {
    let (file_renames, removals) = manifest.file_renames();
    let folder_renames = manifest.folder_renames();
    if let Err(error) = rename_all(tree, &folder_renames, &file_renames, is_first) {
        // While a rename is missing, no content has been replaced, so the transaction can still be rolled back.
        let withdrawn = undo_renames(tree, folder_renames.iter().chain(&file_renames)).and_then(|()| {
            let failed = |error| Error::io("reopen the records of", &manifest.id, error);
            let folder = pending.open_dir(&manifest.id).map_err(failed)?;
            folder.rename_replace(COMMITTED, &folder, MANIFEST).map_err(failed)
        });
        return Err(match withdrawn {
            Ok(()) => {
                CommitError::RolledBack(with_rollback_result(error, roll_back(tree, manifest, pending)))
            }
            Err(second) => {
                tracing::debug!("a change that cannot be carried out stays committed: {second}");
                CommitError::Incomplete { error, notices: Vec::new() }
            }
        });
    }
    let replaced = ReplacedFiles::start(manifest.files.len());
    let mut commit = Commit { vault, tree, manifest, lock, seen, replaced, notices: Vec::new() };
    match commit.replace_all().and_then(|()| commit.remove_all(&removals)).and_then(|()| commit.sync()) {
        Ok(()) => Ok(commit.notices),
        Err(error) => Err(CommitError::Incomplete { error, notices: commit.notices }),
    }
}

fn rename_all(tree: &mut DirTree, folders: &[Rename], files: &[Rename], fresh: bool) -> Result<()> {
    for renames in [folders, files] {
        let destinations: HashSet<&str> = renames.iter().map(|rename| rename.to.as_str()).collect();
        for rename in renames {
            let todo = is_to_do(tree, rename, &destinations)?;
            if !todo && fresh {
                return Err(changed_on_disk(&rename.from, "was replaced"));
            }
            if todo {
                rename_one(tree, &rename.from, &rename.to)?;
            }
        }
        // Folder names refer to other folders now.
        if !folders.is_empty() {
            tree.close_all();
        }
    }
    Ok(())
}

/// Says whether a rename is still to be done: whether its file still has the old name.
fn is_to_do(tree: &mut DirTree, rename: &Rename, destinations: &HashSet<&str>) -> Result<bool> {
    let Some(entry) = tree.entry(&rename.from)? else { return Ok(false) };
    if rename.inode.is_none_or(|inode| inode == entry.inode) {
        return Ok(true);
    }
    // In a copy of the vault the inodes differ. A file that another rename put here says nothing about this one.
    if destinations.contains(rename.from.as_str()) || tree.entry(&rename.to)?.is_some() {
        return Ok(false);
    }
    Ok(match rename.hash {
        Some(hash) => hash_of(tree, &rename.from)? == Some(hash),
        None => entry.is_dir(),
    })
}

fn rename_one(tree: &mut DirTree, from: &str, to: &str) -> Result<()> {
    let (from_folder, from_name) = tree.parent(from)?;
    let (to_folder, to_name) = tree.parent(to)?;
    from_folder
        .rename_no_replace(from_name, &to_folder, to_name)
        .map_err(|error| Error::io("move", format!("{from} to {to}"), error))
}

/// Undoes the renames that were done, in reverse order.
fn undo_renames<'a>(tree: &mut DirTree, renames: impl DoubleEndedIterator<Item = &'a Rename>) -> Result<()> {
    for rename in renames.rev() {
        tree.close_all();
        let there = tree.entry(&rename.to)?;
        if there.is_some_and(|entry| Some(entry.inode) == rename.inode) {
            rename_one(tree, &rename.to, &rename.from)?;
        }
    }
    tree.close_all();
    Ok(())
}

/// Hashes a regular file; `None` if there is none.
fn hash_of(tree: &mut DirTree, path: &str) -> Result<Option<ContentHash>> {
    let (folder, name) = split_path(path);
    let Some(folder) = tree.find_dir(folder)? else { return Ok(None) };
    hash_in(&folder, name).map_err(|error| Error::io("read", path, error))
}

fn hash_in(folder: &Dir, name: &str) -> io::Result<Option<ContentHash>> {
    match folder.entry(name)? {
        Some(entry) if entry.is_file() => {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(folder.file(name)?)?;
            Ok(Some(ContentHash::from_bytes(*hasher.finalize().as_bytes())))
        }
        _ => Ok(None),
    }
}

/// The second half of a commit: new contents and removals, which cannot be rolled back.
struct Commit<'a> {
    vault: &'a Vault,
    tree: &'a mut DirTree,
    manifest: &'a Manifest,
    lock: &'a WriteLock,
    seen: Option<Vec<Option<FileMetadata>>>,
    replaced: ReplacedFiles,
    notices: Vec<String>,
}

impl Commit<'_> {
    /// Says whether a file is unchanged since the transaction was prepared.
    fn is_as_before(
        &self,
        index: usize,
        folder: &Dir,
        name: &str,
        before: Option<ContentHash>,
    ) -> io::Result<bool> {
        let Some(entry) = folder.entry(name)? else { return Ok(false) };
        let seen = self.seen.as_ref().and_then(|seen| seen.get(index).copied().flatten());
        if seen.is_some_and(|seen| entry.is_unchanged_since(&seen)) {
            return Ok(true);
        }
        Ok(before.is_some() && hash_in(folder, name)? == before)
    }

    fn replace_all(&mut self) -> Result<()> {
        let manifest = self.manifest;
        let files: Vec<(usize, &ChangedFile)> = manifest.files.iter().enumerate().collect();
        let this = &*self;
        let said = waiting_in_tree(self.vault, &files, |tree, &(index, file)| {
            let Some(to) = file.target() else { return Ok(None) };
            match &file.temporary {
                Some(temporary) => this.replace(tree, index, file, &to, temporary),
                None if this.seen.is_none() && tree.entry(&to)?.is_none() => {
                    Ok(Some(format!("{to} is missing, although {} moved a file there", manifest.operation)))
                }
                None => Ok(None),
            }
        })?;
        self.notices.extend(said.into_iter().flatten());
        Ok(())
    }

    /// Renames a temporary file to its target; returns a sentence if that was not possible.
    fn replace(
        &self,
        tree: &mut DirTree,
        index: usize,
        file: &ChangedFile,
        to: &str,
        temporary: &str,
    ) -> Result<Option<String>> {
        let failed = |error| Error::io("write", to, error);
        let (path, name) = split_path(to);
        let Some(folder) = tree.find_dir(path)? else {
            return Ok(Some(format!("{to} could not be written: its folder was removed")));
        };
        if folder.entry(temporary).map_err(failed)?.is_none() {
            // The rename was already done, unless the target still has its old content.
            let is_old = file.before.is_some() && hash_in(&folder, name).map_err(failed)? == file.before;
            return Ok(is_old.then(|| {
                format!("{to} keeps its old content: the temporary file with the new content is missing")
            }));
        }
        let is_whole = self.seen.is_some() || hash_in(&folder, temporary).map_err(failed)? == file.after;
        let is_new = file.from.is_none();
        let is_free = if is_new {
            folder.entry(name).map_err(failed)?.is_none()
        } else {
            self.is_as_before(index, &folder, name, file.before).map_err(failed)?
        };
        if is_whole && is_free {
            let renamed = if is_new {
                folder.rename_no_replace(temporary, &folder, name)
            } else {
                self.replaced.replace(&folder, name, || folder.rename_replace(temporary, &folder, name))
            };
            return renamed.map(|()| None).map_err(failed);
        }
        if hash_in(&folder, name).map_err(failed)? == file.after {
            return folder.remove(temporary).map(|()| None).map_err(failed);
        }
        self.set_aside(&folder, temporary, to).map_err(failed)?;
        Ok(Some(format!(
            "another program changed {to} before {} could write it; the file was left alone, and the new content is in {}/{CONFLICTS}/{}/{to}",
            self.manifest.operation,
            self.lock.records().display(),
            self.manifest.id
        )))
    }

    /// Moves a temporary file out of the notes into the conflicts folder of the records.
    fn set_aside(&self, folder: &Dir, name: &str, path: &str) -> io::Result<()> {
        let bytes = folder.read(name)?;
        let mut kept =
            self.lock.folder.open_or_create_dir(CONFLICTS)?.open_or_create_dir(&self.manifest.id)?;
        let (folders, last) = split_path(path);
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            kept = kept.open_or_create_dir(part)?;
        }
        if kept.entry(last)?.is_some() {
            kept.remove(last)?;
        }
        let mut file = kept.create(last, 0o600)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        folder.remove(name)
    }

    fn remove_all(&mut self, removals: &[Removal]) -> Result<()> {
        for removal in removals {
            let failed = |error| Error::io("remove", &removal.path, error);
            let (path, name) = split_path(&removal.at);
            let Some(folder) = self.tree.find_dir(path)? else { continue };
            if folder.entry(name).map_err(failed)?.is_none() {
                continue;
            }
            if self.is_as_before(removal.index, &folder, name, removal.before).map_err(failed)? {
                folder.remove(name).map_err(failed)?;
                continue;
            }
            let conflict = format!(
                "another program changed {} before {} could remove it; the file was",
                removal.path, self.manifest.operation
            );
            if removal.at == self.manifest.path_after(&removal.path) {
                self.notices.push(format!("{conflict} left alone"));
            } else {
                self.set_aside(&folder, name, &removal.path).map_err(failed)?;
                let records = self.lock.records().display();
                self.notices.push(format!("{conflict} moved to {records}/{CONFLICTS}/{}", self.manifest.id));
            }
        }
        Ok(())
    }

    /// Flushes all changed folders to the disk.
    fn sync(&mut self) -> Result<()> {
        let mut folders = BTreeSet::new();
        let manifest = self.manifest;
        for moved in &manifest.folders {
            folders.extend(
                [&moved.paths.from, &moved.paths.to].map(|path| split_path(path.as_str()).0.to_owned()),
            );
        }
        for file in &manifest.files {
            let from = file.source().map(|from| manifest.path_after(&from));
            folders.extend([from, file.target()].iter().flatten().map(|path| split_path(path).0.to_owned()));
        }
        let failed = |error| Error::io("write to the folders of", self.lock.records(), error);
        if folders.len() > MAX_SINGLE_SYNCS && self.tree.folder("")?.sync_all().is_ok() {
            return Ok(());
        }
        for path in folders {
            if let Some(folder) = self.tree.find_dir(&path)? {
                folder.sync().map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Adds the failure of a rollback to an error.
pub(crate) fn with_rollback_result(error: Error, rolled_back: Result<()>) -> Error {
    match rolled_back {
        Ok(()) => error,
        Err(second) => {
            Error::new(error.kind(), format!("{}; the rollback failed too: {second}", error.message()))
                .with_hint("the next command rolls the change back")
                .with_source(error)
        }
    }
}

/// Returns the error for a file that is not as the plan expects it.
pub(crate) fn changed_on_disk(path: &str, said: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("{path} {said} since it was read (changed-on-disk); nothing was written"),
    )
    .with_hint("try again; the change is then planned from the file as it is now")
}

/// Moves a committed transaction to the undo log.
pub(crate) fn close(manifest: &Manifest, lock: &WriteLock, pending: &Dir) -> Result<()> {
    let failed = |error| {
        Error::io("complete the records of the change in", lock.records(), error)
            .with_hint("the change itself is done; the next command completes its records")
    };
    let undo = lock.folder.open_or_create_dir(UNDO).map_err(failed)?;
    pending.rename_no_replace(&manifest.id, &undo, &manifest.id).map_err(failed)?;
    pending.sync().map_err(failed)
}
