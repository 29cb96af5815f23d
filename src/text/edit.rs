//! Owns what a change is before it is an act: edits of bytes, and the set of changes that one operation makes.
//!
//! Everything here can be computed, printed and thrown away; only `vault/write` turns it into an act.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::text::path::NotePath;
use crate::text::span::Span;
use crate::wording::Wording;

/// The BLAKE3 hash of a file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes the bytes of a file.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Gives the bytes of the hash.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Takes a hash that was computed before.
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

    /// Reads 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|_| {
            Error::invalid(format!("{text:?} is no content hash")).with_hint(
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

/// Puts a text in the place of some bytes; an empty span inserts, an empty text removes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The bytes that go, as offsets in the file before any edit.
    pub span: Span,
    /// What comes in their place.
    pub text: String,
}

impl Edit {
    /// Replaces the bytes of `span` by `text`.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// Inserts `text` in front of the byte at `at`.
    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::replace(Span::new(at, at), text)
    }

    /// Removes the bytes of `span`.
    pub fn remove(span: Span) -> Self {
        Self::replace(span, "")
    }
}

/// Makes the edits, which may come in any order; insertions at one place stay in the order given.
///
/// # Errors
/// `Internal` where two edits overlap or one lies outside the bytes: a plan like that must not be carried out.
pub fn apply(bytes: &[u8], edits: &[Edit]) -> Result<Vec<u8>> {
    let mut order: Vec<&Edit> = edits.iter().collect();
    order.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut changed =
        Vec::with_capacity(bytes.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>());
    let mut at = 0;
    for edit in order {
        let kept = bytes.get(at..edit.span.start).filter(|_| edit.span.start <= edit.span.end);
        let (Some(kept), true) = (kept, edit.span.end <= bytes.len()) else {
            return Err(Error::internal(format!(
                "the edit of bytes {} to {} overlaps another or lies outside",
                edit.span.start, edit.span.end
            )));
        };
        changed.extend_from_slice(kept);
        changed.extend_from_slice(edit.text.as_bytes());
        at = edit.span.end;
    }
    changed.extend_from_slice(bytes.get(at..).unwrap_or_default());
    Ok(changed)
}

/// Gives the one edit that leads from a text to another, between what both begin and end with; `None` where they are
/// equal.
pub fn single_edit(old: &str, new: &str) -> Option<Edit> {
    let start = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let start = (0..=start).rev().find(|&at| old.is_char_boundary(at) && new.is_char_boundary(at))?;
    let rest = old.len().min(new.len()) - start;
    let same = old.bytes().rev().zip(new.bytes().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let fits = |back: usize| old.is_char_boundary(old.len() - back) && new.is_char_boundary(new.len() - back);
    let back = (0..=same).rev().find(|&back| fits(back))?;
    let (gone, come) = (Span::new(start, old.len() - back), new.get(start..new.len() - back)?);
    (!gone.is_empty() || !come.is_empty()).then(|| Edit::replace(gone, come))
}

/// Where a file is: in the vault, or in its bin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileLocation {
    /// A visible path of the vault.
    Vault(NotePath),
    /// A path below `.trash/` (spec/obsidian.md 1.7).
    Trash(NotePath),
}

impl FileLocation {
    /// Gives the path in the vault, where it is there.
    pub fn in_vault(&self) -> Option<&NotePath> {
        match self {
            Self::Vault(path) => Some(path),
            Self::Trash(_) => None,
        }
    }
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vault(path) => path.fmt(f),
            Self::Trash(path) => write!(f, ".trash/{path}"),
        }
    }
}

/// What a file will hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// What it holds now.
    Keep,
    /// What it holds now, with these edits.
    Edits(Vec<Edit>),
    /// This text: a new file, or one that gets its former bytes back.
    #[serde(with = "whole")]
    Whole(Vec<u8>),
}

/// Writes whole bytes as text where they are UTF-8, else as numbers.
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

/// What happens to one file: made (no `from`), removed (no `to`), moved, or changed where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Where it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FileLocation>,
    /// Where it will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<FileLocation>,
    /// The hash of its bytes now: other bytes are a conflict, and nothing is written. Files that are only moved may
    /// go without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
    /// What it will hold.
    pub content: Content,
}

impl FileChange {
    /// Makes a new file.
    pub fn create(path: NotePath, bytes: Vec<u8>) -> Self {
        Self { from: None, to: Some(FileLocation::Vault(path)), before: None, content: Content::Whole(bytes) }
    }

    /// Edits a file where it is.
    pub fn edit(path: NotePath, before: ContentHash, edits: Vec<Edit>) -> Self {
        let place = FileLocation::Vault(path);
        Self {
            from: Some(place.clone()),
            to: Some(place),
            before: Some(before),
            content: Content::Edits(edits),
        }
    }

    /// Says whether the file's bytes change.
    pub fn writes(&self) -> bool {
        match &self.content {
            Content::Keep => false,
            Content::Edits(edits) => !edits.is_empty(),
            Content::Whole(_) => true,
        }
    }
}

/// A folder that goes somewhere else with all that is in it, hidden files too. Files in it that change besides are
/// listed as [`FileChange`]s from the old path to the new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderMove {
    /// The folder's path now.
    pub from: NotePath,
    /// The folder's path then.
    pub to: NotePath,
}

/// Something that an operation did not do, or that somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// A refusal code (spec/obsidian.md 4.7), or another word for a program to go by.
    pub code: String,
    /// The file.
    pub path: NotePath,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in bytes, counted from 1.
    pub column: usize,
    /// What it is about.
    pub message: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {} ({})", self.path, self.line, self.column, self.message, self.code)
    }
}

/// Everything that one operation does to the files, as a plan: it lands whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeSet {
    /// The operation, as the journal names it: `move`, `set`, `undo`.
    pub operation: String,
    /// The operation that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// Folders that move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FolderMove>,
    /// What happens to single files.
    pub files: Vec<FileChange>,
    /// What was left alone, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

impl ChangeSet {
    /// Starts a plan without changes.
    pub fn new(operation: impl Into<String>) -> Self {
        Self { operation: operation.into(), ..Self::default() }
    }

    /// Says whether nothing would happen.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty()
    }
}
