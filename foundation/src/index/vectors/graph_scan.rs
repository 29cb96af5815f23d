//! The coarse vectors nearest to a query, by reading the file of a graph from its beginning to its end. For a process that
//! searches a few times this takes less time than to open the graph, and it misses none of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use super::coarse;
use super::cosine::coarse_cosine;
use super::graph::{covered_by_graph, graph_path};
use crate::{parallel, platform, safe_open};

/// The bytes before the vectors in the file of a graph: the number of vectors and their size, each as four bytes in the order of
/// the processor. The vectors follow in the order in which they were added (usearch 2, `index_dense_gt::save_to_stream`).
const HEADER: usize = 8;
/// The vectors that are read at once.
const READ_AT_ONCE: usize = 1024;
/// The parts of a file that threads scan.
const PARTS: usize = 8;

/// A record and the cosine of its coarse vector. A nearer record is less.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Near {
    cosine: f32,
    record: usize,
}

impl Eq for Near {}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        other.cosine.total_cmp(&self.cosine).then(self.record.cmp(&other.record))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the `count` records for which `passes` is true whose coarse vectors are nearest to that of a query, the nearest
/// first. Returns `None` if the saved graph does not cover the first `covered` records any more, or cannot be read.
pub(super) fn nearest(
    (folder, dimensions, covered): (&Path, usize, usize),
    query: &[u8],
    count: usize,
    passes: &(dyn Fn(usize) -> bool + Sync),
) -> Option<Vec<usize>> {
    let file = safe_open::open_in_place(&graph_path(folder)).ok()?;
    if covered_by_graph(folder, dimensions, covered) != covered {
        return None;
    }
    let mut header = [0; HEADER];
    platform::read_exact_at(&file, &mut header, 0).ok()?;
    let ([vectors, size], _) = header.as_chunks::<4>() else { return None };
    let expected = (u32::try_from(covered).ok()?, u32::try_from(coarse::size(dimensions)).ok()?);
    if (u32::from_ne_bytes(*vectors), u32::from_ne_bytes(*size)) != expected {
        return None;
    }
    let part = covered.div_ceil(PARTS).max(READ_AT_ONCE);
    let parts: Vec<Range<usize>> =
        (0..covered).step_by(part).map(|start| start..(start + part).min(covered)).collect();
    let scan = Scan { file: &file, dimensions, query, count, passes };
    let found = parallel::map_briefly(&parts, 1, || (), |(), part| scan.nearest_of(part.clone()));
    let mut near = found.into_iter().collect::<Option<Vec<_>>>()?.concat();
    near.sort_unstable();
    near.truncate(count);
    Some(near.into_iter().map(|near| near.record).collect())
}

/// What a query looks for in a file.
struct Scan<'t> {
    file: &'t File,
    dimensions: usize,
    query: &'t [u8],
    count: usize,
    passes: &'t (dyn Fn(usize) -> bool + Sync),
}

impl Scan<'_> {
    /// Returns the nearest of these records, in no order; `None` if they cannot be read.
    fn nearest_of(&self, records: Range<usize>) -> Option<Vec<Near>> {
        let size = coarse::size(self.dimensions);
        let mut bytes = vec![0; READ_AT_ONCE * size];
        // The farthest of the nearest is the greatest.
        let mut nearest = BinaryHeap::with_capacity(self.count + 1);
        for start in records.clone().step_by(READ_AT_ONCE) {
            let vectors = (records.end - start).min(READ_AT_ONCE);
            let bytes = bytes.get_mut(..vectors * size)?;
            platform::read_exact_at(self.file, bytes, (HEADER + start * size) as u64).ok()?;
            for (record, vector) in (start..).zip(bytes.chunks_exact(size)) {
                let near = Near { cosine: coarse_cosine(self.query, vector, self.dimensions), record };
                let is_near =
                    nearest.len() < self.count || nearest.peek().is_some_and(|farthest| near < *farthest);
                if is_near && (self.passes)(record) {
                    nearest.push(near);
                    if nearest.len() > self.count {
                        nearest.pop();
                    }
                }
            }
        }
        Some(nearest.into_vec())
    }
}
