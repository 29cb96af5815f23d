//! Lists the files that the index does not hold as they are, because another process writes it and is behind.

use std::collections::BTreeSet;

use crate::index::Drift;
use crate::text::path::NotePath;

/// The files that the index did not hold as they are when this process looked last.
#[derive(Debug, Default)]
pub(super) struct UnindexedFiles {
    /// Those that are new or changed.
    pub(in crate::store) there: BTreeSet<NotePath>,
    /// Those that are gone.
    pub(in crate::store) gone: BTreeSet<NotePath>,
}

impl UnindexedFiles {
    pub(in crate::store) fn of(drift: &Drift) -> Self {
        let there = drift.added.iter().chain(&drift.changed).cloned().collect();
        Self { there, gone: drift.removed.iter().cloned().collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.there.is_empty() && self.gone.is_empty()
    }

    pub(in crate::store) fn covers(&self, path: &NotePath) -> bool {
        self.there.contains(path) || self.gone.contains(path)
    }

    pub(super) fn is_gone(&self, path: &NotePath) -> bool {
        self.gone.contains(path)
    }

    /// Lists notes that are new or changed.
    pub(super) fn notes(&self) -> impl Iterator<Item = &NotePath> {
        self.there.iter().filter(|path| path.is_note())
    }
}
