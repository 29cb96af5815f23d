//! Notes that follow each other by the numbers or dates in their names. A short note is read together with the
//! notes before and after it.

use std::collections::HashMap;

use sidenote_base::error::Result;
use sidenote_catalog::{CatalogReader, FileId, FileKind};
use sidenote_markdown::name_date::{YEARS, date_in};
use sidenote_sets::file_set::FileSet;

use crate::MIN_RESCORED;
use crate::fuse::FusedHit;

/// The number of the best notes whose adjacent notes are looked at.
const BEST: usize = 10;
/// The share of the score of a note that the notes before and after it get (docs/dev/ranking.md, Sequences).
const WEIGHT: f32 = 0.1;
/// The size of a note in bytes up to which it gets the whole share. It is about that of a passage; a longer note stands
/// more by itself.
const SHORT_BYTES: f32 = 1_000.0;
/// The most digits of a number. Longer ones are times and ids.
const MAX_DIGITS: usize = 9;

/// A note before or after one of the best notes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AdjacentNote {
    pub(super) file: FileId,
    /// The score that it gets for that.
    pub(super) score: f32,
}

/// Finds the notes before and after the best ones, in the order of their ids. `fused` is sorted. The best notes are
/// taken from the beginnings of the two lists, which are the same for every limit.
///
/// # Errors
/// `Corrupt` if the catalog cannot be read.
pub(super) fn adjacent_to_best(
    catalog: &CatalogReader,
    fused: &[FusedHit],
    allowed: Option<&FileSet>,
) -> Result<Vec<AdjacentNote>> {
    let is_near_top = |rank: Option<usize>| rank.is_some_and(|rank| rank <= MIN_RESCORED);
    let best = fused
        .iter()
        .filter(|hit| is_near_top(hit.components.bm25_rank) || is_near_top(hit.components.vector_rank));
    // Of notes with equal scores, all or none count.
    let last = best.clone().nth(BEST - 1).map_or(0.0, |hit| hit.score);
    let best: Vec<&FusedHit> = best.take_while(|hit| hit.score >= last).take(2 * BEST).collect();
    let scores: HashMap<FileId, f32> = best.iter().map(|hit| (hit.file, hit.score)).collect();
    let mut adjacent: HashMap<FileId, f32> = HashMap::new();
    for row in catalog.rows(&best.iter().map(|hit| hit.file).collect::<Vec<_>>())? {
        for path in adjacent_paths(row.path.as_str()) {
            let beside = catalog.row_at(&path)?.filter(|row| row.kind == FileKind::Note && !row.excluded);
            let Some(beside) = beside.filter(|row| allowed.is_none_or(|files| files.contains(row.id))) else {
                continue;
            };
            let score = scores.get(&row.id).copied().unwrap_or_default();
            let gained = WEIGHT * score * (SHORT_BYTES / beside.size as f32).min(1.0);
            let best = adjacent.entry(beside.id).or_default();
            *best = best.max(gained);
        }
    }
    let mut adjacent: Vec<AdjacentNote> =
        adjacent.into_iter().map(|(file, score)| AdjacentNote { file, score }).collect();
    adjacent.sort_by_key(|note| note.file);
    Ok(adjacent)
}

/// Adds to the score of each note what it gets for the notes before and after it, and sorts the notes again.
pub(super) fn add_adjacent_scores(fused: &mut [FusedHit], adjacent: &[AdjacentNote]) {
    for hit in fused.iter_mut() {
        if let Ok(at) = adjacent.binary_search_by_key(&hit.file, |note| note.file) {
            hit.components.from_adjacent = adjacent.get(at).map(|note| note.score);
            hit.score = hit.components.total();
        }
    }
    fused.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
}

/// Returns the paths that a note before or after this one can have: the same path with the next lower or higher date, or
/// last number, in its name.
pub fn adjacent_paths(path: &str) -> Vec<String> {
    let name_start = path.rfind('/').map_or(0, |slash| slash + 1);
    let name_end = path.rfind('.').filter(|&dot| dot > name_start).unwrap_or(path.len());
    let name = path.get(name_start..name_end).unwrap_or_default();
    let with = |start: usize, end: usize, text: &str| {
        let (start, end) = (name_start + start, name_start + end);
        Some([path.get(..start)?, text, path.get(end..)?].concat())
    };
    if let Some((start, format, date)) = date_in(name) {
        let days = [date.yesterday(), date.tomorrow()].into_iter().flatten();
        let days = days.map(|day| day.strftime(format).to_string());
        return days.filter_map(|day| with(start, start + day.len(), &day)).collect();
    }
    let Some(last) = name.rfind(|c: char| c.is_ascii_digit()) else { return Vec::new() };
    let head = name.get(..=last).unwrap_or_default();
    let start = head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let digits = head.get(start..).unwrap_or_default();
    let Some(number) = digits.parse::<u64>().ok().filter(|_| digits.len() <= MAX_DIGITS) else {
        return Vec::new();
    };
    // The reports of two years do not continue each other.
    if YEARS.contains(&number) {
        return Vec::new();
    }
    let mut paths = Vec::new();
    for adjacent in [number.checked_sub(1), Some(number + 1)].into_iter().flatten() {
        // 9 is followed by 10, and 09 as well.
        let (plain, padded) = (adjacent.to_string(), format!("{adjacent:0width$}", width = digits.len()));
        paths.extend(with(start, last + 1, &plain));
        paths.extend((padded != plain).then(|| with(start, last + 1, &padded)).flatten());
    }
    paths
}
