//! Serves the toolsets of five other memory servers: their names and shapes over the same notes.

pub(super) mod longterm;
pub(super) mod mem;
pub(super) mod rulebook;
pub(super) mod tiered;
pub(super) mod vector;
