//! What the index does not show yet, because another process keeps it and is behind: found on the disk instead.
//!
//! No reply about a change is made from the index: a note that landed is there, whatever the index says.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::index::Drift;
use crate::index::catalog::{FileKind, FileRow, Hash, path_id};
use crate::parallel;
use crate::store::Store;
use crate::store::change::apply::ChangeReply;
use crate::store::change::idempotency::Once;
use crate::store::memory::memories::Memory;
use crate::store::view::Source;
use crate::text::edit::FileLocation;
use crate::text::path::{NotePath, key};
use crate::vault::applied::Applied;

/// The most notes made by an operation that are described after it, while nobody else can write.
const MADE: usize = 100;
/// The most other notes that are described after an operation; where it touched more, none is.
const TOUCHED: usize = 4;

/// Files that the index did not hold as they are when this process looked last.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Those that are new or changed.
    there: BTreeSet<NotePath>,
    /// Those that are gone.
    gone: BTreeSet<NotePath>,
}

impl Unseen {
    fn of(drift: &Drift) -> Self {
        let there = drift.added.iter().chain(&drift.changed).cloned().collect();
        Self { there, gone: drift.removed.iter().cloned().collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.there.is_empty() && self.gone.is_empty()
    }

    fn covers(&self, path: &NotePath) -> bool {
        self.there.contains(path) || self.gone.contains(path)
    }

    pub(super) fn is_gone(&self, path: &NotePath) -> bool {
        self.gone.contains(path)
    }

    /// Lists notes that are new or changed.
    pub(super) fn notes(&self) -> impl Iterator<Item = &NotePath> {
        self.there.iter().filter(|path| path.is_note())
    }
}

/// What belongs to one call of a tool or one command.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// How many files the index was behind when this call looked last.
    behind: AtomicUsize,
    /// The paths that names were resolved to, with the id of the note there: who moves it meanwhile is followed.
    resolved: Mutex<HashMap<NotePath, String>>,
    /// The name by which a repetition of the call is known.
    pub(super) once: Option<Once>,
}

impl Call {
    pub(super) fn new(once: Option<Once>) -> Self {
        Self { once, ..Self::default() }
    }
}

impl Store {
    /// Remembers what a comparison of the files with the index found; nothing where the index is in line with them.
    pub(super) fn set_unseen(&self, drift: Option<&Drift>) {
        let mut unseen = self.unseen.lock().unwrap_or_else(PoisonError::into_inner);
        match drift.filter(|drift| !drift.is_empty()) {
            Some(drift) => *unseen = Arc::new(Unseen::of(drift)),
            None if unseen.is_empty() => {}
            None => *unseen = Arc::default(),
        }
    }

    pub(super) fn unseen(&self) -> Arc<Unseen> {
        Arc::clone(&self.unseen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds files as an operation left them: with the hash of their bytes, or gone.
    pub(super) fn add_unseen(&self, files: &[(NotePath, Option<Hash>)]) {
        let mut unseen = self.unseen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut more = Unseen { there: unseen.there.clone(), gone: unseen.gone.clone() };
        for (path, hash) in files {
            let (to, from) = match hash {
                Some(_) => (&mut more.there, &mut more.gone),
                None => (&mut more.gone, &mut more.there),
            };
            from.remove(path);
            to.insert(path.clone());
        }
        *unseen = Arc::new(more);
    }

    /// Notes how many files the index is behind.
    pub(super) fn set_behind(&self, files: usize) {
        self.call.behind.store(files, Ordering::Relaxed);
    }

    /// Says how many files the index was behind when this call looked last.
    pub fn behind(&self) -> usize {
        self.call.behind.load(Ordering::Relaxed)
    }

    /// Says whether another process writes the index.
    pub fn is_index_written_elsewhere(&self) -> bool {
        self.index.holder().is_some()
    }

    /// Finds the file at a path: as the index has it, or as it is on the disk where the index is behind.
    pub(super) fn row_at(&self, path: &str) -> Result<Option<FileRow>> {
        let unseen = self.unseen();
        match NotePath::from_disk(path).filter(|path| unseen.covers(path)) {
            Some(path) => self.index.look_at(&path, &self.vault.settings()),
            None => self.index.catalog().row_at(path),
        }
    }

    /// Puts in the place of what the index says of files those that answer on the disk, where it is behind.
    pub(super) fn with_unseen(
        &self,
        mut rows: Vec<FileRow>,
        answers: impl Fn(&Source) -> bool + Sync,
    ) -> Result<Vec<FileRow>> {
        let unseen = self.unseen();
        if unseen.is_empty() {
            return Ok(rows);
        }
        rows.retain(|row| !unseen.covers(&row.path));
        let settings = self.vault.settings();
        for path in self.unseen_where(&answers)? {
            rows.extend(self.index.look_at(&path, &settings)?);
        }
        rows.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(rows)
    }

    /// Lists the notes that the index does not hold as they are and that answer; those that cannot be read do not.
    fn unseen_where(&self, answers: &(impl Fn(&Source) -> bool + Sync)) -> Result<Vec<NotePath>> {
        let unseen = self.unseen();
        let paths: Vec<&NotePath> = unseen.notes().collect();
        let read = |(): &mut (), path: &&NotePath| match self.vault.read(path) {
            Ok(bytes) => Ok(answers(&Source::unplaced((*path).clone(), &bytes)).then(|| (*path).clone())),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => Ok(None),
            Err(error) => Err(error),
        };
        parallel::map(&paths, 16, || (), read).into_iter().filter_map(Result::transpose).collect()
    }

    /// Finds the notes that have an id, also where the index is behind.
    pub(super) fn rows_with_id(&self, id: &str) -> Result<Vec<FileRow>> {
        let wanted = key(id);
        let rows = self.index.catalog().with_id(id)?;
        self.with_unseen(rows, |source| key(&source.id()) == wanted)
    }

    /// Remembers to which note a name was resolved, for whoever goes on by its path.
    pub(super) fn resolved(&self, row: &FileRow) {
        let mut resolved = self.call.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        resolved.insert(row.path.clone(), row.note_id.clone());
    }

    /// Finds where the note is now that this call found at a path, and that somebody moved since.
    pub(super) fn followed(&self, path: &str) -> Result<Option<NotePath>> {
        let Some(path) = NotePath::from_disk(path) else { return Ok(None) };
        let resolved = self.call.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = resolved.get(&path).cloned() else { return Ok(None) };
        drop(resolved);
        if id != path_id(&path)
            && let [row] = self.rows_with_id(&id)?.as_slice()
        {
            return Ok(Some(row.path.clone()));
        }
        self.journal().current_path(&path)
    }

    /// Describes the notes that an operation left, as long as nobody else can write.
    pub(super) fn rows_of(&self, applied: &Applied) -> Vec<FileRow> {
        let is_small = applied.files.len() <= TOUCHED;
        let files = applied.files.iter().filter(|file| is_small || file.from.is_none());
        let paths = files.filter_map(|file| file.to.as_ref()?.in_vault());
        let settings = self.vault.settings();
        let look = |path: &NotePath| match self.index.look_at(path, &settings) {
            Ok(row) => row,
            Err(error) => {
                tracing::debug!("{path} is not described: {error}");
                None
            }
        };
        paths.filter(|path| FileKind::of(path) == FileKind::Note).take(MADE).filter_map(look).collect()
    }

    /// Tells what a note is that an operation left at a path: as it was then, whoever moved or removed it since.
    ///
    /// # Errors
    /// `NotFound` where the operation left nothing there, and nothing is there.
    pub(super) fn landed(&self, change: &ChangeReply, path: &str) -> Result<Memory> {
        let row = match change.rows.iter().find(|row| *row.path.as_str() == *path) {
            Some(row) => Some(row.clone()),
            None => match NotePath::from_disk(path) {
                Some(path) => self.index.look_at(&path, &self.vault.settings())?,
                None => None,
            },
        };
        let row = row.ok_or_else(|| Error::not_found(format!("{path} is gone again")))?;
        self.resolved(&row);
        self.weigh_landed(row)
    }

    /// Reads the note of a row that this call found; one that somebody moved since is followed.
    pub(super) fn bytes_of(&self, row: &FileRow) -> Result<Vec<u8>> {
        match self.read_bytes(&row.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => match self.followed(row.path.as_str())? {
                Some(path) => self.read_bytes(&path),
                None => Err(error),
            },
            read => read,
        }
    }

    /// Tells what a note is now that was found at a path, after the last operation on it, where there was one.
    ///
    /// # Errors
    /// As [`Store::find`], where there was no operation.
    pub fn memory_after(&self, last: Option<&ChangeReply>, path: &str) -> Result<Memory> {
        match last {
            Some(change) => self.landed(change, &change.changed().unwrap_or_else(|| path.to_owned())),
            None => self.memory(path),
        }
    }

    /// Gives path, id and hash of the note that an operation left, or found as it should be.
    pub fn left(&self, change: &ChangeReply, path: &str) -> Option<(String, String, Option<String>)> {
        let memory = self.landed(change, path).ok()?;
        let hash = memory.row.hash.map(|hash| blake3::Hash::from_bytes(hash).to_hex().to_string());
        Some((memory.path, memory.id, hash))
    }
}

impl ChangeReply {
    /// Gives the path that the one note has now that was changed, or moved, before all others.
    pub fn changed(&self) -> Option<String> {
        let file = self.plan.files.first()?;
        file.to.as_ref().and_then(FileLocation::in_vault).map(ToString::to_string)
    }
}
