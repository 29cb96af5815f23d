//! What the undo of a session would take back, and what it cannot take back.

use std::cell::RefCell;
use std::collections::HashSet;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_journal::LaterMoves;
use sidenote_journal::event::Event;

use crate::Changes;
use crate::operation::ChangeReply;
use crate::undo::{PlannedUndo, UndoRequest, after_some, named, reason_to_stay, session_of};
use crate::undo_conflict::later_of;

/// An operation of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionOperation {
    /// The id of the operation, as `history` lists it.
    pub id: String,
    /// The time of the operation.
    pub at: Timestamp,
    /// The name of the operation.
    pub op: String,
    /// What it was about.
    pub subject: Option<String>,
    /// Why it cannot be taken back, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SessionOperation {
    fn new(event: &Event, reason: Option<String>) -> Self {
        let (id, op) = (event.id.clone(), event.op.clone());
        Self { id, at: event.at, op, subject: event.subject(), reason }
    }
}

/// What the undo of a session would do, as the files are now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionOutlook {
    /// The operations that would be taken back, the newest first.
    pub operations: Vec<SessionOperation>,
    /// The operations that would stay, the newest first, each with the reason.
    pub stays: Vec<SessionOperation>,
}

impl Changes<'_> {
    /// Lists what the undo of a session would take back, with what stands in the way of the rest. Operations of the session that
    /// are undone before another one do not stand in its way.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn session_outlook(&self, session: &str) -> Result<SessionOutlook> {
        let active = self.core.journal().operation_history(|_| false)?.active;
        let own = active
            .iter()
            .map(|operation| &operation.event)
            .filter(|event| session_of(event) == Some(session));
        let moves = self.core.journal().moves_since(own.map(|event| event.id.as_str()))?;
        let mut outlook = SessionOutlook::default();
        let mut undone_before: HashSet<String> = HashSet::new();
        for operation in active {
            let reason_to_stay = reason_to_stay(&operation);
            let event = operation.event;
            if session_of(&event) != Some(session) || !operation.is_undoable && reason_to_stay.is_none() {
                continue;
            }
            self.core.check_cancelled()?;
            let reason = match reason_to_stay {
                Some(why) => Some(why.to_owned()),
                None => self.in_the_way(&event, &moves, &undone_before)?,
            };
            if reason.is_none() {
                undone_before.insert(event.id.clone());
                outlook.operations.push(SessionOperation::new(&event, None));
            } else {
                outlook.stays.push(SessionOperation::new(&event, reason));
            }
        }
        Ok(outlook)
    }

    /// Undoes the operations of a session that have these ids, and no others, the newest first, up to the first error.
    ///
    /// # Errors
    /// `Invalid` without ids; `Conflict` if one of them is no operation of the session that can be undone, in which case nothing
    /// is written; the errors of [`Changes::undo_by`], whose message says what was undone before.
    #[tracing::instrument(skip_all)]
    pub fn undo_of_session(&self, session: &str, ids: &[String]) -> Result<Vec<ChangeReply>> {
        let wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
        if wanted.is_empty() {
            return Err(Error::invalid("no operation to undo is named"));
        }
        let mut active = self.core.journal().operation_history(|_| false)?.active;
        active.retain(|operation| {
            let event = &operation.event;
            operation.is_undoable && session_of(event) == Some(session) && wanted.contains(event.id.as_str())
        });
        if active.len() != wanted.len() {
            let said = "operations of the session were undone since it was shown; nothing was written";
            return Err(Error::new(ErrorKind::Conflict, said)
                .with_hint("look at the session again, and undo it then"));
        }
        let request = UndoRequest { session: Some(session.to_owned()), ..UndoRequest::default() };
        let mut replies = Vec::new();
        for operation in active {
            let id = &operation.event.id;
            let done = self.undo_with(&request, &RefCell::default(), |journal| named(journal, id));
            replies.push(done.map_err(|error| after_some(error, &replies))?);
        }
        Ok(replies)
    }

    /// Says what stands in the way of the undo of an operation after others were undone.
    fn in_the_way(
        &self,
        event: &Event,
        moves: &LaterMoves,
        undone_before: &HashSet<String>,
    ) -> Result<Option<String>> {
        let PlannedUndo { plan, mut conflicts, .. } = match self.undo_of(event, &[], moves) {
            Ok(planned) => planned,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => return Ok(Some(error.message().to_owned())),
        };
        // Only the first undo finds the files as they are now.
        if conflicts.is_empty() && undone_before.is_empty() {
            return Ok(self.obstacle_at_apply(&plan)?.map(|error| error.message().to_owned()));
        }
        conflicts.retain(|conflict| {
            let is_free = !conflict.is_outside
                && !conflict.later.is_empty()
                && conflict.later.iter().all(|later| undone_before.contains(&later.id));
            !is_free
        });
        if conflicts.is_empty() {
            return Ok(None);
        }
        let mut said: Vec<String> =
            conflicts.iter().map(|conflict| format!("{} {}", conflict.path, conflict.reason)).collect();
        said.extend(later_of(&conflicts).iter().map(|later| format!("in the way: {}", later.described())));
        Ok(Some(said.join("; ")))
    }
}
