//! A bitset: a set of small numbers, with one bit for each number up to its capacity.

/// A set of numbers below a capacity, one bit each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitset {
    words: Vec<u64>,
}

impl Bitset {
    /// Creates an empty set with room for at least the numbers below `capacity`.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { words: vec![0; capacity.div_ceil(64)] }
    }

    /// Makes room for `number`.
    pub(super) fn grow_to_hold(&mut self, number: usize) {
        if self.words.len() <= number / 64 {
            self.words.resize(number / 64 + 1, 0);
        }
    }

    /// Returns whether the set contains `number`.
    #[inline]
    pub fn contains(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds `number`, and returns whether it is new. A number beyond the capacity is ignored.
    #[inline]
    pub fn insert(&mut self, number: usize) -> bool {
        let Some(word) = self.words.get_mut(number / 64) else { return false };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Removes `number`, and returns whether the set contained it.
    pub(super) fn remove(&mut self, number: usize) -> bool {
        let Some(word) = self.words.get_mut(number / 64) else { return false };
        let bit = 1 << (number % 64);
        let was_present = *word & bit != 0;
        *word &= !bit;
        was_present
    }

    /// Counts the numbers in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the capacity of the set in words of 64 bits.
    pub(super) fn words(&self) -> usize {
        self.words.len()
    }

    /// Combines the set with another one, 64 bits at a time. The result has the capacity of this set; beyond its own
    /// capacity the other set is empty.
    pub fn combine(&self, other: &Self, merge: impl Fn(u64, u64) -> u64) -> Self {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        Self { words: self.words.iter().zip(others).map(|(&left, right)| merge(left, right)).collect() }
    }

    /// Iterates over the numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..).step_by(64).zip(&self.words).flat_map(|(first, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let next = (left != 0).then(|| first + left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(next)
            })
        })
    }
}
