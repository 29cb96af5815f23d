//! The result of an applied change set: [`Applied`], for the journal and the index.

use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_markdown::edit::{ContentHash, FileLocation, FolderMove};

use crate::manifest::Manifest;

/// One file of an applied change set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    /// The location before the operation; `None` for a new file.
    pub from: Option<FileLocation>,
    /// The location after the operation; `None` for a removed file.
    pub to: Option<FileLocation>,
    /// The hash of the bytes before the operation; unknown for a large file that only moved.
    pub before: Option<ContentHash>,
    /// The hash of the bytes after the operation.
    pub after: Option<ContentHash>,
}

/// The result of an applied change set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The id of the transaction; empty if there was nothing to do.
    pub id: String,
    /// The name of the operation.
    pub operation: String,
    /// The id of the operation that it undoes.
    pub undoes: Option<String>,
    /// The time of the operation.
    pub at: Timestamp,
    /// The folders that moved.
    pub folders: Vec<FolderMove>,
    /// The folders that were created, outer ones first.
    pub made: Vec<String>,
    /// The files that were created, changed, moved or removed.
    pub files: Vec<CommittedFile>,
    /// Additional fields of the event in the journal, such as the session.
    pub more: Map<String, Value>,
    /// One sentence for each file that another program changed meanwhile, and for each clean-up that failed.
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
