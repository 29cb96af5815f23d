//! The states of the writer, and how it writes a batch.

use sidenote_catalog::CatalogWriter;

use crate::diff::Redo;

/// From this many changed files on, a batch is written in bulk.
pub(crate) const BULK: usize = 2000;

/// The state of the write side.
pub(crate) enum State {
    /// The seal is valid. It is removed before the first write.
    Sealed,
    /// The index is open for writing.
    Open,
    /// A batch writes a staged catalog, and readers use the published one.
    Staging {
        /// The catalog that readers use, and that the staged one is to replace.
        published: Box<CatalogWriter>,
    },
    /// The catalog file was replaced. Readers have to open it again.
    Replaced,
}

impl State {
    /// Leaves [`State::Staging`], and returns the state that it was in.
    pub(super) fn take_staging(&mut self) -> Self {
        match self {
            Self::Staging { .. } => std::mem::replace(self, Self::Open),
            Self::Sealed => Self::Sealed,
            Self::Open => Self::Open,
            Self::Replaced => Self::Replaced,
        }
    }
}

/// What the next sync reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextSync {
    /// The files that changed.
    Changes,
    /// Every file, as if nothing were indexed.
    Rebuild,
}

/// What is done with vectors of models other than the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherVectors {
    /// They are kept, because they may still answer.
    Keep,
    /// They are removed once no snapshot uses them.
    Remove,
}

/// How a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// A few files, one by one.
    Update,
    /// Many files: several threads, and counts taken at the end.
    BulkUpdate,
    /// A few files, into a staged catalog.
    SmallLoad,
    /// Many files, into a staged catalog and a full-text index that start empty.
    Load,
}

/// A batch that is about to be written.
pub(super) struct Plan {
    pub(super) method: Method,
    /// What an unfinished batch left to do.
    pub(super) redo: Redo,
    /// Whether attachments get their texts.
    pub(super) reads_attachments: bool,
}

impl Plan {
    /// Plans a batch of this number of files. `starts_empty` says that nothing of the catalog is kept.
    pub(super) fn new(files: usize, starts_empty: bool, redo: Redo) -> Self {
        let method = match (starts_empty, files >= BULK || redo == Redo::All) {
            (false, false) => Method::Update,
            (false, true) => Method::BulkUpdate,
            (true, false) => Method::SmallLoad,
            (true, true) => Method::Load,
        };
        Self { method, redo, reads_attachments: false }
    }

    /// Returns whether the batch has many files.
    pub(super) fn is_bulk(&self) -> bool {
        matches!(self.method, Method::BulkUpdate | Method::Load)
    }

    /// Returns whether the batch writes a staged catalog.
    pub(super) fn is_staged(&self) -> bool {
        matches!(self.method, Method::SmallLoad | Method::Load)
    }

    /// Returns whether the batch loads many files into an empty index.
    pub(super) fn is_load(&self) -> bool {
        self.method == Method::Load
    }

    /// Returns whether the full-text index starts empty.
    pub(super) fn clears_full_text(&self) -> bool {
        self.redo == Redo::All || self.is_load()
    }
}
