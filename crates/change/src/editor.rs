//! Records what an editor did to a note.

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_journal::event::Event;
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::idempotency::Calls;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::sync::IndexSync;
use sidenote_vault::undo_log::UndoLog;

use crate::Changes;

/// What an editor did to a note.
#[derive(Debug, Clone, Serialize)]
pub struct Edited {
    /// Whether the note changed.
    pub changed: bool,
    /// The id of the operation in the journal, if the note changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

impl Changes<'_> {
    /// Returns the bytes of a note before an editor opens it, for [`Self::edited`].
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    pub fn before_edit(&self, name: &str) -> Result<(NotePath, Vec<u8>)> {
        let path = Lookup::of(self.core).find(name)?.path;
        let bytes = self.core.read_bytes(&path)?;
        Ok((path, bytes))
    }

    /// Records that an editor changed a note, so that `history` lists the change and `undo` can undo it, and updates
    /// the index.
    ///
    /// # Errors
    /// `NotFound` if the note is gone; `Io` if the journal cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn edited(&self, path: &NotePath, before: &[u8]) -> Result<Edited> {
        let after = self.core.read_bytes(path)?;
        if after == before {
            return Ok(Edited { changed: false, operation: None });
        }
        let records = self.core.vault.records();
        let lock = self.core.vault.lock(&records)?;
        let now = self.core.clock.now();
        let id = Event::new("edit", now).id;
        let applied = UndoLog::save_before_image(&lock, &id, "edit", path, (before, &after), now)?;
        let mut event = Event::of(&applied);
        Calls::of(self.core).sign(&mut event);
        self.core.journal().record(&event)?;
        drop(lock);
        IndexSync::of(self.core).refresh()?;
        Ok(Edited { changed: true, operation: Some(id) })
    }
}
