//! Changes of notes: plans of operations, and their application, commit in git and undo. Each operation has a file that
//! makes its plan, and `apply` leads through the rest. Nothing here searches, weighs memories or checks a vault: the
//! crates that do call this one.

pub mod apply;
pub mod commit;
pub mod create;
pub mod daily_note;
pub mod delete;
pub mod edit;
pub mod editor;
pub mod extract;
mod fence;
mod fenced_path;
pub mod free_names;
pub mod follow_headings;
pub mod history;
pub mod link;
pub mod merge;
pub mod merge_properties;
pub mod move_files;
pub mod naming;
pub mod operation;
pub mod permission;
pub mod properties;
pub mod redact;
pub mod rename_part;
pub mod rename_tag_or_property;
pub mod revise;
pub mod restore;
pub mod undo;
pub mod undo_conflict;
pub mod undo_session;

use sidenote_open_vault::Core;

/// Plans operations: computes change sets, and writes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Planner<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Planner<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Applies operations, records them in the journal, commits them in git, and undoes them.
// size: what happens to an operation from its plan to its undo, in a file for each step.
#[derive(Debug, Clone, Copy)]
pub struct Changes<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Changes<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
