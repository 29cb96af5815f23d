//! The lower layers of sidenote: the text of notes, the vault on disk, what is derived from it, and the search.
//!
//! Layers, each using only those above it in this list; `ARCHITECTURE.md` tells why.
//!
//! - [`wording`], [`platform`], [`mod@error`], [`parallel`], [`safe_open`], [`atomic_file`], [`clock`], [`config`], [`git`]:
//!   sentences for people and agents, what differs between operating systems, errors, parallel map, opening files without
//!   following links, replacing files, time, settings, git
//! - [`text`]: parsing and editing of one note; pure
//! - [`memory`]: importance, tiers and recall of memories; pure
//! - [`vault`]: the notes on disk
//! - [`journal`]: the events of a vault
//! - [`index`]: everything derived from the notes; disposable
//! - [`mod@search`]: finding and ranking

pub mod wording;
pub mod platform;
pub mod error;
pub mod parallel;
pub mod safe_open;
pub mod atomic_file;
pub mod clock;
pub mod config;
pub mod http_client;
pub mod git;
pub mod text;
pub mod memory;
pub mod vault;
pub mod journal;
pub mod index;
pub mod search;
