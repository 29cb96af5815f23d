//! The ids of events: UUIDs of version 7, as numbers and as times.

use crate::memory::usage::EventId;

/// Gives the number that an event's name stands for.
pub(super) fn event_number(id: &str) -> EventId {
    uuid::Uuid::parse_str(id).map_or_else(
        |_| {
            let hash = blake3::hash(id.as_bytes());
            let (half, _) = hash.as_bytes().split_at(16);
            half.try_into().map_or(0, EventId::from_be_bytes)
        },
        |id| id.as_u128(),
    )
}

/// Gives the milliseconds since 1970 at which an operation got its id; `None` for what is no id of ours.
pub(super) fn id_millis(id: &str) -> Option<i64> {
    let (seconds, nanos) = uuid::Uuid::parse_str(id).ok()?.get_timestamp()?.to_unix();
    i64::try_from(seconds * 1000 + u64::from(nanos) / 1_000_000).ok()
}
