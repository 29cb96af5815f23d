//! Changes notes: plans of operations, the way from a plan to the disk and the journal, and undo.

pub(super) mod apply;
pub(super) mod create;
pub(super) mod edit;
pub(super) mod idempotency;
pub(super) mod merge;
pub(super) mod merge_properties;
pub(super) mod move_files;
pub(super) mod redact;
pub(super) mod relate;
pub(super) mod rename;
pub(super) mod revise;
pub(super) mod undo;
pub(super) mod write;
