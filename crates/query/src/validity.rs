//! What is valid at a time: the filter of a request, and why the notes of a reply are not valid.

use std::collections::HashMap;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_catalog::{FileId, Filter};
use sidenote_memory::validity::{Invalidity, as_of};
use sidenote_open_vault::Core;

use crate::Searches;

/// Restricts a filter to the notes that were valid at an instant, if one is given.
///
/// # Errors
/// `Corrupt` if the index cannot be read.
pub fn valid_as_of(core: &Core, filter: Filter, as_of: Option<Timestamp>) -> Result<Filter> {
    let Some(at) = as_of else { return Ok(filter) };
    let table = core.index.validity(&*core.index.snapshot()?)?;
    Ok(Filter { valid: Some(table.valid_at(at)), ..filter })
}

/// Returns why files are not valid at `now`. Files that are valid have no entry.
///
/// # Errors
/// `Corrupt` if the index cannot be read.
pub fn invalidities(
    core: &Core,
    files: impl IntoIterator<Item = FileId>,
    now: Timestamp,
) -> Result<HashMap<FileId, Invalidity>> {
    let table = core.index.validity(&*core.index.snapshot()?)?;
    let mut found = HashMap::new();
    if table.is_empty() {
        return Ok(found);
    }
    let catalog = core.index.catalog();
    for file in files {
        let newest = table.newest_replacement(file, now);
        let (not_valid_before, not_valid_since) = table.outside_period(file, now);
        let newest =
            newest.map(|newest| catalog.rows(&[newest])).transpose()?.and_then(|mut rows| rows.pop());
        let superseded_by = newest.map(|row| row.path.as_str().to_owned());
        let invalidity = Invalidity { superseded_by, not_valid_before, not_valid_since };
        if invalidity != Invalidity::default() {
            found.insert(file, invalidity);
        }
    }
    Ok(found)
}

impl Searches<'_> {
    /// Parses the instant of `--as-of`: a time, or a date, which means the end of its day.
    ///
    /// # Errors
    /// `Invalid` if the text is neither a date nor a distance from `now`.
    pub fn as_of(flag: &str, text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>> {
        let instant = |text: &str| Ok(as_of(text, Timestamp::parse_bound_at(flag, text, now)?));
        text.map(instant).transpose()
    }
}
