//! Defines the operations that change a vault, and the reply to them.

use serde::Serialize;

use crate::index::catalog::FileRow;
use crate::store::change::create::NewRequest;
use crate::store::change::delete::DeleteRequest;
use crate::store::change::edit::EditRequest;
use crate::store::change::link::LinkRequest;
use crate::store::change::merge::{ExtractRequest, MergeRequest};
use crate::store::change::move_files::{MoveRequest, PartRequest};
use crate::store::change::rename::RenameRequest;
use crate::store::change::revise::ReviseRequest;
use crate::text::edit::{ChangeSet, FileLocation};

/// Something that a user wants changed.
#[derive(Debug, Clone)]
pub enum Operation {
    /// A note is made.
    New(NewRequest),
    /// One note's text or properties change.
    Edit(EditRequest),
    /// Several edits, of one note or of many, are made as one.
    EditMany(Vec<EditRequest>),
    /// One note gets another title, text or properties, all at once.
    Revise(ReviseRequest),
    /// A file or folder goes to another place, or gets another name.
    Move(MoveRequest),
    /// A heading or block gets another name.
    RenamePart(PartRequest),
    /// A tag or property gets another name in every note.
    RenameEverywhere(RenameRequest),
    /// Two notes are linked, both ways.
    Link(LinkRequest),
    /// Two notes are linked no longer.
    Unlink(LinkRequest),
    /// A note goes into another.
    Merge(MergeRequest),
    /// A section becomes a note of its own.
    Extract(ExtractRequest),
    /// A file goes to the bin, or for good.
    Delete(DeleteRequest),
    /// A file comes back from the bin.
    Restore(String),
}

/// What an operation did, or would do.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeReply {
    /// Whether it was done; a dry run, and a plan without changes, are not.
    pub applied: bool,
    /// Its number in the journal, where it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What changes, byte for byte.
    pub plan: ChangeSet,
    /// The same for a person to read, as a unified diff, where nothing was done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Sentences about what somebody should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The notes that it left, as they were before anybody else could write.
    #[serde(skip)]
    pub(in crate::store) rows: Vec<FileRow>,
}

impl ChangeReply {
    /// Makes the reply to a plan that was not carried out.
    pub(in crate::store) fn of(plan: ChangeSet) -> Self {
        Self { applied: false, id: None, plan, diff: None, notices: Vec::new(), rows: Vec::new() }
    }

    /// Gives the path of the note that was made, or would be.
    pub fn made(&self) -> Option<String> {
        let made = self.plan.files.iter().find(|file| file.from.is_none());
        made.and_then(|file| file.to.as_ref()).map(ToString::to_string)
    }
}

impl ChangeReply {
    /// Gives the path that the one note has now that was changed, or moved, before all others.
    pub fn changed(&self) -> Option<String> {
        let file = self.plan.files.first()?;
        file.to.as_ref().and_then(FileLocation::in_vault).map(ToString::to_string)
    }
}
