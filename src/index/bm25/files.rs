//! Owns sets of files, as bits: what a search may find, or may not.

use crate::index::catalog::FileId;

/// A set of file numbers, as bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSet {
    bits: Vec<u64>,
    count: usize,
    /// Whether it holds every file but these.
    all_but: bool,
}

impl FileSet {
    /// Says whether a file is in the set.
    pub fn contains(&self, file: FileId) -> bool {
        let index = usize::try_from(file).unwrap_or(usize::MAX);
        let is_listed = self.bits.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1);
        is_listed != self.all_but
    }

    /// Makes the set of every file but these.
    pub fn all_but(files: impl IntoIterator<Item = FileId>) -> Self {
        Self { all_but: true, ..files.into_iter().collect() }
    }

    /// Says whether it holds nearly all files: everything but a few.
    pub fn is_all_but(&self) -> bool {
        self.all_but
    }

    /// Counts the files that it lists.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Says whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && !self.all_but
    }

    pub(super) fn insert(&mut self, file: FileId) {
        let Ok(index) = usize::try_from(file) else { return };
        if self.bits.len() <= index / 64 {
            self.bits.resize(index / 64 + 1, 0);
        }
        if let Some(word) = self.bits.get_mut(index / 64) {
            let bit = 1 << (index % 64);
            self.count += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }
}

impl FromIterator<FileId> for FileSet {
    fn from_iter<I: IntoIterator<Item = FileId>>(files: I) -> Self {
        let mut set = Self::default();
        files.into_iter().for_each(|file| set.insert(file));
        set
    }
}
