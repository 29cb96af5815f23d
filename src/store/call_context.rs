//! The context of one call of a client: its operation id, and the notes that it looked up.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use crate::journal::event::Event;
use crate::text::path::NotePath;

/// The operation of journal events that hold an answer.
pub(in crate::store) const ANSWER: &str = "answer";

/// Returns whether an event only holds an answer.
pub(in crate::store) fn is_answer(event: &Event) -> bool {
    event.op == ANSWER
}

/// The id by which a repeated call is recognised.
#[derive(Debug)]
pub(in crate::store) struct Once {
    pub(in crate::store) id: String,
    /// The hash of what is called, with its arguments.
    pub(in crate::store) call: String,
    /// The ids of the events that this call wrote.
    pub(in crate::store) own: Mutex<HashSet<String>>,
}

/// The state of one call of a tool, or of one command.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The number of files that the index was behind at the last check of this call.
    pub(in crate::store) behind: AtomicUsize,
    /// The paths to which names were resolved, with the id of the note there. A note that is moved during the call is
    /// found by its id.
    pub(in crate::store) resolved: Mutex<HashMap<NotePath, String>>,
    /// What was not committed in git of the changes of this call, and why.
    pub(in crate::store) uncommitted: Mutex<Vec<String>>,
    /// The operation id, if the caller gave one.
    pub(super) once: Option<Once>,
}

impl Call {
    pub(super) fn new(once: Option<Once>) -> Self {
        Self { once, ..Self::default() }
    }
}
