//! Document counts, field lengths and document frequencies of the live notes. tantivy's own statistics include replaced
//! and removed notes until their segments are merged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sidenote_base::error::Result;
use tantivy::index::SegmentId;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentReader};

use super::{Bm25Snapshot, DocSet, FieldTuning, Fields, failed};

/// The length of a passage, in terms.
pub(super) const PASSAGE_TERMS: u32 = 150;
/// The shares of notes longer than a passage between which short notes lose their least length. Among messages and long
/// answers, a short text that has the words is about them.
const LONG_SHARES: (f32, f32) = (0.05, 0.25);

/// The sums of the lengths of some notes.
#[derive(Debug, Clone, Copy, Default)]
struct LengthSums {
    /// The sum of lengths of each scored field, in the order of [`Fields::scored`].
    fields: [u64; 5],
    /// The number of notes whose body is longer than a passage.
    long: u64,
}

/// The lengths of the live notes.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldLengths {
    /// The mean length of each scored field.
    pub(super) means: HashMap<Field, f32>,
    /// The share of the notes whose body is longer than a passage, 0 to 1.
    long_share: f32,
}

impl FieldLengths {
    /// Returns the least length of a field that is normalised in this vault. The more notes are longer than a passage, the
    /// smaller it is.
    pub(super) fn min_length(&self, tuning: FieldTuning) -> f32 {
        let (few, many) = LONG_SHARES;
        tuning.min_length * ((many - self.long_share) / (many - few)).clamp(0.0, 1.0)
    }
}

/// A cache of the length sums of each segment. A segment changes only by deletions, so the key is its id and the stamp
/// of its last deletion.
#[derive(Debug, Default)]
pub(super) struct LengthCache {
    sums: Mutex<HashMap<(SegmentId, Option<u64>), LengthSums>>,
}

impl LengthCache {
    /// Returns the lengths of the live notes.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the field norms of a segment cannot be read.
    pub(super) fn lengths(&self, searcher: &Searcher, fields: Fields) -> Result<FieldLengths> {
        let mut cached = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = HashMap::with_capacity(searcher.segment_readers().len());
        let mut all = LengthSums::default();
        for segment in searcher.segment_readers() {
            let state = (segment.segment_id(), segment.delete_opstamp());
            let sums = cached.get(&state).map_or_else(|| length_sums(segment, fields), |sums| Ok(*sums))?;
            all.fields.iter_mut().zip(sums.fields).for_each(|(all, sum)| *all += sum);
            all.long += sums.long;
            current.insert(state, sums);
        }
        *cached = current;
        let documents = searcher.num_docs().max(1) as f32;
        let means = fields.scored().into_iter().zip(all.fields);
        let means = means.map(|(field, sum)| (field, (sum as f32 / documents).max(1.0))).collect();
        Ok(FieldLengths { means, long_share: all.long as f32 / documents })
    }
}

/// Sums up the field lengths of the live notes of a segment, each rounded as field norms are.
fn length_sums(segment: &SegmentReader, fields: Fields) -> Result<LengthSums> {
    let mut sums = LengthSums::default();
    for (sum, field) in sums.fields.iter_mut().zip(fields.scored()) {
        for part in fields.scored_together(field) {
            let norms = segment.fieldnorms_readers().get_field(part);
            if let Some(norms) = norms.map_err(|error| failed("read")(error))? {
                *sum += segment.doc_ids_alive().map(|doc| u64::from(norms.fieldnorm(doc))).sum::<u64>();
                if part == fields.words {
                    let long = segment.doc_ids_alive().filter(|&doc| norms.fieldnorm(doc) > PASSAGE_TERMS);
                    sums.long = long.count() as u64;
                }
            }
        }
    }
    Ok(sums)
}

/// Terms of one segment, with the field that contains each.
pub(super) type SegmentTerms = Vec<(Field, TermInfo)>;

/// Counts the live notes of a segment that contain any of these terms.
pub(super) fn count_documents(segment: &SegmentReader, terms: &[(Field, TermInfo)]) -> Result<u64> {
    if let ([] | [_], false) = (terms, segment.has_deletes()) {
        return Ok(terms.iter().map(|(_, info)| u64::from(info.doc_freq)).sum());
    }
    let mut docs = DocSet::new(segment.max_doc());
    for (field, info) in terms {
        let inverted = segment.inverted_index(*field).map_err(failed("read"))?;
        docs.add(&inverted, info)?;
    }
    if !segment.has_deletes() {
        return Ok(docs.len());
    }
    Ok(docs.iter().filter(|&doc| doc < segment.max_doc() && !segment.is_deleted(doc)).count() as u64)
}

impl Bm25Snapshot {
    /// Counts the notes that contain exactly this term in a field.
    pub(super) fn documents_with(&self, field: Field, term: &str) -> Result<u64> {
        Ok(self.expand_exact(field, term)?.documents)
    }
}
