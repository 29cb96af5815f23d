//! The ids of events: UUIDs of version 7, as numbers and as times.

use sidenote_memory::usage::EventId;

/// Returns the id of an event as a number; for an id that is not a UUID, a hash of it.
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

/// Returns the time in a UUIDv7 in milliseconds since 1970; `None` for any other id.
pub fn id_millis(id: &str) -> Option<i64> {
    let (seconds, nanos) = uuid::Uuid::parse_str(id).ok()?.get_timestamp()?.to_unix();
    i64::try_from(seconds * 1000 + u64::from(nanos) / 1_000_000).ok()
}
