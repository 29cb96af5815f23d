//! The rules of memories: importance, tiers, scores and the choice of a recall, computed from frontmatter, journal and
//! time (docs/spec/memory.md). It opens no file, reads no clock and knows no index.
//!
//! The same inputs give the same result on every machine, whatever the order of the events.
//!
//! ```
//! use sidenote_memory::state::decayed;
//! use sidenote_memory::types::MemoryType;
//!
//! let kind = MemoryType { half_life_days: 30.0, floor: 1.0, protected: false, hot_hours: None, warm_days: None };
//! assert_eq!(decayed(8.0, 30.0, &kind), 4.0);
//! assert_eq!(decayed(8.0, 3000.0, &kind), 1.0);
//! ```

pub mod capture;
pub mod context;
pub mod memory_properties;
pub mod tier;
pub mod tier_rule;
pub mod duplicate;
pub mod evidence;
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
pub mod left_out;
pub mod related_statements;
pub mod statement;
mod update_words;
pub mod lexical_similarity;
