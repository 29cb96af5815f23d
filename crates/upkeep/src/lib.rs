//! The upkeep of a vault: following the files, `check`, `doctor`, backups, exports and imports, conflict copies,
//! models, and the merge driver for git. Findings are values here; how they are printed is decided by the command line.

pub mod backup;
pub mod check;
mod compared_text;
pub mod conflicts;
pub mod doctor;
pub mod export;
pub mod fix_problems;
pub mod follow;
pub mod git_init;
pub mod import;
pub mod merge_copies;
pub mod merge_driver;
pub mod models;

use sidenote_open_vault::Core;

/// Follows the files, checks the vault, and makes and restores backups.
#[derive(Debug, Clone, Copy)]
pub struct Upkeep<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Upkeep<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
