//! Identifies one call of a client, and remembers the notes that it looked up.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use crate::journal::event::Event;
use crate::text::path::NotePath;

/// The operation under which an answer is kept.
pub(in crate::store) const ANSWER: &str = "answer";

/// Says whether an event keeps an answer, and nothing that was done.
pub(in crate::store) fn is_answer(event: &Event) -> bool {
    event.op == ANSWER
}

/// The name by which a repetition of a call is known.
#[derive(Debug)]
pub(in crate::store) struct Once {
    pub(in crate::store) id: String,
    /// What is called, with which arguments.
    pub(in crate::store) call: String,
    /// The events of this call itself.
    pub(in crate::store) own: Mutex<HashSet<String>>,
}

/// What belongs to one call of a tool or one command.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// How many files the index was behind when this call looked last.
    pub(in crate::store) behind: AtomicUsize,
    /// The paths that names were resolved to, with the id of the note there: who moves it meanwhile is followed.
    pub(in crate::store) resolved: Mutex<HashMap<NotePath, String>>,
    /// The name by which a repetition of the call is known.
    pub(super) once: Option<Once>,
}

impl Call {
    pub(super) fn new(once: Option<Once>) -> Self {
        Self { once, ..Self::default() }
    }
}
