//! Answers queries: the search pipeline, explanations, related notes and the evaluation of search quality.

mod dates;
pub(super) mod eval;
pub(super) mod memory_ranking;
pub(super) mod related;
pub(super) mod rerank;
pub(super) mod search;
mod suggestion;
pub(crate) mod validity;
pub(super) mod verify;
pub(super) mod why;

use crate::core::Core;

/// Searches notes, explains results, and finds related notes.
#[derive(Debug, Clone, Copy)]
pub struct Searches<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Searches<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
