//! The toolsets of five other memory servers, with their tool names and reply formats, over the same notes.

pub(super) mod longterm;
pub(super) mod mem;
pub(super) mod rulebook;
pub(super) mod tiered;
pub(super) mod vector;
