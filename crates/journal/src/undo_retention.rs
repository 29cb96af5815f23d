//! How long an operation can be undone.

use std::collections::HashSet;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_vault::undo_log::UndoLog;
use sidenote_vault::write_lock::WriteLock;

use crate::event_id::id_millis;
use crate::{Journal, newest_plausible_time};

impl Journal {
    /// Removes before-images: those of undone operations and of undos, those of all but the newest `keep` others, and those
    /// older than `days`. Returns the number of removed operations.
    ///
    /// Up to a tenth more than `keep` may stay, so that most calls only count names.
    ///
    /// # Errors
    /// `Io` if they cannot be removed or the journal cannot be read.
    pub fn prune(&self, lock: &WriteLock, keep: usize, days: u32, now: Timestamp) -> Result<usize> {
        let kept = UndoLog::open(&self.records)?;
        // The ids are UUIDv7, which contain the time.
        let mut ids = kept.names()?;
        ids.retain(|id| id_millis(id).is_some());
        let span = i64::from(days).saturating_mul(86_400_000);
        let oldest = newest_plausible_time(&ids, now, span).saturating_sub(span);
        let is_old = |id: &str| id_millis(id).is_none_or(|at| at < oldest);
        let is_full = ids.len().saturating_sub(keep) > keep / 10;
        if !is_full && !ids.iter().any(|id| is_old(id)) {
            return Ok(0);
        }
        // Undos must not displace operations that can still be undone.
        let staying: Option<HashSet<String>> = if is_full {
            let active = self.active_operations()?.into_iter().filter(|operation| operation.is_undoable);
            Some(active.take(keep).map(|operation| operation.event.id).collect())
        } else {
            None
        };
        let unsettled = kept.unjournaled()?;
        let goes = |id: &String| is_old(id) || staying.as_ref().is_some_and(|staying| !staying.contains(id));
        ids.retain(|id| goes(id) && !unsettled.contains(id));
        ids.iter().try_for_each(|id| kept.remove(lock, id))?;
        Ok(ids.len())
    }
}
