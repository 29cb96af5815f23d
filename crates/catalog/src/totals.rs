//! The totals of the catalog: how many files, passages and links it has.

use hashbrown::HashMap;
use sidenote_base::error::Result;

use super::{CatalogReader, Counts, FileKind, dialects, sql};

/// Queries of the catalog about totals.
#[derive(Debug, Clone, Copy)]
pub struct TotalQueries<'a>(&'a CatalogReader);

impl CatalogReader {
    /// Returns the queries about totals.
    pub fn totals(&self) -> TotalQueries<'_> {
        TotalQueries(self)
    }
}

impl TotalQueries<'_> {
    /// Counts the files of every kind.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn files(&self) -> Result<usize> {
        self.count("SELECT count(*) FROM files")
    }

    /// Counts the notes.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn notes(&self) -> Result<usize> {
        self.count("SELECT count(*) FROM files WHERE kind = 0")
    }

    /// Counts the attachments whose text is still to be read.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn waiting(&self) -> Result<usize> {
        self.count("SELECT count(*) FROM waiting")
    }

    /// Returns the number of passages, as it is kept by difference.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn passages(&self) -> Result<usize> {
        self.kept(dialects::PASSAGES)
    }

    /// Returns the number of links, as it is kept by difference.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn links(&self) -> Result<usize> {
        self.kept(dialects::LINKS)
    }

    /// Counts the files by kind, the passages and the links. The unresolved links are looked at one by one.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        let by_kind: HashMap<i64, i64> = self
            .0
            .collect("SELECT kind, count(*) FROM files GROUP BY kind", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .into_iter()
            .collect();
        let count = |kind: FileKind| by_kind.get(&kind.code()).copied().unwrap_or(0) as usize;
        Ok(Counts {
            notes: count(FileKind::Note),
            canvases: count(FileKind::Canvas),
            attachments: count(FileKind::Attachment),
            attachments_waiting: self.waiting()?,
            excluded: self.count("SELECT count(*) FROM files WHERE excluded")?,
            passages: self.passages()?,
            links: self.links()?,
            unresolved: self.0.links().count_unresolved()?,
        })
    }

    fn count(&self, query: &str) -> Result<usize> {
        let count = self.0.db.query_row(query, [], |row| row.get::<_, i64>(0)).map_err(sql("read"))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Returns a number that is kept by difference.
    fn kept(&self, name: &str) -> Result<usize> {
        self.0.meta(name).map(|number| number.and_then(|number| number.try_into().ok()).unwrap_or(0))
    }
}
