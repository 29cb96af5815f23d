//! The removal of documents: one query for all files that a batch removes or replaces, which tantivy runs once in each segment.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use sidenote_sets::file_set::{FileId, FileSet};
use tantivy::query::{BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{BitSet, DocId, DocSet as _, Score, SegmentReader, TERMINATED, TantivyError, Term};

/// A lookup of a term takes as long as reading the ids of this many documents.
const DOCUMENTS_PER_LOOKUP: usize = 256;

/// What the batch that is being written removes and adds.
#[derive(Debug, Default)]
pub(super) struct BatchFiles {
    /// The files that are removed. The query of the batch has the same set.
    pub(super) removed: Option<RemovedFiles>,
    /// The files that were added.
    pub(super) added: HashSet<FileId>,
}

/// The files whose documents are removed, as a query. It finds those that are in the set when a segment is asked, which is when
/// the batch is committed. Documents that were added after the query are not removed by it.
#[derive(Debug, Clone)]
pub(super) struct RemovedFiles {
    field: Field,
    files: Arc<Mutex<FileSet>>,
}

impl RemovedFiles {
    /// Creates an empty set. `field` has the ids of files.
    pub(super) fn new(field: Field) -> Self {
        Self { field, files: Arc::default() }
    }

    pub(super) fn insert(&self, file: FileId) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(file);
    }

    /// Returns the documents of a segment that belong to these files.
    fn documents(&self, segment: &SegmentReader) -> tantivy::Result<BitSet> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = BitSet::with_max_value(segment.max_doc());
        if files.len().saturating_mul(DOCUMENTS_PER_LOOKUP) < segment.max_doc() as usize {
            let inverted = segment.inverted_index(self.field)?;
            for file in files.iter() {
                let term = Term::from_field_u64(self.field, file as u64);
                let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::Basic)? else {
                    continue;
                };
                while postings.doc() != TERMINATED {
                    found.insert(postings.doc());
                    postings.advance();
                }
            }
        } else {
            let column = segment.fast_fields().u64("file")?.first_or_default_col(0);
            for doc in 0..segment.max_doc() {
                if files.contains(column.get_val(doc) as FileId) {
                    found.insert(doc);
                }
            }
        }
        Ok(found)
    }
}

impl Query for RemovedFiles {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for RemovedFiles {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(self.documents(segment)?), boost)))
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        if self.documents(segment)?.contains(doc) {
            return Ok(Explanation::new("the file is removed", 1.0));
        }
        Err(TantivyError::InvalidArgument(format!("document {doc} is not removed")))
    }
}
