//! The folder of a person: reading its files, and writing files of the vault, each whole or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use sidenote_base::clock::{Timestamp, event_id, wall_nanos};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform::FileMetadata;
use sidenote_base::{parallel, platform};
use sidenote_journal::Journal;
use sidenote_journal::event::Event;
use sidenote_markdown::edit::{ChangeSet, Content, ContentHash, FileChange, FileLocation};
use sidenote_markdown::path::check_shared_name;
use sidenote_store::OP_SYNC;
use sidenote_store::replication::protocol::{CommitRequest, NewContent};
use sidenote_vault::Vault;
use sidenote_vault::apply_result::{Applied, CommittedFile};
use sidenote_vault::copy::{SharedFiles, SharedPath};
use sidenote_vault::undo_log::{FetchedContents, UndoLog};

use crate::replica::plan::{LocalFile, Step, folders_of};

/// The least number of files that a thread reads.
const FILES_PER_THREAD: usize = 32;
/// A file that was changed this short a time before it was read is read again: its times may not tell the next change.
const RACY_NANOS: i64 = 2_000_000_000;

/// The folder that is kept equal to a vault.
#[derive(Debug)]
pub(crate) struct Folder {
    vault: Vault,
    /// The files that were read, with the metadata that they had then.
    known: HashMap<SharedPath, (FileMetadata, ContentHash)>,
    tells_case_apart: bool,
}

/// A step that changes the folder, with the bytes that it writes.
#[derive(Debug)]
pub(crate) struct LocalStep<'a> {
    pub(crate) path: &'a SharedPath,
    pub(crate) step: &'a Step,
    pub(crate) bytes: Vec<u8>,
}

/// What became of steps in the folder.
#[derive(Debug, Default)]
pub(crate) struct Landed {
    /// The files whose step was carried out.
    pub(crate) done: Vec<SharedPath>,
    /// The files that changed since they were looked at. They are planned again.
    pub(crate) changed: Vec<SharedPath>,
    /// The files that cannot be written, and why.
    pub(crate) failed: Vec<(SharedPath, String)>,
}

impl Folder {
    /// Opens a folder, and finishes or rolls back what a killed process left of a change, if it is to be changed.
    pub(crate) fn open(root: &Path, is_changed: bool) -> Result<Self> {
        let vault = Vault::open(root)?;
        vault.refuse_linked_state()?;
        if is_changed {
            sidenote_vault::write_lock::create_records(&vault)?;
            let lock = vault.lock(&vault.records())?;
            for notice in vault.recover(&lock)?.notices {
                tracing::info!("{notice}");
            }
        }
        // A folder that does not tell is treated as the one that can do less.
        let tells_case_apart = platform::is_case_sensitive(vault.root()).unwrap_or(false);
        Ok(Self { vault, known: HashMap::new(), tells_case_apart })
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    pub(crate) fn tells_case_apart(&self) -> bool {
        self.tells_case_apart
    }

    /// Reads the files that changed since the last time, and returns all files. `expected` are the files that were
    /// there, or that the vault has. `done` is called with the number of files that were read, and with the number of
    /// all files.
    pub(crate) fn scan(
        &mut self,
        expected: impl Iterator<Item = SharedPath>,
        max_file: u64,
        done: &dyn Fn(usize, usize),
    ) -> Result<BTreeMap<SharedPath, LocalFile>> {
        let mut shared = self.shared(max_file)?;
        let entries = shared.entries()?;
        let present: BTreeSet<SharedPath> = entries.iter().map(|(path, _)| path.clone()).collect();
        let mut files = BTreeMap::new();
        let mut unread = Vec::new();
        for (path, entry) in entries {
            if let Some(why) = left_out(&path, &entry, max_file) {
                files.insert(path, LocalFile::LeftOut(why));
                continue;
            }
            match self.known.get(&path) {
                Some((known, hash)) if entry.is_unchanged_since(known) && entry.changed == known.changed => {
                    files.insert(path, LocalFile::Present(*hash));
                }
                _ => unread.push((path, entry)),
            }
        }
        self.read_all(&unread, max_file, done, &mut files)?;
        for path in expected.filter(|path| !present.contains(path)) {
            let is_in_file = folders_of(path.as_str())
                .filter_map(SharedPath::parse)
                .any(|folder| present.contains(&folder));
            let file = match shared.entry(&path) {
                _ if is_in_file => LocalFile::Absent,
                Ok(None) => LocalFile::Absent,
                Ok(Some(entry)) if entry.is_dir() => LocalFile::Absent,
                Ok(Some(entry)) if entry.is_symlink() => {
                    LocalFile::LeftOut("it is a symbolic link here".to_owned())
                }
                Ok(Some(_)) => LocalFile::LeftOut("it cannot be read here as a file".to_owned()),
                Err(error) => LocalFile::LeftOut(error.message().to_owned()),
            };
            files.insert(path, file);
        }
        self.known.retain(|path, _| matches!(files.get(path), Some(LocalFile::Present(_))));
        Ok(files)
    }

    fn shared(&self, max_file: u64) -> Result<SharedFiles> {
        SharedFiles::open(&self.vault.clone().with_max_file_size(max_file))
    }

    /// Reads and hashes files on all cores.
    fn read_all(
        &mut self,
        unread: &[(SharedPath, FileMetadata)],
        max_file: u64,
        done: &dyn Fn(usize, usize),
        files: &mut BTreeMap<SharedPath, LocalFile>,
    ) -> Result<()> {
        let mut count = 0;
        for group in unread.chunks(1_000) {
            let now = wall_nanos();
            let hashed = parallel::map(
                group,
                FILES_PER_THREAD,
                || self.shared(max_file),
                |shared, (path, _)| match shared {
                    Ok(shared) => shared.hash(path),
                    Err(error) => Err(Error::new(error.kind(), error.message())),
                },
            );
            for ((path, entry), hashed) in group.iter().zip(hashed) {
                let file = match hashed {
                    Ok(Some(hash)) => {
                        if entry.changed_ns() < now - RACY_NANOS && entry.modified_ns() < now - RACY_NANOS {
                            self.known.insert(path.clone(), (*entry, hash));
                        }
                        LocalFile::Present(hash)
                    }
                    Ok(None) => LocalFile::Absent,
                    Err(error) => LocalFile::LeftOut(error.message().to_owned()),
                };
                files.insert(path.clone(), file);
            }
            count += group.len();
            done(count, unread.len());
        }
        Ok(())
    }

    /// Reads a file; `None` if it is gone.
    pub(crate) fn read(&self, path: &SharedPath, max_file: u64) -> Result<Option<Vec<u8>>> {
        self.shared(max_file)?.read(path)
    }

    /// Carries out steps in the folder. Files that take the place of a folder, or the reverse, are removed first. With
    /// `is_undoable`, `undo` takes the change back; otherwise the vault has everything that is replaced or removed.
    pub(crate) fn land(&self, steps: &[LocalStep<'_>], at: Timestamp, is_undoable: bool) -> Result<Landed> {
        let coming: BTreeSet<&str> =
            steps.iter().filter(|step| step.is_new()).map(|step| step.path.as_str()).collect();
        let needed: BTreeSet<&str> = coming.iter().flat_map(|path| folders_of(path)).collect();
        let is_in_the_way = |step: &&LocalStep<'_>| {
            let path = step.path.as_str();
            let is_leaving = matches!(step.step, Step::RemoveHere(_) | Step::SetAside { theirs: None, .. });
            is_leaving && (needed.contains(path) || folders_of(path).any(|folder| coming.contains(folder)))
        };
        let (first, rest): (Vec<&LocalStep<'_>>, Vec<&LocalStep<'_>>) = steps.iter().partition(is_in_the_way);
        let mut landed = Landed::default();
        for group in [first, rest].iter().filter(|group| !group.is_empty()) {
            match self.apply(group, at, is_undoable) {
                Ok(()) => landed.done.extend(group.iter().map(|step| step.path.clone())),
                // One file must not keep all others from being written.
                Err(_) if group.len() > 1 => {
                    for step in group {
                        landed.record(step.path, self.apply(&[step], at, is_undoable));
                    }
                }
                Err(error) => {
                    let path = group.first().map(|step| step.path.clone());
                    path.iter()
                        .for_each(|path| landed.record(path, Err(Error::new(error.kind(), error.message()))));
                }
            }
        }
        Ok(landed)
    }

    /// Records files that a commit removed from the vault as an operation of the folder. `undo` brings them back into
    /// the folder, and the next synchronisation into the vault. `lost` has their bytes.
    pub(crate) fn record_lost(
        &self,
        request: &CommitRequest,
        lost: &HashMap<ContentHash, Vec<u8>>,
        at: Timestamp,
    ) -> Result<()> {
        let mut applied = Applied {
            id: event_id(at).to_string(),
            operation: OP_SYNC.to_owned(),
            undoes: None,
            at,
            folders: Vec::new(),
            made: Vec::new(),
            files: Vec::new(),
            more: serde_json::Map::new(),
            notices: Vec::new(),
        };
        let mut contents = Vec::new();
        for file in request.files.iter().filter(|file| file.content == NewContent::Removed) {
            let Some(bytes) = file.base.and_then(|hash| lost.get(&hash)) else { continue };
            applied.files.push(CommittedFile {
                from: file.path.location(),
                to: None,
                before: file.base,
                after: None,
            });
            contents.push(FetchedContents { before: Some(bytes.clone()), after: None });
        }
        if contents.is_empty() {
            return Ok(());
        }
        UndoLog::save_fetched(&self.vault, &applied, &contents)?;
        Journal::open(&self.vault, &self.vault.records()).record(&Event::of(&applied))
    }

    /// Carries out steps as one change.
    fn apply(&self, steps: &[&LocalStep<'_>], at: Timestamp, is_undoable: bool) -> Result<()> {
        let mut plan = ChangeSet { repeats_names: self.tells_case_apart, ..ChangeSet::new(OP_SYNC) };
        for step in steps {
            plan.files.extend(step.changes()?);
        }
        let records = self.vault.records();
        let lock = self.vault.lock(&records)?;
        self.vault.recover(&lock)?;
        let mut shared = SharedFiles::open(&self.vault)?;
        for step in steps.iter().filter(|step| step.is_new()) {
            make_room(&mut shared, step.path)?;
        }
        let applied = self.vault.apply(&lock, &plan, at)?;
        if is_undoable {
            Journal::open(&self.vault, &records).record(&Event::of(&applied))?;
        } else if !applied.id.is_empty() {
            UndoLog::open(&records)?.remove(&lock, &applied.id)?;
        }
        let leaving = steps.iter().filter(|step| step.leaves());
        for step in leaving {
            shared.remove_empty_folders(step.path.as_str())?;
        }
        if applied.notices.is_empty() {
            return Ok(());
        }
        for notice in &applied.notices {
            tracing::info!("{notice}");
        }
        // Another program wrote at the same moment. The file that is there now is planned again.
        let as_planned =
            steps.iter().all(|step| shared.hash(step.path).is_ok_and(|hash| hash == step.hash_after()));
        if as_planned {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Conflict, "another program changed a file at the same moment"))
        }
    }
}

impl Landed {
    fn record(&mut self, path: &SharedPath, applied: Result<()>) {
        match applied {
            Ok(()) => self.done.push(path.clone()),
            Err(error) if error.message().contains("case-collision") => {
                self.failed.push((path.clone(), error.message().to_owned()));
            }
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Exists) => {
                tracing::debug!("{}: {error}", path.as_str());
                self.changed.push(path.clone());
            }
            Err(error) => self.failed.push((path.clone(), error.message().to_owned())),
        }
    }
}

impl LocalStep<'_> {
    /// Says whether a file comes under a name where none was.
    fn is_new(&self) -> bool {
        matches!(self.step, Step::Fetch { over: None, .. })
    }

    /// Says whether the name is free afterwards.
    fn leaves(&self) -> bool {
        self.hash_after().is_none()
    }

    /// Returns the hash of the file under its name after the step.
    fn hash_after(&self) -> Option<ContentHash> {
        match self.step {
            Step::Fetch { hash, .. } => Some(*hash),
            Step::SetAside { theirs, .. } => *theirs,
            _ => None,
        }
    }

    /// Returns the changes of files that the step makes.
    fn changes(&self) -> Result<Vec<FileChange>> {
        let unknown = || Error::internal(format!("{} has no place in the folder", self.path.as_str()));
        let location = self.path.location().ok_or_else(unknown)?;
        let create = || FileChange {
            from: None,
            to: Some(location.clone()),
            before: None,
            content: Content::Whole(self.bytes.clone()),
        };
        Ok(match self.step {
            Step::Fetch { over: None, .. } => vec![create()],
            Step::Fetch { over, .. } => vec![FileChange {
                from: Some(location.clone()),
                to: Some(location.clone()),
                before: *over,
                content: Content::Whole(self.bytes.clone()),
            }],
            Step::RemoveHere(before) => vec![FileChange {
                from: Some(location.clone()),
                to: None,
                before: Some(*before),
                content: Content::Keep,
            }],
            Step::SetAside { mine, theirs, copy } => {
                let aside = FileChange {
                    from: Some(location.clone()),
                    to: Some(FileLocation::parse(copy).ok_or_else(unknown)?),
                    before: Some(*mine),
                    content: Content::Keep,
                };
                let mut changes = vec![aside];
                changes.extend(theirs.map(|_| create()));
                changes
            }
            Step::Agree | Step::Send { .. } | Step::RemoveThere(_) | Step::LeaveOut(_) => Vec::new(),
        })
    }
}

/// Removes a folder without files that has the name of a new file.
fn make_room(shared: &mut SharedFiles, path: &SharedPath) -> Result<()> {
    // A file that is in the way above is reported when the file is written.
    let is_folder = shared.entry(path).is_ok_and(|entry| entry.is_some_and(|entry| entry.is_dir()));
    if is_folder && !shared.remove_folder_without_files(path.as_str())? {
        return Err(Error::invalid("a folder of this name is here, with files that are not shared"));
    }
    Ok(())
}

/// Says why a file takes no part.
fn left_out(path: &SharedPath, entry: &FileMetadata, max_file: u64) -> Option<String> {
    if let Err(error) = check_shared_name(path.as_str()) {
        return Some(error.message().to_owned());
    }
    (entry.size > max_file)
        .then(|| format!("it is larger than {} MB, which the team does not store", max_file / 1_000_000))
}
