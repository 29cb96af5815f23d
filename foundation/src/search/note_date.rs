//! The date of a note: the one that it states itself, or else the time of its file.

use jiff::civil::Date;

use crate::clock::Timestamp;
use crate::index::catalog::FileRow;
use crate::search::sequence::date_in_path;
use crate::text::path::NotePath;

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
        if row.created != row.written {
            return Self { at: row.created, is_stated: true };
        }
        match Self::in_name(&row.path) {
            Some(at) => Self { at, is_stated: true },
            None => Self { at: row.written, is_stated: false },
        }
    }

    /// Returns the start of the day that the name of a file tells.
    pub fn in_name(path: &NotePath) -> Option<Timestamp> {
        // Most names have too few digits for a date.
        let digits = path.name().bytes().filter(u8::is_ascii_digit).count();
        if digits < DATE_DIGITS { None } else { date_in_path(path.as_str()).and_then(start_of) }
    }
}

/// The number of digits of a date.
const DATE_DIGITS: usize = 8;

/// Returns the start of a day.
pub fn start_of(day: Date) -> Option<Timestamp> {
    Timestamp::parse(&day.to_string())
}
