//! Files as other programs address them: a page of all of them, one with its text, and names that complete a beginning.

use serde::Serialize;

use super::Store;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::index::catalog::{FileKind, FileRow};
use crate::text::path::{NotePath, key};

/// A file of the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileItem {
    /// Vault path.
    pub path: String,
    /// A note's title; empty for others.
    pub title: String,
    /// Length in bytes.
    pub size: u64,
    /// When it last changed.
    pub updated: Timestamp,
}

impl FileItem {
    fn of(row: FileRow) -> Self {
        let title = if row.kind == FileKind::Note { row.title } else { String::new() };
        Self { path: row.path.as_str().to_owned(), title, size: row.size, updated: row.updated }
    }
}

impl Store {
    /// Lists notes and attachments by path: those behind `after`, `limit` at most. What settings hide is left out.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read.
    pub fn files_after(&self, after: &str, limit: usize) -> Result<Vec<FileItem>> {
        Ok(self.index.catalog().files_after(after, limit)?.into_iter().map(FileItem::of).collect())
    }

    /// Gives a file that the index knows, with its text where it is a note or canvas.
    ///
    /// # Errors
    /// `NotFound` where there is none at this very path; `Io` where it cannot be read.
    pub fn file_text(&self, path: &NotePath) -> Result<(FileItem, Option<String>)> {
        let row = self.index.catalog().row_at(path.as_str())?;
        let row = row.ok_or_else(|| Error::not_found(format!("there is no file {path}")))?;
        let text = match row.kind {
            FileKind::Attachment => None,
            FileKind::Note | FileKind::Canvas => {
                Some(String::from_utf8_lossy(&self.read_bytes(&row.path)?).into_owned())
            }
        };
        Ok((FileItem::of(row), text))
    }

    /// Lists file names, titles and aliases that hold a text; the shortest first.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read.
    pub fn names_like(&self, part: &str, limit: usize) -> Result<Vec<String>> {
        self.index.catalog().names_like(part, limit)
    }

    /// Lists paths of notes and attachments that hold a text, without regard to case; in order.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read.
    pub fn paths_like(&self, part: &str, limit: usize) -> Result<Vec<String>> {
        let wanted = key(part);
        let mut paths: Vec<String> = self
            .index
            .catalog()
            .paths()?
            .into_iter()
            .map(|(path, _)| path.as_str().to_owned())
            .filter(|path| key(path).contains(&wanted))
            .collect();
        paths.sort_unstable();
        paths.truncate(limit);
        Ok(paths)
    }
}
