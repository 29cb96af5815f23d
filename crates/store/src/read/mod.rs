//! Reads the vault and the index without ranking.

pub(super) mod empty_filter;
pub(super) mod files;
pub(super) mod graph;
pub(super) mod list;
pub(super) mod note;
pub(super) mod relations;
pub(super) mod tasks;

use crate::core::Core;

/// Reads notes, lists, files, tasks and links.
#[derive(Debug, Clone, Copy)]
pub struct Reads<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Reads<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
