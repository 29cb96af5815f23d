//! The coarse vectors nearest to a query, by reading the file of a graph from its beginning to its end. For a process that
//! searches a few times this takes less time than to open the graph, and it misses none of them.

use std::path::Path;

use sidenote_base::{platform, safe_open};

use super::coarse;
use super::cosine::coarse_cosine;
use super::graph::{graph_path, is_over};
use super::nearest_records::{Passes, Records};

/// The bytes before the vectors in the file of a graph: the number of vectors and their size, each as four bytes in the order of
/// the processor. The vectors follow in the order in which they were added (usearch 2, `index_dense_gt::save_to_stream`).
const HEADER: usize = 8;
/// Returns the `count` records whose coarse vectors are nearest to that of a query, the nearest first, of those for which
/// `passes` is true, if it is given. Returns `None` if the saved graph does not cover the first `covered` records any more, or cannot be read.
pub(super) fn nearest(
    (folder, dimensions, covered): (&Path, usize, usize),
    query: &[u8],
    count: usize,
    passes: Option<Passes<'_>>,
) -> Option<Vec<usize>> {
    let file = safe_open::open_in_place(&graph_path(folder)).ok()?;
    if !is_over(folder, dimensions, covered) {
        return None;
    }
    let mut header = [0; HEADER];
    platform::read_exact_at(&file, &mut header, 0).ok()?;
    let ([vectors, size], _) = header.as_chunks::<4>() else { return None };
    let expected = (u32::try_from(covered).ok()?, u32::try_from(coarse::size(dimensions)).ok()?);
    if (u32::from_ne_bytes(*vectors), u32::from_ne_bytes(*size)) != expected {
        return None;
    }
    let records =
        Records { file: &file, start: HEADER, size: coarse::size(dimensions), count: covered, held: None };
    let cosine = |vector: &[u8]| coarse_cosine(query, vector, dimensions);
    let nearest = records.nearest(count, cosine, passes).ok()?;
    Some(nearest.into_iter().map(|near| near.record).collect())
}
