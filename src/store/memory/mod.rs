//! Keeps memories: saving, weighing, recall, maintenance and handoffs.

pub(super) mod content;
pub(super) mod evidence;
pub(super) mod handoff;
pub(super) mod insert;
pub(super) mod maintain;
pub(super) mod memories;
pub(super) mod recall;
pub(super) mod save;
pub(super) mod scope;
pub(super) mod texts;
