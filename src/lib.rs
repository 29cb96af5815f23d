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
//! - `sidenote_query`, `sidenote_change`, `sidenote_repair`, `sidenote_memories`, `sidenote_upkeep`, `sidenote_views`:
//!   the services that are made of it
//! - [`store`]: the API of the program, which gives out the services
//! - `share`: vaults that several servers share, with the feature `team`
//! - `sidenote_http`: what the HTTP servers share
//! - [`mcp`]: the MCP server
//! - `compat`: the toolsets of other memory servers, with the feature of that name
//! - `web`: the web page, with the feature of that name
//! - [`cli`]: the command line, in this crate

#[cfg(feature = "compat")]
pub use sidenote_compat as compat;
#[cfg(feature = "team")]
pub use sidenote_share as share;
#[cfg(feature = "web")]
pub use sidenote_web as web;
pub use {
    sidenote_base as base, sidenote_bm25 as bm25, sidenote_catalog as catalog, sidenote_config as config,
    sidenote_embed as embed, sidenote_git as git, sidenote_http_client as http_client,
    sidenote_index as index, sidenote_journal as journal, sidenote_language as language,
    sidenote_links as links, sidenote_markdown as markdown, sidenote_mcp as mcp, sidenote_memory as memory,
    sidenote_search as search, sidenote_secrets as secrets, sidenote_sets as sets, sidenote_store as store,
    sidenote_vault as vault, sidenote_vectors as vectors,
};

pub mod cli;
