//! sidenote: a folder of Markdown notes as a searchable, linked memory, for people and for agents, on the same files.
//!
//! The crates, each using only those above it in this list; `ARCHITECTURE.md` tells why.
//!
//! - [`sidenote_foundation`]: the layers from text to search
//! - [`store`]: the API of the program
//! - [`share`]: vaults that several servers share
//! - `sidenote_http`: what the HTTP servers share
//! - [`mcp`]: the MCP server
//! - [`web`]: the web page
//! - [`cli`]: the command line, in this crate

pub use sidenote_foundation::{
    atomic_file, clock, config, error, git, index, journal, memory, parallel, platform, safe_open, search,
    text, vault, wording,
};
pub use {sidenote_mcp as mcp, sidenote_share as share, sidenote_store as store, sidenote_web as web};

pub mod cli;
