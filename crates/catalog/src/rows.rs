//! The values that the catalog stores and returns. This module contains no SQL.

use std::sync::Arc;

use rusqlite::Row;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_links::dialect_evidence::LinkEvidence;
use sidenote_markdown::link::{Link, LinkSyntax};
use sidenote_markdown::note::Task;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::relation::Relation;
pub use sidenote_sets::file_set::FileId;
use uuid::Uuid;

use crate::{CatalogReader, read_time};

/// The content hash of a file: BLAKE3 of its bytes.
pub type Hash = [u8; 32];

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A Markdown note.
    Note,
    /// A JSON Canvas.
    Canvas,
    /// Any other file: it can be a link target, and is searched where its text can be read.
    Attachment,
}

impl FileKind {
    /// Returns the kind of a file by the extension of its path.
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

/// The metadata of a file in the file system. A file with an equal stat is taken to be unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The length in bytes.
    pub size: u64,
    /// The modification time in nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// The change time in nanoseconds since the epoch. It reveals changes by tools that restore the modification time.
    pub ctime_ns: i64,
}

/// The indexed state of a file, as far as a scan compares it.
#[derive(Debug, Clone, Copy)]
pub struct IndexedFile<P = NotePath> {
    /// The id of the file.
    pub id: FileId,
    /// The path.
    pub path: P,
    /// The stat when the file was indexed.
    pub stat: Stat,
    /// Whether the file changed so shortly before it was read that an equal stat proves nothing.
    pub racy: bool,
    /// Whether the settings exclude the file.
    pub excluded: bool,
}

/// Returns the error for a stored path that is invalid or out of order.
pub(super) fn invalid_path(text: &str) -> Error {
    Error::corrupt(format!("the catalog lists {text:?}, which is not a valid path of a vault"))
}

impl IndexedFile<&str> {
    /// Converts the borrowed path to an owned one.
    ///
    /// # Errors
    /// Returns `Corrupt` if the path is invalid.
    pub fn into_owned(self) -> Result<IndexedFile> {
        let Self { id, path, stat, racy, excluded } = self;
        let path = NotePath::from_disk(path).ok_or_else(|| invalid_path(path))?;
        Ok(IndexedFile { id, path, stat, racy, excluded })
    }
}

/// An entry of a folder, as the catalog lists it.
#[derive(Debug)]
pub enum FolderEntry<'a> {
    /// A file.
    File(IndexedFile<&'a str>),
    /// The path of a subfolder that contains files at any depth.
    Folder(&'a str),
}

/// Where the time of creation of a note comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CreationSource {
    /// The earliest time that its file was seen to have, of birth or modification.
    #[default]
    File,
    /// A property.
    Property,
    /// The date in its name.
    Name,
    /// The first commit in git that has the file.
    Git,
    /// Nothing: the file was copied with others, and has the time of that. The note is as old or older.
    Copy,
}

/// Where the times of a note come from, and whether they were stated without an offset, so that they are local wherever the
/// reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeSources {
    /// Where the time of creation comes from.
    pub created: CreationSource,
    /// Whether it was stated without an offset.
    pub is_created_local: bool,
    /// Whether the time of the last change was stated without an offset.
    pub is_updated_local: bool,
}

impl TimeSources {
    /// The bits of the code that hold the source of the time of creation.
    pub(super) const SOURCE: i64 = 7;
    /// The bit for a local time of creation.
    pub(super) const CREATED_LOCAL: i64 = 8;
    /// The bit for a local time of the last change.
    pub(super) const UPDATED_LOCAL: i64 = 16;

    /// Returns the code in the catalog.
    pub(super) fn code(self) -> i64 {
        let local = |is_local: bool, bit: i64| if is_local { bit } else { 0 };
        self.created.code()
            | local(self.is_created_local, Self::CREATED_LOCAL)
            | local(self.is_updated_local, Self::UPDATED_LOCAL)
    }

    /// Reads a code of the catalog.
    pub(super) fn from_code(code: i64) -> Self {
        let created = match code & Self::SOURCE {
            1 => CreationSource::Property,
            2 => CreationSource::Name,
            3 => CreationSource::Git,
            4 => CreationSource::Copy,
            _ => CreationSource::File,
        };
        let is_created_local = code & Self::CREATED_LOCAL != 0;
        Self { created, is_created_local, is_updated_local: code & Self::UPDATED_LOCAL != 0 }
    }
}

impl CreationSource {
    /// Returns the code in the catalog.
    pub(super) fn code(self) -> i64 {
        match self {
            Self::File => 0,
            Self::Property => 1,
            Self::Name => 2,
            Self::Git => 3,
            Self::Copy => 4,
        }
    }

    /// Returns whether a note with this source lies in a period by its time of creation. The start of a period says nothing
    /// of a copied note, which can be older.
    pub fn admits(self, at: Timestamp, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
        let after = from.is_none_or(|from| at >= from && self != Self::Copy);
        after && to.is_none_or(|to| at < to)
    }
}

/// The row of a file in the catalog.
#[derive(Debug, Clone)]
pub struct FileRow {
    /// The id of the file.
    pub id: FileId,
    /// The path.
    pub path: NotePath,
    /// The kind of the file.
    pub kind: FileKind,
    /// The length in bytes.
    pub size: u64,
    /// The hash of the content that was read; `None` for an attachment whose text is not read, and for a file that cannot be
    /// read.
    pub hash: Option<Hash>,
    /// Whether the settings exclude the file from searches and lists.
    pub excluded: bool,
    /// The `id` property of the note, or else the UUIDv5 of its path.
    pub note_id: String,
    /// The title.
    pub title: String,
    /// When the note was created, as far as is known.
    pub created: Timestamp,
    /// When the note was last changed.
    pub updated: Timestamp,
    /// Where these two times come from.
    pub time_sources: TimeSources,
    /// When the file was last written, whatever the properties of the note say.
    pub written: Timestamp,
    /// The `category` property.
    pub category: Option<String>,
    /// The `type` property.
    pub note_type: Option<String>,
    /// Whether the note is archived or forgotten.
    pub inactive: Inactive,
    /// The tags and properties of the file, if the row was built from the file because the catalog is out of date.
    pub unindexed: Option<Arc<Details>>,
}

impl FileRow {
    /// Takes in that the file existed at a time. The earliest such time is when the note was created, unless the note says
    /// more.
    pub fn existed_at(&mut self, at: Option<Timestamp>) {
        let is_of_file = self.time_sources.created == CreationSource::File;
        self.created = at.filter(|_| is_of_file).map_or(self.created, |at| at.min(self.created));
    }
}

/// The fields of a file by which queries narrow their candidates.
#[derive(Debug, Clone)]
pub struct FileEntry {
    /// The id of the file.
    pub id: FileId,
    /// The path.
    pub path: NotePath,
    /// The kind of the file.
    pub kind: FileKind,
    /// Whether its content was read.
    pub is_read: bool,
    /// The `type` property in lower case.
    pub note_type: Option<String>,
    /// The `category` property in lower case.
    pub category: Option<String>,
    /// When the note was created, as far as is known.
    pub created: Timestamp,
    /// Where that is known from.
    pub created_source: CreationSource,
    /// When the note was last changed.
    pub updated: Timestamp,
    /// Whether the note is archived or forgotten.
    pub inactive: Inactive,
}

impl FileEntry {
    /// Returns whether searches match the content of the file: notes, canvases, bases (docs/spec/obsidian.md 8.2), and
    /// attachments that were read.
    pub fn is_text(&self) -> bool {
        self.kind != FileKind::Attachment || self.is_read || self.is_base()
    }

    /// Returns whether the file is a base. The text of bases is not indexed.
    pub fn is_base(&self) -> bool {
        self.path.extension().eq_ignore_ascii_case("base")
    }
}

/// The tags and properties of a file, in the form that the catalog stores.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// The distinct tag names.
    pub tags: Vec<String>,
    /// The properties. Nested mappings are flattened to names such as `a.b`.
    pub properties: Map<String, Value>,
}

/// The states in which a note is inactive: searches find it only on request (docs/spec/memory.md, Tiers, Forgetting).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inactive {
    /// The note has the property `tier: archive`.
    pub archived: bool,
    /// The note has the property `forgotten: true`.
    pub forgotten: bool,
}

impl Inactive {
    /// Returns the states as bits: 1 for archived, 2 for forgotten.
    pub(super) fn code(self) -> i64 {
        i64::from(self.archived) | i64::from(self.forgotten) << 1
    }

    pub(super) fn from_code(code: i64) -> Self {
        Self { archived: code & 1 != 0, forgotten: code & 2 != 0 }
    }
}

/// A link in the catalog. Its other attributes are read from the file, at the same position in the note's list of
/// links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRow {
    /// The file that contains the link.
    pub source: FileId,
    /// The position of the link in the file.
    pub position: LinkPosition,
    /// How the path of the link is read.
    pub syntax: LinkSyntax,
    /// The decoded path part of the link.
    pub linkpath: String,
    /// The file that the link resolves to.
    pub target: Option<FileId>,
}

/// The position of a link in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkPosition {
    /// The index among the links of the file, from 0.
    pub ord: usize,
    /// The line, counted from 1.
    pub line: usize,
    /// How the link is used.
    pub role: LinkRole,
}

/// How a link is used in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum LinkRole {
    /// It is a link in the text.
    #[default]
    Link,
    /// It embeds its target.
    Embed,
    /// It is in the value of a property.
    Property,
}

impl LinkRole {
    /// Returns the role of a link.
    pub fn of(link: &Link) -> Self {
        match (link.embed, &link.key) {
            (true, _) => Self::Embed,
            (false, Some(_)) => Self::Property,
            (false, None) => Self::Link,
        }
    }

    pub(super) fn code(self) -> u64 {
        match self {
            Self::Link => 0,
            Self::Embed => 1,
            Self::Property => 2,
        }
    }

    pub(super) fn from_code(code: u64) -> Self {
        match code {
            1 => Self::Embed,
            2 => Self::Property,
            _ => Self::Link,
        }
    }
}

/// All links of one note with the same text, which resolve to the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkGroup {
    /// See [`LinkRow::syntax`].
    pub syntax: LinkSyntax,
    /// The decoded path part of the link.
    pub linkpath: String,
    /// The file that the links resolve to.
    pub target: Option<FileId>,
    /// The dialects that the links speak for.
    pub evidence: LinkEvidence,
    /// The positions of the links, in order.
    pub positions: Vec<LinkPosition>,
}

/// Returns when a file was created as far as is known, and where that is known from.
///
/// # Errors
/// Returns `Corrupt` or `Io` if the catalog cannot be read.
pub fn creation_of(catalog: &CatalogReader, id: FileId) -> Result<Option<(Timestamp, CreationSource)>> {
    let read = |row: &Row<'_>| {
        let sources = TimeSources::from_code(row.get(2)?);
        let changed = Timestamp::from_nanos(row.get(1)?);
        Ok((read_time(row, 0, sources.is_created_local, changed)?, sources.created))
    };
    Ok(catalog.collect("SELECT created, mtime, times FROM files WHERE id = ?1", [id], read)?.pop())
}

impl LinkGroup {
    pub(super) fn rows(self, source: FileId) -> impl Iterator<Item = LinkRow> {
        let Self { syntax, linkpath, target, positions, .. } = self;
        positions.into_iter().map(move |position| LinkRow {
            source,
            position,
            syntax,
            linkpath: linkpath.clone(),
            target,
        })
    }
}

/// Everything that the catalog stores of one file.
#[derive(Debug, Clone)]
pub struct Record {
    /// The row of the file. Its `id` is already assigned.
    pub row: FileRow,
    /// The stat when the file was read.
    pub stat: Stat,
    /// See [`IndexedFile::racy`].
    pub racy: bool,
    /// The aliases of the note.
    pub aliases: Vec<String>,
    /// The tag names as first written in the note, with their numbers of occurrences.
    pub tags: Vec<(String, usize)>,
    /// The properties. Nested mappings are flattened to names such as `a.b`.
    pub properties: Map<String, Value>,
    /// The problems of the note, as a JSON array.
    pub problems: String,
    /// The links, grouped by text.
    pub links: Vec<LinkGroup>,
    /// The relations that the note states. Their ends are indexes in `links`.
    pub relations: Vec<Relation>,
    /// The tasks, in their order.
    pub tasks: Vec<Task>,
    /// The keys of the passages, in order.
    pub passages: Vec<i64>,
    /// The starts of the sections in ascending order; empty if the file is not a note.
    pub sections: Vec<usize>,
    /// Whether a link names a part of a note, such as a heading.
    pub names_parts: bool,
    /// Whether the file is an attachment whose text is still to be read.
    pub waits: bool,
}

impl Record {
    /// Returns whether the catalog has more of the file than its row: it is a note, a canvas, or an attachment that was read or
    /// has a problem.
    pub(crate) fn has_details(&self) -> bool {
        self.row.kind != FileKind::Attachment || self.row.hash.is_some() || !self.problems.is_empty()
    }
}

/// The totals of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// The number of Markdown notes.
    pub notes: usize,
    /// The number of canvases.
    pub canvases: usize,
    /// The number of other files.
    pub attachments: usize,
    /// The number of attachments whose text is still to be read.
    pub attachments_waiting: usize,
    /// The number of files that the settings exclude.
    pub excluded: usize,
    /// The number of passages.
    pub passages: usize,
    /// The number of links.
    pub links: usize,
    /// The number of unresolved links.
    pub unresolved: usize,
}

/// The namespace of the ids of notes without an `id` property (UUIDv5, RFC 9562 section 5.5).
const NAMESPACE: Uuid = Uuid::from_bytes(*b"sidenote-notes-1");

/// Returns the UUIDv5 of a path.
pub(super) fn path_uuid(path: &NotePath) -> Uuid {
    Uuid::new_v5(&NAMESPACE, path.as_str().as_bytes())
}

/// Returns the id of a note without an `id` property: the UUIDv5 of its path (docs/spec/files.md, Frontmatter). The note
/// does not store it.
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
