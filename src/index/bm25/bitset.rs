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

    /// Gives the files of this listed set that are in another as well.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.by_word(other, |left, right| left & right)
    }

    /// Gives the files of either listed set.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        if other.bits.len() > self.bits.len() {
            return other.or(self);
        }
        self.by_word(other, |left, right| left | right)
    }

    /// Gives the files of this listed set that are not in another.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.by_word(other, |left, right| left & !right)
    }

    fn by_word(&self, other: &Self, merge: impl Fn(u64, u64) -> u64) -> Self {
        let flip = if other.all_but { u64::MAX } else { 0 };
        let others = other.bits.iter().copied().chain(std::iter::repeat(0)).map(|word| word ^ flip);
        let bits: Vec<u64> =
            self.bits.iter().copied().zip(others).map(|(left, right)| merge(left, right)).collect();
        let count = bits.iter().map(|word| word.count_ones() as usize).sum();
        Self { bits, count, all_but: false }
    }

    /// Lists the files of a listed set, in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = FileId> + '_ {
        (0..).step_by(64).zip(&self.bits).flat_map(|(first, &bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                let next = (left != 0).then(|| first + FileId::from(left.trailing_zeros()))?;
                left &= left - 1;
                Some(next)
            })
        })
    }

    /// Takes a file out of a listed set; says whether it was there.
    pub(super) fn remove(&mut self, file: FileId) -> bool {
        let index = usize::try_from(file).unwrap_or(usize::MAX);
        let Some(word) = self.bits.get_mut(index / 64) else { return false };
        let bit = 1 << (index % 64);
        let was_there = *word & bit != 0;
        *word &= !bit;
        self.count -= usize::from(was_there);
        was_there
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
