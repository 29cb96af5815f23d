//! sidenote: a folder of Markdown notes as a searchable, linked memory, for people and for agents, on the same files.
//!
//! Layers, each using only those above it in this list; `ARCHITECTURE.md` tells why.
//!
//! - [`mod@error`], [`parallel`], [`safe_open`], [`clock`], [`config`]: failures, sharing of work, files that are not
//!   to be links, time, settings
//! - [`text`]: what one file says; pure
//! - [`memory`]: what a note is worth; pure
//! - [`vault`]: the notes on disk
//! - [`journal`]: what happened to them
//! - [`index`]: everything derived from them; disposable
//! - [`mod@search`]: finding and ranking
//! - [`store`]: the one API
//! - [`mcp`] and [`cli`]: translations of it

pub mod error;
pub mod parallel;
pub mod safe_open;
pub mod clock;
pub mod config;
pub mod text;
pub mod memory;
pub mod vault;
pub mod journal;
pub mod index;
pub mod search;
pub mod store;
pub mod mcp;
pub mod cli;
