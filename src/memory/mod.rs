//! What a note is worth, folded from what its frontmatter says, what the journal tells of it, and the time.
//!
//! All here is pure: the same three give the same answer, on every machine and in every order of reading
//! (spec/memory.md).

pub mod capture;
pub mod context;
pub mod tier;
pub mod duplicate;
pub mod handoff;
pub mod preview;
pub mod recall;
pub mod score;
pub mod secrets;
pub mod state;
pub mod usage;
pub mod eviction;
pub mod privacy;
pub mod similarity;
pub mod types;
