//! Maintains a vault: checks, backups, export and import, and models.

pub(super) mod backup;
pub(super) mod check;
pub(super) mod models;
pub(super) mod transfer;
