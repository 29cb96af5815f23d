//! Owns the steps of a transaction on the notes: taking it back before it is committed, and carrying it out after.
//!
//! Each step looks first whether it was done before, so a crash at any of them is ended by doing them all again.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write as _};

use crate::error::{Error, Result};
use crate::text::edit::ContentHash;
use crate::vault::Vault;
use crate::vault::apply::{
    COMMITTED, CONFLICTS, MANIFEST, WriteLock, changed, in_parts, remove_if_empty, undone,
};
use crate::vault::dir::{Entry, Folder, Tree, split};
use crate::vault::manifest::{ChangedFile, Manifest, Removal, Rename};

/// More folders than this are brought onto the disk by one call for all.
const MANY_FOLDERS: usize = 8;

/// Why a committed transaction did not land.
#[derive(Debug)]
pub(crate) enum Unlanded {
    /// Nothing could be moved, and all is as it was.
    Undone(Error),
    /// Some of it is done; the manifest stays.
    Stuck(Error),
}

/// Takes back what was made before the commit: temporary files, folders, and the records of it.
pub(crate) fn roll_back(tree: &mut Tree, manifest: &Manifest, pending: &Folder) -> Result<()> {
    tree.forget();
    for path in manifest.files.iter().filter_map(|file| manifest.now(&manifest.temporary(file)?)) {
        let (folder, name) = split(&path);
        let Some(folder) = tree.find_folder(folder)? else { continue };
        let failed = |error| Error::io("remove the temporary file", &path, error);
        if folder.entry(name).map_err(failed)?.is_some() {
            folder.remove(name).map_err(failed)?;
        }
    }
    for path in manifest.made.iter().rev() {
        remove_if_empty(tree, path)?;
    }
    discard(pending, &manifest.id).map_err(|error| Error::io("remove the records of", &manifest.id, error))
}

/// Removes the records of a transaction, the manifest last.
pub(crate) fn discard(parent: &Folder, id: &str) -> io::Result<()> {
    let folder = parent.child(id)?;
    let mut names = folder.names()?;
    names.sort_by_key(|name| name == MANIFEST || name == COMMITTED);
    for name in names.iter().filter_map(|name| name.to_str()) {
        folder.remove(name)?;
    }
    parent.remove_folder(id)
}

/// Carries out a committed transaction. `seen` are the files as they were compared, while that is recent; without it
/// every file is read again. Gives sentences about files that somebody else changed meanwhile.
pub(crate) fn land(
    vault: &Vault,
    tree: &mut Tree,
    manifest: &Manifest,
    lock: &WriteLock,
    pending: &Folder,
    seen: Option<Vec<Option<Entry>>>,
) -> Result<Vec<String>, Unlanded> {
    let (file_renames, removals) = manifest.file_renames();
    let folder_renames = manifest.folder_renames();
    if let Err(error) = rename_all(tree, &folder_renames, &file_renames, seen.is_some()) {
        // A rename that is still to be done means that no content was replaced yet, so all can be taken back.
        let back = take_back(tree, folder_renames.iter().chain(&file_renames))
            .and_then(|()| {
                let failed = |error| Error::io("reopen the records of", &manifest.id, error);
                let folder = pending.child(&manifest.id).map_err(failed)?;
                folder.rename_over(COMMITTED, &folder, MANIFEST).map_err(failed)
            })
            .and_then(|()| roll_back(tree, manifest, pending));
        return Err(match back {
            Ok(()) => Unlanded::Undone(error),
            failed => Unlanded::Stuck(undone(error, failed)),
        });
    }
    let mut landing = Landing { vault, tree, manifest, lock, seen, notices: Vec::new() };
    match landing.replace_all().and_then(|()| landing.remove_all(&removals)).and_then(|()| landing.sync()) {
        Ok(()) => Ok(landing.notices),
        Err(error) => {
            let said = format!("{}; a part of the change is done", error.message());
            let hint = "the next command finishes it; nothing is lost";
            // What stands in the way stands in the way of the next command, too.
            let hint = error.hint().map_or_else(|| hint.to_owned(), |first| format!("{first}; {hint}"));
            Err(Unlanded::Stuck(Error::new(error.kind(), said).with_hint(hint).with_source(error)))
        }
    }
}

fn rename_all(tree: &mut Tree, folders: &[Rename], files: &[Rename], fresh: bool) -> Result<()> {
    for renames in [folders, files] {
        let destinations: HashSet<&str> = renames.iter().map(|rename| rename.to.as_str()).collect();
        for rename in renames {
            let todo = is_to_do(tree, rename, &destinations)?;
            if !todo && fresh {
                return Err(changed(&rename.from, "was replaced"));
            }
            if todo {
                rename_one(tree, &rename.from, &rename.to)?;
            }
        }
        // Names of folders lead elsewhere now.
        if !folders.is_empty() {
            tree.forget();
        }
    }
    Ok(())
}

/// Says whether a rename is still to be done: whether the file that it is about has its old name.
fn is_to_do(tree: &mut Tree, rename: &Rename, destinations: &HashSet<&str>) -> Result<bool> {
    let Some(entry) = tree.entry(&rename.from)? else { return Ok(false) };
    if rename.inode.is_none_or(|inode| inode == entry.inode) {
        return Ok(true);
    }
    // In a copy of the vault the numbers differ. What is moved there itself says nothing of this rename.
    if destinations.contains(rename.from.as_str()) || tree.entry(&rename.to)?.is_some() {
        return Ok(false);
    }
    Ok(match rename.hash {
        Some(hash) => hash_of(tree, &rename.from)? == Some(hash),
        None => entry.is_folder(),
    })
}

fn rename_one(tree: &mut Tree, from: &str, to: &str) -> Result<()> {
    let (from_folder, from_name) = tree.parent(from)?;
    let (to_folder, to_name) = tree.parent(to)?;
    from_folder
        .rename_new(from_name, &to_folder, to_name)
        .map_err(|error| Error::io("move", format!("{from} to {to}"), error))
}

/// Does the renames backwards, as far as they were done.
fn take_back<'a>(tree: &mut Tree, renames: impl DoubleEndedIterator<Item = &'a Rename>) -> Result<()> {
    for rename in renames.rev() {
        tree.forget();
        let there = tree.entry(&rename.to)?;
        if there.is_some_and(|entry| Some(entry.inode) == rename.inode) {
            rename_one(tree, &rename.to, &rename.from)?;
        }
    }
    tree.forget();
    Ok(())
}

/// Hashes a regular file; `None` where there is none.
fn hash_of(tree: &mut Tree, path: &str) -> Result<Option<ContentHash>> {
    let (folder, name) = split(path);
    let Some(folder) = tree.find_folder(folder)? else { return Ok(None) };
    hash_in(&folder, name).map_err(|error| Error::io("read", path, error))
}

fn hash_in(folder: &Folder, name: &str) -> io::Result<Option<ContentHash>> {
    match folder.entry(name)? {
        Some(entry) if entry.is_file() => Ok(Some(ContentHash::of(&folder.read(name)?))),
        _ => Ok(None),
    }
}

/// The second half of carrying out: contents and removals, which cannot be taken back.
struct Landing<'a> {
    vault: &'a Vault,
    tree: &'a mut Tree,
    manifest: &'a Manifest,
    lock: &'a WriteLock,
    seen: Option<Vec<Option<Entry>>>,
    notices: Vec<String>,
}

impl Landing<'_> {
    /// Says whether a file is as the transaction found it.
    fn is_as_before(
        &self,
        index: usize,
        folder: &Folder,
        name: &str,
        before: Option<ContentHash>,
    ) -> io::Result<bool> {
        let Some(entry) = folder.entry(name)? else { return Ok(false) };
        let seen = self.seen.as_ref().and_then(|seen| seen.get(index).copied().flatten());
        if seen.is_some_and(|seen| entry.is_untouched(&seen)) {
            return Ok(true);
        }
        Ok(before.is_some() && hash_in(folder, name)? == before)
    }

    fn replace_all(&mut self) -> Result<()> {
        let manifest = self.manifest;
        let files: Vec<(usize, &ChangedFile)> = manifest.files.iter().enumerate().collect();
        let this = &*self;
        let said = in_parts(self.vault, &files, |tree, &(index, file)| {
            let Some(to) = file.target() else { return Ok(None) };
            match &file.temporary {
                Some(temporary) => this.replace(tree, index, file, &to, temporary),
                None if this.seen.is_none() && tree.entry(&to)?.is_none() => {
                    Ok(Some(format!("{to} is not where {} moved it", manifest.operation)))
                }
                None => Ok(None),
            }
        })?;
        self.notices.extend(said.into_iter().flatten());
        Ok(())
    }

    /// Puts a temporary file in its place; gives a sentence where that could not be.
    fn replace(
        &self,
        tree: &mut Tree,
        index: usize,
        file: &ChangedFile,
        to: &str,
        temporary: &str,
    ) -> Result<Option<String>> {
        let failed = |error| Error::io("write", to, error);
        let (path, name) = split(to);
        let Some(folder) = tree.find_folder(path)? else {
            return Ok(Some(format!("{to} could not be written: its folder is gone")));
        };
        if folder.entry(temporary).map_err(failed)?.is_none() {
            // It has been put in place already, whatever became of it since, unless the file is still the old one.
            let is_old = file.before.is_some() && hash_in(&folder, name).map_err(failed)? == file.before;
            return Ok(is_old.then(|| format!("{to} keeps what it held: what was to be written is gone")));
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
                folder.rename_new(temporary, &folder, name)
            } else {
                folder.rename_over(temporary, &folder, name)
            };
            return renamed.map(|()| None).map_err(failed);
        }
        if hash_in(&folder, name).map_err(failed)? == file.after {
            return folder.remove(temporary).map(|()| None).map_err(failed);
        }
        self.set_aside(&folder, temporary, to).map_err(failed)?;
        Ok(Some(format!(
            "{to} was changed by somebody else before {} could write it, and was left alone; what it was to hold is in {}/{CONFLICTS}/{}/{to}",
            self.manifest.operation,
            self.lock.records().display(),
            self.manifest.id
        )))
    }

    /// Moves a file of ours out of the notes into the records.
    fn set_aside(&self, folder: &Folder, name: &str, path: &str) -> io::Result<()> {
        let bytes = folder.read(name)?;
        let mut kept = self.lock.folder.child_or_new(CONFLICTS)?.child_or_new(&self.manifest.id)?;
        let (folders, last) = split(path);
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            kept = kept.child_or_new(part)?;
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
            let (path, name) = split(&removal.at);
            let Some(folder) = self.tree.find_folder(path)? else { continue };
            if folder.entry(name).map_err(failed)?.is_none() {
                continue;
            }
            if self.is_as_before(removal.index, &folder, name, removal.before).map_err(failed)? {
                folder.remove(name).map_err(failed)?;
                continue;
            }
            let said = format!(
                "{} was changed by somebody else before {} could remove it, and was",
                removal.path, self.manifest.operation
            );
            if removal.at == self.manifest.then(&removal.path) {
                self.notices.push(format!("{said} left alone"));
            } else {
                self.set_aside(&folder, name, &removal.path).map_err(failed)?;
                let records = self.lock.records().display();
                self.notices.push(format!("{said} kept in {records}/{CONFLICTS}/{}", self.manifest.id));
            }
        }
        Ok(())
    }

    /// Brings the names of all folders concerned onto the disk.
    fn sync(&mut self) -> Result<()> {
        let mut folders = BTreeSet::new();
        let manifest = self.manifest;
        for moved in &manifest.folders {
            folders
                .extend([&moved.paths.from, &moved.paths.to].map(|path| split(path.as_str()).0.to_owned()));
        }
        for file in &manifest.files {
            let from = file.source().map(|from| manifest.then(&from));
            folders.extend([from, file.target()].iter().flatten().map(|path| split(path).0.to_owned()));
        }
        let failed = |error| Error::io("write to the folders of", self.lock.records(), error);
        if folders.len() > MANY_FOLDERS && self.tree.folder("")?.sync_all().is_ok() {
            return Ok(());
        }
        for path in folders {
            if let Some(folder) = self.tree.find_folder(&path)? {
                folder.sync().map_err(failed)?;
            }
        }
        Ok(())
    }
}
