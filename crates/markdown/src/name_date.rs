//! The date in the name of a daily or dated note.

use jiff::civil::Date;
use sidenote_base::clock::Timestamp;

use crate::path::NotePath;

/// Numbers that are years.
pub const YEARS: std::ops::Range<u64> = 1900..2100;
/// The forms of dates in names, and their lengths.
const DATE_FORMATS: [(&str, usize); 2] = [("%Y-%m-%d", 10), ("%Y%m%d", 8)];
/// The number of digits of a date.
const DATE_DIGITS: usize = 8;

/// Returns the start of the day that the name of a file tells.
pub fn day_in_name(path: &NotePath) -> Option<Timestamp> {
    let name = path.name();
    // Most names have too few digits for a date.
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    if digits < DATE_DIGITS { None } else { date_in(name).and_then(|(_, _, date)| Timestamp::start_of(date)) }
}

/// Finds the last date in a name: where it begins, its form, and the day.
pub fn date_in(name: &str) -> Option<(usize, &'static str, Date)> {
    let is_digit = |at: usize| name.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    for (format, length) in DATE_FORMATS {
        for start in (0..name.len()).rev() {
            let end = start + length;
            // A part of a longer number is not a date.
            if is_digit(end) || start.checked_sub(1).is_some_and(is_digit) {
                continue;
            }
            let date = name.get(start..end).and_then(|text| Date::strptime(format, text).ok());
            if let Some(date) = date.filter(|date| YEARS.contains(&u64::try_from(date.year()).unwrap_or(0))) {
                return Some((start, format, date));
            }
        }
    }
    None
}
