//! The result of an applied change set: [`Applied`], for the journal and the index.

use serde_json::{Map, Value};

use crate::clock::Timestamp;
use crate::text::edit::{ContentHash, FileLocation, FolderMove};
use crate::vault::manifest::Manifest;

/// One file as an operation left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    /// Where it was; nothing for a new file.
    pub from: Option<FileLocation>,
    /// Where it is; nothing for one that was removed.
    pub to: Option<FileLocation>,
    /// The hash of its bytes before, unless it was only moved and is large.
    pub before: Option<ContentHash>,
    /// The hash of its bytes now.
    pub after: Option<ContentHash>,
}

/// What an operation did, for the journal and the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The transaction; empty where there was nothing to do.
    pub id: String,
    /// The operation, as the plan names it.
    pub operation: String,
    /// The operation that it takes back.
    pub undoes: Option<String>,
    /// When it was done.
    pub at: Timestamp,
    /// Folders that moved.
    pub folders: Vec<FolderMove>,
    /// Folders that had to be made, outer ones first.
    pub made: Vec<String>,
    /// Files that were made, changed, moved or removed.
    pub files: Vec<CommittedFile>,
    /// What else the event in the journal says, such as the session.
    pub more: Map<String, Value>,
    /// Sentences about files that somebody else changed in the last instant, and that were left alone, and about what
    /// could not be tidied up.
    pub notices: Vec<String>,
}

impl Applied {
    pub(crate) fn of(manifest: &Manifest, notices: Vec<String>) -> Self {
        Self {
            id: manifest.id.clone(),
            operation: manifest.operation.clone(),
            undoes: manifest.undoes.clone(),
            at: Timestamp::from_millis(manifest.at),
            folders: manifest.folders.iter().map(|folder| folder.paths.clone()).collect(),
            made: manifest.made.iter().map(|path| manifest.path_after(path)).collect(),
            files: manifest
                .files
                .iter()
                .map(|file| CommittedFile {
                    from: file.from.clone(),
                    to: file.to.clone(),
                    before: file.before,
                    after: file.after,
                })
                .collect(),
            more: manifest.more.clone(),
            notices,
        }
    }
}
