//! Owns the values that go into the catalog and come out of it. No SQL.

use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
pub use crate::index::file_set::FileId;
use crate::text::path::NotePath;

/// The content hash of a file: BLAKE3 of its bytes.
pub type Hash = [u8; 32];

/// What a file is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A Markdown note.
    Note,
    /// A JSON Canvas.
    Canvas,
    /// Anything else: a link target, not searched.
    Attachment,
}

impl FileKind {
    /// Sorts a path by its extension.
    pub fn of(path: &NotePath) -> Self {
        if path.is_note() {
            Self::Note
        } else if path.is_canvas() {
            Self::Canvas
        } else {
            Self::Attachment
        }
    }

    pub(super) fn code(self) -> i64 {
        match self {
            Self::Note => 0,
            Self::Canvas => 1,
            Self::Attachment => 2,
        }
    }

    pub(super) fn from_code(code: i64) -> Self {
        match code {
            0 => Self::Note,
            1 => Self::Canvas,
            _ => Self::Attachment,
        }
    }
}

/// What the file system says of a file; equal stats mean an unchanged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Change time in nanoseconds since the epoch: catches tools that put the modification time back.
    pub ctime_ns: i64,
}

/// The little that a scan compares.
#[derive(Debug, Clone, Copy)]
pub struct Known<P = NotePath> {
    /// The file's number.
    pub id: FileId,
    /// Its path.
    pub path: P,
    /// Its stat at the time of indexing.
    pub stat: Stat,
    /// Whether it changed so shortly before it was read that an equal stat proves nothing.
    pub racy: bool,
    /// Whether the settings hide it.
    pub excluded: bool,
}

/// Says that what is listed as a path is none, or not in its place.
pub(super) fn no_path(text: &str) -> Error {
    Error::corrupt(format!("the catalog lists {text:?}, which is no path in a vault"))
}

impl Known<&str> {
    /// Keeps it beyond the row that it was read from.
    ///
    /// # Errors
    /// `Corrupt` where the path is none.
    pub fn owned(self) -> Result<Known> {
        let Self { id, path, stat, racy, excluded } = self;
        let path = NotePath::from_disk(path).ok_or_else(|| no_path(path))?;
        Ok(Known { id, path, stat, racy, excluded })
    }
}

/// What is known directly in a folder.
#[derive(Debug)]
pub enum Inside<'a> {
    /// A file.
    File(Known<&'a str>),
    /// A folder with files in it or below it, by its path.
    Folder(&'a str),
}

/// A file as the catalog lists it.
#[derive(Debug, Clone)]
pub struct FileRow {
    /// The file's number.
    pub id: FileId,
    /// Its path.
    pub path: NotePath,
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// BLAKE3 of its bytes; attachments have none.
    pub hash: Option<Hash>,
    /// Whether the settings hide it from search and lists.
    pub excluded: bool,
    /// Its `id`, else a UUIDv5 of its path.
    pub note_id: String,
    /// Its title.
    pub title: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// When its file was written, whatever the note says.
    pub written: Timestamp,
    /// Its `category`.
    pub category: Option<String>,
    /// Its `type`.
    pub note_type: Option<String>,
    /// Whether it is out of search.
    pub put_away: PutAway,
    /// What else the file says, where the row was made from the file because the catalog does not hold it as it is.
    pub unindexed: Option<Arc<Details>>,
}

/// The facts about a file by which queries narrow their candidates.
#[derive(Debug, Clone)]
pub struct FileEntry {
    /// The file's number.
    pub id: FileId,
    /// Its path.
    pub path: NotePath,
    /// What it is.
    pub kind: FileKind,
    /// Its `type`, in lower case.
    pub note_type: Option<String>,
    /// Its `category`, in lower case.
    pub category: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// Whether it is out of search.
    pub put_away: PutAway,
}

impl FileEntry {
    /// Returns whether words match in its content: notes, canvases and bases (spec/obsidian.md 8.2).
    pub fn is_text(&self) -> bool {
        self.kind != FileKind::Attachment || self.is_base()
    }

    /// Returns whether it is a base, whose text is in no index.
    pub fn is_base(&self) -> bool {
        self.path.extension().eq_ignore_ascii_case("base")
    }
}

/// Tags and properties of a file, as the catalog would hold them.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// Tag names, each once.
    pub tags: Vec<String>,
    /// Properties, those in nested mappings under `a.b`.
    pub properties: Map<String, Value>,
}

/// Why a note is out of search (spec/memory.md, Tiers, Forgetting).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PutAway {
    /// It says `tier: archive`.
    pub archived: bool,
    /// It says `forgotten: true`.
    pub forgotten: bool,
}

impl PutAway {
    /// Gives its bits.
    pub(super) fn code(self) -> i64 {
        i64::from(self.archived) | i64::from(self.forgotten) << 1
    }

    pub(super) fn from_code(code: i64) -> Self {
        Self { archived: code & 1 != 0, forgotten: code & 2 != 0 }
    }
}

/// One link as the catalog lists it; the rest stands in the file, at the same place in the note's list of links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRow {
    /// The file that holds the link.
    pub source: FileId,
    /// Where it stands.
    pub place: Place,
    /// Whether only the exact vault path counts (canvas file nodes).
    pub exact: bool,
    /// Decoded path part.
    pub linkpath: String,
    /// The file it means.
    pub target: Option<FileId>,
}

/// Where a link stands in its note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Its place among the links of that file, from 0.
    pub ord: usize,
    /// Line, counted from 1.
    pub line: usize,
}

/// All links of one note that have the same text; they mean the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkGroup {
    /// See [`LinkRow::exact`].
    pub exact: bool,
    /// Decoded path part.
    pub linkpath: String,
    /// The file they mean.
    pub target: Option<FileId>,
    /// Where they stand, in order.
    pub places: Vec<Place>,
}

impl LinkGroup {
    pub(super) fn rows(self, source: FileId) -> impl Iterator<Item = LinkRow> {
        let Self { exact, linkpath, target, places } = self;
        places.into_iter().map(move |place| LinkRow {
            source,
            place,
            exact,
            linkpath: linkpath.clone(),
            target,
        })
    }
}

/// Everything that goes into the catalog for one file.
#[derive(Debug, Clone)]
pub struct Record {
    /// Row of the file; `id` is already assigned.
    pub row: FileRow,
    /// Its stat at the time of reading.
    pub stat: Stat,
    /// See [`Known::racy`].
    pub racy: bool,
    /// Other names it answers to.
    pub aliases: Vec<String>,
    /// Tag names as first written in the note, with the number of occurrences.
    pub tags: Vec<(String, usize)>,
    /// Properties, those in nested mappings under `a.b`.
    pub properties: Map<String, Value>,
    /// Problems, as a JSON array.
    pub problems: String,
    /// Its links, each text once.
    pub links: Vec<LinkGroup>,
    /// Keys of its passages, in order.
    pub passages: Vec<i64>,
    /// Where its sections begin, in ascending order; none for what is not a note.
    pub sections: Vec<usize>,
}

/// Totals of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Markdown notes.
    pub notes: usize,
    /// Canvases.
    pub canvases: usize,
    /// Other files.
    pub attachments: usize,
    /// Files hidden by the settings.
    pub excluded: usize,
    /// Passages of all notes.
    pub passages: usize,
    /// Links of all notes.
    pub links: usize,
    /// Links that mean nothing.
    pub unresolved: usize,
}

/// Namespace of the ids of notes that have none of their own (UUIDv5, RFC 9562 section 5.5).
const NAMESPACE: Uuid = Uuid::from_bytes(*b"sidenote-notes-1");

/// Returns the UUIDv5 of a path.
pub(super) fn path_uuid(path: &NotePath) -> Uuid {
    Uuid::new_v5(&NAMESPACE, path.as_str().as_bytes())
}

/// Returns the id of a note that has none of its own: the UUIDv5 of its path (spec/product.md, On disk). The note does not
/// store it.
pub fn path_id(path: &NotePath) -> String {
    path_uuid(path).to_string()
}

/// Returns a new id for a note that is created at this path and time.
pub fn path_id_at(path: &NotePath, now: Timestamp) -> String {
    Uuid::new_v5(&NAMESPACE, format!("{path}\n{}", now.millis()).as_bytes()).to_string()
}

/// Returns the UUID of a file's path; attachments have none.
pub(super) fn path_uuid_of(row: &FileRow) -> Option<Uuid> {
    (row.kind != FileKind::Attachment).then(|| path_uuid(&row.path))
}
