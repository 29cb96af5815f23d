//! Snapshot events: one journal line that holds all uses of one note in one month.

use serde_json::Value;
use sidenote_memory::usage::EventId;

use crate::event::Event;
use crate::event_id::{event_number, id_millis};

/// The operation name of a snapshot event.
pub(super) const SNAPSHOT: &str = "snapshot";

/// Lists the uses in a snapshot: time and id of each.
pub(super) fn uses_of(event: &Event) -> Vec<(i64, EventId)> {
    let uses = event.more.get("uses").and_then(Value::as_array);
    let read = |text: &str| {
        let (id, at) = text.rsplit_once('@').map_or((text, None), |(id, at)| (id, at.parse().ok()));
        Some((at.or_else(|| id_millis(id))?, event_number(id)))
    };
    uses.into_iter().flatten().filter_map(Value::as_str).filter_map(read).collect()
}
