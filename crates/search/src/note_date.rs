//! The date of a note: the one that it states itself, or else the time of its file.

use sidenote_base::clock::Timestamp;
use sidenote_catalog::{CreationSource, FileRow};
use sidenote_markdown::name_date::day_in_name;

/// The date of a note, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoteDate {
    /// The time.
    pub at: Timestamp,
    /// Whether the note states it, by a property or in its name. The time of a file changes when it is copied.
    pub is_stated: bool,
}

impl NoteDate {
    /// Returns the date of a note: its time of creation if a property states it, the date in its name, or the time at
    /// which the file was last written.
    pub fn of(row: &FileRow) -> Self {
        if row.time_sources.created == CreationSource::Property {
            return Self { at: row.created, is_stated: true };
        }
        match day_in_name(&row.path) {
            Some(at) => Self { at, is_stated: true },
            None => Self { at: row.written, is_stated: false },
        }
    }

    /// Returns whether this date is surely later than another one. The times of files tell less than stated dates, so at
    /// least a day must lie between them.
    pub fn is_after(&self, older: &Self) -> bool {
        let later = self.at.millis() - older.at.millis();
        later >= if self.is_stated && older.is_stated { 1 } else { MIN_FILE_GAP_MILLIS }
    }
}

/// The least time between two notes of which one has no date but the time of its file.
const MIN_FILE_GAP_MILLIS: i64 = 86_400_000;
