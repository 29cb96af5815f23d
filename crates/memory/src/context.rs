//! The work context: what an agent says that it is working on, and until when.

use serde::{Deserialize, Serialize};
use sidenote_base::clock::Timestamp;

/// The task that an agent is working on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkContext {
    /// The description in free text.
    pub text: String,
    /// The time at which the context expires, if it does.
    pub expires_at: Option<Timestamp>,
}

impl WorkContext {
    /// Says whether the context has not expired.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}
