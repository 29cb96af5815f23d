//! Queries about passages: which files contain a passage, and which passages a file has.

use rusqlite::OptionalExtension;
use sidenote_base::error::Result;

use crate::{CatalogReader, FileId, sql};

/// Queries of the catalog about passages.
#[derive(Debug, Clone, Copy)]
pub struct PassageQueries<'a>(&'a CatalogReader);

impl CatalogReader {
    /// Returns the queries about passages.
    pub fn passages(&self) -> PassageQueries<'_> {
        PassageQueries(self)
    }
}

impl PassageQueries<'_> {
    /// Lists the files that contain each of these passages, as (key, file, ordinal), in the order of the keys.
    pub fn files_containing(&self, keys: &[i64]) -> Result<Vec<(i64, FileId, usize)>> {
        let mut found = Vec::with_capacity(keys.len());
        let select = "SELECT key, file, ord FROM passages WHERE key = ?1";
        let mut statement = self.0.db.prepare_cached(select).map_err(sql("read"))?;
        for passage in keys {
            let mut rows = statement.query([passage]).map_err(sql("read"))?;
            while let Some(row) = rows.next().map_err(sql("read"))? {
                let read = || Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as usize));
                found.push(read().map_err(sql("read"))?);
            }
        }
        Ok(found)
    }

    /// Lists the keys of the passages of one file, in order.
    pub fn of(&self, id: FileId) -> Result<Vec<i64>> {
        let packed: Option<Vec<u8>> = self
            .0
            .db
            .prepare_cached("SELECT passages FROM details WHERE file = ?1")
            .and_then(|mut select| select.query_row([id], |row| row.get(0)).optional())
            .map_err(sql("read"))?;
        let packed = packed.unwrap_or_default();
        Ok(packed
            .chunks_exact(8)
            .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap_or_default()))
            .collect())
    }

    /// Lists the lowest keys of passages, in order. Keys are hashes, so that they are a random sample.
    pub fn lowest_keys(&self, limit: usize) -> Result<Vec<i64>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let select = "SELECT DISTINCT key FROM passages ORDER BY key LIMIT ?1";
        self.0.collect(select, [limit], |row| row.get(0))
    }

    /// Visits every passage of every file, as (key, file), in the order of keys.
    pub fn each(&self, mut visit: impl FnMut(i64, FileId)) -> Result<()> {
        let mut statement =
            self.0.db.prepare_cached("SELECT key, file FROM passages").map_err(sql("read"))?;
        let mut rows = statement.query([]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            visit(row.get(0).map_err(sql("read"))?, row.get(1).map_err(sql("read"))?);
        }
        Ok(())
    }
}
