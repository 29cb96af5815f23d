//! Applying a [`ChangeSet`] atomically: check, before-images, temporary files, then commit.
//!
//! Nothing else changes a note. `vault/recover` finishes or rolls back what a crash interrupts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Write as _};

use serde_json::{Map, Value};
use sidenote_base::clock::{Timestamp, event_id};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform::FileMetadata;
use sidenote_base::{parallel, safe_open};
use sidenote_markdown::edit;
use sidenote_markdown::edit::{ChangeSet, Content, ContentHash, FileChange, FolderMove};
use sidenote_markdown::path::{is_below, key};

use crate::Vault;
use crate::apply_result::Applied;
use crate::authority::{ReadyChange, authority_of};
use crate::commit::{CommitError, changed_on_disk, close, commit, roll_back, with_rollback_result};
use crate::dir::{
    Dir, DirTree, FileContents, MIN_FILES_PER_THREAD, copy_metadata, parallel_in_tree, remove_if_empty,
    split_path, symlink_error,
};
use crate::manifest::{
    ChangedFile, Manifest, MovedFolder, patch_of, path_after_moves, path_before_moves, temporary_name,
};
use crate::transaction_records::{COMMITTED, IMAGES, MANIFEST, PENDING};
use crate::undo_log::UndoLog;
use crate::write_lock::WriteLock;

/// With more files than this, one call that flushes the whole file system is cheaper than one for each file.
const MAX_SINGLE_SYNCS: usize = 12;
/// With as many new contents, the first half is flushed while the other one is created.
const MIN_FLUSHED_EARLY: usize = 200;

impl Vault {
    /// Checks that a plan could be applied now, without writing anything, so that a dry run reports the same errors.
    ///
    /// # Errors
    /// The errors that [`Vault::apply`] returns before it writes anything.
    pub fn check(&self, plan: &ChangeSet) -> Result<()> {
        self.refuse_read_only()?;
        let mut look = FileCheck::open(self, plan)?;
        let survey = PlanCheck { look: &mut look, made: Vec::new(), spelled: HashSet::new() };
        survey.draft(self, String::new(), Timestamp::default()).map(drop)
    }

    /// Applies a plan atomically. The bytes that it replaces or removes are saved for `undo`.
    ///
    /// # Errors
    /// Before anything is written: `Conflict` (`changed-on-disk`) if a file is not as the plan expects it; `Exists`
    /// (`target-exists`, `case-collision`) if a new name is taken; `Invalid` (`symlink`) for anything but regular files
    /// in real folders; `Io` for files and folders that are not writable. `Io` while writing before the commit point: the
    /// change is rolled back. The errors of [`ChangeLock::commit`](crate::authority::ChangeLock::commit), after which nothing was
    /// changed. After the commit point nothing is an error: the change is made, and a notice says what the next command still
    /// has to write.
    pub fn apply(&self, lock: &WriteLock, plan: &ChangeSet, at: Timestamp) -> Result<Applied> {
        self.apply_with_metadata(lock, plan, at, Map::new())
    }

    /// Applies a plan like [`Vault::apply`], and adds the fields `more` to its event in the journal.
    ///
    /// # Errors
    /// The errors of [`Vault::apply`].
    pub fn apply_with_metadata(
        &self,
        lock: &WriteLock,
        plan: &ChangeSet,
        at: Timestamp,
        more: Map<String, Value>,
    ) -> Result<Applied> {
        let records = |error| Error::io("write the records in", lock.records(), error);
        let pending = lock.folder.open_or_create_dir(PENDING).map_err(records)?;
        if has_folders(&pending).map_err(records)? {
            return Err(Error::new(ErrorKind::Conflict, "an earlier change is not finished")
                .with_hint("the next command finishes it or rolls it back first"));
        }
        let id = event_id(at);
        let mut look = FileCheck::open(self, plan)?;
        let survey = PlanCheck { look: &mut look, made: Vec::new(), spelled: HashSet::new() };
        let mut draft = survey.draft(self, id.simple().to_string(), at)?;
        draft.manifest.more = more;
        let mut tree = look.tree;
        if draft.manifest.files.is_empty() && draft.manifest.folders.is_empty() {
            return Ok(Applied { id: String::new(), ..Applied::of(&draft.manifest, Vec::new()) });
        }
        let folder = pending.open_or_create_dir(&draft.manifest.id).map_err(records)?;
        let prepared = write_records(&draft, &folder)
            .and_then(|()| pending.sync())
            .map_err(records)
            .and_then(|()| prepare(&mut tree, self, &draft))
            .and_then(|()| lock.commit(&draft.ready()));
        if let Err(error) = prepared {
            return Err(with_rollback_result(error, roll_back(&mut tree, &draft.manifest, &pending)));
        }
        let mut notices = match carry_out(self, &mut tree, &draft, lock, (&pending, &folder)) {
            Ok(notices) => notices,
            Err(CommitError::RolledBack(error) | CommitError::Incomplete { error, .. })
                if authority_of(self).is_shared() =>
            {
                // The change is committed, so an error would tell the caller something wrong.
                let notice = format!("the change is stored, but this copy gets it later: {error}");
                return Ok(Applied::of(&draft.manifest, vec![notice]));
            }
            Err(CommitError::RolledBack(error)) => return Err(error),
            // The same here: a caller that made the change again would make it twice.
            Err(CommitError::Incomplete { error, mut notices }) => {
                notices.push(format!(
                    "the change is made, but a part of it is not written yet; the next command writes it: {error}"
                ));
                return Ok(Applied::of(&draft.manifest, notices));
            }
        };
        if let Some(undone) = &plan.undoes
            && let Err(error) = remove_created_dirs(&mut tree, lock, undone)
        {
            tracing::warn!(%error, "an empty folder of the undone operation could not be removed");
        }
        // The change is done. A later error does not fail it.
        if let Err(error) = close(&draft.manifest, lock, &pending) {
            notices.push(format!(
                "{error}; the change itself is done, and the next command completes its records"
            ));
        }
        Ok(Applied::of(&draft.manifest, notices))
    }
}

/// Carries out a change that is prepared: its commit in the folder, and all steps after it. `folders` are the one of
/// unfinished transactions and the one of this.
fn carry_out(
    vault: &Vault,
    tree: &mut DirTree,
    draft: &PreparedChange<'_>,
    lock: &WriteLock,
    (pending, folder): (&Dir, &Dir),
) -> Result<Vec<String>, CommitError> {
    // This rename is the commit point. It counts once the folder is flushed.
    let committed = folder.rename_replace(MANIFEST, folder, COMMITTED).and_then(|()| {
        let Err(error) = folder.sync() else { return Ok(()) };
        match folder.rename_replace(COMMITTED, folder, MANIFEST) {
            Ok(()) => Err(error),
            Err(second) => {
                tracing::warn!(
                    "a change is made, but a power failure could still undo it: its records are not flushed ({error}), nor \
                     can they be withdrawn ({second})"
                );
                Ok(())
            }
        }
    });
    if let Err(error) = committed {
        let error = Error::io("write the records in", lock.records(), error);
        let rolled_back = roll_back(tree, &draft.manifest, pending);
        return Err(CommitError::RolledBack(with_rollback_result(error, rolled_back)));
    }
    let seen: Vec<_> = draft.files.iter().map(|file| file.found.as_ref().map(|found| found.entry)).collect();
    match commit(vault, tree, &draft.manifest, lock, pending, Some(seen.clone()), true) {
        // All steps can be made again, and most failures pass.
        Err(CommitError::Incomplete { error, mut notices }) => {
            tracing::debug!("a committed change is carried out again: {error}");
            let again = commit(vault, tree, &draft.manifest, lock, pending, Some(seen), false);
            match again {
                Ok(later) => {
                    notices.extend(later);
                    Ok(notices)
                }
                Err(CommitError::Incomplete { error, notices: later }) => {
                    notices.extend(later);
                    Err(CommitError::Incomplete { error, notices })
                }
                rolled_back => rolled_back,
            }
        }
        done => done,
    }
}

/// Removes the folders that an undone operation created, if they are empty.
///
/// `tree` is closed first: where a system removes a folder when its last handle is closed, its parent would not be empty.
pub(crate) fn remove_created_dirs(tree: &mut DirTree, lock: &WriteLock, undone: &str) -> Result<()> {
    tree.close_all();
    for path in UndoLog::open(lock.records())?.created_dirs(undone)?.iter().rev() {
        remove_if_empty(tree, path)?;
    }
    Ok(())
}

/// Says whether a folder contains a folder.
fn has_folders(folder: &Dir) -> io::Result<bool> {
    for name in folder.names()? {
        let entry = name.to_str().map_or(Ok(None), |name| folder.entry(name))?;
        if entry.is_some_and(|entry| entry.is_dir()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A checked plan with its manifest and new contents.
#[derive(Debug)]
struct PreparedChange<'a> {
    manifest: Manifest,
    /// The files, in the order of the manifest.
    files: Vec<PreparedFile<'a>>,
}

impl PreparedChange<'_> {
    /// Returns the change for the authority that commits it.
    fn ready(&self) -> ReadyChange<'_> {
        let contents = self.files.iter().map(|file| file.after.as_deref()).collect();
        ReadyChange { manifest: &self.manifest, contents }
    }
}

#[derive(Debug)]
struct PreparedFile<'a> {
    /// The present file, if its bytes are needed.
    found: Option<FileContents>,
    after: Option<std::borrow::Cow<'a, [u8]>>,
}

/// The check of a plan against the files.
struct PlanCheck<'a, 'b> {
    look: &'a mut FileCheck<'b>,
    made: Vec<String>,
    /// The folders that have the spelling by which the plan names them.
    spelled: HashSet<String>,
}

/// The check of single files of a plan, used by one thread.
struct FileCheck<'b> {
    tree: DirTree,
    plan: &'b ChangeSet,
    max_hashed: u64,
    /// The folders that are known to be writable.
    writable: HashSet<String>,
}

impl<'a, 'b> PlanCheck<'a, 'b> {
    fn draft(mut self, vault: &Vault, id: String, at: Timestamp) -> Result<PreparedChange<'b>> {
        let folders = self.folders()?;
        let plan = self.look.plan;
        let mut sources = HashSet::new();
        for from in plan.files.iter().filter_map(|change| change.from.as_ref()) {
            if !sources.insert(from) {
                return Err(Error::internal(format!("the plan changes {from} twice")));
            }
        }
        let start = || FileCheck::open(vault, plan);
        let looked = parallel::map(&plan.files, MIN_FILES_PER_THREAD, start, |look, change| match look {
            Ok(look) => look.file(change),
            Err(error) => Err(Error::new(error.kind(), error.message())),
        });
        let mut files = Vec::new();
        let mut changed = Vec::new();
        for found in looked {
            if let Some((file, draft)) = found? {
                changed.push(file);
                files.push(draft);
            }
        }
        self.targets(&changed)?;
        for (index, file) in changed.iter_mut().enumerate() {
            let writes = files.get(index).is_some_and(|draft| draft.after.is_some());
            if let Some(to) = file.target().filter(|_| writes) {
                file.temporary = Some(temporary_name(split_path(&to).1, &id, &index.to_string()));
            }
        }
        let mut offset = 0;
        for (file, draft) in changed.iter_mut().zip(&files) {
            if let Some(found) =
                draft.found.as_ref().filter(|_| file.temporary.is_some() || file.to.is_none())
            {
                let len = found.bytes.len() as u64;
                file.image = Some((offset, len));
                offset += len;
            }
        }
        let manifest = Manifest {
            id,
            operation: plan.operation.clone(),
            undoes: plan.undoes.clone(),
            at: at.millis(),
            folders,
            made: self.made,
            files: changed,
            more: Map::new(),
        };
        Ok(PreparedChange { manifest, files })
    }

    fn folders(&mut self) -> Result<Vec<MovedFolder>> {
        let moves: Vec<&FolderMove> =
            self.look.plan.folders.iter().filter(|folder| folder.from != folder.to).collect();
        let mut found = Vec::new();
        for (index, folder) in moves.iter().enumerate() {
            let (from, to) = (folder.from.as_str(), folder.to.as_str());
            if is_below(to, from) {
                return Err(Error::invalid(format!("{from} cannot move into itself, to {to}")));
            }
            let clashes = moves.iter().enumerate().any(|(other, with)| {
                let (other_from, other_to) = (with.from.as_str(), with.to.as_str());
                other != index
                    && (from == other_from
                        || to == other_to
                        || is_below(from, other_from)
                        || is_below(to, other_to)
                        || is_below(to, other_from)
                        || is_below(from, other_to))
            });
            if clashes {
                return Err(Error::internal(format!("the plan moves {from} and a folder in or around it")));
            }
            let inode = match self.look.tree.entry(from)? {
                Some(entry) if entry.is_symlink() => return Err(symlink_error(from)),
                Some(entry) if entry.is_dir() => entry.inode,
                Some(_) => return Err(Error::invalid(format!("{from} is not a folder"))),
                None => return Err(changed_on_disk(from, "is gone")),
            };
            self.look.may_change_folder_of(from)?;
            found.push(MovedFolder { paths: (*folder).clone(), inode });
        }
        Ok(found)
    }
    /// Checks that every new name is free, and lists the folders that must be created.
    fn targets(&mut self, files: &[ChangedFile]) -> Result<()> {
        let folders = &self.look.plan.folders;
        let mut leaving: HashSet<String> = folders.iter().map(|folder| folder.from.to_string()).collect();
        let mut coming: Vec<(String, Option<String>)> = folders
            .iter()
            .filter(|folder| folder.from != folder.to)
            .map(|folder| (folder.to.to_string(), Some(folder.from.to_string())))
            .collect();
        for file in files {
            let (from, to) = (file.source(), file.target());
            let stays =
                from.as_ref().is_some_and(|from| to.as_ref() == Some(&path_after_moves(folders, from)));
            if !stays {
                leaving.extend(from.clone());
                coming.extend(to.map(|to| (to, from)));
            }
        }
        // An undo may restore two names that differ only in case, because both existed before. Another folder may have them.
        let comes_back = self.look.plan.undoes.is_some() || self.look.plan.repeats_names;
        let mut new = NewNames::default();
        let mut listed: HashMap<String, Option<HashMap<String, Vec<String>>>> = HashMap::new();
        let mut next = 0;
        while let Some((path, from)) = coming.get(next).cloned() {
            next += 1;
            new.add(&path, comes_back)?;
            let parent = split_path(&path).0;
            let Some(parent) = path_before_moves(folders, parent) else {
                return Err(Error::internal(format!("the plan puts {path} into a folder that moves away")));
            };
            if !listed.contains_key(&parent) {
                let names = self.names(&parent)?;
                if names.is_none() {
                    coming.push((path_after_moves(folders, &parent), None));
                    self.made.push(parent.clone());
                }
                listed.insert(parent.clone(), names);
            }
            if let Some(Some(names)) = listed.get(&parent) {
                if !comes_back && !path.starts_with(".trash/") {
                    self.is_spelled_so(&parent, &path)?;
                }
                check_name(&path, &parent, names, &leaving, comes_back)?;
            }
            if let Some(from) = from {
                self.same_device(&from, &parent, &path)?;
            }
        }
        self.made.sort_by_key(|path| path.matches('/').count());
        for path in self.made.clone() {
            // Only the outermost new folders are created in an existing one.
            if self.look.tree.find_dir(split_path(&path).0)?.is_some() {
                self.look.may_change_folder_of(&path)?;
            }
        }
        Ok(())
    }

    /// Fails if the file system found a folder by another spelling than its own: the new file would be in that folder,
    /// and its path would be another.
    fn is_spelled_so(&mut self, folder: &str, path: &str) -> Result<()> {
        let (above, name) = split_path(folder);
        if folder.is_empty() || !self.spelled.insert(folder.to_owned()) {
            return Ok(());
        }
        let Some(open) = self.look.tree.find_dir(above)? else { return Ok(()) };
        let names = open.names().map_err(|error| Error::io("list", above, error))?;
        if !names.iter().any(|other| other == name) {
            let mut others = names.iter().filter_map(|other| other.to_str());
            let other = others.find(|other| key(other) == key(name)).unwrap_or(name);
            let said = format!("would be in {other}, whose name differs only in case or accents");
            return Err(taken(path, &said, "case-collision"));
        }
        self.is_spelled_so(above, path)
    }

    /// Lists the names in a folder by their keys; `None` if the folder does not exist.
    fn names(&mut self, folder: &str) -> Result<Option<HashMap<String, Vec<String>>>> {
        let open = match self.look.tree.find_dir(folder) {
            Ok(Some(open)) => open,
            Ok(None) => return Ok(None),
            Err(error) => return Err(error),
        };
        let failed = |error| Error::io("list", folder, error);
        open.may_write(".").map_err(|error| Error::io("change the folder", folder, error))?;
        let mut names: HashMap<String, Vec<String>> = HashMap::new();
        for name in open.names().map_err(failed)? {
            if let Some(name) = name.to_str() {
                names.entry(key(name)).or_default().push(name.to_owned());
            }
        }
        Ok(Some(names))
    }

    /// Fails if a file would move to another file system, because such a move is not atomic.
    fn same_device(&mut self, from: &str, folder: &str, to: &str) -> Result<()> {
        let failed = |error| Error::io("move to", to, error);
        let here = self.look.tree.parent(from)?.0.device().map_err(failed)?;
        let mut nearest = folder;
        let there = loop {
            match self.look.tree.find_dir(nearest)? {
                Some(found) => break found.device().map_err(failed)?,
                None => nearest = split_path(nearest).0,
            }
        };
        if here == there { Ok(()) } else { Err(failed(io::ErrorKind::CrossesDevices.into())) }
    }
}

impl<'b> FileCheck<'b> {
    fn open(vault: &Vault, plan: &'b ChangeSet) -> Result<Self> {
        let tree = DirTree::open(vault)?;
        Ok(Self { tree, plan, max_hashed: vault.max_file_size, writable: HashSet::new() })
    }

    /// Checks one file; `None` if nothing happens to it.
    fn file(&mut self, change: &'b FileChange) -> Result<Option<(ChangedFile, PreparedFile<'b>)>> {
        let Some(place) = &change.from else { return new_file(change).map(Some) };
        let path = place.to_string();
        let moves =
            change.to.as_ref().is_none_or(|to| to.to_string() != path_after_moves(&self.plan.folders, &path));
        if !moves && !change.writes() {
            return Ok(None);
        }
        let entry = self.regular(&path)?;
        let rewrites = change.to.is_some() && change.writes();
        if (rewrites || change.to.is_none()) && change.before.is_none() {
            return Err(Error::internal(format!("the plan has no expected hash for {path}")));
        }
        let mut file = ChangedFile {
            from: change.from.clone(),
            to: change.to.clone(),
            before: change.before,
            after: None,
            image: None,
            patch: Vec::new(),
            temporary: None,
            inode: Some(entry.inode),
        };
        let mut draft = PreparedFile { found: None, after: None };
        if change.before.is_none() && (entry.size > self.max_hashed || !safe_open::is_regular(&entry)) {
            // A large or sparse file that only moves is not read.
            self.may_change_folder_of(&path)?;
            return Ok(Some((file, draft)));
        }
        let (folder, name) = self.tree.parent(&path)?;
        let mut found = folder.read_with_metadata(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => changed_on_disk(&path, "is gone"),
            _ => Error::io("read", &path, error),
        })?;
        let before = ContentHash::of(&found.bytes);
        if change.before.is_some_and(|expected| expected != before) {
            return Err(changed_on_disk(&path, "was changed"));
        }
        file.before = Some(before);
        if rewrites {
            let after: std::borrow::Cow<'b, [u8]> = match &change.content {
                Content::Whole(bytes) => bytes.as_slice().into(),
                Content::Edits(edits) => edit::apply(&found.bytes, edits)?.into(),
                Content::Keep => {
                    return Err(Error::internal("a file whose content is kept cannot be rewritten"));
                }
            };
            if *after != *found.bytes {
                file.patch = patch_of(&change.content, &found.bytes);
                draft.after = Some(after);
            } else if !moves {
                return Ok(None);
            }
        }
        file.after = match (&change.to, &draft.after) {
            (None, _) => None,
            (_, Some(after)) => Some(ContentHash::of(after)),
            _ => Some(before),
        };
        if draft.after.is_some() || change.to.is_none() {
            may_write(&folder, name, &path, &found.entry)?;
        } else {
            found.bytes = Vec::new();
        }
        self.may_change_folder_of(&path)?;
        draft.found = Some(found);
        Ok(Some((file, draft)))
    }

    /// Returns the metadata of a path that must be a regular file.
    fn regular(&mut self, path: &str) -> Result<FileMetadata> {
        match self.tree.entry(path)? {
            Some(entry) if entry.is_file() => Ok(entry),
            Some(entry) if entry.is_symlink() => Err(symlink_error(path)),
            Some(_) => Err(Error::invalid(format!("{path} is not a regular file"))),
            None => Err(changed_on_disk(path, "is gone")),
        }
    }

    fn may_change_folder_of(&mut self, path: &str) -> Result<()> {
        let folder = split_path(path).0;
        if self.writable.contains(folder) {
            return Ok(());
        }
        let shown = if folder.is_empty() { "the vault's root" } else { folder };
        let refused = |error| Error::io("change the folder", shown, error);
        self.tree.folder(folder)?.may_write(".").map_err(refused)?;
        self.writable.insert(folder.to_owned());
        Ok(())
    }
}

/// Prepares a file that a plan creates.
fn new_file(change: &FileChange) -> Result<(ChangedFile, PreparedFile<'_>)> {
    let (Some(to), Content::Whole(bytes)) = (&change.to, &change.content) else {
        return Err(Error::internal("the plan has a new file without a path or content"));
    };
    let file = ChangedFile {
        from: None,
        to: Some(to.clone()),
        before: None,
        after: Some(ContentHash::of(bytes)),
        image: None,
        patch: Vec::new(),
        temporary: None,
        inode: None,
    };
    Ok((file, PreparedFile { found: None, after: Some(bytes.as_slice().into()) }))
}

/// The new names of a plan.
#[derive(Default)]
struct NewNames(HashMap<(String, String), String>);

impl NewNames {
    fn add(&mut self, path: &str, may_clash: bool) -> Result<()> {
        let (folder, name) = split_path(path);
        let known_by = if may_clash { name.to_owned() } else { key(name) };
        match self.0.insert((folder.to_owned(), known_by), name.to_owned()) {
            Some(other) if other == name => Err(taken(path, "is the target of two changes", "target-exists")),
            Some(other) if !path.starts_with(".trash/") => {
                Err(taken(path, &format!("and {other} differ only in case or accents"), "case-collision"))
            }
            _ => Ok(()),
        }
    }
}

fn check_name(
    path: &str,
    folder: &str,
    names: &HashMap<String, Vec<String>>,
    leaving: &HashSet<String>,
    may_clash: bool,
) -> Result<()> {
    let name = split_path(path).1;
    for other in names.get(&key(name)).into_iter().flatten() {
        let whole = if folder.is_empty() { other.clone() } else { format!("{folder}/{other}") };
        if leaving.contains(&whole) {
            continue;
        }
        if other == name {
            return Err(taken(path, "already exists", "target-exists"));
        }
        if !may_clash && !path.starts_with(".trash/") {
            let said = format!("and {other} would differ only in case or accents");
            return Err(taken(path, &said, "case-collision"));
        }
    }
    Ok(())
}

fn taken(path: &str, said: &str, code: &str) -> Error {
    Error::new(ErrorKind::Exists, format!("{path} {said} ({code})")).with_hint("choose another name")
}

/// Fails if a file is read-only.
fn may_write(folder: &Dir, name: &str, path: &str, entry: &FileMetadata) -> Result<()> {
    let refused = || Error::new(ErrorKind::Io, format!("{path} is read-only; nothing was written"));
    if entry.mode & 0o222 == 0 {
        return Err(refused().with_hint("make it writable first, for example with `chmod u+w`"));
    }
    folder.may_write(name).map_err(|error| refused().with_source(error))
}

/// Writes the before-images and the manifest, and flushes both to the disk.
fn write_records(draft: &PreparedChange<'_>, folder: &Dir) -> io::Result<()> {
    let mut images = folder.create(IMAGES, 0o600)?;
    let mut buffered = io::BufWriter::new(&mut images);
    for (file, draft) in draft.manifest.files.iter().zip(&draft.files) {
        if let Some(found) = draft.found.as_ref().filter(|_| file.image.is_some()) {
            buffered.write_all(&found.bytes)?;
        }
    }
    buffered.flush()?;
    drop(buffered);
    images.sync_data()?;
    let mut manifest = folder.create(MANIFEST, 0o600)?;
    let text = serde_json::to_vec(&draft.manifest).map_err(io::Error::other)?;
    manifest.write_all(&text)?;
    manifest.sync_data()?;
    folder.sync()
}

/// A temporary file to create: the change of its file, the new content, and its path.
type Temporary<'a> = (&'a ChangedFile, &'a PreparedFile<'a>, &'a std::borrow::Cow<'a, [u8]>, String);

/// Creates folders and temporary files, flushes them to the disk, and checks that the files are still unchanged.
fn prepare(tree: &mut DirTree, vault: &Vault, draft: &PreparedChange<'_>) -> Result<()> {
    let manifest = &draft.manifest;
    let mut touched = BTreeSet::new();
    for path in &manifest.made {
        let (folder, name) = tree.parent(path)?;
        folder.create_dir(name).map_err(|error| Error::io("create the folder", path, error))?;
        touched.insert(split_path(path).0.to_owned());
    }
    let mut temporaries = Vec::new();
    for (file, draft) in manifest.files.iter().zip(&draft.files) {
        let (Some(after), Some(path)) = (&draft.after, manifest.temporary(file)) else { continue };
        let Some(path) = manifest.path_before(&path) else {
            return Err(Error::internal(format!("{path} has no path before the folder moves")));
        };
        touched.insert(split_path(&path).0.to_owned());
        temporaries.push((file, draft, after, path));
    }
    let written = temporaries.len();
    let create = |tree: &mut DirTree, (file, draft, after, path): &Temporary<'_>| {
        let target = file.target().unwrap_or_default();
        let failed = |error| Error::io("write", &target, error);
        let (folder, name) = tree.parent(path)?;
        let open = match &draft.found {
            Some(found) => {
                let mut open = folder.create(name, 0o600).map_err(failed)?;
                open.write_all(after).map_err(failed)?;
                copy_metadata(&open, found).map_err(failed)?;
                open
            }
            None => {
                let mut open = folder.create(name, 0o666).map_err(failed)?;
                open.write_all(after).map_err(failed)?;
                open
            }
        };
        if written <= MAX_SINGLE_SYNCS {
            open.sync_data().map_err(failed)?;
        }
        Ok(())
    };
    // The disk writes the first half while the second one is created.
    let first = if written >= MIN_FLUSHED_EARLY { written / 2 } else { 0 };
    let (first, second) = temporaries.split_at(first);
    parallel_in_tree(vault, first, create)?;
    std::thread::scope(|scope| {
        let flush = || std::thread::Builder::new().spawn_scoped(scope, || flush_root(vault)).ok();
        // Without a thread, all is flushed below.
        let early = (!first.is_empty()).then(flush).flatten();
        let created = parallel_in_tree(vault, second, create).map(drop);
        let flushed =
            early.map(|early| early.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        created.and(flushed.unwrap_or(Ok(())))
    })?;
    flush(tree, manifest, &touched, written)?;
    let files: Vec<_> = manifest.files.iter().zip(&draft.files).collect();
    parallel_in_tree(vault, &files, |tree, (file, draft)| match (file.source(), &draft.found) {
        (Some(path), Some(found))
            if !tree.entry(&path)?.is_some_and(|entry| entry.is_unchanged_since(&found.entry)) =>
        {
            Err(changed_on_disk(&path, "was changed"))
        }
        _ => Ok(()),
    })
    .map(drop)
}

/// Flushes the file system of the vault's root, where there is a call for that.
fn flush_root(vault: &Vault) -> Result<()> {
    match DirTree::open(vault)?.folder("")?.sync_all() {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => {
            Err(Error::io("write to", vault.root(), error))
        }
        _ => Ok(()),
    }
}

/// Flushes temporary files and folders to the disk.
fn flush(tree: &mut DirTree, manifest: &Manifest, touched: &BTreeSet<String>, written: usize) -> Result<()> {
    let mut whole = HashSet::new();
    if written > MAX_SINGLE_SYNCS {
        for path in touched {
            let folder = tree.folder(path)?;
            let failed = |error| Error::io("write to", path, error);
            let device = folder.device().map_err(failed)?;
            if whole.contains(&device) {
                continue;
            }
            match folder.sync_all() {
                Ok(()) => {
                    whole.insert(device);
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => break,
                Err(error) => return Err(failed(error)),
            }
        }
    }
    for path in touched {
        let folder = tree.folder(path)?;
        let failed = |error| Error::io("write to", path, error);
        if !whole.contains(&folder.device().map_err(failed)?) {
            folder.sync().map_err(failed)?;
        }
    }
    if written > MAX_SINGLE_SYNCS && whole.is_empty() {
        for path in manifest.files.iter().filter_map(|file| manifest.path_before(&manifest.temporary(file)?))
        {
            let (folder, name) = tree.parent(&path)?;
            folder.sync_file(name).map_err(|error| Error::io("write", &path, error))?;
        }
    }
    Ok(())
}
