//! Owns the questions that paths alone answer: which files have a name, lie below a folder, or come first.

use rusqlite::OptionalExtension;

use super::{Catalog, FileId, read_path, sql};
use crate::error::Result;
use crate::text::path::NotePath;

/// Up to so many paths are looked up one by one; of more, all paths are gone through.
const FEW: usize = 1000;

impl Catalog {
    /// Lists the paths whose file name has one of the given keys, with their numbers.
    pub fn paths_named(&self, name_keys: &[String]) -> Result<Vec<(NotePath, FileId)>> {
        let mut found = Vec::new();
        for name in name_keys {
            found.extend(self.collect("SELECT path, id FROM files WHERE name_key = ?1", [name], |row| {
                Ok((read_path(row, 0)?, row.get(1)?))
            })?);
        }
        Ok(found)
    }

    /// Lists the paths below a folder.
    pub fn paths_below(&self, folder: &str) -> Result<Vec<NotePath>> {
        self.collect(
            "SELECT path FROM files WHERE path > ?1 || '/' AND path < ?1 || '0' ORDER BY path",
            [folder],
            |row| read_path(row, 0),
        )
    }

    /// Lists the paths that end so; the case of ASCII letters does not count.
    pub fn paths_ending(&self, end: &str) -> Result<Vec<NotePath>> {
        // The index holds all of this, so that no row is read.
        self.collect(
            "SELECT path FROM files WHERE substr(path, -length(?1)) = ?1 COLLATE NOCASE ORDER BY path",
            [end],
            |row| read_path(row, 0),
        )
    }

    /// Lists notes and canvases of more than this many bytes.
    pub fn larger_than(&self, bytes: u64) -> Result<Vec<NotePath>> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.collect("SELECT path FROM files WHERE size > ?1 AND kind < 2 ORDER BY path", [bytes], |row| {
            read_path(row, 0)
        })
    }

    /// Lists every path with its number.
    pub fn paths(&self) -> Result<Vec<(NotePath, FileId)>> {
        self.collect("SELECT path, id FROM files", [], |row| Ok((read_path(row, 0)?, row.get(1)?)))
    }

    /// Puts files in the order of their paths; those that are not there are left out.
    pub fn in_order_of_paths(&self, files: &[FileId]) -> Result<Vec<FileId>> {
        if files.len() > FEW {
            // The index holds both, so that no row is read.
            return self.collect("SELECT id FROM files ORDER BY path", [], |row| row.get(0));
        }
        let mut select =
            self.db.prepare_cached("SELECT path FROM files WHERE id = ?1").map_err(sql("read"))?;
        let mut found: Vec<(String, FileId)> = Vec::with_capacity(files.len());
        for &file in files {
            let path: Option<String> =
                select.query_row([file], |row| row.get(0)).optional().map_err(sql("read"))?;
            found.extend(path.map(|path| (path, file)));
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, file)| file).collect())
    }
}
