//! Reads the vault and the index without ranking: notes, lists, files, tasks and the graph of links.

pub(super) mod empty_filter;
pub(super) mod files;
pub(super) mod graph;
pub(super) mod list;
pub(super) mod note;
pub(super) mod tasks;
