//! Owns writing: the write lock, and carrying out a [`ChangeSet`] so that it lands whole or not at all.
//!
//! Nothing else changes a note. What a crash leaves half-done, `vault/recover` ends.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::clock::{Timestamp, event_id};
use crate::error::{Error, ErrorKind, Result};
use crate::parallel;
use crate::text::edit::{self, ChangeSet, Content, ContentHash, FileChange, FolderMove, Place};
use crate::text::path::key;
use crate::vault::commit::{Unlanded, land, roll_back};
use crate::vault::dir::{Entry, Folder, Found, Tree, dress, split, symlink};
use crate::vault::manifest::{
    ChangedFile, Manifest, MovedFolder, is_below, now, patch_of, temporary_name, then,
};
use crate::vault::undo_log::Kept;
use crate::vault::{STATE_DIR, Vault};

/// How long another process may hold the write lock before we give up.
const PATIENCE: Duration = Duration::from_secs(10);

/// From so many files on, one call that flushes the whole file system is cheaper than one for each.
const MANY: usize = 12;

/// At least so many files are looked at or written by one thread.
pub(crate) const SHARE: usize = 32;

/// The folder of transactions that are not closed.
pub(crate) const PENDING: &str = "pending";
/// The folder of before-images of closed ones.
pub(crate) const UNDO: &str = "undo";
/// The folder of planned contents whose file somebody else changed.
pub(crate) const CONFLICTS: &str = "conflicts";
/// The manifest of a transaction that may be undone, or that the journal knows.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The manifest of a transaction that has to be finished, or that the journal does not know yet.
pub(crate) const COMMITTED: &str = "committed.json";
/// The before-images of a transaction, one after another.
pub(crate) const IMAGES: &str = "images";

/// The right to write in a vault, until it is dropped.
#[derive(Debug)]
pub struct WriteLock {
    file: File,
    records: PathBuf,
    pub(crate) folder: Folder,
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // Closing alone would not do where a process that is being started holds the file for a moment longer.
        if let Err(error) = self.file.unlock() {
            tracing::debug!("the write lock goes with its file: {error}");
        }
    }
}

impl WriteLock {
    /// Gives the folder of the records that the lock guards.
    pub fn records(&self) -> &Path {
        &self.records
    }
}

/// One file as an operation left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    /// Where it was; nothing for a new file.
    pub from: Option<Place>,
    /// Where it is; nothing for one that was removed.
    pub to: Option<Place>,
    /// The hash of its bytes before, unless it was only moved and is large.
    pub before: Option<ContentHash>,
    /// The hash of its bytes now.
    pub after: Option<ContentHash>,
}

/// What an operation did, for the journal and the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The transaction; empty where there was nothing to do.
    pub id: String,
    /// The operation, as the plan names it.
    pub operation: String,
    /// The operation that it takes back.
    pub undoes: Option<String>,
    /// When it was done.
    pub at: Timestamp,
    /// Folders that moved.
    pub folders: Vec<FolderMove>,
    /// Folders that had to be made, outer ones first.
    pub made: Vec<String>,
    /// Files that were made, changed, moved or removed.
    pub files: Vec<Landed>,
    /// What else the event in the journal says, such as the session.
    pub more: Map<String, Value>,
    /// Sentences about files that somebody else changed in the last instant, and that were left alone, and about what
    /// could not be tidied up.
    pub notices: Vec<String>,
}

impl Applied {
    pub(crate) fn of(manifest: &Manifest, notices: Vec<String>) -> Self {
        Self {
            id: manifest.id.clone(),
            operation: manifest.operation.clone(),
            undoes: manifest.undoes.clone(),
            at: Timestamp::from_millis(manifest.at),
            folders: manifest.folders.iter().map(|folder| folder.paths.clone()).collect(),
            made: manifest.made.iter().map(|path| manifest.then(path)).collect(),
            files: manifest
                .files
                .iter()
                .map(|file| Landed {
                    from: file.from.clone(),
                    to: file.to.clone(),
                    before: file.before,
                    after: file.after,
                })
                .collect(),
            more: manifest.more.clone(),
            notices,
        }
    }
}

impl Vault {
    /// Gives the place of the records where nothing else is said.
    pub fn records(&self) -> PathBuf {
        self.root().join(STATE_DIR).join("records")
    }

    /// Says whether an operation may be half-done, without taking the lock.
    pub fn has_unfinished(&self, records: &Path) -> bool {
        let pending = self.open_records(records).ok().flatten().and_then(|folder| folder.child(PENDING).ok());
        pending.is_some_and(|pending| pending.names().is_ok_and(|names| !names.is_empty()))
    }

    /// Takes the write lock, waiting some seconds for another process to give it back. A new records folder gets
    /// what git has to know beside it.
    ///
    /// # Errors
    /// `Conflict` naming the holder where it keeps the lock; `Invalid` where a symbolic link leads to the records;
    /// `Io` where they cannot be written.
    pub fn lock(&self, records: &Path) -> Result<WriteLock> {
        self.lock_within(records, PATIENCE)
    }

    /// Takes the write lock, waiting `patience` at most.
    ///
    /// # Errors
    /// As [`Vault::lock`].
    pub fn lock_within(&self, records: &Path, patience: Duration) -> Result<WriteLock> {
        let failed = |error| Error::io("take the write lock in", records, error);
        let folder = self.make_records(records)?;
        let mut file = folder.append_to("lock").map_err(failed)?;
        let mut waited = Duration::ZERO;
        let mut pause = Duration::from_millis(1);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
                Err(std::fs::TryLockError::WouldBlock) if waited >= patience => return Err(held(&mut file)),
                Err(std::fs::TryLockError::WouldBlock) => {
                    std::thread::sleep(pause);
                    waited += pause;
                    pause = (pause * 2).min(Duration::from_millis(100));
                }
            }
        }
        file.set_len(0).map_err(failed)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(failed)?;
        Ok(WriteLock { file, records: records.to_owned(), folder })
    }

    /// Makes the folder of the records where it is missing, beneath the root where it lies there.
    pub(crate) fn make_records(&self, records: &Path) -> Result<Folder> {
        self.refuse_read_only()?;
        let failed = |error| Error::io("make", records, error);
        let inner = records.strip_prefix(self.root()).ok();
        let Some(inner) = inner.and_then(Path::to_str).filter(|inner| !inner.is_empty()) else {
            make_outside(records).map_err(failed)?;
            let folder = Folder::open(records).map_err(failed)?;
            describe(None, &folder).map_err(failed)?;
            return Ok(folder);
        };
        let mut folder = Folder::open(self.root()).map_err(failed)?;
        let mut above = None;
        for name in inner.split('/') {
            let child = match folder.child_or_new(name) {
                Ok(child) => child,
                Err(_) if matches!(folder.entry(name), Ok(Some(entry)) if entry.is_symlink()) => {
                    return Err(symlink(&format!("{name} in {inner}")));
                }
                Err(error) => return Err(failed(error)),
            };
            above = Some((name, std::mem::replace(&mut folder, child)));
            if name == STATE_DIR {
                above = None;
            }
        }
        // Only a folder of ours gets files beside the records.
        let state = inner.strip_suffix("/records").filter(|path| split(path).1 == STATE_DIR);
        describe(state.and(above.as_ref()).map(|(_, state)| state), &folder).map_err(failed)?;
        Ok(folder)
    }

    /// Says whether a plan could be carried out at this moment, and writes nothing: what a dry run shows must hold.
    ///
    /// # Errors
    /// As [`Vault::apply`], before anything is written.
    pub fn check(&self, plan: &ChangeSet) -> Result<()> {
        self.refuse_read_only()?;
        let mut look = Look::open(self, plan)?;
        let survey = Survey { look: &mut look, made: Vec::new() };
        survey.draft(self, String::new(), Timestamp::default()).map(drop)
    }

    /// Carries out a plan: all of it or nothing. What it replaces and removes is kept for `undo`.
    ///
    /// # Errors
    /// Before anything is written: `Conflict` (`changed-on-disk`) where a file is not as the plan expects it; `Exists`
    /// (`target-exists`, `case-collision`) where a new name is taken; `Invalid` (`symlink`) for anything but regular
    /// files in real folders; `Io` for files and folders that may not be written. `Io` while it is written: all is
    /// undone, or, beyond the point of no return, finished by the next command, and the message says which.
    pub fn apply(&self, lock: &WriteLock, plan: &ChangeSet, at: Timestamp) -> Result<Applied> {
        self.apply_signed(lock, plan, at, Map::new())
    }

    /// As [`Vault::apply`]; `more` is what the event in the journal says beside what was done.
    ///
    /// # Errors
    /// As [`Vault::apply`].
    pub fn apply_signed(
        &self,
        lock: &WriteLock,
        plan: &ChangeSet,
        at: Timestamp,
        more: Map<String, Value>,
    ) -> Result<Applied> {
        let records = |error| Error::io("write the records in", lock.records(), error);
        let pending = lock.folder.child_or_new(PENDING).map_err(records)?;
        if has_folders(&pending).map_err(records)? {
            return Err(Error::new(ErrorKind::Conflict, "an earlier change is not finished yet")
                .with_hint("the next command finishes or undoes it first"));
        }
        let id = event_id(at);
        let mut look = Look::open(self, plan)?;
        let survey = Survey { look: &mut look, made: Vec::new() };
        let mut draft = survey.draft(self, id.simple().to_string(), at)?;
        draft.manifest.more = more;
        let mut tree = look.tree;
        if draft.manifest.files.is_empty() && draft.manifest.folders.is_empty() {
            return Ok(Applied { id: String::new(), ..Applied::of(&draft.manifest, Vec::new()) });
        }
        let folder = pending.child_or_new(&draft.manifest.id).map_err(records)?;
        let prepared = write_records(&draft, &folder)
            .and_then(|()| pending.sync())
            .map_err(records)
            .and_then(|()| prepare(&mut tree, self, &draft))
            .and_then(|()| folder.rename_over(MANIFEST, &folder, COMMITTED).map_err(records));
        // Once it has this name, the plan is going to be carried out; until the name is on the disk, it may not be.
        let committed = prepared.and_then(|()| {
            folder.sync().map_err(records).inspect_err(|_| {
                if let Err(error) = folder.rename_over(COMMITTED, &folder, MANIFEST) {
                    tracing::warn!(%error, "a change that failed is still marked as to be finished");
                }
            })
        });
        if let Err(error) = committed {
            return Err(undone(error, roll_back(&mut tree, &draft.manifest, &pending)));
        }
        let seen = draft.files.iter().map(|file| file.found.as_ref().map(|found| found.entry)).collect();
        let mut notices = match land(self, &mut tree, &draft.manifest, lock, &pending, Some(seen)) {
            Ok(notices) => notices,
            Err(Unlanded::Undone(error) | Unlanded::Stuck(error)) => return Err(error),
        };
        if let Some(undone) = &plan.undoes
            && let Err(error) = self.remove_made(lock, undone)
        {
            tracing::warn!(%error, "an empty folder that the undone operation had made is left");
        }
        // All is in its place: nothing fails the change from here on.
        if let Err(error) = close(&draft.manifest, lock, &pending) {
            notices.push(format!("{error}; the change itself is done, and the next command closes it"));
        }
        Ok(Applied::of(&draft.manifest, notices))
    }

    /// Removes the folders that an undone operation had made, where they are empty now.
    pub(crate) fn remove_made(&self, lock: &WriteLock, undone: &str) -> Result<()> {
        let mut tree = Tree::open(self)?;
        for path in Kept::open(lock.records())?.made(undone)?.iter().rev() {
            remove_if_empty(&mut tree, path)?;
        }
        Ok(())
    }
}

/// Removes a folder if it is there and empty.
pub(crate) fn remove_if_empty(tree: &mut Tree, path: &str) -> Result<()> {
    let (folder, name) = split(path);
    let Some(folder) = tree.find_folder(folder)? else { return Ok(()) };
    tree.forget();
    match folder.remove_folder(name) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory
            ) =>
        {
            Err(Error::io("remove the folder", path, error))
        }
        _ => Ok(()),
    }
}

/// Says whether there is a folder in a folder; files there are none of ours.
fn has_folders(folder: &Folder) -> io::Result<bool> {
    for name in folder.names()? {
        let entry = name.to_str().map_or(Ok(None), |name| folder.entry(name))?;
        if entry.is_some_and(|entry| entry.is_folder()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes a records folder that the user put somewhere else.
#[expect(clippy::disallowed_methods, reason = "this file is where folders are made")]
fn make_outside(records: &Path) -> io::Result<()> {
    std::fs::create_dir_all(records)
}

/// Tells git which of our files are of this machine alone, and how to merge journals.
fn describe(state: Option<&Folder>, records: &Folder) -> io::Result<()> {
    let mut texts = vec![(records, ".gitignore", "lock\npending/\nundo/\n")];
    if let Some(state) = state {
        texts.push((state, ".gitignore", "index/\nbackups/\n"));
        texts.push((state, ".gitattributes", "records/*.jsonl merge=union\n"));
    }
    for (folder, name, text) in texts {
        if folder.entry(name)?.is_none() {
            match folder.create(name, 0o666) {
                Ok(mut file) => file.write_all(text.as_bytes())?,
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn held(file: &mut File) -> Error {
    let mut text = String::new();
    let holder = match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    };
    Error::new(ErrorKind::Conflict, format!("{holder} is writing in this vault and does not come to an end"))
        .with_hint("try again once it has finished")
}

/// Says in an error whether undoing went well, where it did not.
pub(crate) fn undone(error: Error, rolled_back: Result<()>) -> Error {
    match rolled_back {
        Ok(()) => error,
        Err(second) => {
            Error::new(error.kind(), format!("{}; undoing it failed too: {second}", error.message()))
                .with_hint("the next command undoes it")
                .with_source(error)
        }
    }
}

/// A plan with everything that is needed to carry it out.
#[derive(Debug)]
struct Draft<'a> {
    manifest: Manifest,
    /// Beside the files of the manifest.
    files: Vec<DraftFile<'a>>,
}

#[derive(Debug)]
struct DraftFile<'a> {
    /// The file as it is, where its bytes matter.
    found: Option<Found>,
    after: Option<std::borrow::Cow<'a, [u8]>>,
}

/// Compares a plan with the files.
struct Survey<'a, 'b> {
    look: &'a mut Look<'b>,
    made: Vec<String>,
}

/// Looks at the files of a plan, one by one.
struct Look<'b> {
    tree: Tree,
    plan: &'b ChangeSet,
    max_hashed: u64,
    /// Folders that may be changed.
    writable: HashSet<String>,
}

impl<'a, 'b> Survey<'a, 'b> {
    fn draft(mut self, vault: &Vault, id: String, at: Timestamp) -> Result<Draft<'b>> {
        let folders = self.folders()?;
        let plan = self.look.plan;
        let mut sources = HashSet::new();
        for from in plan.files.iter().filter_map(|change| change.from.as_ref()) {
            if !sources.insert(from) {
                return Err(Error::internal(format!("the plan changes {from} twice")));
            }
        }
        let start = || Look::open(vault, plan);
        let looked = parallel::each(&plan.files, SHARE, start, |look, change| match look {
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
                file.temporary = Some(temporary_name(split(&to).1, &id, &index.to_string()));
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
        Ok(Draft { manifest, files })
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
                Some(entry) if entry.is_symlink() => return Err(symlink(from)),
                Some(entry) if entry.is_folder() => entry.inode,
                Some(_) => return Err(Error::invalid(format!("{from} is no folder"))),
                None => return Err(changed(from, "is gone")),
            };
            self.look.may_change_folder_of(from)?;
            found.push(MovedFolder { paths: (*folder).clone(), inode });
        }
        Ok(found)
    }
    /// Checks that every new name is free, and lists the folders that are to be made.
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
            let stays = from.as_ref().is_some_and(|from| to.as_ref() == Some(&then(folders, from)));
            if !stays {
                leaving.extend(from.clone());
                coming.extend(to.map(|to| (to, from)));
            }
        }
        // Two names that differ by case alone may come back: both were there before.
        let comes_back = self.look.plan.undoes.is_some();
        let mut new = Names::default();
        let mut listed: HashMap<String, Option<HashMap<String, Vec<String>>>> = HashMap::new();
        let mut next = 0;
        while let Some((path, from)) = coming.get(next).cloned() {
            next += 1;
            new.add(&path, comes_back)?;
            let parent = split(&path).0;
            let Some(parent) = now(folders, parent) else {
                return Err(Error::internal(format!("the plan puts {path} into a folder that moves away")));
            };
            if !listed.contains_key(&parent) {
                let names = self.names(&parent)?;
                if names.is_none() {
                    coming.push((then(folders, &parent), None));
                    self.made.push(parent.clone());
                }
                listed.insert(parent.clone(), names);
            }
            if let Some(Some(names)) = listed.get(&parent) {
                check_name(&path, &parent, names, &leaving, comes_back)?;
            }
            if let Some(from) = from {
                self.same_device(&from, &parent, &path)?;
            }
        }
        self.made.sort_by_key(|path| path.matches('/').count());
        for path in self.made.clone() {
            // The outermost are made in a folder that is there.
            if self.look.tree.find_folder(split(&path).0)?.is_some() {
                self.look.may_change_folder_of(&path)?;
            }
        }
        Ok(())
    }

    /// Lists a folder by the keys of its names; `None` where it is not there.
    fn names(&mut self, folder: &str) -> Result<Option<HashMap<String, Vec<String>>>> {
        let open = match self.look.tree.find_folder(folder) {
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

    /// Refuses what would have to be copied to another file system: that cannot be done in one step.
    fn same_device(&mut self, from: &str, folder: &str, to: &str) -> Result<()> {
        let failed = |error| Error::io("move to", to, error);
        let here = self.look.tree.parent(from)?.0.device().map_err(failed)?;
        let mut nearest = folder;
        let there = loop {
            match self.look.tree.find_folder(nearest)? {
                Some(found) => break found.device().map_err(failed)?,
                None => nearest = split(nearest).0,
            }
        };
        if here == there { Ok(()) } else { Err(failed(rustix::io::Errno::XDEV.into())) }
    }
}

impl<'b> Look<'b> {
    fn open(vault: &Vault, plan: &'b ChangeSet) -> Result<Self> {
        let tree = Tree::open(vault)?;
        Ok(Self { tree, plan, max_hashed: vault.max_file_size, writable: HashSet::new() })
    }

    /// Looks at one file; `None` where nothing happens to it.
    fn file(&mut self, change: &'b FileChange) -> Result<Option<(ChangedFile, DraftFile<'b>)>> {
        let Some(place) = &change.from else {
            let (Some(to), Content::Whole(bytes)) = (&change.to, &change.content) else {
                return Err(Error::internal("the plan has a new file without a place or a content"));
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
            return Ok(Some((file, DraftFile { found: None, after: Some(bytes.as_slice().into()) })));
        };
        let path = place.to_string();
        let moves = change.to.as_ref().is_none_or(|to| to.to_string() != then(&self.plan.folders, &path));
        if !moves && !change.writes() {
            return Ok(None);
        }
        let entry = self.regular(&path)?;
        let rewrites = change.to.is_some() && change.writes();
        if (rewrites || change.to.is_none()) && change.before.is_none() {
            return Err(Error::internal(format!("the plan does not say what it expects in {path}")));
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
        let mut draft = DraftFile { found: None, after: None };
        if change.before.is_none() && entry.size > self.max_hashed {
            // A film that is only moved need not be read.
            self.may_change_folder_of(&path)?;
            return Ok(Some((file, draft)));
        }
        let (folder, name) = self.tree.parent(&path)?;
        let mut found = folder.find(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => changed(&path, "is gone"),
            _ => Error::io("read", &path, error),
        })?;
        let before = ContentHash::of(&found.bytes);
        if change.before.is_some_and(|expected| expected != before) {
            return Err(changed(&path, "was changed"));
        }
        file.before = Some(before);
        if rewrites {
            let after: std::borrow::Cow<'b, [u8]> = match &change.content {
                Content::Whole(bytes) => bytes.as_slice().into(),
                Content::Edits(edits) => edit::apply(&found.bytes, edits)?.into(),
                Content::Keep => return Err(Error::internal("nothing is written of what is kept")),
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

    /// Looks at a path that has to be a regular file.
    fn regular(&mut self, path: &str) -> Result<Entry> {
        match self.tree.entry(path)? {
            Some(entry) if entry.is_file() => Ok(entry),
            Some(entry) if entry.is_symlink() => Err(symlink(path)),
            Some(_) => Err(Error::invalid(format!("{path} is no regular file"))),
            None => Err(changed(path, "is gone")),
        }
    }

    fn may_change_folder_of(&mut self, path: &str) -> Result<()> {
        let folder = split(path).0;
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

/// The new names of a plan.
#[derive(Default)]
struct Names(HashMap<(String, String), String>);

impl Names {
    fn add(&mut self, path: &str, may_clash: bool) -> Result<()> {
        let (folder, name) = split(path);
        let known_by = if may_clash { name.to_owned() } else { key(name) };
        match self.0.insert((folder.to_owned(), known_by), name.to_owned()) {
            Some(other) if other == name => Err(taken(path, "is wanted twice", "target-exists")),
            Some(other) if !path.starts_with(".trash/") => {
                Err(taken(path, &format!("and {other} differ in case or accents alone"), "case-collision"))
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
    let name = split(path).1;
    for other in names.get(&key(name)).into_iter().flatten() {
        let whole = if folder.is_empty() { other.clone() } else { format!("{folder}/{other}") };
        if leaving.contains(&whole) {
            continue;
        }
        if other == name {
            return Err(taken(path, "is there already", "target-exists"));
        }
        if !may_clash && !path.starts_with(".trash/") {
            let said = format!("and {other} would differ in case or accents alone");
            return Err(taken(path, &said, "case-collision"));
        }
    }
    Ok(())
}

fn taken(path: &str, said: &str, code: &str) -> Error {
    Error::new(ErrorKind::Exists, format!("{path} {said} ({code})")).with_hint("choose another name")
}

/// Refuses because a file is not as the plan expects it.
pub(crate) fn changed(path: &str, said: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("{path} {said} since it was read (changed-on-disk); nothing was written"),
    )
    .with_hint("try again: the change is planned anew from the file as it is")
}

/// Refuses a file that is marked as not to be changed.
fn may_write(folder: &Folder, name: &str, path: &str, entry: &Entry) -> Result<()> {
    let refused = || Error::new(ErrorKind::Io, format!("{path} is read-only; nothing was written"));
    if entry.mode & 0o222 == 0 {
        return Err(refused().with_hint("make it writable first, for instance with chmod u+w"));
    }
    folder.may_write(name).map_err(|error| refused().with_source(error))
}

/// Writes before-images and manifest, and waits until both are on the disk.
fn write_records(draft: &Draft<'_>, folder: &Folder) -> io::Result<()> {
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

/// Makes folders and temporary files, brings them onto the disk, and looks whether all is still as it was.
fn prepare(tree: &mut Tree, vault: &Vault, draft: &Draft<'_>) -> Result<()> {
    let manifest = &draft.manifest;
    let mut touched = BTreeSet::new();
    for path in &manifest.made {
        let (folder, name) = tree.parent(path)?;
        folder.make(name).map_err(|error| Error::io("make the folder", path, error))?;
        touched.insert(split(path).0.to_owned());
    }
    let mut temporaries = Vec::new();
    for (file, draft) in manifest.files.iter().zip(&draft.files) {
        let (Some(after), Some(path)) = (&draft.after, manifest.temporary(file)) else { continue };
        let Some(path) = manifest.now(&path) else {
            return Err(Error::internal(format!("{path} has no place yet")));
        };
        touched.insert(split(&path).0.to_owned());
        temporaries.push((file, draft, after, path));
    }
    let written = temporaries.len();
    in_parts(vault, &temporaries, |tree, (file, draft, after, path)| {
        let target = file.target().unwrap_or_default();
        let failed = |error| Error::io("write", &target, error);
        let (folder, name) = tree.parent(path)?;
        let open = match &draft.found {
            Some(found) => {
                let mut open = folder.create(name, 0o600).map_err(failed)?;
                open.write_all(after).map_err(failed)?;
                dress(&open, &found.entry, &found.xattrs).map_err(failed)?;
                open
            }
            None => {
                let mut open = folder.create(name, 0o666).map_err(failed)?;
                open.write_all(after).map_err(failed)?;
                open
            }
        };
        if written <= MANY {
            open.sync_data().map_err(failed)?;
        }
        Ok(())
    })?;
    flush(tree, manifest, &touched, written)?;
    let files: Vec<_> = manifest.files.iter().zip(&draft.files).collect();
    in_parts(vault, &files, |tree, (file, draft)| match (file.source(), &draft.found) {
        (Some(path), Some(found))
            if !tree.entry(&path)?.is_some_and(|entry| entry.is_untouched(&found.entry)) =>
        {
            Err(changed(&path, "was changed"))
        }
        _ => Ok(()),
    })
    .map(drop)
}

/// Does something to every item, on all cores where there are many, each with folder handles of its own. All are tried;
/// the first error is given.
pub(crate) fn in_parts<T: Sync, R: Send>(
    vault: &Vault,
    items: &[T],
    work: impl Fn(&mut Tree, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let start = || Tree::open(vault);
    let done = parallel::each(items, SHARE, start, |tree, item| match tree {
        Ok(tree) => work(tree, item),
        Err(error) => Err(Error::new(error.kind(), error.message())),
    });
    done.into_iter().collect()
}

/// Brings temporary files and the names of folders onto the disk.
fn flush(tree: &mut Tree, manifest: &Manifest, touched: &BTreeSet<String>, written: usize) -> Result<()> {
    let mut whole = HashSet::new();
    if written > MANY {
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
    if written > MANY && whole.is_empty() {
        for path in manifest.files.iter().filter_map(|file| manifest.now(&manifest.temporary(file)?)) {
            let (folder, name) = tree.parent(&path)?;
            let synced = folder.file(name).and_then(|file| file.sync_data());
            synced.map_err(|error| Error::io("write", &path, error))?;
        }
    }
    Ok(())
}

/// Keeps a transaction that has landed for `undo`.
pub(crate) fn close(manifest: &Manifest, lock: &WriteLock, pending: &Folder) -> Result<()> {
    let failed = |error| {
        Error::io("close the change in", lock.records(), error)
            .with_hint("the change itself is done; the next command closes it")
    };
    let undo = lock.folder.child_or_new(UNDO).map_err(failed)?;
    pending.rename_new(&manifest.id, &undo, &manifest.id).map_err(failed)?;
    pending.sync().map_err(failed)
}
