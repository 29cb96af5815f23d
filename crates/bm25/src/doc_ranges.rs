//! Ranges of documents, each of which is scored in one step. The first ranges are small, so that a lower bound of the
//! best scores is known soon, and a large segment is divided among threads.

use std::ops::Range;

use sidenote_base::parallel;
use tantivy::{DocId, SegmentReader};

/// The sizes of the first ranges. They are taken from the first half of the largest segment, if they fit into it.
const FIRST: [u32; 4] = [4096, 4096, 16_384, 16_384];
/// One in `SMALL_SHARE` documents comes next, in small ranges. Then come the large ranges, the largest first, so that
/// no thread begins one when the others have nothing left to do.
const SMALL_SHARE: u64 = 8;
/// The least size of the other ranges of a segment that is divided.
const LEAST: u32 = 16_384;
/// How many ranges each thread takes at least, if all documents are in one segment. More would be more even, but each has to pass
/// the postings before it.
const PARTS: usize = 4;

/// A range of the documents of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocRange {
    /// The index of the segment.
    pub(super) segment: usize,
    pub(super) docs: Range<DocId>,
}

/// Returns the ranges of whole segments.
pub(super) fn whole_segments(segments: &[SegmentReader]) -> Vec<DocRange> {
    let sizes = segments.iter().map(SegmentReader::max_doc).enumerate();
    sizes.map(|(segment, size)| DocRange { segment, docs: 0..size }).collect()
}

/// Divides segments into ranges: small ones first, and large ones of about one size.
pub(super) fn divided(segments: &[SegmentReader]) -> Vec<DocRange> {
    let sizes: Vec<u32> = segments.iter().map(SegmentReader::max_doc).collect();
    ranges_of(&sizes, parallel::core_count())
}

fn ranges_of(sizes: &[u32], threads: usize) -> Vec<DocRange> {
    let all: u64 = sizes.iter().copied().map(u64::from).sum();
    let most = u32::try_from(all / (PARTS * threads) as u64).unwrap_or(u32::MAX).max(LEAST);
    let largest = (0..sizes.len()).max_by_key(|&at| sizes.get(at));
    let (mut ranges, mut others) = (Vec::new(), Vec::new());
    for (segment, &size) in sizes.iter().enumerate() {
        let mut start = 0;
        for step in FIRST.into_iter().filter(|_| Some(segment) == largest) {
            if start + step <= size / 2 {
                ranges.push(DocRange { segment, docs: start..start + step });
                start += step;
            }
        }
        let step = (size - start).div_ceil((size - start).div_ceil(most).max(1)).max(1);
        let starts = (start..size).step_by(step as usize);
        others
            .extend(starts.map(|from| DocRange { segment, docs: from..size.min(from.saturating_add(step)) }));
    }
    others.sort_by_key(|range| range.docs.len());
    let mut before = 0;
    let small = others.iter().take_while(|range| {
        before += range.docs.len() as u64;
        before * SMALL_SHARE <= all
    });
    let small = small.count();
    let large = others.split_off(small).into_iter().rev();
    ranges.into_iter().chain(others).chain(large).collect()
}
