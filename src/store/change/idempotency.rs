//! Doing a call once: a caller that names its operation may repeat the call, for instance when no answer came, and gets
//! the first answer again. The journal remembers both, for a day.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::journal::event::Event;
use crate::journal::reader::ReadOrder;
use crate::store::Store;
use crate::store::unindexed::Call;

/// The operation under which an answer is kept.
const ANSWER: &str = "answer";
/// The property of events that names the operation of the caller.
const NAME: &str = "operation_id";
/// A repetition is known for so many milliseconds.
const REMEMBERED: i64 = 86_400_000;
/// The name of an operation is no longer than this.
const LONGEST: usize = 200;
/// An answer that takes more bytes than this is not kept; what was done is told in its place.
const LONGEST_ANSWER: usize = 64_000;

/// Says whether an event keeps an answer, and nothing that was done.
pub(in crate::store) fn is_answer(event: &Event) -> bool {
    event.op == ANSWER
}

/// The name by which a repetition of a call is known.
#[derive(Debug)]
pub(in crate::store) struct Once {
    id: String,
    /// What is called, with which arguments.
    call: String,
    /// The events of this call itself.
    own: Mutex<HashSet<String>>,
}

/// What became of a call that was made before.
#[derive(Debug, Clone)]
pub enum EarlierCall {
    /// It was answered.
    Answered(Value),
    /// It was carried out, oldest event first, but the process ended before it answered.
    Committed(Vec<Event>),
}

impl Store {
    /// Gives the same store for one call, which its caller may have named: then by `(name, what is called)`. A name with
    /// private text or a key in it is known by its hash, so that neither reaches the journal.
    #[must_use]
    pub fn for_call(&self, named: Option<(&str, &str)>) -> Self {
        let known = |id: &str| {
            let mut clean = id.to_owned();
            self.clean(&mut clean);
            if clean == id || id.len() > LONGEST {
                id.to_owned()
            } else {
                blake3::hash(id.as_bytes()).to_hex().to_string()
            }
        };
        let once = named.map(|(id, call)| Once {
            id: known(id),
            call: blake3::hash(call.as_bytes()).to_hex().to_string(),
            own: Mutex::default(),
        });
        let call = Arc::new(Call::new(once));
        Self { call, ..self.clone() }
    }

    /// Waits until no other named call is under way in this process.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.repeated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what became of this call when it was made before under the same name.
    ///
    /// # Errors
    /// `Invalid` where the name is too long, or was another call's; `Io` where the journal cannot be read.
    pub fn earlier(&self) -> Result<Option<EarlierCall>> {
        let Some(once) = &self.call.once else { return Ok(None) };
        if once.id.trim().is_empty() || once.id.len() > LONGEST {
            return Err(Error::invalid(format!("{NAME} has {} bytes", once.id.len()))
                .with_hint(format!("Give a name of 1 to {LONGEST} bytes, such as a UUID")));
        }
        let own = once.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let written = Value::from(once.id.as_str()).to_string();
        let oldest = self.clock.now().millis() - REMEMBERED;
        let mut done = Vec::new();
        for event in self.journal().events(ReadOrder::NewestFirst)?.with_any(&[written.as_str()]) {
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
        let Some(once) = &self.call.once else { return };
        let is_idle = once.own.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if is_idle || answer.to_string().len() > LONGEST_ANSWER {
            return;
        }
        let mut event = Event::new(ANSWER, self.clock.now());
        self.sign(&mut event);
        event.more.insert("answer".to_owned(), answer);
        if let Err(error) = self.journal().append(&event) {
            tracing::warn!("the answer is not kept for a repetition: {error}");
        }
    }

    /// Gives what events of this call say beside what was done: the session, and the name of the operation.
    pub(in crate::store) fn signature(&self) -> Map<String, Value> {
        let mut signature = Map::new();
        if let Some(mut session) = self.session.clone() {
            self.clean(&mut session);
            signature.insert("session".to_owned(), Value::from(session));
        }
        if let Some(once) = &self.call.once {
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
        if let Some(once) = &self.call.once {
            once.own.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        }
    }
}
