//! Carries a call out once: a client that names its operation may repeat the call and gets the first answer
//! again.
//!
//! The journal keeps the names and answers for a day.

use std::sync::{MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::index::catalog::{FileRow, path_id};
use crate::journal::event::Event;
use crate::journal::reader::ReadOrder;
use crate::store::call_context::ANSWER;
use crate::store::core::Core;

/// The property of events that names the operation of the caller.
const NAME: &str = "operation_id";

/// A repetition is known for so many milliseconds.
const REMEMBERED: i64 = 86_400_000;

/// The name of an operation is no longer than this.
pub(in crate::store) const LONGEST: usize = 200;

/// An answer that takes more bytes than this is not kept; what was done is told in its place.
const LONGEST_ANSWER: usize = 64_000;

/// What became of a call that was made before.
#[derive(Debug, Clone)]
pub enum EarlierCall {
    /// It was answered.
    Answered(Value),
    /// It was carried out, oldest event first, but the process ended before it answered.
    Committed(Vec<Event>),
}

impl Calls<'_> {
    /// Waits until no other named call is under way in this process.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.core.state.repeated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what became of this call when it was made before under the same name.
    ///
    /// # Errors
    /// `Invalid` if the operation id is empty or too long, or if another call had it; `Io` if the journal cannot be
    /// read.
    pub fn earlier(&self) -> Result<Option<EarlierCall>> {
        let Some(once) = &self.core.call.once else { return Ok(None) };
        if once.id.trim().is_empty() || once.id.len() > LONGEST {
            return Err(Error::invalid(format!("{NAME} has {} bytes", once.id.len()))
                .with_hint(format!("Give a name of 1 to {LONGEST} bytes, such as a UUID")));
        }
        let own = once.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let written = Value::from(once.id.as_str()).to_string();
        let oldest = self.core.clock.now().millis() - REMEMBERED;
        let mut done = Vec::new();
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.with_any(&[written.as_str()]) {
            let mut event = event?;
            // A clock that went wrong for a while hides nothing that was done since.
            if event.at.millis() < oldest {
                break;
            }
            let is_named = event.more.get(NAME).and_then(Value::as_str) == Some(once.id.as_str());
            // What is told before a change says nothing of whether that landed.
            if !is_named || event.op == "importance" || own.contains(&event.id) {
                continue;
            }
            if event.more.get("call").and_then(Value::as_str) != Some(once.call.as_str()) {
                return Err(Error::invalid(format!("{NAME} {:?} named another call", once.id))
                    .with_hint("Give each operation a name of its own; repeat a call unchanged"));
            }
            if event.op == ANSWER
                && let Some(answer) = event.more.remove("answer")
            {
                return Ok(Some(EarlierCall::Answered(answer)));
            }
            done.push(event);
        }
        done.reverse();
        Ok((!done.is_empty()).then_some(EarlierCall::Committed(done)))
    }

    /// Refuses a call that another process carried out under the same name, while this one waited for the write lock.
    pub(in crate::store) fn refuse_repeated(&self) -> Result<()> {
        if self.earlier()?.is_none() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "the operation was done already")
            .with_hint("Repeat the call to get its answer"))
    }

    /// Keeps the answer to a named call that did something, for its repetition; a failure is logged, and what was done is
    /// told then. What did nothing, as a dry run, may be repeated without harm, and shows text of notes that the journal
    /// need not hold.
    pub fn keep_answer(&self, answer: Value) {
        let Some(once) = &self.core.call.once else { return };
        let is_idle = once.own.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if is_idle || answer.to_string().len() > LONGEST_ANSWER {
            return;
        }
        let mut event = Event::new(ANSWER, self.core.clock.now());
        self.sign(&mut event);
        event.more.insert("answer".to_owned(), answer);
        if let Err(error) = self.core.journal().append(&event) {
            tracing::warn!("the answer is not kept for a repetition: {error}");
        }
    }

    /// Gives what events of this call say beside what was done: the session, and the name of the operation.
    pub(in crate::store) fn signature(&self) -> Map<String, Value> {
        let mut signature = Map::new();
        if let Some(mut session) = self.core.session.clone() {
            self.core.clean(&mut session);
            signature.insert("session".to_owned(), Value::from(session));
        }
        if let Some(once) = &self.core.call.once {
            signature.insert(NAME.to_owned(), Value::from(once.id.as_str()));
            signature.insert("call".to_owned(), Value::from(once.call.as_str()));
        }
        signature
    }

    /// Says in which session something happened, and in which call.
    pub(in crate::store) fn sign(&self, event: &mut Event) {
        event.more.extend(self.signature());
        self.own(&event.id);
    }

    /// Remembers that an event is of this call.
    pub(in crate::store) fn own(&self, id: &str) {
        if let Some(once) = &self.core.call.once {
            once.own.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        }
    }

    /// Makes an event that names notes: by their own id, where they have one, and by their path.
    pub(in crate::store) fn event_of<'a>(
        &self,
        op: &str,
        at: Timestamp,
        rows: impl Iterator<Item = &'a FileRow>,
    ) -> Event {
        let name = |row: &FileRow| {
            let path = row.path.as_str();
            if row.note_id == path_id(&row.path) {
                json!({ "path": path })
            } else {
                json!({ "id": row.note_id, "path": path })
            }
        };
        let mut event = Event::new(op, at);
        event.more.insert("notes".to_owned(), rows.map(name).collect());
        self.sign(&mut event);
        event
    }
}

/// Identifies the calls of a client, so that a repeated call is carried out once.
#[derive(Debug, Clone, Copy)]
pub struct Calls<'a> {
    pub(in crate::store) core: &'a Core,
}

impl<'a> Calls<'a> {
    pub(in crate::store) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
