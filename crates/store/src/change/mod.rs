//! Plans, applies and undoes operations that change notes.

pub(super) mod apply;
pub(super) mod commit;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod edit;
pub(super) mod editor;
pub(super) mod fix_problems;
pub(super) mod free_names;
pub(super) mod heading_links;
pub(super) mod history;
pub(super) mod link;
pub(super) mod merge;
pub(super) mod merge_copies;
pub(super) mod merge_properties;
pub(super) mod move_files;
pub(super) mod naming;
pub(super) mod operation;
pub(super) mod permission;
pub(super) mod properties;
pub(super) mod redact;
pub(super) mod rename;
pub(super) mod repair;
pub(super) mod revise;
pub(super) mod trash;
pub(super) mod undo;
pub(super) mod undo_conflict;
pub(super) mod undo_session;

use crate::core::Core;

/// Plans operations: computes change sets, and writes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Planner<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Planner<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Applies operations, records them in the journal, commits them in git, and undoes them.
#[derive(Debug, Clone, Copy)]
pub struct Changes<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Changes<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
