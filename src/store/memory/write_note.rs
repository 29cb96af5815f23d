//! Writes a note unless another note says the same.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::store::change::Changes;
use crate::store::change::create::NewRequest;
use crate::store::change::link::LinkRequest;
use crate::store::change::operation::{ChangeReply, Operation};
use crate::store::memory::MemoryWrites;
use crate::store::memory::save::{Comparison, NearDuplicate};
use crate::store::sync::IndexSync;

/// A note that is to be written.
#[derive(Debug, Clone, Default)]
pub struct WriteRequest {
    /// The note.
    pub new: NewRequest,
    /// Whether it is written although another note says exactly the same.
    pub allow_duplicate: bool,
}

/// What became of a note that was written.
#[derive(Debug, Clone, Serialize)]
pub struct WriteReply {
    /// Its path.
    pub path: String,
    /// The note that says nearly the same, which is linked to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<NearDuplicate>,
    /// What changed, or would.
    pub change: ChangeReply,
}

impl MemoryWrites<'_> {
    /// Writes a new note, unless another one says exactly the same. One that says nearly the same is linked.
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
        let mut alike = if text.is_empty() { Comparison::none() } else { self.alike(&text)? };
        alike.refuse(request.allow_duplicate, "note")?;
        let prepare = |_: &mut Operation| {
            if !text.is_empty() {
                self.renew(&mut alike, &text)?;
            }
            alike.refuse(request.allow_duplicate, "note")
        };
        let mut change =
            Changes::of(self.core).change_prepared(&Operation::New(request.new.clone()), dry_run, prepare)?;
        let near = alike.near;
        let path = change.made().ok_or_else(|| Error::internal("a new note has no place"))?;
        if let Some(near) = near.as_ref().filter(|_| !dry_run) {
            let link = LinkRequest { a: path.clone(), b: near.path.clone(), text: None };
            match Changes::of(self.core).change(&Operation::Link(link), false) {
                Ok(linked) => change.notices.extend(linked.notices),
                Err(error) => change.notices.push(format!("it is not linked to {}: {error}", near.path)),
            }
        }
        Ok(WriteReply { path, near, change })
    }
}
