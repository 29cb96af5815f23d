//! The order of hits with equal scores: by path. A reply is the same each time, and an index that was updated by
//! many edits answers like one that was rebuilt.

use sidenote_base::error::Result;
use sidenote_catalog::{CatalogReader, FileId};

/// Sorts a list by score, best first, and hits with equal scores by path. Only paths of hits with equal scores are
/// looked up.
///
/// # Errors
/// `Corrupt` if the catalog cannot be read.
pub fn best_first<T>(
    catalog: &CatalogReader,
    list: &mut [T],
    key: impl Fn(&T) -> (f32, FileId),
) -> Result<()> {
    list.sort_by(|one, other| key(other).0.total_cmp(&key(one).0));
    let is_tie = |one: &T, other: &T| key(one).0.total_cmp(&key(other).0).is_eq();
    let ties = list.chunk_by(is_tie).filter(|run| run.len() > 1).flatten();
    let tied: Vec<FileId> = ties.map(|item| key(item).1).collect();
    if tied.is_empty() {
        return Ok(());
    }
    let places = catalog.paths().places(&tied)?;
    let place = |item: &T| (places.get(&key(item).1).copied(), key(item).1);
    for run in list.chunk_by_mut(is_tie) {
        run.sort_by_key(place);
    }
    Ok(())
}
