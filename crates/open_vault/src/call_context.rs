//! The context of one call of a client: its operation id, and the notes that it looked up.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use sidenote_journal::event::Event;
use sidenote_markdown::edit::ChangeSet;
use sidenote_markdown::path::NotePath;

/// The operation of journal events that hold an answer.
pub(crate) const ANSWER: &str = "answer";

/// Returns whether an event only holds an answer.
pub fn is_answer(event: &Event) -> bool {
    event.op == ANSWER
}

/// The id by which a repeated call is recognised.
#[derive(Debug)]
pub struct Once {
    /// The operation id.
    pub id: String,
    /// The hash of what is called, with its arguments.
    pub call: String,
    /// The ids of the events that this call wrote.
    pub own: Mutex<HashSet<String>>,
}

/// The state of one call of a tool, or of one command.
#[derive(Debug, Default)]
pub struct Call {
    /// The number of files that the index was behind at the last check of this call.
    pub behind: AtomicUsize,
    /// The paths to which names were resolved, with the id of the note there. A note that is moved during the call is
    /// found by its id.
    pub resolved: Mutex<HashMap<NotePath, String>>,
    /// What was not committed in git of the changes of this call, and why.
    pub uncommitted: Mutex<Vec<String>>,
    /// The operation id, if the caller gave one.
    pub once: Option<Once>,
    /// What the first plan that is applied must be based on, as [`crate::plan_basis`] gives it.
    pub expected: Mutex<Option<String>>,
    /// Whether the changes of the call are planned and kept for a proposal, and not applied.
    pub proposes: AtomicBool,
    /// Whether a change that a person has to confirm can become a proposal.
    pub may_propose: AtomicBool,
    /// The planned changes of a call that proposes.
    pub proposed: Mutex<Vec<ChangeSet>>,
}

impl Call {
    /// Begins a call, which may have an operation id.
    pub fn new(once: Option<Once>) -> Self {
        Self { once, ..Self::default() }
    }

    /// Returns whether the changes of the call are proposed.
    pub fn is_proposing(&self) -> bool {
        self.proposes.load(Ordering::Relaxed)
    }

    /// Lets changes that a person has to confirm become proposals.
    pub fn allow_proposals(&self) {
        self.may_propose.store(true, Ordering::Relaxed);
    }

    /// Keeps a planned change for a proposal.
    pub fn propose(&self, plan: ChangeSet) {
        self.proposed.lock().unwrap_or_else(PoisonError::into_inner).push(plan);
    }

    /// Takes the planned changes of a call that proposes.
    pub fn take_proposed(&self) -> Vec<ChangeSet> {
        std::mem::take(&mut *self.proposed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
