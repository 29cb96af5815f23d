//! Defines the operations that change a vault, and the reply to them.

use serde::Serialize;
use sidenote_catalog::FileRow;
use sidenote_markdown::edit::{ChangeSet, ContentHash, FileLocation};

use crate::commit::CommitReply;
use crate::create::NewRequest;
use crate::delete::DeleteRequest;
use crate::edit::EditRequest;
use crate::extract::ExtractRequest;
use crate::link::LinkRequest;
use crate::merge::MergeRequest;
use crate::move_files::MoveRequest;
use crate::rename_part::PartRequest;
use crate::rename_tag_or_property::RenameRequest;
use crate::revise::ReviseRequest;

/// The name of the edit by which a memory is forgotten, which counts as a deletion.
pub const FORGET: &str = "forget";

/// An operation that changes a vault.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Creates a note.
    New(NewRequest),
    /// Edits the text or properties of a note.
    Edit(EditRequest),
    /// Makes several edits, of one or many notes, as one operation.
    EditMany(Vec<EditRequest>),
    /// Changes title, text and properties of a note at once.
    Revise(ReviseRequest),
    /// Moves or renames a file or folder.
    Move(MoveRequest),
    /// Renames a heading or block.
    RenamePart(PartRequest),
    /// Renames a tag or property in every note.
    RenameEverywhere(RenameRequest),
    /// Links two notes in both directions.
    Link(LinkRequest),
    /// Removes the links between two notes.
    Unlink(LinkRequest),
    /// Merges a note into another.
    Merge(MergeRequest),
    /// Moves a section to a new note.
    Extract(ExtractRequest),
    /// Moves a file to the trash, or removes it permanently.
    Delete(DeleteRequest),
    /// Restores a file from the trash.
    Restore(String),
}

/// The result of an operation, or of a dry run.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeReply {
    /// Whether the operation was applied. A dry run and an empty plan are not.
    pub applied: bool,
    /// The id of the operation in the journal, if it was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The change set.
    pub plan: ChangeSet,
    /// The plan as a unified diff, for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// What became of the change in git, if the settings ask for commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitReply>,
    /// Of an undo or redo: the operation that it took back or did again, such as `append of Plan.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverted: Option<String>,
    /// Notices for the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The notes that the operation left, read before the write lock was released.
    #[serde(skip)]
    pub rows: Vec<FileRow>,
}

impl ChangeReply {
    /// Creates the reply to a plan that was not applied.
    pub fn of(plan: ChangeSet) -> Self {
        Self {
            applied: false,
            id: None,
            plan,
            diff: None,
            commit: None,
            reverted: None,
            notices: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Counts the files that the operation makes, and those that it changes or moves.
    pub fn counts(&self) -> (usize, usize) {
        let made = self.plan.files.iter().filter(|file| file.from.is_none()).count();
        (made, self.plan.files.len() - made)
    }

    /// Returns the path of the note that was created, or would be.
    pub fn made(&self) -> Option<String> {
        let made = self.plan.files.iter().find(|file| file.from.is_none());
        made.and_then(|file| file.to.as_ref()).map(ToString::to_string)
    }
}

impl ChangeReply {
    /// Returns the hash of the first note that the operation left.
    pub fn hash(&self) -> Option<ContentHash> {
        self.rows.first()?.hash.map(ContentHash::from_bytes)
    }

    /// Returns the current path of the first file of the plan.
    pub fn changed(&self) -> Option<String> {
        let file = self.plan.files.first()?;
        file.to.as_ref().and_then(FileLocation::in_vault).map(ToString::to_string)
    }
}
