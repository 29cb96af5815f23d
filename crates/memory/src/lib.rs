//! Memory: importance, tiers, scores and recall, computed from frontmatter, journal and time (docs/spec/memory.md).
//!
//! Pure: the same inputs give the same result on every machine, whatever the order of the events.

pub mod capture;
pub mod context;
pub mod tier;
pub mod duplicate;
pub mod handoff;
pub mod mention;
mod packed_events;
pub mod preview;
pub mod recall;
pub mod score;
pub mod state;
pub mod usage;
mod usage_event;
pub mod eviction;
pub mod privacy;
pub mod types;
pub mod validity;
pub mod lexical_similarity;
