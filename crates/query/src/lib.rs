//! Questions about a vault: searching, reading, related notes, explanations, weights of memories, and the evaluation of
//! search quality. The ranking is in `search`. No note is changed here.

mod dates;
pub mod eval;
mod extent;
pub mod memory_ranking;
pub mod memory_weights;
pub mod query_reader;
mod ranked_search;
pub mod read;
pub mod related;
pub mod rerank;
pub mod search;
mod search_scope;
mod corrected_query;
pub mod validity;
pub mod verify;
pub mod why;

use sidenote_open_vault::Core;

/// Searches notes, explains results, and finds related notes.
#[derive(Debug, Clone, Copy)]
pub struct Searches<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Searches<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
