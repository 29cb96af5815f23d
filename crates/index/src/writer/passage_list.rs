//! The passages of a batch until they are written: partitioned by key, because they are written in the order of keys.

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::FileId;

/// The number of partitions. Keys are hashes, so that the partitions have about the same size.
const PARTITIONS: usize = 256;

/// One passage of a file. A large vault has millions, so the fields are small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FilePassage {
    key: i64,
    file: u32,
    /// The number of the passage in the file.
    ord: u32,
}

const _: () = assert!(size_of::<FilePassage>() == 16, "a passage takes more memory");

/// The passages of a batch.
#[derive(Debug)]
pub(super) struct PassageList {
    /// The passages by the first byte of their key.
    partitions: Vec<Vec<FilePassage>>,
}

impl Default for PassageList {
    fn default() -> Self {
        Self { partitions: vec![Vec::new(); PARTITIONS] }
    }
}

impl PassageList {
    /// Adds a passage of a file.
    ///
    /// # Errors
    /// Returns `Internal` if the number of the file or of the passage has more than 32 bits.
    pub(super) fn push(&mut self, key: i64, file: FileId, ord: usize) -> Result<()> {
        let (Ok(file), Ok(ord)) = (u32::try_from(file), u32::try_from(ord)) else {
            return Err(Error::new(ErrorKind::Internal, "the index has too many files or passages"));
        };
        // With the sign inverted, the first byte ascends with the key.
        let first = usize::from((key ^ i64::MIN).to_be_bytes()[0]);
        if let Some(partition) = self.partitions.get_mut(first) {
            if partition.len() == partition.capacity() {
                // All partitions grow at about the same time. If each doubled, half of the memory would be unused then.
                partition.reserve_exact(partition.len() / 4 + 16);
            }
            partition.push(FilePassage { key, file, ord });
        }
        Ok(())
    }

    /// Iterates over the passages in order, as (key, file, number in the file). Each partition is sorted when it is its
    /// turn, and freed after it.
    pub(super) fn into_sorted(self) -> impl Iterator<Item = (i64, FileId, usize)> {
        self.partitions.into_iter().flat_map(|mut partition| {
            partition.sort_unstable();
            partition
                .into_iter()
                .map(|FilePassage { key, file, ord }| (key, FileId::from(file), ord as usize))
        })
    }
}
