//! The events of one note as bytes. A process reads the events of all notes and needs those of few, so they are
//! unpacked when they are needed.

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tier::Tier;
use crate::usage_event::{EventId, UsageEvent, UsageEventKind};

/// The kinds of events, each of which is the last byte of a record. The number of a tier is added to the last one.
const USE: u8 = 0;
const USEFUL: u8 = 1;
const NOT_USEFUL: u8 = 2;
const CHECKPOINT: u8 = 3;
const TIER: u8 = 4;

/// Events in the order in which they were added. The record of one is: for a checkpoint, its idle time, its importance and
/// its tenths; then the time, the id and the kind. So the last one is read from the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PackedEvents(Vec<u8>);

impl PackedEvents {
    /// Adds an event.
    pub(super) fn push(&mut self, event: &UsageEvent) {
        let kind = match event.what {
            UsageEventKind::Use => USE,
            UsageEventKind::Vote { useful: true } => USEFUL,
            UsageEventKind::Vote { useful: false } => NOT_USEFUL,
            UsageEventKind::Checkpoint { importance, tenths, idle } => {
                self.0.extend(idle.to_le_bytes());
                self.0.extend(importance.to_le_bytes());
                self.0.push(tenths);
                CHECKPOINT
            }
            UsageEventKind::Tier(tier) => {
                Tier::ALL.into_iter().take_while(|other| *other != tier).fold(TIER, |at, _| at + 1)
            }
        };
        self.0.extend(event.at.to_le_bytes());
        self.0.extend(event.id.to_le_bytes());
        self.0.push(kind);
    }

    /// Returns the events, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = UsageEvent> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (event, before) = split_last(rest)?;
            rest = before;
            Some(event)
        })
    }

    /// Returns the id of the event that was added last.
    pub(super) fn last_id(&self) -> Option<EventId> {
        Some(split_last(&self.0)?.0.id)
    }
}

/// Splits the last event from the records before it; `None` if there is none, or if these are no records.
fn split_last(bytes: &[u8]) -> Option<(UsageEvent, &[u8])> {
    let (kind, rest) = bytes.split_last()?;
    let (rest, id) = rest.split_last_chunk()?;
    let (rest, at) = rest.split_last_chunk()?;
    let (what, rest) = match *kind {
        USE => (UsageEventKind::Use, rest),
        USEFUL | NOT_USEFUL => (UsageEventKind::Vote { useful: *kind == USEFUL }, rest),
        CHECKPOINT => {
            let (tenths, rest) = rest.split_last()?;
            let (rest, importance) = rest.split_last_chunk()?;
            let importance = f64::from_le_bytes(*importance);
            let (rest, idle) = rest.split_last_chunk()?;
            let idle = i64::from_le_bytes(*idle);
            (UsageEventKind::Checkpoint { importance, tenths: *tenths, idle }, rest)
        }
        tier => (UsageEventKind::Tier(*Tier::ALL.get(usize::from(tier.checked_sub(TIER)?))?), rest),
    };
    Some((UsageEvent { at: i64::from_le_bytes(*at), id: EventId::from_le_bytes(*id), what }, rest))
}

impl Serialize for PackedEvents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for PackedEvents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = PackedEvents;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the records of events")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<PackedEvents, E> {
                Ok(PackedEvents(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
