//! The messages between a shared vault and the folders that are kept equal to it, as bytes. Pure.
//!
//! A list of changes is lines of JSON: a head, and one line for each file. A commit is a line of JSON that names the files,
//! followed by their contents.

use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};
use sidenote_markdown::edit::ContentHash;
use sidenote_vault::authority::SharedPosition;
use sidenote_vault::copy::SharedPath;

/// The most files of a list of changes: the largest vault that is measured.
pub const MAX_FILES: usize = 1_000_000;
/// The most files of a commit.
pub const MAX_COMMIT_FILES: usize = 1_000;
/// The longest line that names the files of a commit, in bytes.
pub const MAX_COMMIT_HEAD: usize = 4 << 20;
/// The media type of a commit.
pub const COMMIT_TYPE: &str = "application/vnd.sidenote.commit";
/// The media type of a list of changes.
pub const CHANGES_TYPE: &str = "application/x-ndjson";

/// The header of an answer that names the kind of the error, where the status does not say enough.
pub const ERROR_HEADER: &str = "sidenote-error";

/// The first line of a list of changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesHead {
    /// The state to which the changes lead.
    #[serde(flatten)]
    pub position: SharedPosition,
    /// Whether all files of the vault are listed, and not only those that changed.
    pub is_full: bool,
    /// The number of lines that follow.
    pub files: usize,
    /// The largest file in bytes that the vault takes.
    pub max_file: u64,
    /// Whether the operation that was asked about was carried out; `None` if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_done: Option<bool>,
}

/// A line of a list of changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The path from the vault's root.
    pub path: String,
    /// The hash of the bytes; `None` if the file was removed.
    pub hash: Option<ContentHash>,
}

/// Formats one message as a line.
///
/// # Errors
/// `Internal` if it cannot be serialized.
pub fn line<T: Serialize>(message: &T) -> Result<String> {
    let text = serde_json::to_string(message)
        .map_err(|error| Error::internal("a message cannot be serialized").with_source(error))?;
    Ok(text + "\n")
}

/// A list of changes as a client gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The head.
    pub head: ChangesHead,
    /// The files that changed, each with the hash of its bytes, or `None` if it was removed.
    pub files: Vec<(SharedPath, Option<ContentHash>)>,
}

impl Changes {
    /// Parses a whole list of changes. A file that this version does not share is left out.
    ///
    /// # Errors
    /// `Corrupt` if the list is not whole, or not one.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let broken = |error| Error::corrupt("the list of changes cannot be read").with_source(error);
        let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let head: ChangesHead = serde_json::from_slice(lines.next().unwrap_or_default()).map_err(broken)?;
        if head.files > MAX_FILES {
            return Err(Error::corrupt(format!(
                "the list of changes announces {} files, and {MAX_FILES} are taken",
                head.files
            )));
        }
        let mut files = Vec::new();
        let mut count = 0;
        for line in lines {
            if count == head.files {
                return Err(Error::corrupt(format!(
                    "the list of changes has more files than {count}, which it announces"
                )));
            }
            let file: ChangedFile = serde_json::from_slice(line).map_err(broken)?;
            count += 1;
            files.extend(SharedPath::parse(&file.path).map(|path| (path, file.hash)));
        }
        if count != head.files {
            return Err(Error::corrupt(format!(
                "the list of changes has {count} files and announces {}",
                head.files
            )));
        }
        Ok(Self { head, files })
    }
}

/// A change of files that a client wants to be made as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRequest {
    /// The id by which a repeated commit is recognised.
    pub operation: String,
    /// The files.
    pub files: Vec<CommittedContent>,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedContent {
    /// The path.
    pub path: SharedPath,
    /// The hash of the bytes that the change is based on; `None` if there was no file.
    pub base: Option<ContentHash>,
    /// What the file gets.
    pub content: NewContent,
}

/// What a file gets by a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewContent {
    /// The file is removed.
    Removed,
    /// The file has these bytes.
    Bytes(Vec<u8>),
}

impl NewContent {
    /// Returns the hash of the bytes; `None` for a removal.
    pub fn hash(&self) -> Option<ContentHash> {
        match self {
            Self::Removed => None,
            Self::Bytes(bytes) => Some(ContentHash::of(bytes)),
        }
    }
}

/// The line that names the files of a commit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommitHead {
    operation: String,
    files: Vec<CommitHeadFile>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommitHeadFile {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<ContentHash>,
    /// The hash and the number of the bytes; `None` for a removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<(ContentHash, usize)>,
}

impl CommitRequest {
    /// Returns whether the commit changes settings, which needs another right than notes do.
    pub fn has_settings(&self) -> bool {
        self.files.iter().any(|file| file.path.is_settings())
    }

    /// Formats the commit as the body of a request.
    ///
    /// # Errors
    /// `Internal` if it cannot be serialized.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let files = self.files.iter().map(|file| CommitHeadFile {
            path: file.path.as_str().to_owned(),
            base: file.base,
            content: match &file.content {
                NewContent::Removed => None,
                NewContent::Bytes(bytes) => Some((ContentHash::of(bytes), bytes.len())),
            },
        });
        let head = CommitHead { operation: self.operation.clone(), files: files.collect() };
        let mut body = line(&head)?.into_bytes();
        for file in &self.files {
            if let NewContent::Bytes(bytes) = &file.content {
                body.extend_from_slice(bytes);
            }
        }
        Ok(body)
    }

    /// Parses the body of a request.
    ///
    /// # Errors
    /// `Invalid` if it is not whole, if contents do not have their hashes, or if a path is not one that a vault shares.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let end = body.iter().take(MAX_COMMIT_HEAD).position(|byte| *byte == b'\n');
        let (head, rest) = body.split_at(end.ok_or_else(|| Error::invalid("the commit has no head"))?);
        let head: CommitHead = serde_json::from_slice(head)
            .map_err(|error| Error::invalid("the head of the commit cannot be read").with_source(error))?;
        if head.files.is_empty() || head.files.len() > MAX_COMMIT_FILES {
            return Err(Error::invalid(format!(
                "the commit has {} files, and 1 to {MAX_COMMIT_FILES} are taken",
                head.files.len()
            )));
        }
        let mut rest = rest.get(1..).unwrap_or_default();
        let mut files = Vec::with_capacity(head.files.len());
        for file in head.files {
            let path = SharedPath::parse(&file.path)
                .ok_or_else(|| Error::invalid(format!("{:?} is no file that a vault shares", file.path)))?;
            let content = match file.content {
                None => NewContent::Removed,
                Some((hash, length)) => {
                    let split = rest.split_at_checked(length);
                    let (bytes, after) = split.ok_or_else(|| Error::invalid("the commit ends too early"))?;
                    rest = after;
                    if ContentHash::of(bytes) != hash {
                        return Err(Error::invalid(format!("{} has other bytes than its hash", file.path)));
                    }
                    NewContent::Bytes(bytes.to_vec())
                }
            };
            files.push(CommittedContent { path, base: file.base, content });
        }
        if !rest.is_empty() {
            return Err(Error::invalid("the commit has more bytes than its files"));
        }
        Ok(Self { operation: head.operation, files })
    }
}

/// What became of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitReply {
    /// The id of the change; `None` if there was nothing to change, or if the commit was carried out before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The files that are not as the commit expects them. If there are any, nothing was changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictingFile>,
    /// Remarks of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A file that is not as a commit expects it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictingFile {
    /// The path.
    pub path: String,
    /// The hash of the bytes that it has; `None` if there is no such file.
    pub hash: Option<ContentHash>,
}
