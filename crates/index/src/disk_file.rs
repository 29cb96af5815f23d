//! Builds the catalog row of a single file from its current content on the disk.

use sidenote_base::error::{ErrorKind, Result};
use sidenote_catalog::{FileKind, FileRow};
use sidenote_markdown::path::NotePath;
use sidenote_vault::obsidian::Settings;
use sidenote_vault::scan;

use crate::indexed_document::IndexedDocument;
use crate::{Index, diff};

impl Index {
    /// Returns the row of a file as it is on the disk now, whatever the catalog has for it. Returns `None` if the file
    /// does not exist.
    ///
    /// # Errors
    /// Returns `Io` if the file cannot be read, and `Corrupt` if the catalog cannot be read.
    pub fn row_on_disk(&self, path: &NotePath, settings: &Settings) -> Result<Option<FileRow>> {
        let known = self.catalog().row_at(path.as_str())?;
        let Some(stat) = scan::stat(&self.vault, path)? else { return Ok(None) };
        let (stat, excluded) = (diff::stat_of(&stat), settings.is_excluded(path));
        if FileKind::of(path) == FileKind::Attachment {
            return Ok(Some(
                known.unwrap_or_else(|| IndexedDocument::attachment(path, stat, false, excluded).record.row),
            ));
        }
        let bytes = match self.vault.read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let hash = *blake3::hash(&bytes).as_bytes();
        let id = known.as_ref().map_or(0, |known| known.id);
        match known.filter(|known| known.hash == Some(hash)) {
            Some(known) => Ok(Some(known)),
            None => Ok(Some(FileRow { id, ..IndexedDocument::row_of(path, bytes, stat, excluded) })),
        }
    }
}
