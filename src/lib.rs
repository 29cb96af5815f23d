//! sidenote: a folder of Markdown notes as a searchable, linked memory, for people and for agents, on the same files.
//!
//! The upper layers, each using only those above it in this list; `ARCHITECTURE.md` tells why.
//!
//! - [`sidenote_foundation`]: from text to search, in a crate of its own so that both halves compile at the same time
//! - [`store`]: the API of the program
//! - [`mcp`] and [`cli`]: the front ends of the store

pub use sidenote_foundation::{
    atomic_file, clock, config, error, git, index, journal, memory, parallel, platform, safe_open, search,
    text, vault, wording,
};

pub mod store;
pub mod mcp;
pub mod cli;
