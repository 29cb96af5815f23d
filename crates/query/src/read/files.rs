//! Lists and reads files of every kind, and completes their names.

use serde::Serialize;
use sidenote_attachments::{Readable, decode_text};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::{FileKind, FileRow};
use sidenote_markdown::media_type::{is_text, media_type};
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::lookup::Lookup;
use sidenote_vault::open_to_read;

use crate::read::Reads;

/// A file of the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileItem {
    /// Vault path.
    pub path: String,
    /// The title of a note; empty for other files.
    pub title: String,
    /// The size in bytes.
    pub size: u64,
    /// When the file was last changed.
    pub updated: Timestamp,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// Text in UTF-8.
    Text(String),
    /// Other bytes.
    Bytes(Vec<u8>),
    /// The file is larger than the given limit.
    TooLarge,
}

/// An attachment that is shown as what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The file.
    pub file: FileItem,
    /// Its content.
    pub content: FileContent,
    /// Why it has no text, as a sentence, if it could have one.
    pub problem: Option<String>,
}

impl FileItem {
    fn of(row: FileRow) -> Self {
        let title = if row.kind == FileKind::Note { row.title } else { String::new() };
        Self { path: row.path.as_str().to_owned(), title, size: row.size, updated: row.updated }
    }
}

impl Reads<'_> {
    /// Lists notes and attachments after the path `after`, at most `limit`. Files that the settings exclude are left
    /// out.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn files_after(&self, after: &str, limit: usize) -> Result<Vec<FileItem>> {
        Ok(self.core.index.catalog().files_after(after, limit)?.into_iter().map(FileItem::of).collect())
    }

    /// Returns an indexed file with its content. Files other than text are read up to `most` bytes.
    ///
    /// # Errors
    /// `NotFound` if there is no file at this path; `Io` if it cannot be read.
    pub fn file(&self, path: &NotePath, most: u64) -> Result<(FileItem, FileContent)> {
        let row = self.known_file(path)?;
        self.content_of(row, most)
    }

    /// Returns an error unless there is an indexed file at this path.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Corrupt` if the catalog cannot be read.
    pub fn require_file(&self, path: &NotePath) -> Result<()> {
        self.known_file(path).map(drop)
    }

    /// Opens an indexed file for reading, and returns its length in bytes, too.
    ///
    /// # Errors
    /// `NotFound` if there is no file at this path; `Io` if it cannot be opened.
    pub fn open(&self, path: &NotePath) -> Result<(std::fs::File, u64)> {
        self.require_file(path)?;
        let file = open_to_read(&self.core.vault, path)?;
        let length = file.metadata().map_err(|error| Error::io("read", path.as_str(), error))?.len();
        Ok((file, length))
    }

    /// Returns the attachment with a name, and its content. Returns `None` for a note or canvas, and for an attachment whose text
    /// [`Reads::read`] gives.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Io` if it cannot be read.
    pub fn attachment(&self, name: &str, most: u64) -> Result<Option<Attachment>> {
        let (row, _) = Lookup::of(self.core).find_with_part(name)?;
        if row.kind != FileKind::Attachment {
            return Ok(None);
        }
        let problem = match self.document(&row) {
            Ok(Some(_)) => return Ok(None),
            Ok(None) => None,
            Err(error) if error.kind() == ErrorKind::Invalid => Some(error.to_string()),
            Err(error) => return Err(error),
        };
        let (file, content) = self.content_of(row, most)?;
        Ok(Some(Attachment { file, content, problem }))
    }

    fn known_file(&self, path: &NotePath) -> Result<FileRow> {
        let row = self.core.index.catalog().row_at(path.as_str())?;
        row.ok_or_else(|| Error::not_found(format!("there is no file {path}")))
    }

    fn content_of(&self, row: FileRow, most: u64) -> Result<(FileItem, FileContent)> {
        let is_text_file = matches!(Readable::of(row.path.name()), Some(Readable::Text(_)));
        let may_be_text =
            row.kind != FileKind::Attachment || is_text_file || is_text(media_type(row.path.as_str()));
        if !may_be_text && row.size > most {
            return Ok((FileItem::of(row), FileContent::TooLarge));
        }
        let mut bytes = self.core.read_bytes(&row.path)?;
        if is_text_file && let Ok(text) = decode_text(bytes.clone()) {
            bytes = text;
        }
        let content = match String::from_utf8(bytes) {
            Ok(text) if may_be_text && !text.contains('\0') => FileContent::Text(text),
            Ok(text) if text.len() as u64 <= most => FileContent::Bytes(text.into_bytes()),
            Err(error) if error.as_bytes().len() as u64 <= most => FileContent::Bytes(error.into_bytes()),
            Ok(_) | Err(_) => FileContent::TooLarge,
        };
        Ok((FileItem::of(row), content))
    }

    /// Lists file names, titles and aliases that contain a text, the shortest first.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn names_like(&self, part: &str, limit: usize) -> Result<Vec<String>> {
        self.core.index.catalog().names().containing(part, limit)
    }

    /// Lists paths of notes and attachments that contain a text, ignoring case, in order.
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
