//! The files that differ from the index while another process writes it and is behind, or this one indexes many files.

use std::collections::BTreeSet;

use sidenote_index::Drift;
use sidenote_markdown::path::NotePath;

/// The files that differed from the index at the last check of this process.
#[derive(Debug, Default)]
pub struct UnindexedFiles {
    /// The files that are new or changed.
    pub(crate) there: BTreeSet<NotePath>,
    /// The files that were removed.
    pub(crate) gone: BTreeSet<NotePath>,
}

impl UnindexedFiles {
    pub(crate) fn of(drift: &Drift) -> Self {
        let there = drift.added.iter().chain(&drift.changed).cloned().collect();
        Self { there, gone: drift.removed.iter().cloned().collect() }
    }

    /// Returns whether the index has every file as it is.
    pub fn is_empty(&self) -> bool {
        self.there.is_empty() && self.gone.is_empty()
    }

    /// Returns the number of files.
    pub(super) fn len(&self) -> usize {
        self.there.len() + self.gone.len()
    }

    /// Returns whether a file differs from the index.
    pub fn covers(&self, path: &NotePath) -> bool {
        self.there.contains(path) || self.gone.contains(path)
    }

    /// Returns whether a file of the index is not there any more.
    pub fn is_gone(&self, path: &NotePath) -> bool {
        self.gone.contains(path)
    }

    /// Lists the notes that are new or changed.
    pub fn notes(&self) -> impl Iterator<Item = &NotePath> {
        self.there.iter().filter(|path| path.is_note())
    }
}
