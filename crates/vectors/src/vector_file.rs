//! The file of a vector log. A process that searches often holds a small one in memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use sidenote_base::platform;

use super::nearest_records::Records;
use super::{HEADER, record_size};

/// The largest part of a file that is held in memory, in bytes: the vectors of about twelve thousand notes. To compare
/// these takes half the time of reading and comparing them. In larger vaults, a process needs its memory for other
/// things.
const MAX_HELD: usize = 32 << 20;

/// The records of a vector log that were not read when it was opened.
pub(super) struct VectorFile {
    file: File,
    dimensions: usize,
    /// The number of records.
    covered: usize,
    /// Whether all records were read once. A process that searches once need not hold them.
    was_scanned: AtomicBool,
    /// The records, if they are held.
    held: OnceLock<Arc<Vec<u8>>>,
    /// Locked by the thread that reads the records to hold them.
    filling: Mutex<()>,
}

impl VectorFile {
    /// Names the first `covered` records of a file.
    pub(super) fn new(file: File, dimensions: usize, covered: usize) -> Self {
        Self {
            file,
            dimensions,
            covered,
            was_scanned: AtomicBool::new(false),
            held: OnceLock::new(),
            filling: Mutex::default(),
        }
    }

    /// Holds what an earlier state of the same log holds.
    pub(super) fn hold_as(&self, earlier: &Self) {
        let id = |file: &File| platform::file_metadata(file).ok().map(|metadata| metadata.id());
        let same_file = || Some(id(&self.file)? == id(&earlier.file)?);
        let is_same = (self.dimensions, self.covered) == (earlier.dimensions, earlier.covered)
            && same_file().unwrap_or(false);
        if let Some(held) = earlier.held.get().filter(|_| is_same) {
            self.held.get_or_init(|| Arc::clone(held));
        }
        self.was_scanned.fetch_or(earlier.was_scanned.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns all records, to be read from the first to the last. From the second call on they are held, if they are few.
    ///
    /// # Errors
    /// The error of a read that failed.
    pub(super) fn scan(&self) -> io::Result<Records<'_>> {
        let bytes = self.covered * record_size(self.dimensions);
        // Other threads read the file meanwhile.
        if self.was_scanned.swap(true, Ordering::Relaxed)
            && bytes <= MAX_HELD
            && let Ok(_filling) = self.filling.try_lock()
            && self.held.get().is_none()
        {
            let mut held = vec![0; bytes];
            platform::read_exact_at(&self.file, &mut held, HEADER as u64)?;
            self.held.get_or_init(|| Arc::new(held));
        }
        Ok(self.records())
    }

    fn records(&self) -> Records<'_> {
        Records {
            file: &self.file,
            start: HEADER,
            size: record_size(self.dimensions),
            count: self.covered,
            held: self.held.get().map(|held| held.as_slice()),
        }
    }

    /// Returns these records, which are read into `buffer` unless they are held.
    ///
    /// # Errors
    /// The error of a read that failed.
    pub(super) fn read<'t>(&'t self, records: Range<usize>, buffer: &'t mut Vec<u8>) -> io::Result<&'t [u8]> {
        self.records().read(records, buffer)
    }
}
