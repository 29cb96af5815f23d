//! Owns what scores count: the documents, lengths and frequencies of the notes that are there now. tantivy's own numbers
//! still hold replaced and removed notes until their segments are merged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tantivy::index::SegmentId;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentReader};

use super::{Bm25Snapshot, DocSet, Fields, as_it_stands, failed};
use crate::error::Result;

/// The sums of lengths of each field that ranks, in the order of [`Fields::ranking`].
type Sums = [u64; 5];

/// The lengths of the segments met so far: a segment changes only by what is deleted in it.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    known: Mutex<HashMap<(SegmentId, Option<u64>), Sums>>,
}

impl Lengths {
    /// Gives the mean length of each field that ranks, by field.
    pub(super) fn means(&self, searcher: &Searcher, fields: Fields) -> Result<HashMap<Field, f32>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashMap::with_capacity(searcher.segment_readers().len());
        let mut all = Sums::default();
        for segment in searcher.segment_readers() {
            let state = (segment.segment_id(), segment.delete_opstamp());
            let sums = known.get(&state).map_or_else(|| sums(segment, fields), |sums| Ok(*sums))?;
            all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
            now.insert(state, sums);
        }
        *known = now;
        let documents = searcher.num_docs().max(1) as f32;
        let means = fields.ranking().into_iter().zip(all);
        Ok(means.map(|(field, sum)| (field, (sum as f32 / documents).max(1.0))).collect())
    }
}

/// Adds up the lengths of the notes of a segment, rounded as they are where they are scored.
fn sums(segment: &SegmentReader, fields: Fields) -> Result<Sums> {
    let mut sums = Sums::default();
    for (sum, field) in sums.iter_mut().zip(fields.ranking()) {
        for part in fields.as_one(field) {
            let norms = segment.fieldnorms_readers().get_field(part);
            if let Some(norms) = norms.map_err(|error| failed("read")(error))? {
                *sum += segment.doc_ids_alive().map(|doc| u64::from(norms.fieldnorm(doc))).sum::<u64>();
            }
        }
    }
    Ok(sums)
}

/// Counts the notes of a segment that hold any of these terms.
pub(super) fn holding(segment: &SegmentReader, terms: &[(Field, TermInfo)]) -> Result<u64> {
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
    /// Counts the notes that hold a term as it stands.
    pub(super) fn documents_with(&self, field: Field, term: &str) -> Result<u64> {
        let segments = self.searcher.segment_readers().iter();
        segments.map(|segment| holding(segment, &as_it_stands(segment, field, term)?)).sum()
    }
}
