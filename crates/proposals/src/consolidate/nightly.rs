//! The consolidation that a long-running process makes by itself, once a day.

use serde_json::Value;
use sidenote_base::error::Result;
use sidenote_journal::event::{Event, OP_CONSOLIDATE};
use sidenote_journal::reader::ReadOrder;
use sidenote_open_vault::idempotency::Calls;

use super::{ConsolidateReply, ConsolidateRequest};
use crate::Proposals;

/// A day, in milliseconds.
const DAY: i64 = 24 * 3_600_000;

impl Proposals<'_> {
    /// Consolidates the whole vault if the settings ask for it and a day has passed since the journal last tells of it.
    /// Returns what was found if it did. The fence of an agent does not count: the process works for the owner.
    ///
    /// # Errors
    /// Those of a consolidation; `Io` if the journal cannot be read or written.
    pub fn consolidate_if_due(&self) -> Result<Option<ConsolidateReply>> {
        if let Some(owner) = self.core.for_owner() {
            return Proposals::of(&owner).consolidate_if_due();
        }
        if !self.core.config.memory.consolidate || self.core.vault.is_read_only() {
            return Ok(None);
        }
        let now = self.core.clock.now();
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.with_any(&["\"consolidate\""]) {
            let event = event?;
            if event.op == OP_CONSOLIDATE {
                // A time in the future was written with a wrong clock.
                if (0..DAY).contains(&(now.millis() - event.at.millis())) {
                    return Ok(None);
                }
                break;
            }
        }
        let reply = self.consolidate(&ConsolidateRequest::default())?;
        let mut event = Event::new(OP_CONSOLIDATE, now);
        event.more.insert("count".to_owned(), Value::from(reply.proposals.len()));
        Calls::of(self.core).sign(&mut event);
        self.core.journal().append(&event)?;
        Ok(Some(reply))
    }
}
