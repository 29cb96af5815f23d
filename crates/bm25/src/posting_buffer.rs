//! The postings of one field in a bulk load: packed in the order of notes while notes are added, then sorted by term.
//! Common terms occur early, so they have small ids, which take few bytes.

use hashbrown::HashMap;
use sidenote_sets::leb128::{read, write};
use tantivy::DocId;

use crate::term_dictionary::TermId;

/// The bytes of a chunk of packed postings. With chunks nothing is copied when the buffer grows, and each is freed once
/// it was read.
const CHUNK_SIZE: usize = 1 << 20;
/// The most bytes that a packed posting takes.
const MAX_POSTING_SIZE: usize = 10;
/// The bits of the count in a sorted posting, whose 32 bits hold the document and the count.
const COUNT_BITS: u32 = 8;
/// The count that stands for this count or a larger one, which is stored separately.
const MAX_INLINE_COUNT: u32 = (1 << COUNT_BITS) - 1;
/// The most notes of a segment.
pub(super) const MAX_NOTES: usize = 1 << (32 - COUNT_BITS);

/// The postings of one field, in the order of notes.
#[derive(Debug, Default)]
pub(super) struct PostingBuffer {
    /// The packed postings. Each is twice the id of its term, plus one if the term occurs more than once; in that case
    /// its count less two follows. All numbers are in LEB128.
    chunks: Vec<Vec<u8>>,
    /// The number of postings of each note.
    sizes: Vec<u32>,
    /// The number of postings and of tokens of the current note.
    current: (u32, u64),
    /// The number of postings.
    len: usize,
    /// The number of tokens: the sum of all counts.
    tokens: u64,
}

impl PostingBuffer {
    /// Adds a term of the current note with its count.
    pub(super) fn add(&mut self, term: TermId, count: u32) {
        if self.chunks.last().is_none_or(|chunk| chunk.len() + MAX_POSTING_SIZE > CHUNK_SIZE) {
            self.chunks.push(Vec::with_capacity(CHUNK_SIZE));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            write(u64::from(term) << 1 | u64::from(count > 1), chunk);
            if count > 1 {
                write(u64::from(count - 2), chunk);
            }
        }
        self.current.0 += 1;
        self.current.1 += u64::from(count);
    }

    /// Ends the current note, and returns the number of its postings and of its tokens.
    pub(super) fn end_note(&mut self) -> (u32, u64) {
        let (postings, tokens) = std::mem::take(&mut self.current);
        self.sizes.push(postings);
        self.len += postings as usize;
        self.tokens += tokens;
        (postings, tokens)
    }

    /// Sorts the postings by the rank of their term, then by document. `ranks` gives the rank of each term by id.
    pub(super) fn into_sorted(self, ranks: &[u32]) -> SortedPostings {
        let rank_of = |term: TermId| ranks.get(term as usize).map_or(0, |&rank| rank as usize);
        let mut ends = vec![0u32; ranks.len() + 1];
        for chunk in &self.chunks {
            let mut chunk = chunk.as_slice();
            while let Some((term, _)) = read_posting(&mut chunk) {
                ends[rank_of(term) + 1] += 1;
            }
        }
        let mut total = 0;
        for end in &mut ends {
            total += *end;
            *end = total;
        }
        // `ends[rank]` is the position of the next posting of a rank, and so the end of the rank when all are placed.
        let mut postings = vec![0; self.len];
        let mut large_counts = HashMap::new();
        let mut docs =
            (0..).zip(&self.sizes).flat_map(|(doc, &size)| std::iter::repeat_n(doc, size as usize));
        for chunk in self.chunks {
            let mut chunk = chunk.as_slice();
            while let Some((term, count)) = read_posting(&mut chunk) {
                let doc: DocId = docs.next().unwrap_or(DocId::MAX);
                let rank = rank_of(term);
                let at = ends[rank] as usize;
                if count >= MAX_INLINE_COUNT {
                    large_counts.insert(at, count);
                }
                postings[at] = doc << COUNT_BITS | count.min(MAX_INLINE_COUNT);
                ends[rank] += 1;
            }
        }
        SortedPostings { postings, large_counts, ends, tokens: self.tokens }
    }
}

/// The postings of one field, sorted by term.
pub(super) struct SortedPostings {
    postings: Vec<u32>,
    /// The counts that are too large for a posting, by the position of the posting.
    large_counts: HashMap<usize, u32>,
    /// The end of each rank in `postings`; one more element follows the last rank.
    ends: Vec<u32>,
    /// The number of tokens: the sum of all counts.
    pub(super) tokens: u64,
}

impl SortedPostings {
    /// Returns whether there are no postings.
    pub(super) fn is_empty(&self) -> bool {
        self.postings.is_empty()
    }

    /// Iterates over the ranks, and gives for each the documents with the count of the term.
    pub(super) fn by_rank(&self) -> impl Iterator<Item = impl ExactSizeIterator<Item = (DocId, u32)>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let from = std::mem::replace(&mut start, end as usize);
            let postings = self.postings.get(from..start).unwrap_or_default();
            postings.iter().enumerate().map(move |(at, posting)| {
                let count = posting & MAX_INLINE_COUNT;
                let large_count = || self.large_counts.get(&(from + at)).copied().unwrap_or(count);
                (posting >> COUNT_BITS, if count == MAX_INLINE_COUNT { large_count() } else { count })
            })
        })
    }
}

/// Unpacks the next posting, and returns its term and count.
fn read_posting(packed: &mut &[u8]) -> Option<(TermId, u32)> {
    let head = read(packed)?;
    let count = if head & 1 == 0 { 1 } else { read(packed)? as u32 + 2 };
    Some(((head >> 1) as TermId, count))
}
