//! Plans of changes: [`Edit`] for byte ranges, and [`ChangeSet`] for everything that one operation does.
//!
//! A plan changes nothing by itself; `vault/apply` carries it out.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sidenote_base::error::{Error, Result};
use sidenote_base::wording::Wording;

use crate::path::{NotePath, SettingsPath};
use crate::span::Span;

/// The BLAKE3 hash of a file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes the bytes of a file.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Returns the bytes of the hash.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Creates a hash from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ContentHash {
    type Err = Error;

    /// Parses 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|_| {
            Error::invalid(format!("{text:?} is not a content hash")).with_hint(
                Wording::new(
                    "a hash has 64 hexadecimal digits; `sidenote inspect NOTE` shows a note's",
                    "a hash has 64 hexadecimal digits",
                )
                .with_tool("read_note", "read_note gives a note's"),
            )
        })
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A replacement of a byte range by a text. An empty span inserts, an empty text removes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The replaced bytes, as offsets in the file before any edit.
    pub span: Span,
    /// The new text.
    pub text: String,
}

impl Edit {
    /// Creates an edit that replaces the bytes of `span` by `text`.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// Creates an edit that inserts `text` before the byte at `at`.
    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::replace(Span::new(at, at), text)
    }

    /// Creates an edit that removes the bytes of `span`.
    pub fn remove(span: Span) -> Self {
        Self::replace(span, "")
    }
}

/// Applies edits, which may be in any order. Insertions at the same offset keep their order.
///
/// # Errors
/// `Internal` if two edits overlap or one is out of bounds.
pub fn apply(bytes: &[u8], edits: &[Edit]) -> Result<Vec<u8>> {
    let mut order: Vec<&Edit> = edits.iter().collect();
    order.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut changed =
        Vec::with_capacity(bytes.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>());
    let mut at = 0;
    for edit in order {
        let unchanged = bytes.get(at..edit.span.start).filter(|_| edit.span.start <= edit.span.end);
        let (Some(unchanged), true) = (unchanged, edit.span.end <= bytes.len()) else {
            return Err(Error::internal(format!(
                "the edit of bytes {} to {} overlaps another one or is out of bounds",
                edit.span.start, edit.span.end
            )));
        };
        changed.extend_from_slice(unchanged);
        changed.extend_from_slice(edit.text.as_bytes());
        at = edit.span.end;
    }
    changed.extend_from_slice(bytes.get(at..).unwrap_or_default());
    Ok(changed)
}

/// Returns the single edit that turns one text into another, without their common prefix and suffix; `None` if they are
/// equal.
pub fn single_edit(old: &str, new: &str) -> Option<Edit> {
    let start = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let start = (0..=start).rev().find(|&at| old.is_char_boundary(at) && new.is_char_boundary(at))?;
    let rest = old.len().min(new.len()) - start;
    let same = old.bytes().rev().zip(new.bytes().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let fits = |back: usize| old.is_char_boundary(old.len() - back) && new.is_char_boundary(new.len() - back);
    let back = (0..=same).rev().find(|&back| fits(back))?;
    let (removed, inserted) = (Span::new(start, old.len() - back), new.get(start..new.len() - back)?);
    (!removed.is_empty() || !inserted.is_empty()).then(|| Edit::replace(removed, inserted))
}

/// The location of a file: in the vault, in its trash, or among its settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileLocation {
    /// A visible path of the vault.
    Vault(NotePath),
    /// A path below `.trash/` (docs/spec/obsidian.md 1.7).
    Trash(NotePath),
    /// A file with settings. Only synchronisation with a team writes it.
    Settings(SettingsPath),
}

impl FileLocation {
    /// Parses a path from the vault's root, as [`fmt::Display`] writes it. Returns `None` for other hidden files.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix(".trash/") {
            Some(inner) => NotePath::from_disk(inner).map(Self::Trash),
            None => NotePath::from_disk(text)
                .map(Self::Vault)
                .or_else(|| SettingsPath::parse(text).map(Self::Settings)),
        }
    }

    /// Returns the path in the vault; `None` for a file in the trash and for settings.
    pub fn in_vault(&self) -> Option<&NotePath> {
        match self {
            Self::Vault(path) => Some(path),
            Self::Trash(_) | Self::Settings(_) => None,
        }
    }
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vault(path) => path.fmt(f),
            Self::Trash(path) => write!(f, ".trash/{path}"),
            Self::Settings(path) => f.write_str(path.as_str()),
        }
    }
}

/// The new content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// The present content.
    Keep,
    /// The present content with these edits.
    Edits(Vec<Edit>),
    /// These bytes, for a new file or a restored one.
    #[serde(with = "whole")]
    Whole(Vec<u8>),
}

/// Serializes bytes as text if they are UTF-8, otherwise as numbers.
mod whole {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Bytes<T> {
        Text(T),
        Raw(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Bytes::Text(text).serialize(serializer),
            Err(_) => Bytes::<&str>::Raw(bytes.to_vec()).serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        Ok(match Bytes::<String>::deserialize(deserializer)? {
            Bytes::Text(text) => text.into_bytes(),
            Bytes::Raw(bytes) => bytes,
        })
    }
}

/// A change of one file: created (no `from`), removed (no `to`), moved, or changed in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The present location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FileLocation>,
    /// The new location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<FileLocation>,
    /// The hash of the present bytes. Other bytes are a conflict, and nothing is written. It may be missing for a file
    /// that only moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
    /// The new content.
    pub content: Content,
}

impl FileChange {
    /// Plans a new file.
    pub fn create(path: NotePath, bytes: Vec<u8>) -> Self {
        Self { from: None, to: Some(FileLocation::Vault(path)), before: None, content: Content::Whole(bytes) }
    }

    /// Plans edits of a file in place.
    pub fn edit(path: NotePath, before: ContentHash, edits: Vec<Edit>) -> Self {
        let place = FileLocation::Vault(path);
        Self {
            from: Some(place.clone()),
            to: Some(place),
            before: Some(before),
            content: Content::Edits(edits),
        }
    }

    /// Returns the places that the change touches.
    pub fn places(&self) -> impl Iterator<Item = &FileLocation> {
        self.from.iter().chain(&self.to)
    }

    /// Returns whether the file's bytes change.
    pub fn writes(&self) -> bool {
        match &self.content {
            Content::Keep => false,
            Content::Edits(edits) => !edits.is_empty(),
            Content::Whole(_) => true,
        }
    }
}

/// A move of a folder with everything in it, including hidden files. Files in it that also change are listed as
/// [`FileChange`]s from the old path to the new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderMove {
    /// The present path of the folder.
    pub from: NotePath,
    /// The new path of the folder.
    pub to: NotePath,
}

/// A remark of an operation: something that it did not do, or that the user should check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// A refusal code (docs/spec/obsidian.md 4.7) or another code for programs.
    pub code: String,
    /// The file.
    pub path: NotePath,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1.
    pub column: usize,
    /// The message for the user.
    pub message: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {} ({})", self.path, self.line, self.column, self.message, self.code)
    }
}

/// Everything that one operation does to the files. It is applied atomically.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeSet {
    /// The name of the operation in the journal, such as `move`, `set` or `undo`.
    pub operation: String,
    /// The id of the operation that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// Whether new names may differ from others only in case or accents, because the plan repeats what another folder has.
    #[serde(skip)]
    pub repeats_names: bool,
    /// Folders that move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FolderMove>,
    /// What happens to single files.
    pub files: Vec<FileChange>,
    /// Remarks, for example about links that were not changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// Files that a plan makes a note lead to and that it does not write, by note. A commit of the note needs them.
    #[serde(skip)]
    pub leads_to: Vec<(NotePath, NotePath)>,
}

impl ChangeSet {
    /// Creates an empty plan.
    pub fn new(operation: impl Into<String>) -> Self {
        Self { operation: operation.into(), ..Self::default() }
    }

    /// Returns whether the plan changes nothing.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty()
    }
}
