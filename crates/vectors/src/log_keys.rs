//! The keys of a vector log, which are read when they are first needed: they take megabytes, and searches by words need
//! none.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::OnceLock;

use sidenote_base::platform;

use super::key_table::KeyTable;
use super::{HEADER, KEY_RECORD};

/// The number of keys that are read at once.
const KEYS_AT_ONCE: usize = 4096;

/// The keys of the records of a log, by their number.
#[derive(Debug, Default)]
pub(super) struct LogKeys {
    count: usize,
    /// The file that they are read from. It stays open, for its path may name a newer one later.
    file: Option<File>,
    /// The records without a usable vector.
    unsound: HashSet<usize>,
    keys: OnceLock<Vec<i64>>,
    table: OnceLock<KeyTable>,
}

impl LogKeys {
    /// Returns the first `count` keys of a file, of which the records `unsound` have no usable vector.
    pub(super) fn of_file(file: File, count: usize, unsound: HashSet<usize>) -> Self {
        Self { count, file: Some(file), unsound, ..Self::default() }
    }

    /// Returns keys in memory. All records have a usable vector.
    pub(super) fn of(keys: Vec<i64>) -> Self {
        Self { count: keys.len(), keys: OnceLock::from(keys), ..Self::default() }
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the keys by the number of their record. If they cannot be read, no record has one.
    pub(super) fn all(&self) -> &[i64] {
        self.keys.get_or_init(|| {
            self.read().unwrap_or_else(|error| {
                tracing::warn!("the keys of vectors cannot be read, so nothing is found by meaning: {error}");
                Vec::new()
            })
        })
    }

    /// Returns the newest record of a passage that has a usable vector.
    pub(super) fn record_of(&self, key: i64) -> Option<usize> {
        self.table().get(self.all(), key)
    }

    /// Prepares what [`LogKeys::record_of`] needs.
    pub(super) fn table(&self) -> &KeyTable {
        self.table.get_or_init(|| KeyTable::of(self.all(), |at| !self.unsound.contains(&at)))
    }

    fn read(&self) -> io::Result<Vec<i64>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let mut keys = Vec::with_capacity(self.count);
        let mut bytes = vec![0; KEYS_AT_ONCE.min(self.count) * KEY_RECORD];
        while keys.len() < self.count {
            let next = KEYS_AT_ONCE.min(self.count - keys.len());
            let part = bytes.get_mut(..next * KEY_RECORD).unwrap_or_default();
            platform::read_exact_at(file, part, (HEADER + keys.len() * KEY_RECORD) as u64)?;
            let key_of = |record: &[u8]| record.first_chunk().map_or(0, |key| i64::from_le_bytes(*key));
            keys.extend(part.chunks_exact(KEY_RECORD).map(key_of));
        }
        Ok(keys)
    }
}
