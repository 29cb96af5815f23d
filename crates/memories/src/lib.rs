//! Memories of a vault: saving, recalling and maintaining them, and handoffs between sessions. The formulas of
//! importance, tiers and scores are in `memory`, notes are ranked by `query`, and files are written by `change`.

pub mod content;
pub mod conversations;
pub mod candidates;
mod prompt_evidence;
mod meant;
mod newer_statements;
pub mod handoff;
pub mod insert;
pub mod knowledge_graph;
pub mod maintain;
pub mod memories;
pub mod memory_tool;
pub mod recall;
pub mod recall_reply;
pub mod revise;
pub mod save;
pub mod scope;
pub mod write_note;
pub mod note_from_memory;
pub mod text_search;
pub mod transcript;

use sidenote_open_vault::Core;

/// Lists memories, their types, times and totals.
#[derive(Debug, Clone, Copy)]
pub struct Memories<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Memories<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Saves, revises, forgets and pins memories.
#[derive(Debug, Clone, Copy)]
pub struct MemoryWrites<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> MemoryWrites<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Finds the memories that match a text or a query.
#[derive(Debug, Clone, Copy)]
pub struct Recalls<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Recalls<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Updates tiers, writes importance back, and evicts memories.
#[derive(Debug, Clone, Copy)]
pub struct Maintenance<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Maintenance<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Stores and reads handoffs between sessions.
#[derive(Debug, Clone, Copy)]
pub struct Handoffs<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Handoffs<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
