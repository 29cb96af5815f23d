//! One event in the usage of a note.

use serde::{Deserialize, Serialize};

use crate::tier::Tier;

/// The id of an event: a UUID as a number. UUIDv7 sort by time.
pub type EventId = u128;

/// The kind of a usage event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum UsageEventKind {
    /// The note was read, recalled or named in a handoff.
    Use,
    /// The note was rated, which also counts as a use.
    Vote {
        /// Whether the rating was positive.
        useful: bool,
    },
    /// The importance was written to the frontmatter. It includes the effect of all earlier events.
    Checkpoint {
        /// The importance that was written.
        importance: f64,
        /// The number of uses that had not taken effect yet.
        tenths: u8,
        /// For how long the note had not been used then, in milliseconds.
        idle: i64,
    },
    /// Maintenance recorded that the note is in this tier.
    Tier(Tier),
}

impl UsageEventKind {
    /// Says whether the event counts as a use. A vote does.
    pub(crate) fn is_use(self) -> bool {
        matches!(self, Self::Use | Self::Vote { .. })
    }
}

/// One event in the usage of one note.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UsageEvent {
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// The id of the event.
    pub id: EventId,
    /// The kind of the event.
    pub what: UsageEventKind,
}

impl UsageEvent {
    /// Returns the sort key of the event: its time, then its id.
    pub(super) fn order(&self) -> (i64, EventId) {
        (self.at, self.id)
    }
}
