//! The work context: what an agent says that it is working on, and until when.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// What an agent is working on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkContext {
    /// In words.
    pub text: String,
    /// Until when that counts.
    pub expires_at: Option<Timestamp>,
}

impl WorkContext {
    /// Says whether it still counts.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}
