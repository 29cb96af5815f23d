//! The records of a file that score highest, by reading it from its beginning to its end.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::ops::Range;

use sidenote_base::{parallel, platform};

/// The bytes that are read at once. They stay in the caches of a core until they are compared; a quarter of them takes a third
/// longer to read.
const READ_AT_ONCE: usize = 1 << 18;
/// The parts of a file that threads read.
const PARTS: usize = 8;
/// The fewest records of a part. A thread takes longer to begin than to read fewer.
const MIN_PART: usize = 1024;

/// A function that says whether a search looks at a record.
pub(super) type Passes<'t> = &'t (dyn Fn(usize) -> bool + Sync);

/// A record and its score. A record with a higher score is less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scored {
    pub(super) score: f32,
    pub(super) record: usize,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.record.cmp(&other.record))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Records of the same size in a file, one after the other.
pub(super) struct Records<'t> {
    pub(super) file: &'t File,
    /// The bytes before the first record.
    pub(super) start: usize,
    pub(super) size: usize,
    pub(super) count: usize,
    /// All of them, if they are in memory.
    pub(super) held: Option<&'t [u8]>,
}

impl<'t> Records<'t> {
    /// Returns these records, which are read into `buffer` unless they are in memory.
    ///
    /// # Errors
    /// The error of a read that failed.
    pub(super) fn read<'b>(&self, records: Range<usize>, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]>
    where
        't: 'b,
    {
        let bytes = records.start * self.size..records.end * self.size;
        if let Some(held) = self.held.and_then(|held| held.get(bytes.clone())) {
            return Ok(held);
        }
        buffer.resize(bytes.len(), 0);
        platform::read_exact_at(self.file, buffer, (self.start + bytes.start) as u64)?;
        Ok(buffer)
    }

    /// Returns the `most` records with the highest scores, the highest first, of those for which `passes` is true, if it is
    /// given.
    ///
    /// # Errors
    /// The error of a read that failed.
    pub(super) fn nearest(
        &self,
        most: usize,
        score: impl Fn(&[u8]) -> f32 + Sync,
        passes: Option<Passes<'_>>,
    ) -> io::Result<Vec<Scored>> {
        let part = self.count.div_ceil(PARTS).max(MIN_PART);
        let starts = (0..self.count).step_by(part);
        let parts: Vec<Range<usize>> = starts.map(|start| start..(start + part).min(self.count)).collect();
        let nearest_of =
            |(): &mut (), part: &Range<usize>| self.nearest_of(part.clone(), most, &score, passes);
        let found = parallel::map_briefly(&parts, 1, || (), nearest_of);
        let mut nearest = found.into_iter().collect::<io::Result<Vec<_>>>()?.concat();
        nearest.sort_unstable();
        nearest.truncate(most);
        Ok(nearest)
    }

    /// Returns the best of these records, in no order.
    fn nearest_of(
        &self,
        records: Range<usize>,
        most: usize,
        score: &impl Fn(&[u8]) -> f32,
        passes: Option<Passes<'_>>,
    ) -> io::Result<Vec<Scored>> {
        let at_once = (READ_AT_ONCE / self.size).max(1);
        let mut buffer = Vec::new();
        // The worst of the best is the greatest.
        let mut nearest = BinaryHeap::with_capacity(most + 1);
        for start in records.clone().step_by(at_once) {
            let bytes = self.read(start..(start + at_once).min(records.end), &mut buffer)?;
            for (record, bytes) in (start..).zip(bytes.chunks_exact(self.size)) {
                let scored = Scored { score: score(bytes), record };
                let is_near = nearest.len() < most || nearest.peek().is_some_and(|worst| scored < *worst);
                if is_near && passes.is_none_or(|passes| passes(record)) {
                    nearest.push(scored);
                    if nearest.len() > most {
                        nearest.pop();
                    }
                }
            }
        }
        Ok(nearest.into_vec())
    }
}
