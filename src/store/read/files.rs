//! Lists and reads files of every kind, and completes their names.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::index::catalog::{FileKind, FileRow};
use crate::store::lookup::Lookup;
use crate::store::read::Reads;
use crate::text::media_type::{is_text, media_type};
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

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// A text, in UTF-8.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
    /// More bytes than were asked for.
    TooLarge,
}

impl FileItem {
    fn of(row: FileRow) -> Self {
        let title = if row.kind == FileKind::Note { row.title } else { String::new() };
        Self { path: row.path.as_str().to_owned(), title, size: row.size, updated: row.updated }
    }
}

impl Reads<'_> {
    /// Lists notes and attachments by path: those behind `after`, `limit` at most. What settings hide is left out.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn files_after(&self, after: &str, limit: usize) -> Result<Vec<FileItem>> {
        Ok(self.core.index.catalog().files_after(after, limit)?.into_iter().map(FileItem::of).collect())
    }

    /// Gives a file that the index knows with what it holds, up to `most` bytes where it is no text.
    ///
    /// # Errors
    /// `NotFound` if there is no file at this path; `Io` if it cannot be read.
    pub fn file(&self, path: &NotePath, most: u64) -> Result<(FileItem, FileContent)> {
        let row = self.known_file(path)?;
        self.content_of(row, most)
    }

    /// Says whether the index knows a file at this very path.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Corrupt` if the catalog cannot be read.
    pub fn require_file(&self, path: &NotePath) -> Result<()> {
        self.known_file(path).map(drop)
    }

    /// Gives the attachment that a name means, with what it holds; nothing for a note or canvas.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Io` if it cannot be read.
    pub fn attachment(&self, name: &str, most: u64) -> Result<Option<(FileItem, FileContent)>> {
        let row = Lookup::of(self.core).find(name)?;
        if row.kind == FileKind::Attachment { self.content_of(row, most).map(Some) } else { Ok(None) }
    }

    fn known_file(&self, path: &NotePath) -> Result<FileRow> {
        let row = self.core.index.catalog().row_at(path.as_str())?;
        row.ok_or_else(|| Error::not_found(format!("there is no file {path}")))
    }

    fn content_of(&self, row: FileRow, most: u64) -> Result<(FileItem, FileContent)> {
        let may_be_text = row.kind != FileKind::Attachment || is_text(media_type(row.path.as_str()));
        if !may_be_text && row.size > most {
            return Ok((FileItem::of(row), FileContent::TooLarge));
        }
        let bytes = self.core.read_bytes(&row.path)?;
        let content = match String::from_utf8(bytes) {
            Ok(text) if may_be_text && !text.contains('\0') => FileContent::Text(text),
            Ok(text) if text.len() as u64 <= most => FileContent::Bytes(text.into_bytes()),
            Err(error) if error.as_bytes().len() as u64 <= most => FileContent::Bytes(error.into_bytes()),
            Ok(_) | Err(_) => FileContent::TooLarge,
        };
        Ok((FileItem::of(row), content))
    }

    /// Lists file names, titles and aliases that hold a text; the shortest first.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn names_like(&self, part: &str, limit: usize) -> Result<Vec<String>> {
        self.core.index.catalog().names().containing(part, limit)
    }

    /// Lists paths of notes and attachments that hold a text, without regard to case; in order.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn paths_like(&self, part: &str, limit: usize) -> Result<Vec<String>> {
        let wanted = key(part);
        let mut paths: Vec<String> = self
            .core
            .index
            .catalog()
            .paths()
            .all()?
            .into_iter()
            .map(|(path, _)| path.as_str().to_owned())
            .filter(|path| key(path).contains(&wanted))
            .collect();
        paths.sort_unstable();
        paths.truncate(limit);
        Ok(paths)
    }
}
