//! The lists of a search: notes by words, and notes by meaning.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_bm25::{Bm25Query, Ranking, Tuning};
use sidenote_catalog::FileId;
use sidenote_index::{Index, Snapshot, passages_of};
use sidenote_sets::file_set::FileSet;

use crate::fuse::Ranked;
use crate::query::Query;
use crate::tie_order::best_first;
use crate::{QueryVector, out_of_vocabulary};

/// The maximum number of files for which an approximate search filters by passage; above it, all passages are
/// searched, and those of other files are skipped.
const MAX_FILTER_FILES: usize = 300;
/// The nearest passages whose files are looked up at once.
const LOOKED_UP_AT_ONCE: usize = 64;
/// The maximum number of nearest passages that an approximate search examines.
const MAX_NEIGHBOURS: usize = 400;

/// Ranks notes by words. With `is_alone`, the scores of other notes are not needed.
pub(super) fn text_list<'s>(
    snapshot: &'s Snapshot,
    index: &Index,
    query: &Query,
    allowed: Option<&FileSet>,
    limit: usize,
    is_alone: bool,
) -> Result<Ranking<'s>> {
    let mut adapted = Cow::Borrowed(query);
    if !snapshot.bm25.languages()?.is_english() {
        adapted.to_mut().in_languages_of(&snapshot.bm25)?;
    }
    let query = &*adapted;
    // A note that matches a condition contains the words as they were typed.
    let replaced = if query.condition.is_some() {
        None
    } else {
        out_of_vocabulary::replace_unknown(query, &snapshot.bm25)?
    };
    let words = Bm25Query { words: replaced.as_deref().unwrap_or(&query.words), allowed, limit };
    let tuning = Tuning::of(query.language);
    let mut ranking = match is_alone {
        true => Ranking::of_best(snapshot.bm25.search(&words, &tuning)?),
        false => snapshot.bm25.rank(&words, &tuning)?,
    };
    best_first(&index.catalog(), &mut ranking.hits, |hit| (hit.score, hit.file))?;
    ranking.hits.truncate(limit);
    Ok(ranking)
}

/// The result of the vector search.
#[derive(Default)]
pub(super) struct VectorHits {
    /// The notes, ranked by their best passage.
    pub(super) list: Vec<Ranked>,
    /// The index of that passage in its note.
    pub(super) passages: HashMap<FileId, usize>,
    /// The vector of the query, or `None` if only words rank.
    pub(super) vector: QueryVector,
}

/// Finds the nearest passages, and ranks notes by their best passage. If `is_approximate` is set, notes far from
/// the query in a large set may be missing; they get no score from vectors.
pub(super) fn vector_list(
    snapshot: &Snapshot,
    index: &Index,
    vector: &[f32],
    allowed: Option<&FileSet>,
    limit: usize,
    is_approximate: bool,
) -> Result<(Vec<Ranked>, HashMap<FileId, usize>)> {
    let keys: Option<HashSet<i64>> = match allowed {
        None => None,
        // Nearly all passages are allowed; the others are skipped below.
        Some(files) if files.is_all_but() || is_approximate && files.len() > MAX_FILTER_FILES => None,
        Some(files) => Some(passages_of(&index.catalog(), files)?),
    };
    let mut count = limit.saturating_mul(2);
    loop {
        let near = snapshot.vectors.search(vector, count, keys.as_ref())?;
        let all = near.len() < count;
        let catalog = index.catalog();
        let mut list: Vec<Ranked> = Vec::new();
        let mut best: HashMap<FileId, usize> = HashMap::new();
        for part in near.chunks(LOOKED_UP_AT_ONCE) {
            let keys: Vec<i64> = part.iter().map(|passage| passage.key).collect();
            let mut places = catalog.passages().files_containing(&keys)?.into_iter().peekable();
            for passage in part {
                if list.len() >= limit {
                    break;
                }
                while let Some((_, file, ord)) = places.next_if(|(key, ..)| *key == passage.key) {
                    if best.contains_key(&file) || allowed.is_some_and(|files| !files.contains(file)) {
                        continue;
                    }
                    best.insert(file, ord);
                    list.push(Ranked { file, score: passage.similarity });
                }
            }
            if list.len() >= limit {
                break;
            }
        }
        // A note has several passages, so fewer notes than requested are enough.
        if all || list.len() * 2 >= limit || is_approximate && count >= MAX_NEIGHBOURS {
            best_first(&catalog, &mut list, |hit| (hit.score, hit.file))?;
            return Ok((list, best));
        }
        // Many passages belong to few notes, or to texts that no note contains any more.
        count = count.saturating_mul(4);
    }
}
