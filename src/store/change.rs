//! Changing the vault: every operation is planned as a [`ChangeSet`] before it is carried out.

use super::Store;
use super::moves::{MoveRequest, PartRequest};
use super::view::View;
use crate::error::Result;
use crate::text::edit::ChangeSet;

/// Something that a user wants changed.
#[derive(Debug, Clone)]
pub enum Operation {
    /// A file or folder goes to another place, or gets another name.
    Move(MoveRequest),
    /// A heading or block gets another name.
    RenamePart(PartRequest),
}

impl Store {
    /// Plans an operation on the files as they are this moment, and changes nothing.
    ///
    /// # Errors
    /// As the operation: `NotFound`, `Exists` or `Invalid` where it cannot be done.
    #[tracing::instrument(skip_all)]
    pub fn plan(&self, operation: &Operation) -> Result<ChangeSet> {
        let view = View::new(self)?;
        match operation {
            Operation::Move(request) => self.plan_move(&view, request),
            Operation::RenamePart(request) => self.plan_part(&view, request),
        }
    }
}
