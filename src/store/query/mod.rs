//! Answers queries: the search pipeline, explanations, related notes and the evaluation of search quality.

pub(super) mod eval;
pub(super) mod related;
pub(super) mod rerank;
pub(super) mod search;
pub(super) mod verify;
pub(super) mod why;
