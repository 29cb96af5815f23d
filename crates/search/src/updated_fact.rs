//! Updated facts: of two notes near the top that say nearly the same about the same subject, the newer one comes directly
//! before the older one (docs/dev/ranking.md, Updated facts).

use std::collections::{HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_bm25::{Tuning, Word};
use sidenote_catalog::{CatalogReader, FileId, FileRow};
use sidenote_index::{Index, Snapshot};
use sidenote_language::english::english_rank;
use sidenote_sets::file_set::FileSet;

use crate::fuse::FusedHit;
use crate::note_date::NoteDate;
use crate::query::Query;
use crate::validity_order::{TimeReason, level};

/// The number of the best notes that are compared with each other.
const BEST: usize = 10;
/// The least similarity of the best passages of two notes that say nearly the same.
const MIN_SIMILARITY: f32 = 0.55;
/// The least distance of their similarity from the one of two passages by chance, as a share of the distance between
/// the latter and 1. It decides with models whose unrelated texts have a cosine of .5 or .7, and in vaults about one
/// topic.
const MIN_EXCESS: f32 = 0.5;
/// The least part of the score of the older note that the newer one has.
const MIN_SCORE: f32 = 0.6;
/// The least share of the query's words in the older note that the newer one holds as well, by the weight of the words.
const MIN_WORDS: f32 = 0.6;
/// The logarithm of the rank among English words from which on words have a weight. The 400 commonest say nothing about
/// the subject.
const COMMON_LOG_RANK: f32 = 6.0;
/// The weight of the commonest words, which decide where a query has no others.
const LEAST_WEIGHT: f32 = 0.1;
/// The rank from which on a word is so rare that it names the subject.
const RARE_RANK: usize = 5_000;
/// The rank of a word that is not among the commonest 22,000.
const UNKNOWN_RANK: usize = 25_000;
/// The most bytes of a note that states one fact, without its frontmatter. Longer notes say several things, of which some
/// still hold.
const MAX_BYTES: u64 = 150;

/// A note near the top.
struct Statement {
    file: FileId,
    date: NoteDate,
    score: f32,
    is_named: bool,
    /// The key of the passage nearest to the query.
    passage: i64,
}

impl Statement {
    /// Returns whether this note can be an update of an older one, by dates and scores.
    fn may_update(&self, older: &Self) -> bool {
        self.date.is_after(&older.date)
            && self.score >= MIN_SCORE * older.score
            && (self.is_named || !older.is_named)
    }
}

/// Moves each note near the top directly before the first older one that says nearly the same, and returns the newest such
/// note of each older one. `fused` is sorted, and `passages` has the nearest passage of each note.
///
/// # Errors
/// `Corrupt` or `Io` if the index cannot be read.
pub(super) fn newer_first(
    index: &Index,
    snapshot: &Snapshot,
    query: &Query,
    passages: &HashMap<FileId, usize>,
    fused: &mut [FusedHit],
) -> Result<HashMap<FileId, FileId>> {
    let top = statements(index, passages, fused.get(..BEST.min(fused.len())).unwrap_or_default())?;
    let mut similar: HashSet<(FileId, FileId)> = HashSet::new();
    let by_chance = index.mean_vector(snapshot)?.similarity_of_pairs;
    let least = MIN_SIMILARITY.max(by_chance + MIN_EXCESS * (1.0 - by_chance));
    for (at, older) in top.iter().enumerate() {
        let newer = top.get(at + 1..).unwrap_or_default().iter().filter(|newer| newer.may_update(older));
        let newer: Vec<&Statement> = newer.collect();
        let keys: Vec<i64> = newer.iter().map(|newer| newer.passage).collect();
        let vector = if keys.is_empty() { None } else { snapshot.vectors.mean(&[older.passage])? };
        let Some(vector) = vector else { continue };
        let near = snapshot.vectors.compare(&vector, &keys)?;
        let near: HashSet<i64> =
            near.into_iter().filter(|near| near.similarity >= least).map(|near| near.key).collect();
        let newer = newer.into_iter().filter(|newer| near.contains(&newer.passage));
        similar.extend(newer.map(|newer| (older.file, newer.file)));
    }
    if similar.is_empty() {
        return Ok(HashMap::new());
    }
    let subject = Subject::of(snapshot, query, &top)?;
    similar.retain(|(older, newer)| subject.is_shared(*older, *newer));
    let dates: HashMap<FileId, i64> = top.iter().map(|note| (note.file, note.date.at.millis())).collect();
    let mut moved = false;
    for at in 0..BEST.min(fused.len()) {
        let Some(older) = fused.get(at).map(|hit| hit.file) else { break };
        let below = fused.iter().enumerate().take(BEST).skip(at + 1);
        let updates = below.filter(|(_, hit)| similar.contains(&(older, hit.file)));
        let newest = updates.max_by_key(|(_, hit)| dates.get(&hit.file));
        if let Some((from, _)) = newest
            && let Some(range) = fused.get_mut(at..=from)
        {
            range.rotate_right(1);
            if let [newer, older, ..] = range {
                newer.components.time = Some(TimeReason::Newer);
                older.components.time = older.components.time.or(Some(TimeReason::Older));
            }
            moved = true;
        }
    }
    if moved {
        level(fused, |hit| (&mut hit.score, &mut hit.components));
    }
    // The file decides between notes of the same date.
    let mut pairs: Vec<(FileId, FileId)> = similar.into_iter().collect();
    pairs.sort_by_key(|(_, newer)| (dates.get(newer), *newer));
    Ok(pairs.into_iter().collect())
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

fn statements(index: &Index, passages: &HashMap<FileId, usize>, top: &[FusedHit]) -> Result<Vec<Statement>> {
    let catalog = index.catalog();
    let mut found = Vec::with_capacity(top.len());
    for hit in top {
        let Some(&place) = passages.get(&hit.file) else { continue };
        let Some(row) = catalog.rows(&[hit.file])?.pop() else { continue };
        if body_size(&catalog, &row)? > MAX_BYTES {
            continue;
        }
        let Some(&passage) = catalog.passages().of(hit.file)?.get(place) else { continue };
        let is_named = hit.components.from_name.is_some();
        found.push(Statement {
            file: hit.file,
            date: NoteDate::of(&row),
            score: hit.score,
            is_named,
            passage,
        });
    }
    Ok(found)
}

/// Estimates the size of a note without its frontmatter, in bytes.
fn body_size(catalog: &CatalogReader, row: &FileRow) -> Result<u64> {
    if row.size <= MAX_BYTES {
        return Ok(row.size);
    }
    let properties = catalog.properties().of(&[row.id])?;
    let lines = properties.values().flatten().map(|(name, value)| name.len() + value.to_string().len() + 3);
    Ok(row.size.saturating_sub(lines.sum::<usize>() as u64))
}

/// The words of a query that the notes near the top hold.
struct Subject {
    /// For each word its weight, whether it must be in both notes, and the notes that hold it.
    words: Vec<(f32, bool, HashSet<FileId>)>,
}

impl Subject {
    fn of(snapshot: &Snapshot, query: &Query, top: &[Statement]) -> Result<Self> {
        let files: FileSet = top.iter().map(|note| note.file).collect();
        let names = names_in(query.text_to_embed());
        let mut words = Vec::new();
        for word in query.words.iter().filter(|word| word.single) {
            let one = std::slice::from_ref(word);
            let found = snapshot.bm25.scores_of(one, &files, &Tuning::default())?;
            let is_name = is_distinctive(word) || names.contains(&word.exact);
            words.push((weight(word), is_name, found.into_keys().collect()));
        }
        Ok(Self { words })
    }

    /// Returns whether the newer note holds the words of the query that tell what the older one is about.
    fn is_shared(&self, older: FileId, newer: FileId) -> bool {
        let (mut all, mut both) = (0.0, 0.0);
        for (weight, is_name, files) in self.words.iter().filter(|(_, _, files)| files.contains(&older)) {
            let is_held = files.contains(&newer);
            if *is_name && !is_held {
                return false;
            }
            all += weight;
            both += if is_held { *weight } else { 0.0 };
        }
        both >= MIN_WORDS * all
    }
}

fn weight(word: &Word) -> f32 {
    let rank = english_rank(&word.exact).unwrap_or(UNKNOWN_RANK);
    ((rank as f32 + 2.0).ln() - COMMON_LOG_RANK).max(LEAST_WEIGHT)
}

/// Returns whether a word names one thing: a number, or a word that English texts seldom have.
fn is_distinctive(word: &Word) -> bool {
    let is_rare = |word: &str| english_rank(word).is_none_or(|rank| rank >= RARE_RANK);
    word.exact.contains(|c: char| c.is_ascii_digit()) || is_rare(&word.exact) && is_rare(&word.stem)
}

/// Returns the words with a capital letter amid a sentence, in lower case.
fn names_in(text: &str) -> HashSet<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_amid = |at: usize| {
        at > 0 && words.get(at - 1).is_some_and(|before| !before.ends_with(['.', '!', '?', ':', '"']))
    };
    let names =
        words.iter().enumerate().filter(|(at, word)| is_amid(*at) && word.starts_with(char::is_uppercase));
    let bare =
        |word: &str| word.trim_end_matches("'s").trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    names.map(|(_, word)| bare(word)).collect()
}
