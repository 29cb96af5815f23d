//! Finds notes by path, id, title, alias or link, also where the index is behind the files.
//!
//! A reply about a change is never made from the index: what was written is found on the disk.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::index::Drift;
use crate::index::catalog::{FileKind, FileRow, Filter, Hash, path_id};
use crate::parallel;
use crate::store::core::Core;
use crate::store::source::Source;
use crate::store::unindexed::UnindexedFiles;
use crate::text::path::{NotePath, key};
use crate::vault::apply_result::Applied;
use crate::wording::Wording;

impl Lookup<'_> {
    /// Finds the note that a path, id, title, alias, file name or `[[wikilink]]` names.
    ///
    /// # Errors
    /// `NotFound`, with similar names, if no note has the name; `Exists`, with their paths, if several notes have it.
    pub fn find(&self, name: &str) -> Result<FileRow> {
        let bare = name.trim();
        let inner = bare
            .strip_prefix("![[")
            .or_else(|| bare.strip_prefix("[["))
            .and_then(|rest| rest.strip_suffix("]]"))
            .map(|body| body.split(['|', '#']).next().unwrap_or(body).trim());
        let wanted = inner.unwrap_or(bare).trim_start_matches("./");
        for path in [wanted.to_owned(), format!("{wanted}.md")] {
            if let Some(row) = self.row_at(&path)? {
                self.resolved(&row);
                return Ok(row);
            }
        }
        // A folder that is a second way to another is one with it.
        let mut refused = None;
        for path in [wanted.to_owned(), format!("{wanted}.md")] {
            let Some(given) = NotePath::parse(&path).ok().filter(|path| !path.folder().is_empty()) else {
                continue;
            };
            match self.core.vault.canonical_path(&given) {
                Ok(settled) if settled == given => {}
                Ok(settled) => {
                    if let Some(row) = self.row_at(settled.as_str())? {
                        self.resolved(&row);
                        return Ok(row);
                    }
                }
                Err(error) => refused = Some(error),
            }
        }
        let catalog = self.core.index.catalog();
        let mut rows = catalog.names().best_matches(wanted)?;
        if rows.is_empty() {
            rows = catalog.names().resolve_link(wanted)?;
        }
        drop(catalog);
        let folded = key(wanted);
        let mut rows = self.with_unindexed(rows, |source| source.answers(&folded))?;
        match rows.len() {
            1 => {
                let row = rows.pop().ok_or_else(|| Error::internal("a row vanished"))?;
                self.resolved(&row);
                Ok(row)
            }
            0 => match refused {
                Some(refused) => Err(refused),
                None => Err(not_found(name, &self.core.index.catalog().names().containing(wanted, 5)?)),
            },
            _ => {
                let paths: Vec<&str> = rows.iter().take(8).map(|row| row.path.as_str()).collect();
                Err(Error::new(ErrorKind::Exists, format!("{name:?} names {} notes", rows.len()))
                    .with_hint(format!("give one path: {}", paths.join(", "))))
            }
        }
    }

    /// Gives a filter whose folder goes by the path by which its notes are known, where a symbolic link leads to it.
    ///
    /// # Errors
    /// `Invalid` if a symbolic link on the way must not be followed; `Io` if the folder cannot be read.
    pub(in crate::store) fn with_canonical_folder(&self, filter: &Filter) -> Result<Filter> {
        let mut filter = filter.clone();
        if let Some(folder) = filter.folder.as_deref().map(|folder| folder.trim_matches('/'))
            && let Some(inside) = NotePath::from_disk(&format!("{folder}/x"))
        {
            filter.folder = Some(self.core.vault.canonical_path(&inside)?.folder().to_owned());
        }
        Ok(filter)
    }

    /// Remembers what a comparison of the files with the index found; nothing where the index is in line with them.
    pub(super) fn set_unindexed(&self, drift: Option<&Drift>) {
        let mut unindexed = self.core.state.unindexed_files.lock().unwrap_or_else(PoisonError::into_inner);
        match drift.filter(|drift| !drift.is_empty()) {
            Some(drift) => *unindexed = Arc::new(UnindexedFiles::of(drift)),
            None if unindexed.is_empty() => {}
            None => *unindexed = Arc::default(),
        }
    }

    pub(super) fn unindexed_files(&self) -> Arc<UnindexedFiles> {
        Arc::clone(&self.core.state.unindexed_files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds files as an operation left them: with the hash of their bytes, or gone.
    pub(super) fn add_unindexed(&self, files: &[(NotePath, Option<Hash>)]) {
        let mut unindexed = self.core.state.unindexed_files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut more = UnindexedFiles { there: unindexed.there.clone(), gone: unindexed.gone.clone() };
        for (path, hash) in files {
            let (to, from) = match hash {
                Some(_) => (&mut more.there, &mut more.gone),
                None => (&mut more.gone, &mut more.there),
            };
            from.remove(path);
            to.insert(path.clone());
        }
        *unindexed = Arc::new(more);
    }

    /// Notes how many files the index is behind.
    pub(super) fn set_behind(&self, files: usize) {
        self.core.call.behind.store(files, Ordering::Relaxed);
    }

    /// Says how many files the index was behind when this call looked last.
    pub fn behind(&self) -> usize {
        self.core.call.behind.load(Ordering::Relaxed)
    }

    /// Says whether another process writes the index.
    pub fn is_index_written_elsewhere(&self) -> bool {
        self.core.index.holder().is_some()
    }

    /// Finds the file at a path: as the index has it, or as it is on the disk where the index is behind.
    pub(super) fn row_at(&self, path: &str) -> Result<Option<FileRow>> {
        let unindexed = self.unindexed_files();
        match NotePath::from_disk(path).filter(|path| unindexed.covers(path)) {
            Some(path) => self.core.index.row_on_disk(&path, &self.core.vault.settings()),
            None => self.core.index.catalog().row_at(path),
        }
    }

    /// Puts in the place of what the index says of files those that answer on the disk, where it is behind.
    pub(super) fn with_unindexed(
        &self,
        mut rows: Vec<FileRow>,
        answers: impl Fn(&Source) -> bool + Sync,
    ) -> Result<Vec<FileRow>> {
        let unindexed = self.unindexed_files();
        if unindexed.is_empty() {
            return Ok(rows);
        }
        rows.retain(|row| !unindexed.covers(&row.path));
        let settings = self.core.vault.settings();
        for path in self.unindexed_where(&answers)? {
            rows.extend(self.core.index.row_on_disk(&path, &settings)?);
        }
        rows.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(rows)
    }

    /// Lists the notes that the index does not hold as they are and that answer; those that cannot be read do not.
    fn unindexed_where(&self, answers: &(impl Fn(&Source) -> bool + Sync)) -> Result<Vec<NotePath>> {
        let unindexed = self.unindexed_files();
        let paths: Vec<&NotePath> = unindexed.notes().collect();
        let read = |(): &mut (), path: &&NotePath| match self.core.vault.read(path) {
            Ok(bytes) => Ok(answers(&Source::unplaced((*path).clone(), &bytes)).then(|| (*path).clone())),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => Ok(None),
            Err(error) => Err(error),
        };
        parallel::map(&paths, 16, || (), read).into_iter().filter_map(Result::transpose).collect()
    }

    /// Finds the notes that have an id, also where the index is behind.
    pub(super) fn rows_with_id(&self, id: &str) -> Result<Vec<FileRow>> {
        let wanted = key(id);
        let rows = self.core.index.catalog().names().with_id(id)?;
        self.with_unindexed(rows, |source| key(&source.id()) == wanted)
    }

    /// Remembers to which note a name was resolved, for whoever goes on by its path.
    pub(super) fn resolved(&self, row: &FileRow) {
        let mut resolved = self.core.call.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        resolved.insert(row.path.clone(), row.note_id.clone());
    }

    /// Finds where the note is now that this call found at a path, and that somebody moved since.
    pub(super) fn followed(&self, path: &str) -> Result<Option<NotePath>> {
        let Some(path) = NotePath::from_disk(path) else { return Ok(None) };
        let resolved = self.core.call.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = resolved.get(&path).cloned() else { return Ok(None) };
        drop(resolved);
        if id != path_id(&path)
            && let [row] = self.rows_with_id(&id)?.as_slice()
        {
            return Ok(Some(row.path.clone()));
        }
        self.core.journal().current_path(&path)
    }

    /// Describes the notes that an operation left, as long as nobody else can write.
    pub(super) fn rows_of(&self, applied: &Applied) -> Vec<FileRow> {
        let is_small = applied.files.len() <= TOUCHED;
        let files = applied.files.iter().filter(|file| is_small || file.from.is_none());
        let paths = files.filter_map(|file| file.to.as_ref()?.in_vault());
        let settings = self.core.vault.settings();
        let look = |path: &NotePath| match self.core.index.row_on_disk(path, &settings) {
            Ok(row) => row,
            Err(error) => {
                tracing::debug!("{path} is not described: {error}");
                None
            }
        };
        paths.filter(|path| FileKind::of(path) == FileKind::Note).take(MADE).filter_map(look).collect()
    }

    /// Reads the note of a row that this call found; one that somebody moved since is followed.
    pub(super) fn bytes_of(&self, row: &FileRow) -> Result<Vec<u8>> {
        match self.core.read_bytes(&row.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => match self.followed(row.path.as_str())? {
                Some(path) => self.core.read_bytes(&path),
                None => Err(error),
            },
            read => read,
        }
    }
}

pub(in crate::store) fn not_found(name: &str, alike: &[String]) -> Error {
    let error = Error::not_found(format!("no note answers to {name:?}"));
    if alike.is_empty() {
        error.with_hint(
            Wording::new(
                "a note is named by its path, id, title, alias or file name; `sidenote list` shows them",
                "a note is named by its path, id, title, alias or file name",
            )
            .with_tool("list_notes", "list_notes shows them"),
        )
    } else {
        error.with_hint(format!("did you mean {}?", alike.join(", ")))
    }
}

/// The most notes made by an operation that are described after it, while nobody else can write.
const MADE: usize = 100;

/// The most other notes that are described after an operation; where it touched more, none is.
const TOUCHED: usize = 4;

/// Finds notes by their names and reads them, also where the index is behind the files.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    pub(in crate::store) core: &'a Core,
}

impl<'a> Lookup<'a> {
    pub(in crate::store) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
