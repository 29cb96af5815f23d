//! An interner: it numbers distinct byte strings, and has all of them in one buffer, so that millions of short ones take
//! little memory.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Byte strings, concatenated in one buffer.
#[derive(Debug, Default)]
pub struct ByteStrings {
    bytes: Vec<u8>,
    /// The end of each string in `bytes`.
    ends: Vec<u32>,
}

impl ByteStrings {
    /// Creates an empty list with room for as many strings and bytes as another one has.
    pub fn with_capacity_of(other: &Self) -> Self {
        Self { bytes: Vec::with_capacity(other.bytes.len()), ends: Vec::with_capacity(other.ends.len()) }
    }

    /// Counts the strings.
    #[inline]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes that the strings and their offsets take.
    #[inline]
    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(self.ends.as_slice())
    }

    /// Returns a string by its number, or an empty one if there is none.
    #[inline]
    pub fn get(&self, number: u32) -> &[u8] {
        let end = self.ends.get(number as usize).map_or(0, |&end| end as usize);
        let start = (number as usize).checked_sub(1).and_then(|before| self.ends.get(before));
        self.bytes.get(start.map_or(0, |&start| start as usize)..end).unwrap_or_default()
    }

    /// Adds a string, and returns its number. All strings together must have less than 4 GiB.
    #[inline]
    pub fn push(&mut self, string: &[u8]) -> u32 {
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len() as u32);
        number
    }
}

/// Distinct byte strings, numbered in the order of their first occurrence.
#[derive(Debug, Default)]
pub struct Interner {
    strings: ByteStrings,
    /// The numbers, by string.
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    /// Returns the strings in order.
    #[inline]
    pub fn strings(&self) -> &ByteStrings {
        &self.strings
    }

    /// Returns the number of a string, if it is known.
    #[inline]
    pub fn find(&self, string: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(string);
        self.table.find(hash, |&number| self.strings.get(number) == string).copied()
    }

    /// Returns the number of a string, which is added if it is new. All strings together must have less than 4 GiB.
    #[inline]
    pub fn number_of(&mut self, string: &[u8]) -> u32 {
        let Self { strings, table, hasher } = self;
        let hash = hasher.hash_one(string);
        if let Some(&number) = table.find(hash, |&number| strings.get(number) == string) {
            return number;
        }
        let number = strings.push(string);
        table.insert_unique(hash, number, |&number| hasher.hash_one(strings.get(number)));
        number
    }
}
