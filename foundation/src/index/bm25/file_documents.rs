//! The documents of single files in each segment. A segment changes only by removals, so its files are listed once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::index::SegmentId;
use tantivy::{DocId, SegmentReader};

use super::failed;
use crate::error::Result;
use crate::index::file_set::{FileId, FileSet};

/// The files of the segments that were asked for.
#[derive(Debug, Default)]
pub(super) struct FileDocumentCache(Mutex<HashMap<SegmentId, Arc<FileDocuments>>>);

/// The files of a segment with their documents, ordered by file. A file that was replaced has several, of which one at most is
/// not removed.
type FileDocuments = Vec<(FileId, DocId)>;

impl FileDocumentCache {
    /// Returns the documents of a segment that belong to some files and are not removed, in ascending order, each with its
    /// file.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub(super) fn of_files(&self, segment: &SegmentReader, files: &FileSet) -> Result<Vec<(DocId, FileId)>> {
        let listed = self.listed(segment)?;
        let mut found = Vec::with_capacity(files.len());
        for file in files.iter() {
            let first = listed.partition_point(|(other, _)| *other < file);
            let docs = listed.iter().skip(first).take_while(|(other, _)| *other == file);
            found.extend(docs.map(|(_, doc)| (*doc, file)).filter(|(doc, _)| !segment.is_deleted(*doc)));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Forgets all segments but these.
    pub(super) fn retain_segments(&self, segments: &[SegmentReader]) {
        let is_there = |id: &SegmentId| segments.iter().any(|segment| segment.segment_id() == *id);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| is_there(id));
    }

    fn listed(&self, segment: &SegmentReader) -> Result<Arc<FileDocuments>> {
        let cached = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = cached().get(&segment.segment_id()) {
            return Ok(Arc::clone(listed));
        }
        let column = segment.fast_fields().u64("file").map_err(failed("read"))?.first_or_default_col(0);
        let file_of = |doc| (column.get_val(doc) as FileId, doc);
        let mut listed: FileDocuments = (0..segment.max_doc()).map(file_of).collect();
        // In a load, the order is almost that of files.
        listed.sort();
        let listed = Arc::new(listed);
        cached().insert(segment.segment_id(), Arc::clone(&listed));
        Ok(listed)
    }
}
