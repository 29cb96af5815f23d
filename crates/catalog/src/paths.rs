//! Queries of the catalog by path: files with a name, files below a folder, and the order of paths.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::OptionalExtension;
use sidenote_base::error::Result;
use sidenote_markdown::path::NotePath;

use super::{CatalogReader, FileId, FileKind, Hash, read_path, sql};

/// The number of files up to which paths are looked up one by one. For more files all paths are read in order.
const MAX_LOOKUPS: usize = 1000;

/// The places of files in the order of paths.
pub type Places = HashMap<FileId, usize>;

/// Queries of the catalog by path.
#[derive(Debug, Clone, Copy)]
pub struct PathQueries<'a>(pub(super) &'a CatalogReader);

impl CatalogReader {
    /// Returns the queries by path.
    pub fn paths(&self) -> PathQueries<'_> {
        PathQueries(self)
    }
}

impl PathQueries<'_> {
    /// Lists the files whose name has one of the given keys, as (path, id).
    pub fn named(&self, name_keys: &[String]) -> Result<Vec<(NotePath, FileId)>> {
        let mut found = Vec::new();
        for name in name_keys {
            found.extend(self.0.collect(
                "SELECT path, id FROM files WHERE name_key = ?1",
                [name],
                |row| Ok((read_path(row, 0)?, row.get(1)?)),
            )?);
        }
        Ok(found)
    }

    /// Returns the path of a file and its property `type` in lower case; `None` for a number without a file.
    pub fn with_type(&self, id: FileId) -> Result<Option<(NotePath, Option<String>)>> {
        let select = "SELECT path, type FROM files WHERE id = ?1";
        Ok(self.0.collect(select, [id], |row| Ok((read_path(row, 0)?, row.get(1)?)))?.pop())
    }

    /// Lists the paths below a folder, in order.
    pub fn below(&self, folder: &str) -> Result<Vec<NotePath>> {
        self.0.collect(
            "SELECT path FROM files WHERE path > ?1 || '/' AND path < ?1 || '0' ORDER BY path",
            [folder],
            |row| read_path(row, 0),
        )
    }

    /// Visits the path, id and kind of each file below a folder, in the order of paths; an empty folder is the whole vault.
    pub fn each_below(&self, folder: &str, mut visit: impl FnMut(&str, FileId, FileKind)) -> Result<()> {
        let range = if folder.is_empty() { "?1 = ''" } else { "path > ?1 || '/' AND path < ?1 || '0'" };
        let select = format!("SELECT path, id, kind FROM files WHERE {range} ORDER BY path");
        let mut statement = self.0.db.prepare_cached(&select).map_err(sql("read"))?;
        let mut rows = statement.query([folder]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let path = row.get_ref(0).and_then(|path| Ok(path.as_str()?)).map_err(sql("read"))?;
            let (id, kind) = (row.get(1).map_err(sql("read"))?, row.get(2).map_err(sql("read"))?);
            visit(path, id, FileKind::from_code(kind));
        }
        Ok(())
    }

    /// Returns whether a folder holds a file, directly or below.
    pub fn has_folder(&self, folder: &str) -> Result<bool> {
        let found = self.0.collect(
            "SELECT 1 FROM files WHERE path > ?1 || '/' AND path < ?1 || '0' LIMIT 1",
            [folder],
            |row| row.get::<_, i64>(0),
        )?;
        Ok(!found.is_empty())
    }

    /// Lists the paths with a suffix, ignoring the case of ASCII letters.
    pub fn with_suffix(&self, suffix: &str) -> Result<Vec<NotePath>> {
        // The index on paths covers the query, so no row is read.
        self.0.collect(
            "SELECT path FROM files WHERE substr(path, -length(?1)) = ?1 COLLATE NOCASE ORDER BY path",
            [suffix],
            |row| read_path(row, 0),
        )
    }

    /// Lists the notes and canvases of more than `bytes` bytes.
    pub fn larger_than(&self, bytes: u64) -> Result<Vec<NotePath>> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.0.collect("SELECT path FROM files WHERE size > ?1 AND kind < 2 ORDER BY path", [bytes], |row| {
            read_path(row, 0)
        })
    }

    /// Lists the notes and canvases that changed so shortly before they were read that equal stats prove nothing, with the hashes
    /// of what was read.
    pub fn racy(&self) -> Result<Vec<(NotePath, Option<Hash>)>> {
        self.0.collect("SELECT path, hash FROM files WHERE racy AND kind < 2", [], |row| {
            Ok((read_path(row, 0)?, row.get(1)?))
        })
    }

    /// Lists the notes and canvases whose text is not known, because they could not be read or are too large.
    pub fn without_text(&self) -> Result<Vec<NotePath>> {
        self.0.collect("SELECT path FROM files WHERE hash IS NULL AND kind < 2 ORDER BY path", [], |row| {
            read_path(row, 0)
        })
    }

    /// Lists the attachments whose text is still to be read, the newest first, each with its size.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn waiting(&self) -> Result<Vec<(NotePath, u64)>> {
        self.0.collect(
            "SELECT f.path, f.size FROM waiting w JOIN files f ON f.id = w.file ORDER BY f.mtime DESC, f.path",
            [],
            |row| Ok((read_path(row, 0)?, row.get::<_, i64>(1)? as u64)),
        )
    }

    /// Lists the attachments whose text was read.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn read_attachments(&self) -> Result<Vec<FileId>> {
        self.0.collect("SELECT id FROM files WHERE kind = 2 AND hash IS NOT NULL", [], |row| row.get(0))
    }

    /// Lists the attachments that have a problem, each with its problems as a JSON array.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn attachment_problems(&self) -> Result<Vec<(NotePath, String)>> {
        self.0.collect(
            "SELECT f.path, d.problems FROM details d JOIN files f ON f.id = d.file
             WHERE d.problems IS NOT NULL AND f.kind = 2 ORDER BY f.path",
            [],
            |row| Ok((read_path(row, 0)?, row.get(1)?)),
        )
    }

    /// Lists all files, as (path, id).
    pub fn all(&self) -> Result<Vec<(NotePath, FileId)>> {
        self.0.collect("SELECT path, id FROM files", [], |row| Ok((read_path(row, 0)?, row.get(1)?)))
    }

    /// Lists the notes and canvases, each with whether the settings exclude it and whether the index could read it.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn read_states(&self) -> Result<Vec<(NotePath, bool, bool)>> {
        self.0.collect("SELECT path, excluded, hash IS NOT NULL FROM files WHERE kind < 2", [], |row| {
            Ok((read_path(row, 0)?, row.get(1)?, row.get(2)?))
        })
    }

    /// Lists the notes and canvases in which the parser found a problem.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn with_problems(&self) -> Result<Vec<FileId>> {
        self.0.collect("SELECT file FROM details WHERE problems IS NOT NULL", [], |row| row.get(0))
    }

    /// Lists the notes and canvases in which the parser found a problem with this code.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn with_problem(&self, code: &str) -> Result<Vec<FileId>> {
        let select = "SELECT file FROM details WHERE problems IS NOT NULL AND instr(problems, ?1) > 0";
        self.0.collect(select, [format!("\"{code}\"")], |row| row.get(0))
    }

    /// Returns the places of files in the order of paths. Missing files have none. If there are many files, all files of the
    /// vault have one.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn places(&self, files: &[FileId]) -> Result<Arc<Places>> {
        let places = || Ok(Arc::new(self.sorted_by_path(files)?.into_iter().zip(0..).collect()));
        if files.len() <= MAX_LOOKUPS {
            return places();
        }
        let db = &self.0.db;
        let by_others = db.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(sql("read"))?;
        let version = (by_others, db.total_changes());
        if let Some((_, known)) = self.0.places.borrow().as_ref().filter(|(known, _)| *known == version) {
            return Ok(Arc::clone(known));
        }
        let places = places()?;
        *self.0.places.borrow_mut() = Some((version, Arc::clone(&places)));
        Ok(places)
    }

    /// Sorts files by path. Missing files are omitted. If there are many files, the result contains all files of the
    /// vault.
    pub fn sorted_by_path(&self, files: &[FileId]) -> Result<Vec<FileId>> {
        if files.len() > MAX_LOOKUPS {
            // The index on paths covers the query, so no row is read.
            return self.0.collect("SELECT id FROM files ORDER BY path", [], |row| row.get(0));
        }
        let mut select =
            self.0.db.prepare_cached("SELECT path FROM files WHERE id = ?1").map_err(sql("read"))?;
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
