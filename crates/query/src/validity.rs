//! What is valid at a time: the filter of a request, and why the notes of a reply are not valid.

use std::collections::HashMap;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_catalog::{FileId, Filter};
use sidenote_index::validity::ValidityTable;
use sidenote_memory::validity::{Invalidity, as_of};
use sidenote_open_vault::Core;
use sidenote_search::SearchHit;
use sidenote_search::validity_order::below_replacements;

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

/// Orders items so that each superseded one is directly below the newest note that supersedes it, and leaves out those
/// whose newest note is not among the items. An item that no note supersedes is directly below the notes that update
/// it. `file` returns the file of an item.
pub fn with_replacements(
    order: Vec<usize>,
    count: usize,
    file: impl Fn(usize) -> Option<FileId>,
    table: &ValidityTable,
    updates: &HashMap<FileId, Vec<FileId>>,
    now: Timestamp,
) -> Vec<usize> {
    let place_of = |wanted: FileId| (0..count).find(|&other| file(other) == Some(wanted));
    let mut placed: Vec<usize> = Vec::with_capacity(order.len());
    for at in order {
        let superseding = file(at).and_then(|file| table.newest_replacement(file, now));
        let above: Vec<usize> = match superseding {
            Some(newest) => match place_of(newest) {
                Some(above) => vec![above],
                None => continue,
            },
            None => {
                let newer = file(at).and_then(|file| updates.get(&file)).into_iter().flatten();
                newer.filter_map(|file| place_of(*file)).collect()
            }
        };
        for next in above.into_iter().chain([at]) {
            if !placed.contains(&next) {
                placed.push(next);
            }
        }
    }
    placed
}

/// Moves each item directly before the first older one that says nearly the same. `file` returns the file of an item, and
/// `updated_by` the newest such note.
pub fn newer_before_older<T>(
    items: &mut [T],
    file: impl Fn(&T) -> Option<FileId>,
    updated_by: impl Fn(&T) -> Option<FileId>,
) {
    for at in 0..items.len() {
        let newest = items.get(at).and_then(&updated_by);
        let place = newest.and_then(|newest| items.iter().position(|item| file(item) == Some(newest)));
        // What stands above already makes an empty range.
        let range = place.filter(|from| *from > at).and_then(|from| items.get_mut(at..=from));
        if let Some(range) = range {
            range.rotate_right(1);
        }
    }
}

/// Puts hits below the notes that supersede them again, after they were reranked.
///
/// # Errors
/// `Corrupt` if the index cannot be read.
pub(super) fn hits_below_replacements(
    core: &Core,
    hits: Vec<SearchHit>,
    now: Option<Timestamp>,
) -> Result<Vec<SearchHit>> {
    // What was valid at another time is not superseded.
    let Some(now) = now else { return Ok(hits) };
    let table = core.index.validity(&*core.index.snapshot()?)?;
    Ok(below_replacements(
        hits,
        &table,
        now,
        |hit| hit.row.id,
        |_| None,
        |hit| (&mut hit.score, &mut hit.components),
    ))
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
