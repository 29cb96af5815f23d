//! sidenote: a folder of Markdown notes as a searchable, linked memory, for people and for agents, on the same files.
//!
//! The crates by their layers, each using only those above it in this list; `ARCHITECTURE.md` tells why.
//!
//! - [`base`], [`config`], [`http_client`], [`git`], [`language`]: what knows nothing of notes
//! - [`markdown`], [`links`], [`secrets`], [`memory`]: what texts say; pure
//! - [`vault`], [`journal`]: the notes on disk, and their events
//! - [`sets`], [`vectors`], [`bm25`], [`catalog`], [`embed`], [`index`]: what is derived from the notes; disposable
//! - [`mod@search`]: finding and ranking
//! - `sidenote_open_vault`: the handle of an open vault
//! - `sidenote_query`, `sidenote_change`, `sidenote_repair`, `sidenote_memories`, `sidenote_proposals`, `sidenote_upkeep`,
//!   `sidenote_views`:
//!   the services that are made of it
//! - [`store`]: the API of the program, which gives out the services
//! - `share`: vaults that several servers share, with the feature `team`
//! - `sidenote_http`: what the HTTP servers share; [`authorization`]: the authorization server for one or a few people
//! - [`mcp`]: the MCP server
//! - `compat`: the toolsets of other memory servers, with the feature of that name
//! - `web`: the web page, with the feature of that name
//! - [`cli`]: the command line, in this crate

pub use sidenote_authorization as authorization;
pub use sidenote_base as base;
pub use sidenote_bm25 as bm25;
pub use sidenote_catalog as catalog;
#[cfg(feature = "compat")]
pub use sidenote_compat as compat;
pub use sidenote_config as config;
pub use sidenote_embed as embed;
pub use sidenote_git as git;
pub use sidenote_http_client as http_client;
pub use sidenote_index as index;
pub use sidenote_journal as journal;
pub use sidenote_language as language;
pub use sidenote_links as links;
pub use sidenote_markdown as markdown;
pub use sidenote_mcp as mcp;
pub use sidenote_memory as memory;
pub use sidenote_search as search;
pub use sidenote_secrets as secrets;
pub use sidenote_sets as sets;
#[cfg(feature = "team")]
pub use sidenote_share as share;
pub use sidenote_store as store;
pub use sidenote_vault as vault;
pub use sidenote_vectors as vectors;
#[cfg(feature = "web")]
pub use sidenote_web as web;

pub mod cli;
