//! Answers a query from one snapshot: ranked lists of full text and vectors, fused, filtered, tied deterministically.

pub mod fuse;
pub mod query;
pub mod snippet;
pub mod candidates;
mod javascript_regex;
pub mod out_of_vocabulary;
pub mod predicate;
pub mod text_match;
pub mod tie_order;
pub mod query_parser;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::index::bm25::{Bm25Query, Ranking, Tuning};
use crate::index::catalog::{CatalogReader, FileId, FileRow, Filter};
use crate::index::file_set::FileSet;
use crate::index::{Index, Snapshot, passages_of};
use crate::search::fuse::{Fused, Fusion, Known, Nearness, Ranked};
use crate::search::query::Query;
use crate::search::tie_order::best_first;

/// Which lists answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Words and meaning.
    #[default]
    Hybrid,
    /// Words alone.
    Bm25,
    /// Meaning alone.
    Vector,
}

impl Mode {
    /// Reads a mode's name.
    ///
    /// # Errors
    /// `Invalid` for any other word.
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

/// Which list found a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchType {
    /// The full text alone.
    Bm25,
    /// The vectors alone.
    Vector,
    /// Both.
    Both,
    /// Neither: it holds what the query asks for, and there is nothing to rank it by.
    Exact,
}

/// What to find, and among what.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// The parsed query.
    pub query: Option<&'a Query>,
    /// Which lists answer.
    pub mode: Mode,
    /// How the lists are merged.
    pub fusion: Fusion,
    /// How many notes at most.
    pub limit: usize,
    /// How many notes each list gives; five times as many as are asked for, where nothing is said.
    pub depth: Option<usize>,
    /// Conditions on the note.
    pub filter: Filter,
    /// A glob that the path must match.
    pub path: Option<String>,
    /// Only these files, where given; adds to the filter.
    pub among: Option<&'a FileSet>,
}

/// How a score came about. The score is the sum of the parts `from_…`, added in their order here.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Components {
    /// Place in the full-text list, from 1.
    pub bm25_rank: Option<usize>,
    /// BM25F score; nothing where no word of the query occurs.
    pub bm25: Option<f32>,
    /// Place in the vector list, from 1.
    pub vector_rank: Option<usize>,
    /// Cosine of the note's best passage; nothing where it has no vector, and then the last of the list stands in.
    pub cosine: Option<f32>,
    /// Squared cosines of the next four passages, added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<f32>,
    /// What the full text adds to the fused score.
    pub from_bm25: f32,
    /// What the best passage adds to the fused score.
    pub from_vector: f32,
    /// What the next passages add to the fused score.
    pub from_others: f32,
    /// What the reranker made of query and passage, where it read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<f32>,
    /// What its verdict adds to the fused score, or takes from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_rerank: Option<f32>,
    /// What a note gets because the query is its title, an alias of it, or its file name: more than all else together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_name: Option<f32>,
}

impl Components {
    /// Adds up the parts.
    pub fn total(&self) -> f32 {
        let ranked = self.from_bm25 + self.from_vector + self.from_others + self.from_rerank.unwrap_or(0.0);
        ranked + self.from_name.unwrap_or(0.0)
    }
}

/// A note that answers.
#[derive(Debug, Clone)]
pub struct Found {
    /// The note.
    pub row: FileRow,
    /// The fused score; comparable within one reply.
    pub score: f32,
    /// Which list found it.
    pub match_type: MatchType,
    /// The passage whose vector is nearest, by its place in the note.
    pub passage: Option<usize>,
    /// How the score came about.
    pub components: Components,
}

/// Of each list twice as many notes as asked for are judged by both measures, and no fewer than this; more change no
/// set's nDCG@10 by a thousandth, and each costs time.
const FEWEST_JUDGED: usize = 20;

/// The vector of a query; nothing where words alone answer.
pub type QueryVector = Option<Arc<Vec<f32>>>;

/// Notes in the order in which they answer.
#[derive(Debug, Default)]
pub struct Merged {
    /// Best first.
    pub fused: Vec<Fused>,
    /// The passage of a note that is nearest in meaning, by its place in the note.
    passages: HashMap<FileId, usize>,
}

/// Ranks the notes that answer a request, best first. `meaning` gives the query's vector; a hybrid search asks for it
/// while the words are looked up beside. What the query asks for is not looked at here.
///
/// # Errors
/// `Invalid` for a malformed glob; whatever the index or `meaning` reports.
pub fn run(
    index: &Index,
    snapshot: &Snapshot,
    request: &Request<'_>,
    meaning: impl FnOnce() -> Result<QueryVector>,
) -> Result<Vec<Found>> {
    let mut ranking = rank(index, snapshot, request, meaning)?;
    ranking.fused.truncate(request.limit);
    let ids: Vec<FileId> = ranking.fused.iter().map(|hit| hit.file).collect();
    let rows = index.catalog().rows(&ids)?;
    let rows: HashMap<FileId, FileRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    Ok(ranking
        .fused
        .iter()
        .filter_map(|hit| Some(ranking.found(rows.get(&hit.file)?.clone(), hit)))
        .collect())
}

impl Merged {
    /// Joins a hit with its note.
    pub fn found(&self, row: FileRow, hit: &Fused) -> Found {
        let match_type = match (hit.components.bm25_rank, hit.components.vector_rank) {
            (Some(_), Some(_)) => MatchType::Both,
            (None, Some(_)) => MatchType::Vector,
            (Some(_), None) => MatchType::Bm25,
            // A name is a part of the full text.
            (None, None) if hit.components.from_name.is_some() => MatchType::Bm25,
            (None, None) => MatchType::Exact,
        };
        let passage = self.passages.get(&hit.file).copied();
        Found { row, score: hit.score, match_type, passage, components: hit.components }
    }
}

/// Ranks notes without reading their rows.
///
/// # Errors
/// As [`run`].
pub fn rank(
    index: &Index,
    snapshot: &Snapshot,
    request: &Request<'_>,
    meaning: impl FnOnce() -> Result<QueryVector>,
) -> Result<Merged> {
    let Some(query) = request.query else {
        return Ok(Merged::default());
    };
    let allowed = allowed_files(&index.catalog(), request)?;
    if allowed.as_ref().is_some_and(FileSet::is_empty) {
        return Ok(Merged::default());
    }
    let documents = usize::try_from(snapshot.bm25.documents()).unwrap_or(usize::MAX);
    let depth = request.depth.unwrap_or_else(|| request.limit.saturating_mul(5));
    let depth = depth.max(50).min(documents.max(1));
    // Of what may hold a condition many are put in order, for nobody knows yet which of them do.
    let text_depth = if query.asks.is_some() { depth.max(SIFTED) } else { depth };
    let words = || text_list(snapshot, index, query, allowed.as_ref(), text_depth);
    let near = || match meaning()? {
        Some(vector) if !snapshot.vectors.is_empty() => {
            let roughly = query.asks.is_some();
            let (list, passages) = vector_list(snapshot, index, &vector, allowed.as_ref(), depth, roughly)?;
            Ok(Near { list, passages, query: Some(vector) })
        }
        _ => Ok(Near::default()),
    };
    let (ranking, near) = match request.mode {
        Mode::Bm25 => (words()?, Near::default()),
        Mode::Vector => (Ranking::default(), near()?),
        Mode::Hybrid => std::thread::scope(|scope| {
            let words = scope.spawn(words);
            let near = near();
            let words = words.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((words?, near?))
        })?,
    };
    let mut text: Vec<Ranked> =
        ranking.hits.iter().map(|hit| Ranked { file: hit.file, score: hit.score }).collect();
    let Near { list: mut vector, mut passages, query: meaning } = near;
    let most = request.limit.saturating_mul(2).max(FEWEST_JUDGED);
    if request.fusion.looks_closer() && request.mode == Mode::Hybrid {
        // What is still to be sifted by a condition is kept: it may all be wanted.
        text.truncate(if query.asks.is_some() { text.len() } else { most });
        vector.truncate(most);
    }
    // Where vectors are missing, every method has to know which.
    let known = match meaning.filter(|_| request.fusion.looks_closer() || snapshot.pending > 0) {
        Some(meaning) => {
            let best = text.get(..text.len().min(depth.min(most))).unwrap_or_default();
            look_closer(snapshot, index, &meaning, (&ranking, best, &vector), &mut passages)?
        }
        None => HashMap::new(),
    };
    let mut fused = fuse::fuse(&text, &vector, &known, request.fusion);
    put_named_first(index, query, allowed.as_ref(), &mut fused)?;
    best_first(&index.catalog(), &mut fused, |hit| (hit.score, hit.file))?;
    Ok(Merged { fused, passages })
}

/// What a note's score gains where the query is its name. No method of fusion gives as much for anything else.
const NAMED: f32 = 1.5;
/// A query longer than this, in bytes, names nothing.
const LONGEST_NAME: usize = 255;

/// Puts the notes first whose title, alias or file name the query is, also those that neither list holds.
fn put_named_first(
    index: &Index,
    query: &Query,
    allowed: Option<&FileSet>,
    fused: &mut Vec<Fused>,
) -> Result<()> {
    let name = query.meaning.trim();
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Ok(());
    }
    let named = index.catalog().names().with_title_or_name(name)?;
    let named: Vec<FileId> =
        named.into_iter().filter(|&file| allowed.is_none_or(|files| files.contains(file))).collect();
    if named.is_empty() {
        return Ok(());
    }
    let (mut first, rest): (Vec<Fused>, Vec<Fused>) =
        fused.drain(..).partition(|hit| named.contains(&hit.file));
    for file in named {
        if first.iter().all(|hit| hit.file != file) {
            first.push(Fused { file, score: 0.0, components: Components::default() });
        }
    }
    for hit in &mut first {
        hit.components.from_name = Some(NAMED);
        hit.score = hit.components.total();
    }
    fused.extend(first.into_iter().chain(rest));
    Ok(())
}

fn text_list(
    snapshot: &Snapshot,
    index: &Index,
    query: &Query,
    allowed: Option<&FileSet>,
    limit: usize,
) -> Result<Ranking> {
    // What holds a condition holds the words as they were typed.
    let heard =
        if query.asks.is_some() { None } else { out_of_vocabulary::heard(&query.words, &snapshot.bm25)? };
    let words = Bm25Query { words: heard.as_deref().unwrap_or(&query.words), allowed, limit };
    let mut ranking = snapshot.bm25.rank(&words, &Tuning::default())?;
    best_first(&index.catalog(), &mut ranking.hits, |hit| (hit.score, hit.file))?;
    ranking.hits.truncate(limit);
    Ok(ranking)
}

/// What the vectors found.
#[derive(Default)]
struct Near {
    /// Notes by their best passage.
    list: Vec<Ranked>,
    /// The place of this passage in its note.
    passages: HashMap<FileId, usize>,
    /// The query's vector; nothing where words alone answer.
    query: QueryVector,
}

/// Scores by words what the vectors found, and by its passages what either list holds, so that a note is not judged by
/// its absence from a list. Adds the nearest passages to `passages`.
fn look_closer(
    snapshot: &Snapshot,
    index: &Index,
    meaning: &[f32],
    (ranking, text, vector): (&Ranking, &[Ranked], &[Ranked]),
    passages: &mut HashMap<FileId, usize>,
) -> Result<HashMap<FileId, Known>> {
    let by_words = ranking.scores_of(&vector.iter().map(|hit| hit.file).collect());
    let files: HashSet<FileId> = text.iter().chain(vector).map(|hit| hit.file).collect();
    let catalog = index.catalog();
    let passages_of = |file| Ok((file, catalog.passages().of(file)?));
    let keys: Vec<(FileId, Vec<i64>)> = files.into_iter().map(passages_of).collect::<Result<_>>()?;
    drop(catalog);
    let mut known = HashMap::with_capacity(keys.len());
    for (file, keys) in keys {
        let near = snapshot.vectors.compare(meaning, &keys)?;
        let best = near.iter().max_by(|a, b| a.cosine.total_cmp(&b.cosine));
        let place = best.and_then(|best| keys.iter().position(|key| *key == best.key));
        passages.extend(place.map(|place| (file, place)));
        let mut cosines: Vec<f32> = near.iter().map(|passage| passage.cosine).collect();
        let bm25 = by_words.get(&file).copied();
        let missing = (keys.len() - near.len()) as f32 / keys.len().max(1) as f32;
        known.insert(file, Known { bm25, near: Nearness::of(&mut cosines), missing });
    }
    Ok(known)
}

/// So many notes that may hold a condition are put in order by words; the others follow by name.
const SIFTED: usize = 5_000;
/// Of more files than this the nearest passages are found among all, and those of other files passed over.
const MANY: usize = 300;
/// No more of the nearest passages than this are looked through for those of certain files.
const FARTHEST: usize = 400;

/// Finds the nearest passages and gives their notes, each with its best passage. `is_roughly` lets those go that are
/// far from the query in a large set: they come without a vector's share of the score.
fn vector_list(
    snapshot: &Snapshot,
    index: &Index,
    vector: &[f32],
    allowed: Option<&FileSet>,
    limit: usize,
    is_roughly: bool,
) -> Result<(Vec<Ranked>, HashMap<FileId, usize>)> {
    let keys: Option<HashSet<i64>> = match allowed {
        None => None,
        // Nearly every passage: what is left out is passed over below.
        Some(files) if files.is_all_but() || is_roughly && files.len() > MANY => None,
        Some(files) => Some(passages_of(&index.catalog(), files)?),
    };
    let mut count = limit.saturating_mul(2);
    loop {
        let near = snapshot.vectors.search(vector, count, keys.as_ref())?;
        let all = near.len() < count;
        let catalog = index.catalog();
        let mut list: Vec<Ranked> = Vec::new();
        let mut best: HashMap<FileId, usize> = HashMap::new();
        for passage in near {
            for (_, file, ord) in catalog.passages().files_containing(&[passage.key])? {
                if best.contains_key(&file) || allowed.is_some_and(|files| !files.contains(file)) {
                    continue;
                }
                best.insert(file, ord);
                list.push(Ranked { file, score: passage.cosine });
            }
            if list.len() >= limit {
                break;
            }
        }
        // A note has several passages, so that fewer notes than asked for are enough.
        if all || list.len() * 2 >= limit || is_roughly && count >= FARTHEST {
            best_first(&catalog, &mut list, |hit| (hit.score, hit.file))?;
            return Ok((list, best));
        }
        // Passages of few notes, or vectors of texts that no note holds any more, stood in the way.
        count = count.saturating_mul(4);
    }
}

/// Lists the files that the filters of a request let pass; nothing where all do.
///
/// # Errors
/// `Invalid` for a malformed glob.
pub fn allowed_files(catalog: &CatalogReader, request: &Request<'_>) -> Result<Option<FileSet>> {
    let glob = request.path.as_deref().map(path_glob).transpose()?;
    if request.filter.is_unrestricted() && glob.is_none() {
        if request.among.is_some() {
            return Ok(request.among.cloned());
        }
        let put_away = catalog.inactive_files(request.filter.hidden)?;
        return Ok((!put_away.is_empty()).then(|| FileSet::all_but(put_away)));
    }
    let filter = Filter { with_canvases: true, ..request.filter.clone() };
    let fits = |id: &FileId, path: &str| {
        glob.as_ref().is_none_or(|glob| glob.is_match(path))
            && request.among.is_none_or(|set| set.contains(*id))
    };
    let files = catalog.select_ids(&filter)?;
    Ok(Some(files.into_iter().filter(|(id, path)| fits(id, path)).map(|(id, _)| id).collect()))
}

/// The most bytes of a path glob.
const LONGEST_GLOB: usize = 1_000;
/// The most opening braces of a path glob: compilers recurse by the depth of groups, which cannot be larger.
const MOST_BRACES: usize = 50;

/// Compiles a path glob: `*` stays within a folder, `**` does not, case does not count; a pattern without a slash or
/// star names a folder or a part of the path's beginning.
///
/// # Errors
/// `Invalid` for a malformed glob, and for one that is too long or has too many groups to be compiled.
pub fn path_glob(pattern: &str) -> Result<GlobSet> {
    let refused = |what: String| Error::invalid(what).with_hint("write Projects/** or *.canvas");
    if pattern.len() > LONGEST_GLOB {
        let length = pattern.len();
        return Err(refused(format!(
            "the path pattern has {length} bytes; at most {LONGEST_GLOB} are allowed"
        )));
    }
    if pattern.matches('{').count() > MOST_BRACES {
        return Err(refused(format!("the path pattern has more than {MOST_BRACES} opening braces")));
    }
    let whole = if pattern.contains(['*', '?', '[', '{']) {
        pattern.to_owned()
    } else {
        format!("{}{{,/**,*}}", pattern.trim_end_matches('/'))
    };
    let glob = GlobBuilder::new(&whole).literal_separator(true).case_insensitive(true).build();
    // A set reports a pattern that does not compile, where a single matcher panics.
    let compiled = glob.and_then(|glob| GlobSet::builder().add(glob).build());
    compiled.map_err(|error| refused(format!("the path {pattern:?} is not a glob")).with_source(error))
}
