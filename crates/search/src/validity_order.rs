//! The order of notes that are superseded or not valid now: a superseded note is placed below the note that replaces
//! it, and an expired one below notes that match half as well. Nothing else orders replaced notes: searches, rankings for an
//! intent and recalls all call this file.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_catalog::FileId;
use sidenote_index::validity::ValidityTable;
use sidenote_index::{Index, Snapshot};
use sidenote_sets::file_set::FileSet;

use crate::fuse::FusedHit;
use crate::tie_order::best_first;
use crate::{Components, SearchHit};

/// The part of its score that a note keeps before `valid_from` and after `valid_until`.
const INVALID_SHARE: f32 = 0.5;
/// The number of best notes among which a superseded note moves up to the one that replaces it. It does not depend on how
/// many notes are asked for.
const BEST: usize = 20;

/// Why the time changes the place of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeReason {
    /// It supersedes a note that was found, and stands above it.
    Replaces,
    /// Another note supersedes it, and stands above it.
    Superseded,
    /// It is not valid now.
    NotValid,
    /// It says nearly the same as an older note, and stands above it.
    Newer,
    /// A newer note says nearly the same, and stands above it.
    Older,
}

/// Orders a ranking by validity. `fused` is sorted. A note that supersedes one of the ranking is added if it is allowed.
///
/// # Errors
/// `Corrupt` if the index cannot be read.
pub(super) fn order(
    index: &Index,
    snapshot: &Snapshot,
    allowed: Option<&FileSet>,
    mut fused: Vec<FusedHit>,
    now: Timestamp,
) -> Result<Vec<FusedHit>> {
    let table = index.validity(snapshot)?;
    if table.is_empty() {
        return Ok(fused);
    }
    let mut are_sorted = true;
    for hit in &mut fused {
        if table.outside_period(hit.file, now) != (None, None) {
            hit.components.from_time = Some(hit.score * (INVALID_SHARE - 1.0));
            hit.components.time = Some(TimeReason::NotValid);
            hit.score = hit.components.total();
            are_sorted = false;
        }
    }
    if !are_sorted {
        best_first(&index.catalog(), &mut fused, |hit| (hit.score, hit.file))?;
    }
    let added = |file| {
        let is_allowed = allowed.is_none_or(|files| files.contains(file));
        is_allowed.then(|| FusedHit { file, score: 0.0, components: Components::default() })
    };
    Ok(below_replacements(
        fused,
        &table,
        now,
        |hit| hit.file,
        added,
        |hit| (&mut hit.score, &mut hit.components),
    ))
}

/// Orders hits by validity again, after stages that may have separated notes from those that supersede them. No note is added.
///
/// # Errors
/// `Corrupt` if the index cannot be read.
pub(super) fn order_hits(
    index: &Index,
    snapshot: &Snapshot,
    hits: Vec<SearchHit>,
    now: Timestamp,
) -> Result<Vec<SearchHit>> {
    let table = index.validity(snapshot)?;
    Ok(below_replacements(
        hits,
        &table,
        now,
        |hit| hit.row.id,
        |_| None,
        |hit| (&mut hit.score, &mut hit.components),
    ))
}

/// Orders hits as [`order_below_replacements`] does. The scores still fall from top to bottom, and each is the sum of its
/// parts.
fn below_replacements<T>(
    hits: Vec<T>,
    table: &ValidityTable,
    now: Timestamp,
    file: impl Fn(&T) -> FileId,
    added: impl Fn(FileId) -> Option<T>,
    score: impl Fn(&mut T) -> (&mut f32, &mut Components),
) -> Vec<T> {
    let mark = |hit: &mut T, reason| score(hit).1.time = Some(reason);
    let mut placed = order_below_replacements(hits, table, now, file, added, mark);
    level(&mut placed, score);
    placed
}

/// Moves each superseded hit directly below the newest one that supersedes it, which gets the better place of the two.
/// `added` returns the hit of a note that is missing, if it may be added, and `mark` notes why the time changed the
/// place of a hit.
pub fn order_below_replacements<T>(
    hits: Vec<T>,
    table: &ValidityTable,
    now: Timestamp,
    file: impl Fn(&T) -> FileId,
    added: impl Fn(FileId) -> Option<T>,
    mark: impl Fn(&mut T, TimeReason),
) -> Vec<T> {
    let chains: HashMap<FileId, Vec<FileId>> = hits
        .iter()
        .map(|hit| (file(hit), table.replacements(file(hit), now)))
        .filter(|(_, chain)| !chain.is_empty())
        .collect();
    if chains.is_empty() {
        return hits;
    }
    // The superseded notes among the best, by the newest note that supersedes them, the newest first.
    let mut followers: HashMap<FileId, Vec<FileId>> = HashMap::new();
    for hit in hits.iter().take(BEST) {
        if let Some(newest) = chains.get(&file(hit)).and_then(|chain| chain.last()) {
            followers.entry(*newest).or_default().push(file(hit));
        }
    }
    let age = |file: &FileId| chains.get(file).map_or(0, Vec::len);
    followers.values_mut().for_each(|files| files.sort_by_key(age));
    let order: Vec<FileId> = hits.iter().map(&file).collect();
    let mut left: HashMap<FileId, T> = hits.into_iter().map(|hit| (file(&hit), hit)).collect();
    let mut placed: Vec<T> = Vec::with_capacity(order.len());
    let mut done: HashSet<FileId> = HashSet::new();
    for next in order {
        // What supersedes a note comes first, the newest first.
        let chain = chains.get(&next).map_or(&[][..], Vec::as_slice);
        let newest = chain.last().copied().unwrap_or(next);
        let group = chain.iter().rev().copied().chain([next]);
        for member in group.chain(followers.remove(&newest).unwrap_or_default()) {
            let missing = || (member == newest && !done.contains(&member)).then(|| added(member)).flatten();
            if let Some(mut hit) = left.remove(&member).or_else(missing) {
                done.insert(member);
                let reason =
                    if chains.contains_key(&member) { TimeReason::Superseded } else { TimeReason::Replaces };
                let is_grouped = chains.contains_key(&member) || member != next;
                if is_grouped {
                    mark(&mut hit, reason);
                }
                placed.push(hit);
            }
        }
    }
    placed
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

/// Raises the score of each hit that stands above a better one to the score of that one.
pub(super) fn level<T>(hits: &mut [T], score: impl Fn(&mut T) -> (&mut f32, &mut Components)) {
    let mut least = f32::NEG_INFINITY;
    for hit in hits.iter_mut().rev() {
        let (score, components) = score(hit);
        let before = components.from_time.unwrap_or(0.0);
        let mut raise = before + (least - *score);
        while *score < least {
            components.from_time = Some(raise);
            *score = components.total();
            raise += (least.abs() * f32::EPSILON).max(f32::MIN_POSITIVE);
        }
        least = *score;
    }
}
