//! The files of the documents of a segment, and the documents of single files. A segment changes only by removals, so its files are
//! listed once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sidenote_base::error::Result;
use sidenote_sets::file_set::{FileId, FileSet};
use tantivy::columnar::ColumnValues;
use tantivy::index::SegmentId;
use tantivy::{DocId, Searcher, SegmentReader};

use super::failed;

/// The file of each document of a segment.
pub(super) type FileColumn = Arc<dyn ColumnValues<u64>>;

/// Opens the files of the documents of a segment.
///
/// # Errors
/// Returns `Corrupt` or `Io` if they cannot be read.
pub(super) fn file_column(segment: &SegmentReader) -> Result<FileColumn> {
    Ok(segment.fast_fields().u64("file").map_err(failed("read"))?.first_or_default_col(0))
}

/// The files of the documents of each segment of one snapshot, opened on first use.
pub(super) struct FileColumns(Vec<OnceLock<FileColumn>>);

impl FileColumns {
    /// Creates those of a snapshot. None is opened yet.
    pub(super) fn new(searcher: &Searcher) -> Self {
        Self(searcher.segment_readers().iter().map(|_| OnceLock::new()).collect())
    }

    /// Returns those of a segment, which is `reader` and has the index `at`.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if they cannot be read.
    pub(super) fn of(&self, at: usize, reader: &SegmentReader) -> Result<FileColumn> {
        let place = self.0.get(at);
        if let Some(opened) = place.and_then(OnceLock::get) {
            return Ok(Arc::clone(opened));
        }
        let opened = file_column(reader)?;
        // Another thread may have opened the same.
        Ok(place.map_or(Arc::clone(&opened), |place| Arc::clone(place.get_or_init(|| opened))))
    }
}

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
        let column = file_column(segment)?;
        let file_of = |doc| (column.get_val(doc) as FileId, doc);
        let mut listed: FileDocuments = (0..segment.max_doc()).map(file_of).collect();
        // In a load, the order is almost that of files.
        listed.sort();
        let listed = Arc::new(listed);
        cached().insert(segment.segment_id(), Arc::clone(&listed));
        Ok(listed)
    }
}
