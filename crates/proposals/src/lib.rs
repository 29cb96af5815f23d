//! Proposals: planned changes that are kept until a person accepts or rejects them (docs/spec/agents.md). Agents make
//! them of changes that need a confirmation, and the consolidation of memories finds them. Files are written by
//! `change` alone.

pub mod consolidate;
pub mod decide;
pub mod outlook;
pub mod proposal;
mod records;
pub mod review;

use sidenote_open_vault::Core;

/// Makes, lists, accepts and rejects proposals.
// size: what happens to a proposal from its making to its decision, in a file for each step.
#[derive(Debug, Clone, Copy)]
pub struct Proposals<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Proposals<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
