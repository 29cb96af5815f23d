//! A set of file ids: the candidate set of a search, or the files that a search excludes.

use crate::bitset::Bitset;

/// The id of a file in the catalog. It does not change during the life of the file, even when the file is moved.
pub type FileId = i64;

/// A set of files, listed one by one or as every file but the listed ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSet {
    listed: Bitset,
    count: usize,
    /// Whether the set holds every file but the listed ones.
    is_complement: bool,
}

impl FileSet {
    /// Returns whether a file is in the set.
    #[inline]
    pub fn contains(&self, file: FileId) -> bool {
        usize::try_from(file).is_ok_and(|number| self.listed.contains(number)) != self.is_complement
    }

    /// Creates the set of every file but these.
    pub fn all_but(files: impl IntoIterator<Item = FileId>) -> Self {
        Self { is_complement: true, ..files.into_iter().collect() }
    }

    /// Returns whether the set holds every file but the listed ones.
    pub fn is_all_but(&self) -> bool {
        self.is_complement
    }

    /// Counts the listed files.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && !self.is_complement
    }

    /// Returns the files of this listed set that are in another set as well.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.combine(other, |left, right| left & right)
    }

    /// Returns the files of either listed set.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        if other.listed.words() > self.listed.words() {
            return other.or(self);
        }
        self.combine(other, |left, right| left | right)
    }

    /// Returns the files of this listed set that are not in another set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.combine(other, |left, right| left & !right)
    }

    fn combine(&self, other: &Self, merge: impl Fn(u64, u64) -> u64) -> Self {
        let flip = if other.is_complement { u64::MAX } else { 0 };
        let listed = self.listed.combine(&other.listed, |left, right| merge(left, right ^ flip));
        Self { count: listed.count(), listed, is_complement: false }
    }

    /// Iterates over the files of a listed set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = FileId> + '_ {
        self.listed.iter().map(|number| number as FileId)
    }

    /// Removes a file from a listed set, and returns whether the set contained it.
    pub fn remove(&mut self, file: FileId) -> bool {
        let was_present = usize::try_from(file).is_ok_and(|number| self.listed.remove(number));
        self.count -= usize::from(was_present);
        was_present
    }

    /// Adds a file to a listed set.
    #[inline]
    pub fn insert(&mut self, file: FileId) {
        let Ok(number) = usize::try_from(file) else { return };
        self.listed.grow_to_hold(number);
        self.count += usize::from(self.listed.insert(number));
    }
}

impl FromIterator<FileId> for FileSet {
    fn from_iter<I: IntoIterator<Item = FileId>>(files: I) -> Self {
        let mut set = Self::default();
        files.into_iter().for_each(|file| set.insert(file));
        set
    }
}
