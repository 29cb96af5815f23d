//! Search: answers a query from one snapshot. It ranks by words and by vectors, fuses both rankings, and orders equal
//! scores by path. It opens no file: callers pass in what it needs of a file.

pub mod fuse;
mod numbered_names;
pub mod query;
pub mod snippet;
pub mod candidates;
mod javascript_regex;
pub mod metadata_filter;
pub mod out_of_vocabulary;
pub mod predicate;
pub mod text_match;
pub mod tie_order;
pub mod query_parser;
mod linked_notes;
mod related_first;
pub mod relation_answer;
mod relation_question;
pub mod sequence;
pub mod typed_relations;
pub mod validity_order;
mod updated_fact;
pub mod note_date;
pub mod reader;
pub mod date_phrase;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet};
use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::parallel;
use sidenote_bm25::{Bm25Query, Ranking, Tuning};
use sidenote_catalog::{CatalogReader, FileId, FileRow, Filter};
use sidenote_index::{Index, Snapshot, passages_of};
use sidenote_markdown::path::typed_path;
use sidenote_markdown::relation::RelationRules;
use sidenote_sets::file_set::FileSet;

use crate::fuse::{Candidates, FusedHit, Fusion, NoteScores, Ranked, Similarity};
use crate::query::Query;
use crate::reader::SearchReader;
use crate::related_first::put_related_first;
use crate::relation_answer::{Evidence, RelationAnswer, RelationLookup};
use crate::tie_order::best_first;
use crate::validity_order::TimeReason;

/// The lists that a search ranks by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Words and vectors.
    #[default]
    Hybrid,
    /// Words only.
    Bm25,
    /// Vectors only.
    Vector,
}

impl Mode {
    /// Parses the name of a mode.
    ///
    /// # Errors
    /// `Invalid` if there is no mode of this name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "hybrid" => Ok(Self::Hybrid),
            "bm25" => Ok(Self::Bm25),
            "vector" => Ok(Self::Vector),
            _ => Err(Error::invalid(format!("{name:?} is not a search mode"))
                .with_hint("use hybrid, bm25 or vector")),
        }
    }
}

/// The list that found a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchType {
    /// The full text only.
    Bm25,
    /// The vectors only.
    Vector,
    /// Both lists.
    Both,
    /// Neither: the note is at the other end of a relation that the query asks for.
    Relation,
    /// Neither: the note is linked with the one that a question by relation names.
    Link,
    /// Neither: the note matches the condition, and there is nothing to rank it by.
    Exact,
    /// Neither: the note supersedes one that was found.
    Replacement,
}

/// A search request.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// The parsed query.
    pub query: Option<&'a Query>,
    /// The lists to rank by.
    pub mode: Mode,
    /// The method that merges the lists.
    pub fusion: Fusion,
    /// The maximum number of notes.
    pub limit: usize,
    /// The number of notes that each list returns; five times `limit` if not given.
    pub depth: Option<usize>,
    /// The filter that notes must match.
    pub filter: Filter,
    /// A glob that the path must match.
    pub path: Option<String>,
    /// The only files to search, in addition to the filter.
    pub among: Option<&'a FileSet>,
    /// The rules by which relations answer a question; `None` to answer by words alone.
    pub relations: Option<&'a RelationRules>,
    /// The time by which notes are valid or superseded. Without it, neither counts.
    pub now: Option<Timestamp>,
}

/// The parts of a score. The score is the sum of the fields `from_…`, added in their order here.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Components {
    /// The rank in the full-text list, from 1.
    pub bm25_rank: Option<usize>,
    /// The BM25F score; absent if the note contains no word of the query.
    pub bm25: Option<f32>,
    /// The rank in the vector list, from 1.
    pub vector_rank: Option<usize>,
    /// The similarity of the note's best passage: 0 is that of an unrelated text and 1 that of the same, on average. Absent
    /// if it has no vector, in which case the score is computed with the lowest one of the list.
    pub cosine: Option<f32>,
    /// The sum of the squares by which the similarities of the next four passages exceed what is usual in the vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<f32>,
    /// The share of the full text in the fused score.
    pub from_bm25: f32,
    /// The share of the best passage in the fused score.
    pub from_vector: f32,
    /// The share of the next passages in the fused score.
    pub from_others: f32,
    /// What is added because the note before or after it, by number or date, answers the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_adjacent: Option<f32>,
    /// The score that the reranker gave to the query and the passage, if it read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<f32>,
    /// What the reranker adds to the fused score or subtracts from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_rerank: Option<f32>,
    /// What is added because the note is at the other end of a relation that the query asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_relation: Option<f32>,
    /// What is added because the note is linked with the one that a question by relation names, in words that fit the
    /// question. It states no such relation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_link: Option<f32>,
    /// What is added because the query is the title, an alias or the file name of the note. It is more than all
    /// other parts together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_name: Option<f32>,
    /// What is added or subtracted because of the time for which the note holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_time: Option<f32>,
    /// Why the time changes the place of the note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeReason>,
}

impl Components {
    /// Returns whether the note is first because of its name or a relation, and not by rank.
    pub fn is_put_first(&self) -> bool {
        self.from_name.is_some() || self.from_relation.is_some() || self.from_link.is_some()
    }

    /// Returns the sum of the parts.
    pub fn total(&self) -> f32 {
        let ranked = self.from_bm25 + self.from_vector + self.from_others + self.from_adjacent.unwrap_or(0.0);
        let related = self.from_relation.unwrap_or(0.0) + self.from_link.unwrap_or(0.0);
        let put = related + self.from_name.unwrap_or(0.0);
        ranked + self.from_rerank.unwrap_or(0.0) + put + self.from_time.unwrap_or(0.0)
    }
}

/// A note that answers a request.
#[derive(Debug, Clone)]
pub struct SearchHit {
    /// The row of the note.
    pub row: FileRow,
    /// The fused score, which is comparable within one reply.
    pub score: f32,
    /// The list that found the note.
    pub match_type: MatchType,
    /// The index of the passage whose vector is nearest to the query.
    pub passage: Option<usize>,
    /// The parts of the score.
    pub components: Components,
    /// What states the relation by which the note answers, or holds the link, if it answers by one.
    pub evidence: Option<Evidence>,
    /// The newest note near the top that says nearly the same.
    pub updated_by: Option<FileId>,
}

/// The minimum number of notes of each list that are scored by both measures; it is twice the limit if that is
/// more. More notes change nDCG@10 by less than 0.001 on every evaluation set, and each costs time.
const MIN_RESCORED: usize = 20;

/// The vector of a query, or `None` if only words rank.
pub type QueryVector = Option<Arc<Vec<f32>>>;

/// The notes that answer a request, in order.
#[derive(Debug, Default)]
pub struct FusedRanking {
    /// The notes, best first.
    pub fused: Vec<FusedHit>,
    /// The index of the passage nearest to the query, by note.
    passages: HashMap<FileId, usize>,
    /// The answer by relation, if the query asks for one.
    pub answer: Option<RelationAnswer>,
    /// Whether some note that was searched has a word of the query, or what replaces one.
    pub has_words: bool,
    /// The newest note near the top that says nearly the same as an older one, by the older one.
    updates: HashMap<FileId, FileId>,
}

/// Ranks the notes that answer a request, best first. A hybrid search asks `reader` for the vector of the query while
/// another thread looks up the words. The condition of the query is not evaluated here.
///
/// # Errors
/// `Invalid` for a malformed glob; `Io` or `Corrupt` if the index cannot be read; the errors of `reader`.
pub fn run(
    index: &Index,
    snapshot: &Snapshot,
    request: &Request<'_>,
    reader: &dyn SearchReader,
) -> Result<Vec<SearchHit>> {
    rank(index, snapshot, request, reader)?.hits(&index.catalog(), request.limit)
}

impl FusedRanking {
    /// Returns the best notes with their rows.
    ///
    /// # Errors
    /// `Io` or `Corrupt` if the catalog cannot be read.
    pub fn hits(&self, catalog: &CatalogReader, limit: usize) -> Result<Vec<SearchHit>> {
        let best = self.fused.get(..limit.min(self.fused.len())).unwrap_or_default();
        let rows = catalog.rows(&best.iter().map(|hit| hit.file).collect::<Vec<_>>())?;
        let rows: HashMap<FileId, FileRow> = rows.into_iter().map(|row| (row.id, row)).collect();
        Ok(best.iter().filter_map(|hit| Some(self.hit(rows.get(&hit.file)?.clone(), hit))).collect())
    }

    /// Joins a hit with the row of its note.
    pub fn hit(&self, row: FileRow, hit: &FusedHit) -> SearchHit {
        let match_type = match (hit.components.bm25_rank, hit.components.vector_rank) {
            (Some(_), Some(_)) => MatchType::Both,
            (None, Some(_)) => MatchType::Vector,
            (Some(_), None) => MatchType::Bm25,
            (None, None) => match (hit.components.bm25, hit.components.cosine) {
                (Some(_), Some(_)) => MatchType::Both,
                (None, Some(_)) => MatchType::Vector,
                (Some(_), None) => MatchType::Bm25,
                // The name is part of the full text.
                (None, None) if hit.components.from_name.is_some() => MatchType::Bm25,
                (None, None) if hit.components.from_relation.is_some() => MatchType::Relation,
                (None, None) if hit.components.from_link.is_some() => MatchType::Link,
                (None, None) if hit.components.time == Some(TimeReason::Replaces) => MatchType::Replacement,
                (None, None) => MatchType::Exact,
            },
        };
        let passage = self.passages.get(&hit.file).copied();
        let answer = self.answer.iter().flat_map(|answer| &answer.notes);
        let evidence = answer.filter(|note| note.file == hit.file).find_map(|note| note.evidence);
        let updated_by = self.updates.get(&hit.file).copied();
        SearchHit {
            row,
            score: hit.score,
            match_type,
            passage,
            components: hit.components,
            evidence,
            updated_by,
        }
    }
}

/// Ranks notes without reading their rows.
///
/// # Errors
/// `Invalid` for a malformed glob; `Io` or `Corrupt` if the index cannot be read; the errors of `reader`.
pub fn rank(
    index: &Index,
    snapshot: &Snapshot,
    request: &Request<'_>,
    reader: &dyn SearchReader,
) -> Result<FusedRanking> {
    let Some(query) = request.query else {
        return Ok(FusedRanking::default());
    };
    let allowed = allowed_files(&index.catalog(), request)?;
    if allowed.as_ref().is_some_and(FileSet::is_empty) {
        return Ok(FusedRanking::default());
    }
    let documents = usize::try_from(snapshot.bm25.documents()).unwrap_or(usize::MAX);
    let depth = request.depth.unwrap_or_else(|| request.limit.saturating_mul(5));
    let depth = depth.max(50).min(documents.max(1));
    // With a condition more notes are ranked, because it is not known yet which of them match.
    let text_depth = if query.condition.is_some() { depth.max(CONDITION_DEPTH) } else { depth };
    let is_alone = request.mode == Mode::Bm25;
    let words = || text_list(snapshot, index, query, allowed.as_ref(), text_depth, is_alone);
    let related = |named: &[FileId]| match request.relations {
        // A note that the whole query names is what was asked for.
        Some(rules) if query.condition.is_none() && named.is_empty() => {
            let lookup = RelationLookup { rules, reader };
            relation_question::answer((&index.catalog(), snapshot), lookup, &query.text)
        }
        _ => Ok(None),
    };
    let named = || named_by(index, query, allowed.as_ref());
    let near = |vector: QueryVector| match vector {
        Some(vector) if !snapshot.vectors.is_empty() => {
            let is_approximate = query.condition.is_some();
            let (list, passages) =
                vector_list(snapshot, index, &vector, allowed.as_ref(), depth, is_approximate)?;
            Ok(VectorHits { list, passages, vector: Some(vector) })
        }
        _ => Ok(VectorHits::default()),
    };
    let (ranking, near, named, answer) = match request.mode {
        Mode::Bm25 => (words()?, VectorHits::default(), named()?, None),
        Mode::Vector => (Ranking::default(), near(reader.query_vector()?)?, named()?, None),
        // Another thread looks up the words, and then the relations.
        Mode::Hybrid => {
            let other = || -> Result<_> {
                let (ranking, named) = (words()?, named()?);
                let answer = related(&named)?;
                Ok((ranking, named, answer))
            };
            let own = || near(reader.query_vector()?);
            let (other, near) = parallel::join(other, own);
            let (ranking, named, answer) = other?;
            (ranking, near?, named, answer)
        }
    };
    let mut text: Vec<Ranked> =
        ranking.hits.iter().map(|hit| Ranked { file: hit.file, score: hit.score }).collect();
    let VectorHits { list: mut vector, mut passages, vector: query_vector } = near;
    let most = request.limit.saturating_mul(2).max(MIN_RESCORED);
    if request.fusion.rescores() && request.mode == Mode::Hybrid {
        // Candidates of a condition are kept, because all of them may be needed.
        text.truncate(if query.condition.is_some() { text.len() } else { most });
        vector.truncate(most);
    }
    // If vectors are missing, every fusion method needs to know where.
    let query_vector = query_vector.filter(|_| request.fusion.rescores() || snapshot.pending > 0);
    let counts_adjacent = query_vector.is_some() && request.fusion.rescores() && request.mode == Mode::Hybrid;
    let mut scorer = Rescorer::new(snapshot, index, query_vector, &ranking)?;
    let best = text.get(..text.len().min(depth.min(most))).unwrap_or_default();
    scorer.add(best.iter().chain(&vector).map(|hit| hit.file).collect())?;
    let mut fused = fuse::fuse(&scorer.candidates(&text, &vector, &[]), request.fusion);
    if counts_adjacent {
        best_first(&index.catalog(), &mut fused, |hit| (hit.score, hit.file))?;
        let adjacent = sequence::adjacent_to_best(&index.catalog(), &fused, allowed.as_ref())?;
        if !adjacent.is_empty() {
            let unlisted = scorer.add(adjacent.iter().map(|note| note.file).collect())?;
            fused = fuse::fuse(&scorer.candidates(&text, &vector, &unlisted), request.fusion);
            sequence::add_adjacent_scores(&mut fused, &adjacent);
        }
    }
    fuse::raise_embedded(&mut fused, &scorer.candidates(&text, &vector, &[]), request.fusion);
    passages.extend(scorer.passages);
    put_name_matches_first(named, &mut fused);
    let answer = answer.and_then(|answer| put_related_first(answer, allowed.as_ref(), &mut fused));
    best_first(&index.catalog(), &mut fused, |hit| (hit.score, hit.file))?;
    let updates = match request.mode {
        Mode::Bm25 => HashMap::new(),
        _ => updated_fact::newer_first(index, snapshot, query, &passages, &mut fused)?,
    };
    if let Some(now) = request.now {
        fused = validity_order::order(index, snapshot, allowed.as_ref(), fused, now)?;
    }
    Ok(FusedRanking { fused, passages, answer, has_words: !ranking.hits.is_empty(), updates })
}

/// The score that is added to a note whose name is the query. No fusion method gives as much for anything else.
const NAME_SCORE: f32 = 1.5;
/// The maximum length in bytes of a query that is compared with names.
const MAX_NAME_BYTES: usize = 255;

/// Lists the notes whose title, alias or file name is the query.
fn named_by(index: &Index, query: &Query, allowed: Option<&FileSet>) -> Result<Vec<FileId>> {
    let name = query.text.trim();
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Ok(Vec::new());
    }
    let named = index.catalog().names().with_title_or_name(name)?;
    Ok(named.into_iter().filter(|&file| allowed.is_none_or(|files| files.contains(file))).collect())
}

/// Puts the notes that the query names first, including notes that are in neither list.
fn put_name_matches_first(named: Vec<FileId>, fused: &mut Vec<FusedHit>) {
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

/// Ranks notes by words. With `is_alone`, the scores of other notes are not needed.
fn text_list<'s>(
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
struct VectorHits {
    /// The notes, ranked by their best passage.
    list: Vec<Ranked>,
    /// The index of that passage in its note.
    passages: HashMap<FileId, usize>,
    /// The vector of the query, or `None` if only words rank.
    vector: QueryVector,
}

/// The fewest notes that one thread compares with a query.
const MIN_COMPARED: usize = 16;

/// Scores notes of either list by the measure of the other one, so that a note is not ranked by its absence from a
/// list.
struct Rescorer<'a> {
    snapshot: &'a Snapshot,
    index: &'a Index,
    /// The vector of the query. Without it, nothing is known but the lists.
    query: QueryVector,
    ranking: &'a Ranking<'a>,
    /// The similarity that a passage has with the query by chance.
    background: f32,
    known: HashMap<FileId, NoteScores>,
    /// The index of the nearest passage, by note.
    passages: HashMap<FileId, usize>,
}

impl<'a> Rescorer<'a> {
    fn new(
        snapshot: &'a Snapshot,
        index: &'a Index,
        query: QueryVector,
        ranking: &'a Ranking<'a>,
    ) -> Result<Self> {
        let background = match &query {
            Some(query) => index.mean_vector(snapshot)?.similarity(&snapshot.vectors, query),
            None => 0.0,
        };
        let (known, passages) = (HashMap::new(), HashMap::new());
        Ok(Self { snapshot, index, query, ranking, background, known, passages })
    }

    /// Scores files by words, and compares all their passages with the query. Returns those that were not known and have a
    /// word of the query or a vector.
    fn add(&mut self, files: FileSet) -> Result<Vec<FileId>> {
        let Some(query) = &self.query else { return Ok(Vec::new()) };
        let by_words = self.ranking.scores_of(&files)?;
        let catalog = self.index.catalog();
        let passages_of = |file| Ok((file, catalog.passages().of(file)?));
        let added = files.iter().filter(|file| !self.known.contains_key(file));
        let keys: Vec<(FileId, Vec<i64>)> = added.map(passages_of).collect::<Result<_>>()?;
        drop(catalog);
        let mut found = Vec::with_capacity(keys.len());
        let compare =
            |(): &mut (), (_, keys): &(FileId, Vec<i64>)| self.snapshot.vectors.compare(query, keys);
        let compared = parallel::map_briefly(&keys, MIN_COMPARED, || (), compare);
        for ((file, keys), near) in keys.into_iter().zip(compared) {
            let near = near?;
            let best = near.iter().max_by(|a, b| a.similarity.total_cmp(&b.similarity));
            let place = best.and_then(|best| keys.iter().position(|key| *key == best.key));
            self.passages.extend(place.map(|place| (file, place)));
            let mut similarities: Vec<f32> = near.iter().map(|passage| passage.similarity).collect();
            let bm25 = by_words.get(&file).copied();
            let missing = (keys.len() - near.len()) as f32 / keys.len().max(1) as f32;
            let near = Similarity::of(&mut similarities);
            found.extend((bm25.is_some() || near.is_some()).then_some(file));
            self.known.insert(file, NoteScores { bm25, near, missing });
        }
        Ok(found)
    }

    /// Joins the lists, and notes of neither list, with what is known about them.
    fn candidates<'c>(
        &'c self,
        text: &'c [Ranked],
        vector: &'c [Ranked],
        unlisted: &'c [FileId],
    ) -> Candidates<'c> {
        let (known, background) = (&self.known, self.background);
        Candidates { text, vector, unlisted, known, background, embedded: self.snapshot.embedded_share() }
    }
}

/// The number of candidates of a condition that are ranked by words; the others follow by name.
const CONDITION_DEPTH: usize = 5_000;
/// The maximum number of files for which an approximate search filters by passage; above it, all passages are
/// searched, and those of other files are skipped.
const MAX_FILTER_FILES: usize = 300;
/// The nearest passages whose files are looked up at once.
const LOOKED_UP_AT_ONCE: usize = 64;
/// The maximum number of nearest passages that an approximate search examines.
const MAX_NEIGHBOURS: usize = 400;

/// Finds the nearest passages, and ranks notes by their best passage. If `is_approximate` is set, notes far from
/// the query in a large set may be missing; they get no score from vectors.
fn vector_list(
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

/// Returns the files that match the filters of a request, or `None` if all do.
///
/// # Errors
/// `Invalid` for a malformed glob; `Corrupt` if the catalog cannot be read.
pub fn allowed_files(catalog: &CatalogReader, request: &Request<'_>) -> Result<Option<FileSet>> {
    let glob = path_filter(request.path.as_deref())?;
    if request.filter.is_unrestricted() && glob.is_none() {
        let put_away = catalog.inactive_files(request.filter.hidden)?;
        return Ok(match request.among {
            Some(among) if put_away.is_empty() => Some(among.clone()),
            Some(among) => Some(among.and(&FileSet::all_but(put_away))),
            None => (!put_away.is_empty()).then(|| FileSet::all_but(put_away)),
        });
    }
    let filter = Filter { with_canvases: true, ..request.filter.clone() };
    let fits = |id: &FileId, path: &str| {
        glob.as_ref().is_none_or(|glob| glob.is_match(path))
            && request.among.is_none_or(|set| set.contains(*id))
    };
    let files = catalog.select_ids(&filter)?;
    Ok(Some(files.into_iter().filter(|(id, path)| fits(id, path)).map(|(id, _)| id).collect()))
}

/// The maximum length of a path glob in bytes.
const MAX_GLOB_BYTES: usize = 1_000;
/// The maximum number of opening braces in a path glob. Compilers recurse to the depth of groups, which cannot be
/// larger.
const MAX_GLOB_BRACES: usize = 50;

/// Compiles the path of a search. Returns `None` if it selects the whole vault, which also `*` does.
///
/// # Errors
/// `Invalid` if [`path_glob`] refuses it.
pub fn path_filter(path: Option<&str>) -> Result<Option<GlobSet>> {
    let is_everything =
        |path: &str| path.len() <= MAX_GLOB_BYTES && matches!(typed_path(path).as_str(), "" | "*" | "**");
    let path = path.filter(|path| !is_everything(path));
    path.map(path_glob).transpose()
}

/// Compiles a path glob: `*` stays within a folder, `**` does not, and case is ignored. A pattern without wildcards
/// names a folder or a prefix of the path. Slashes at its ends and `./` mean nothing, and a backslash is a slash.
///
/// # Errors
/// `Invalid` if the glob is malformed, is too long, or has too many groups.
pub fn path_glob(pattern: &str) -> Result<GlobSet> {
    let refused = |what: String| Error::invalid(what).with_hint("write Projects/** or *.canvas");
    if pattern.len() > MAX_GLOB_BYTES {
        let length = pattern.len();
        return Err(refused(format!(
            "the path pattern has {length} bytes; at most {MAX_GLOB_BYTES} are allowed"
        )));
    }
    if pattern.matches('{').count() > MAX_GLOB_BRACES {
        return Err(refused(format!("the path pattern has more than {MAX_GLOB_BRACES} opening braces")));
    }
    let typed = typed_path(pattern);
    let whole = match typed.contains(['*', '?', '[', '{']) {
        // A glob such as `**/` is complete with its slash.
        true if pattern.trim_end().ends_with('/') => format!("{typed}/"),
        true => typed,
        false => format!("{typed}{{,/**,*}}"),
    };
    let glob = GlobBuilder::new(&whole).literal_separator(true).case_insensitive(true).build();
    // A set reports a pattern that does not compile; a single matcher panics.
    let compiled = glob.and_then(|glob| GlobSet::builder().add(glob).build());
    compiled.map_err(|error| refused(format!("the path {pattern:?} is not a glob")).with_source(error))
}
