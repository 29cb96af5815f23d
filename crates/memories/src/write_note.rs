//! Writes a note, unless another note has the same text.

use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_change::Changes;
use sidenote_change::create::NewRequest;
use sidenote_change::link::LinkRequest;
use sidenote_change::operation::{ChangeReply, Operation};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::sync::IndexSync;

use crate::MemoryWrites;
use crate::save::{Comparison, NearDuplicate};

/// A note to write.
#[derive(Debug, Clone, Default)]
pub struct WriteRequest {
    /// The note.
    pub new: NewRequest,
    /// Whether the note is written even if another note has exactly the same text.
    pub allow_duplicate: bool,
}

/// The result of writing a note.
#[derive(Debug, Clone, Serialize)]
pub struct WriteReply {
    /// The path of the note.
    pub path: String,
    /// A note with nearly the same text, which the new note links to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<NearDuplicate>,
    /// The change.
    pub change: ChangeReply,
}

impl MemoryWrites<'_> {
    /// Writes a new note, unless another note has exactly the same text. A note with nearly the same text is linked.
    ///
    /// # Errors
    /// `Exists` if there is a note at the path already, or one with exactly the same text; `Conflict` if another
    /// process holds the write lock; `Io` if the note cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn write_note(&self, request: &WriteRequest, dry_run: bool) -> Result<WriteReply> {
        IndexSync::of(self.core).refresh()?;
        let mut text = request.new.content.clone();
        self.core.clean(&mut text);
        let text = text.trim().to_owned();
        let mut comparison = if text.is_empty() { Comparison::none() } else { self.compare(&text)? };
        comparison.refuse(request.allow_duplicate, "note")?;
        let prepare = |_: &View<'_>, _: &mut Operation| {
            if !text.is_empty() {
                self.update_comparison(&mut comparison, &text)?;
            }
            comparison.refuse(request.allow_duplicate, "note")
        };
        let mut change =
            Changes::of(self.core).change_prepared(&Operation::New(request.new.clone()), dry_run, prepare)?;
        let near = comparison.near;
        let path = change.made().ok_or_else(|| Error::internal("the new note has no path"))?;
        if let Some(near) = near.as_ref().filter(|_| !dry_run) {
            let link = LinkRequest { a: path.clone(), b: near.path.clone(), text: None };
            match Changes::of(self.core).change(&Operation::Link(link), false) {
                Ok(linked) => change.notices.extend(linked.notices),
                Err(error) => {
                    change.notices.push(format!("the new note cannot be linked to {}: {error}", near.path))
                }
            }
        }
        Ok(WriteReply { path, near, change })
    }
}
