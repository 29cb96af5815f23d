//! Owns the postings of one field while very many notes are inverted: packed as they come, note after note, and then
//! brought into the order of terms. Terms that are common were met early, so their numbers are small and take few bytes.

use hashbrown::HashMap;
use tantivy::DocId;

use crate::index::bm25::term_dictionary::TermId;
use crate::index::leb128::{put, take};

/// Postings are kept in pieces of so many bytes: nothing is copied when there are more, and what was read is free again.
const PIECE: usize = 1 << 20;
/// The most bytes that a posting takes up.
const WIDEST: usize = 10;
/// The bits of the count in the 32 bits that a note and its count share.
const COUNT_BITS: u32 = 8;
/// A count of this or more is stored separately.
const MANY: u32 = (1 << COUNT_BITS) - 1;
/// So many notes can be told apart.
pub(super) const MOST_NOTES: usize = 1 << (32 - COUNT_BITS);

/// The postings of one field, in the order of notes.
#[derive(Debug, Default)]
pub(super) struct PostingBuffer {
    /// Each posting is the number of its term, doubled, and one more where it comes more than once; then by how much
    /// more than two times it comes. All in LEB128.
    pieces: Vec<Vec<u8>>,
    /// How many postings each note has.
    sizes: Vec<u32>,
    /// How many the note at hand has so far, and how often all of its terms come.
    open: (u32, u64),
    /// How many there are.
    len: usize,
    /// All terms, counted as often as they come.
    tokens: u64,
}

impl PostingBuffer {
    /// Adds a term of the note at hand, and how often it comes there.
    pub(super) fn add(&mut self, term: TermId, count: u32) {
        if self.pieces.last().is_none_or(|piece| piece.len() + WIDEST > PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        if let Some(piece) = self.pieces.last_mut() {
            put(u64::from(term) << 1 | u64::from(count > 1), piece);
            if count > 1 {
                put(u64::from(count - 2), piece);
            }
        }
        self.open.0 += 1;
        self.open.1 += u64::from(count);
    }

    /// Ends the note at hand; gives the number of its postings, and how often all of its terms come.
    pub(super) fn end(&mut self) -> (u32, u64) {
        let (postings, tokens) = std::mem::take(&mut self.open);
        self.sizes.push(postings);
        self.len += postings as usize;
        self.tokens += tokens;
        (postings, tokens)
    }

    /// Brings the postings into the order of terms, and notes into theirs below each.
    pub(super) fn sorted(self, ranks: &[u32]) -> SortedPostings {
        let rank_of = |term: TermId| ranks.get(term as usize).map_or(0, |&rank| rank as usize);
        let mut ends = vec![0u32; ranks.len() + 1];
        for piece in &self.pieces {
            let mut piece = piece.as_slice();
            while let Some((term, _)) = take_posting(&mut piece) {
                ends[rank_of(term) + 1] += 1;
            }
        }
        let mut total = 0;
        for end in &mut ends {
            total += *end;
            *end = total;
        }
        // Each is where the next posting of a rank goes, and so is at its end when all are there.
        let mut postings = vec![0; self.len];
        let mut many = HashMap::new();
        let mut docs =
            (0..).zip(&self.sizes).flat_map(|(doc, &size)| std::iter::repeat_n(doc, size as usize));
        for piece in self.pieces {
            let mut piece = piece.as_slice();
            while let Some((term, count)) = take_posting(&mut piece) {
                let doc: DocId = docs.next().unwrap_or(DocId::MAX);
                let rank = rank_of(term);
                let at = ends[rank] as usize;
                if count >= MANY {
                    many.insert(at, count);
                }
                postings[at] = doc << COUNT_BITS | count.min(MANY);
                ends[rank] += 1;
            }
        }
        SortedPostings { postings, many, ends, tokens: self.tokens }
    }
}

/// The postings of one field, in the order of terms.
pub(super) struct SortedPostings {
    postings: Vec<u32>,
    /// The counts that are too large to stand there, by their place.
    many: HashMap<usize, u32>,
    /// Where those of each rank end; one more is behind the last.
    ends: Vec<u32>,
    /// All terms, counted as often as they come.
    pub(super) tokens: u64,
}

impl SortedPostings {
    /// Says whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.postings.is_empty()
    }

    /// Gives the postings of each rank in turn: the notes, and how often the term comes there.
    pub(super) fn by_rank(&self) -> impl Iterator<Item = impl ExactSizeIterator<Item = (DocId, u32)>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let from = std::mem::replace(&mut start, end as usize);
            let postings = self.postings.get(from..start).unwrap_or_default();
            postings.iter().enumerate().map(move |(at, posting)| {
                let count = posting & MANY;
                let many = || self.many.get(&(from + at)).copied().unwrap_or(count);
                (posting >> COUNT_BITS, if count == MANY { many() } else { count })
            })
        })
    }
}

/// Takes the next posting: its term, and how often that comes.
fn take_posting(packed: &mut &[u8]) -> Option<(TermId, u32)> {
    let head = take(packed)?;
    let count = if head & 1 == 0 { 1 } else { take(packed)? as u32 + 2 };
    Some(((head >> 1) as TermId, count))
}
