//! Saves, recalls and maintains memories, computes their scores, and stores handoffs.

pub(super) mod content;
pub(super) mod candidates;
mod evidence;
mod meant;
mod newer_statements;
pub(super) mod handoff;
pub(super) mod insert;
pub(super) mod maintain;
pub(super) mod memories;
pub(super) mod recall;
pub(super) mod recall_reply;
pub(super) mod revise;
pub(super) mod save;
pub(super) mod scope;
pub(super) mod write_note;
pub(super) mod note_from_memory;
pub(super) mod text_search;

use crate::core::Core;

/// Lists memories, their types, times and totals.
#[derive(Debug, Clone, Copy)]
pub struct Memories<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Memories<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Saves, revises, forgets and pins memories.
#[derive(Debug, Clone, Copy)]
pub struct MemoryWrites<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> MemoryWrites<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Finds the memories that match a text or a query.
#[derive(Debug, Clone, Copy)]
pub struct Recalls<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Recalls<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Updates tiers, writes importance back, and evicts memories.
#[derive(Debug, Clone, Copy)]
pub struct Maintenance<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Maintenance<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

/// Stores and reads handoffs between sessions.
#[derive(Debug, Clone, Copy)]
pub struct Handoffs<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Handoffs<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
