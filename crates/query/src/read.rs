//! Reads the vault and the index without ranking.

pub mod attachment;
pub mod empty_filter;
pub mod files;
pub mod graph;
pub mod list;
pub mod note;
pub mod relations;
pub mod tasks;

use sidenote_open_vault::Core;

/// Reads notes, lists, files, tasks and links.
#[derive(Debug, Clone, Copy)]
pub struct Reads<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Reads<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
