//! The fingerprints of folders in the catalog. They follow from the rows of files, and are written in the same batch.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::thread::JoinHandle;

use rusqlite::{OptionalExtension, Row, params};
use sidenote_base::error::Result;
use sidenote_markdown::path::NotePath;
use sidenote_vault::folder_fingerprint::FolderFingerprint;

use super::paths::PathQueries;
use super::rows::invalid_path;
use super::{CatalogReader, CatalogWriter, FileId, Stat, sql};

/// The files of a folder: their fingerprint, and how many of them changed so shortly before they were read that equal times
/// prove nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FolderFiles {
    pub(super) fingerprint: FolderFingerprint,
    pub(super) racy: i64,
}

/// How the files of folders changed in a batch.
pub(super) type FolderChanges = RefCell<HashMap<String, FolderFiles>>;

impl FolderFiles {
    pub(super) fn add(&mut self, name: &str, stat: &Stat, racy: bool, excluded: bool) {
        self.fingerprint.add(name, stat.size, (stat.mtime_ns, stat.ctime_ns), excluded);
        self.racy += i64::from(racy);
    }

    fn subtract(&mut self, name: &str, stat: &Stat, racy: bool, excluded: bool) {
        self.fingerprint.subtract(name, stat.size, (stat.mtime_ns, stat.ctime_ns), excluded);
        self.racy -= i64::from(racy);
    }

    fn plus(self, other: Self) -> Self {
        Self { fingerprint: self.fingerprint.plus(other.fingerprint), racy: self.racy + other.racy }
    }
}

/// Splits a path into its folder, empty for the root, and its name.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Reads a row of `folders`: the folder, the files, the racy ones, and the sum.
pub(super) fn read_folder(row: &Row<'_>) -> rusqlite::Result<(String, FolderFiles)> {
    let sum = u128::from_le_bytes(row.get(3)?);
    let fingerprint = FolderFingerprint { files: row.get(1)?, sum };
    Ok((row.get(0)?, FolderFiles { fingerprint, racy: row.get(2)? }))
}

impl PathQueries<'_> {
    /// Returns all folders with files, each with its fingerprint; `None` if equal times of its files prove nothing.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn fingerprints(&self) -> Result<HashMap<String, Option<FolderFingerprint>>> {
        let rows = self.0.collect("SELECT folder, files, racy, sum FROM folders", [], read_folder)?;
        let known = |files: FolderFiles| Some(files.fingerprint).filter(|_| files.racy == 0);
        Ok(rows.into_iter().map(|(folder, files)| (folder, known(files))).collect())
    }

    /// Checks that all paths are valid and ascend, once for each connection: where fingerprints leave out the rows of files,
    /// nothing else finds an impossible path.
    ///
    /// # Errors
    /// Returns `Corrupt` with the first invalid path, or if the catalog cannot be read.
    pub fn check_once(&self) -> Result<()> {
        if self.0.has_valid_paths.get() {
            return Ok(());
        }
        // If that thread failed, whatever the reason, the check is made here and says why.
        if let Some(Ok(Ok(()))) = self.0.path_check.take().map(JoinHandle::join) {
            self.0.has_valid_paths.set(true);
            return Ok(());
        }
        // The index on paths covers the query, so no row is read.
        let mut select =
            self.0.db.prepare_cached("SELECT path FROM files ORDER BY path").map_err(sql("read"))?;
        let mut rows = select.query([]).map_err(sql("read"))?;
        let mut last = String::new();
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let path = row.get_ref(0).and_then(|path| Ok(path.as_str()?)).map_err(sql("read"))?;
            if path <= last.as_str() || !NotePath::is_on_disk(path) {
                return Err(invalid_path(path));
            }
            last.clear();
            last.push_str(path);
        }
        self.0.has_valid_paths.set(true);
        Ok(())
    }

    /// Says whether all paths are known to be valid.
    pub fn are_checked(&self) -> bool {
        self.0.has_valid_paths.get()
    }

    /// Makes [`PathQueries::check_once`] do nothing: all paths of this catalog are known to be valid.
    pub fn trust(&self) {
        self.0.has_valid_paths.set(true);
    }

    /// Begins [`PathQueries::check_once`] in a thread of its own, by another connection to the catalog file `path`: a
    /// process that has just begun waits for other things meanwhile. Only the caller may write to the catalog.
    pub fn check_soon(&self, path: &Path) {
        let path = path.to_owned();
        let check = move || CatalogReader::open(&path)?.paths().check_once();
        match std::thread::Builder::new().name("sidenote-paths".to_owned()).spawn(check) {
            Ok(checking) => drop(self.0.path_check.replace(Some(checking))),
            Err(error) => tracing::debug!("the first scan checks the paths of the index: {error}"),
        }
    }
}

impl CatalogWriter {
    /// Counts a file that is written.
    pub(super) fn count_file(&self, path: &str, stat: &Stat, racy: bool, excluded: bool) {
        self.change_folder(path, |files, name| files.add(name, stat, racy, excluded));
    }

    /// Takes out of the counts what the catalog has of a file, and of the one at a path that it replaces. Returns whether the
    /// file has that path already.
    pub(super) fn uncount_files(&self, id: FileId, path: Option<&str>) -> Result<bool> {
        let mut select = self
            .reader()
            .db
            .prepare_cached(
                "SELECT path, size, mtime, ctime, racy, excluded, id FROM files WHERE id = ?1 UNION ALL
                 SELECT path, size, mtime, ctime, racy, excluded, id FROM files WHERE path = ?2 AND id <> ?1",
            )
            .map_err(sql("read"))?;
        let mut rows = select.query(params![id, path]).map_err(sql("read"))?;
        let mut has_path = false;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let read = || {
                let stat = Stat {
                    size: row.get::<_, i64>(1)?.unsigned_abs(),
                    mtime_ns: row.get(2)?,
                    ctime_ns: row.get(3)?,
                };
                Ok((row.get_ref(0)?.as_str()?, stat, row.get(4)?, row.get(5)?, row.get(6)?))
            };
            let (known, stat, racy, excluded, of): (&str, Stat, bool, bool, FileId) =
                read().map_err(sql("read"))?;
            has_path |= of == id && Some(known) == path;
            self.change_folder(known, |files, name| files.subtract(name, &stat, racy, excluded));
        }
        Ok(has_path)
    }

    fn change_folder(&self, path: &str, change: impl FnOnce(&mut FolderFiles, &str)) {
        let (folder, name) = split(path);
        let mut folders = self.folders.borrow_mut();
        if !folders.contains_key(folder) {
            folders.insert(folder.to_owned(), FolderFiles::default());
        }
        if let Some(files) = folders.get_mut(folder) {
            change(files, name);
        }
    }

    /// Writes the changes of folders that the batch counted.
    pub(super) fn put_folders(&self) -> Result<()> {
        for (folder, change) in self.folders.take() {
            let select = "SELECT folder, files, racy, sum FROM folders WHERE folder = ?1";
            let mut select = self.reader().db.prepare_cached(select).map_err(sql("read"))?;
            let known = select.query_row([&folder], read_folder).optional().map_err(sql("read"))?;
            let now = known.map_or(change, |(_, known)| known.plus(change));
            if now.fingerprint.files == 0 {
                self.run("DELETE FROM folders WHERE folder = ?1", params![folder])?;
            } else {
                let FolderFingerprint { files, sum } = now.fingerprint;
                let values = params![folder, files, now.racy, sum.to_le_bytes()];
                self.run("INSERT OR REPLACE INTO folders VALUES (?1, ?2, ?3, ?4)", values)?;
            }
        }
        Ok(())
    }
}
