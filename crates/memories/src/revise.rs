//! Revises a memory: title, text and properties at once.

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::FileRow;
use sidenote_change::naming::number;
use sidenote_change::operation::Operation;
use sidenote_change::revise::ReviseRequest;
use sidenote_change::{Changes, Planner};
use sidenote_markdown::edit::{ChangeSet, FileLocation};
use sidenote_memory::state::{DEFAULT_IMPORTANCE, importance_at_last_use};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;
use sidenote_query::memory_weights::{Memory, MemoryWeights};

use crate::insert::InsertOutcome;
use crate::maintain::Written;
use crate::{Maintenance, Memories, MemoryWrites};

impl MemoryWrites<'_> {
    /// Revises a note and returns it. A new importance counts from now on, regardless of earlier uses. Without one, the note
    /// gets back the importance that it had when it was last used, which decays from now on.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Invalid` if the note cannot be edited
    /// safely; `Conflict` if another process holds the write lock; `Io` if the note cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn revise(&self, request: &ReviseRequest) -> Result<Memory> {
        match self.revise_if(request, || Ok(None))? {
            InsertOutcome::Inserted(memory) | InsertOutcome::Duplicate(memory, _) => Ok(*memory),
        }
    }

    /// Revises a note, unless another note has exactly the new text. Returns the other note then.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Invalid` if the note cannot be edited
    /// safely; `Conflict` if another process holds the write lock; `Io` if the note cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn revise_unless_duplicate(&self, request: &ReviseRequest) -> Result<InsertOutcome> {
        let own = Lookup::of(self.core).find(&request.note)?.note_id;
        self.revise_if(request, || match &request.content {
            Some(content) => self.duplicate_of(content, Some(&own)),
            None => Ok(None),
        })
    }

    /// Revises a note, unless `known` returns a note with the new text. `known` is called under the write lock.
    fn revise_if(
        &self,
        request: &ReviseRequest,
        known: impl FnOnce() -> Result<Option<Memory>>,
    ) -> Result<InsertOutcome> {
        let (operation, _) = Changes::of(self.core).clean_operation(&Operation::Revise(request.clone()));
        let Operation::Revise(mut clean) = operation else {
            return Err(Error::internal("a redacted revision has another type"));
        };
        let mut held = None;
        let mut place = None;
        let done = Changes::of(self.core).apply_planned(
            |_| {
                let view = View::new(self.core)?;
                held = known()?;
                if held.is_some() {
                    return Ok(ChangeSet::new("revise"));
                }
                let now = self.core.clock.now();
                let path = view.find(&clean.note)?;
                let row = Lookup::of(self.core).row_at(path.as_str())?;
                let start = row.map(|row| self.decay_restart(row, &mut clean, now)).transpose()?.flatten();
                let plan = Planner::of(self.core).plan_revise(&view, &path, &clean, now)?;
                // The event comes first: it has no effect until the note has the importance.
                if let Some(written) = start.filter(|_| !plan.is_empty()) {
                    Maintenance::of(self.core).note_written(written, now)?;
                }
                place = Some(FileLocation::Vault(path));
                Ok(plan)
            },
            false,
        )?;
        if let Some(held) = held {
            return Ok(InsertOutcome::Duplicate(Box::new(held), 1.0));
        }
        let own = done.plan.files.iter().find(|change| change.from == place);
        let now = own.and_then(|change| change.to.as_ref()).or(place.as_ref());
        let now = now.ok_or_else(|| Error::internal("the revised note has no path"))?;
        Ok(InsertOutcome::Inserted(Box::new(
            Memories::of(self.core).memory_of_reply(&done, &now.to_string())?,
        )))
    }

    /// Returns the importance with which the decay of a revised note starts again, and adds it to the revision if the note
    /// does not have it. `None` if the note has not decayed, or has no importance that may be written.
    fn decay_restart(
        &self,
        row: FileRow,
        revision: &mut ReviseRequest,
        now: Timestamp,
    ) -> Result<Option<Written>> {
        let given = revision.properties.iter().find(|(name, _)| name == "importance");
        if let Some((_, importance)) = given {
            let importance = importance.as_f64();
            return Ok(importance.map(|given| Written::from([((given.to_bits(), 0, 0), vec![row])])));
        }
        let weights = MemoryWeights::of(self.core);
        let Some(memory) = weights.weigh(vec![row], now)?.pop() else { return Ok(None) };
        let kind = weights.kind_of(&memory);
        let (importance, tenths) = importance_at_last_use(&memory.said, &kind, &memory.usage, now);
        let has = memory.said.importance.unwrap_or(DEFAULT_IMPORTANCE).to_bits() == importance.to_bits();
        let is_told =
            memory.said.importance.is_some() || (weights.is_own(&memory) && !memory.said.is_garbled);
        if memory.state.importance >= importance || !(has || is_told) {
            return Ok(None);
        }
        if !has {
            revision.properties.push(("importance".to_owned(), number(importance)));
        }
        Ok(Some(Written::from([((importance.to_bits(), tenths, 0), vec![memory.row])])))
    }
}
