//! Puts the notes first whose title, alias or file name is the query.

use sidenote_base::error::Result;
use sidenote_catalog::FileId;
use sidenote_index::Index;
use sidenote_sets::file_set::FileSet;

use crate::Components;
use crate::fuse::FusedHit;
use crate::query::Query;

/// The score that is added to a note whose name is the query. No fusion method gives as much for anything else.
const NAME_SCORE: f32 = 1.5;
/// The maximum length in bytes of a query that is compared with names.
const MAX_NAME_BYTES: usize = 255;

/// Lists the notes whose title, alias or file name is the query.
pub(super) fn named_by(index: &Index, query: &Query, allowed: Option<&FileSet>) -> Result<Vec<FileId>> {
    let name = query.text.trim();
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Ok(Vec::new());
    }
    let named = index.catalog().names().with_title_or_name(name)?;
    Ok(named.into_iter().filter(|&file| allowed.is_none_or(|files| files.contains(file))).collect())
}

/// Puts the notes that the query names first, including notes that are in neither list.
pub(super) fn put_name_matches_first(named: Vec<FileId>, fused: &mut Vec<FusedHit>) {
    if named.is_empty() {
        return;
    }
    let (mut first, rest): (Vec<FusedHit>, Vec<FusedHit>) =
        fused.drain(..).partition(|hit| named.contains(&hit.file));
    for file in named {
        if first.iter().all(|hit| hit.file != file) {
            first.push(FusedHit { file, score: 0.0, components: Components::default() });
        }
    }
    for hit in &mut first {
        hit.components.from_name = Some(NAME_SCORE);
        hit.score = hit.components.total();
    }
    fused.extend(first.into_iter().chain(rest));
}
