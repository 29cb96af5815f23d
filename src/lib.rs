//! sidenote: a folder of Markdown notes as a searchable, linked memory, for people and for agents, on the same files.
//!
//! The crates by their layers, each using only those above it in this list; `ARCHITECTURE.md` tells why.
//!
//! - [`base`], [`config`], [`http_client`], [`git`], [`language`]: what knows nothing of notes
//! - [`markdown`], [`links`], [`secrets`], [`memory`]: what texts say; pure
//! - [`vault`], [`journal`]: the notes on disk, and their events
//! - [`sets`], [`vectors`], [`bm25`], [`catalog`], [`embed`], [`index`]: what is derived from the notes; disposable
//! - [`mod@search`]: finding and ranking
//! - [`store`]: the API of the program
//! - [`share`]: vaults that several servers share
//! - `sidenote_http`: what the HTTP servers share
//! - [`mcp`]: the MCP server
//! - [`web`]: the web page
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
