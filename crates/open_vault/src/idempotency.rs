//! Runs a call at most once: a client that gives an operation id can repeat the call, and gets the first answer again.
//!
//! The journal keeps operation ids and answers for a day.

use std::sync::{MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::{FileRow, path_id};
use sidenote_journal::event::Event;
use sidenote_journal::reader::ReadOrder;

use crate::Core;
use crate::call_context::ANSWER;
use crate::caller::{Caller, OP_REFUSED};

/// The property of events with the operation id.
const NAME: &str = "operation_id";

/// The property of events with the agent.
const CLIENT: &str = "client";

/// The time for which a repeated call is recognised, in milliseconds.
const REMEMBERED: i64 = 86_400_000;

/// The longest operation id, in bytes.
pub const LONGEST: usize = 200;

/// The longest answer that is stored, in bytes. For a longer one, a repeated call is answered with the changed files.
const LONGEST_ANSWER: usize = 64_000;

/// What the journal tells about an earlier call with the same operation id.
#[derive(Debug, Clone)]
pub enum EarlierCall {
    /// The call was answered.
    Answered(Value),
    /// The call was committed, but the process ended before it answered. The events are in order of time.
    Committed(Vec<Event>),
}

impl Calls<'_> {
    /// Waits until no other call with an operation id runs in this process.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.core.state.named_call_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what the journal tells about an earlier call with the same operation id.
    ///
    /// # Errors
    /// `Invalid` if the operation id is empty or too long, or if another call had it; `Io` if the journal cannot be
    /// read.
    pub fn earlier(&self) -> Result<Option<EarlierCall>> {
        let Some(once) = &self.core.call.once else { return Ok(None) };
        if once.id.trim().is_empty() || once.id.len() > LONGEST {
            return Err(Error::invalid(format!("{NAME} has {} bytes", once.id.len()))
                .with_hint(format!("Give an id of 1 to {LONGEST} bytes, such as a UUID")));
        }
        let own = once.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let written = Value::from(once.id.as_str()).to_string();
        let oldest = self.core.clock.now().millis() - REMEMBERED;
        let client = self.signature().remove(CLIENT);
        let mut done = Vec::new();
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.with_any(&[written.as_str()]) {
            let mut event = event?;
            // The loop ends at the first event that is too old, even if a wrong clock wrote it.
            if event.at.millis() < oldest {
                break;
            }
            let is_named = event.more.get(NAME).and_then(Value::as_str) == Some(once.id.as_str());
            // This event is written before a change, and does not tell whether the change was committed.
            // Another agent may have chosen the same id, and its answer is not for this one.
            let is_own = event.more.get(CLIENT) == client.as_ref();
            if !is_named || !is_own || event.op == "importance" || own.contains(&event.id) {
                continue;
            }
            if event.more.get("call").and_then(Value::as_str) != Some(once.call.as_str()) {
                return Err(Error::invalid(format!("{NAME} {:?} belongs to another call", once.id))
                    .with_hint("Give each operation its own id, and repeat a call unchanged"));
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

    /// Returns an error if another process ran the operation while this one waited for the write lock.
    pub fn refuse_repeated(&self) -> Result<()> {
        if self.earlier()?.is_none() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "another call has already run this operation")
            .with_hint("Repeat the call to get its answer"))
    }

    /// Stores the answer of a call with an operation id that changed something. A failure is logged; a repeated call is
    /// then answered with the changed files. The answer of a call that changed nothing, such as a dry run, is not
    /// stored: it can be repeated, and shows text of notes that the journal need not hold.
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
            tracing::warn!("the answer cannot be stored for a repeated call: {error}");
        }
    }

    /// Records what was not committed in git of the changes of this call.
    pub fn note_uncommitted(&self, notices: &[String]) {
        let mut uncommitted = self.core.call.uncommitted.lock().unwrap_or_else(PoisonError::into_inner);
        uncommitted.extend_from_slice(notices);
    }

    /// Takes what was not committed in git of the changes of this call, for answers that have no notices of their own.
    pub fn take_uncommitted(&self) -> Vec<String> {
        std::mem::take(&mut self.core.call.uncommitted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that this call was refused because its caller lacks the right to it, or for another reason that is given.
    ///
    /// # Errors
    /// `Io` if the journal cannot be written.
    pub fn record_refusal(&self, reason: Option<&str>) -> Result<()> {
        let caller = self.core.origin.as_ref().and_then(|origin| origin.caller.as_ref());
        // Without login, all callers are one.
        let who = caller.map_or_else(|| "clients without a login".to_owned(), Caller::who);
        if !self.core.state.refusals.lock().unwrap_or_else(PoisonError::into_inner).admit(&who) {
            return Ok(());
        }
        let mut event = Event::new(OP_REFUSED, self.core.clock.now());
        event.more.extend(self.signature());
        event.more.extend(reason.map(|reason| ("reason".to_owned(), reason.into())));
        self.core.journal().append(&event)
    }

    /// Returns the metadata of the events of this call: the session, the client, the tool with its
    /// toolset, the person who called it and the operation id.
    pub fn signature(&self) -> Map<String, Value> {
        let mut signature = Map::new();
        if let Some(mut session) = self.core.session.clone() {
            self.core.clean(&mut session);
            signature.insert("session".to_owned(), Value::from(session));
        }
        // The activity of the vault shows which agent it was.
        if self.core.is_agent {
            let mut client = self.core.client.clone();
            self.core.clean(&mut client);
            signature.insert(CLIENT.to_owned(), Value::from(client));
        }
        if let Some(origin) = &self.core.origin {
            signature.extend(origin.fields());
        }
        if let Some(once) = &self.core.call.once {
            signature.insert(NAME.to_owned(), Value::from(once.id.as_str()));
            signature.insert("call".to_owned(), Value::from(once.call.as_str()));
        }
        signature
    }

    /// Adds the metadata of this call to an event.
    pub fn sign(&self, event: &mut Event) {
        event.more.extend(self.signature());
        self.own(&event.id);
    }

    /// Records that an event belongs to this call.
    pub fn own(&self, id: &str) {
        if let Some(once) = &self.core.call.once {
            once.own.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        }
    }

    /// Creates an event that names notes by their path, and by their own id if they have one.
    pub fn event_of<'a>(&self, op: &str, at: Timestamp, rows: impl Iterator<Item = &'a FileRow>) -> Event {
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

/// Recognises repeated calls of a client by their operation ids.
#[derive(Debug, Clone, Copy)]
pub struct Calls<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Calls<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
