//! Follows the files, checks the vault, makes backups, exports and imports, and sets models.

pub(super) mod backup;
pub(super) mod check;
pub(super) mod conflicts;
pub(super) mod doctor;
pub(super) mod follow;
pub(super) mod git_init;
pub(super) mod merge_driver;
pub(super) mod models;
pub(super) mod transfer;

use crate::core::Core;

/// Follows the files, checks the vault, and makes and restores backups.
#[derive(Debug, Clone, Copy)]
pub struct Upkeep<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Upkeep<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
