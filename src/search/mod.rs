//! Answers a query from one snapshot: ranked lists of full text and vectors, fused, filtered, tied deterministically.

pub mod fuse;
pub mod query;
pub mod snippet;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::index::bm25::{Ask, FileSet, Tuning};
use crate::index::catalog::{Catalog, FileId, FileRow, Filter};
use crate::index::{Index, Snapshot, passages_of};
use crate::search::fuse::{Fusion, Ranked};
use crate::search::query::Query;

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
    /// Whether every word must occur.
    pub all: bool,
}

/// How a score came about.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Components {
    /// Place in the full-text list, from 1.
    pub bm25_rank: Option<usize>,
    /// BM25F score.
    pub bm25: Option<f32>,
    /// Place in the vector list, from 1.
    pub vector_rank: Option<usize>,
    /// Cosine of the note's best passage.
    pub cosine: Option<f32>,
    /// What the full text adds to the fused score.
    pub from_bm25: f32,
    /// What the vectors add to the fused score.
    pub from_vector: f32,
    /// What the reranker made of query and passage, where it read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<f32>,
    /// What its verdict adds to the fused score, or takes from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_rerank: Option<f32>,
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

/// The vector of a query; nothing where words alone answer.
pub type QueryVector = Option<Arc<Vec<f32>>>;

/// Ranks the notes that answer a request, best first. `meaning` gives the query's vector; a hybrid search asks for it
/// while the words are looked up beside.
///
/// # Errors
/// `Invalid` for a malformed glob; whatever the index or `meaning` reports.
pub fn run(
    index: &Index,
    snapshot: &Snapshot,
    request: &Request<'_>,
    meaning: impl FnOnce() -> Result<QueryVector>,
) -> Result<Vec<Found>> {
    let Some(query) = request.query else {
        return Ok(Vec::new());
    };
    let allowed = allowed_files(&index.catalog(), request)?;
    if allowed.as_ref().is_some_and(FileSet::is_empty) {
        return Ok(Vec::new());
    }
    let documents = usize::try_from(snapshot.bm25.documents()).unwrap_or(usize::MAX);
    let depth = request.depth.unwrap_or_else(|| request.limit.saturating_mul(5));
    let depth = depth.max(50).min(documents.max(1));
    let words = || text_list(snapshot, query, request, allowed.as_ref(), depth);
    let near = || match meaning()? {
        Some(vector) if !snapshot.vectors.is_empty() => {
            vector_list(snapshot, index, &vector, allowed.as_ref(), depth)
        }
        _ => Ok((Vec::new(), HashMap::new())),
    };
    let (text, (vector, passages)) = match request.mode {
        Mode::Bm25 => (words()?, (Vec::new(), HashMap::new())),
        Mode::Vector => (Vec::new(), near()?),
        Mode::Hybrid => std::thread::scope(|scope| {
            let words = scope.spawn(words);
            let near = near();
            let words = words.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((words?, near?))
        })?,
    };
    let vector = keep_required(snapshot, query, request, vector)?;
    let mut fused = fuse::fuse(&text, &vector, request.fusion);
    fused.truncate(request.limit);
    let ids: Vec<FileId> = fused.iter().map(|hit| hit.file).collect();
    let catalog = index.catalog();
    let rows = catalog.at_once(|| catalog.rows(&ids))?;
    drop(catalog);
    let rows: HashMap<FileId, FileRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    Ok(fused
        .into_iter()
        .filter_map(|hit| {
            let row = rows.get(&hit.file)?.clone();
            let match_type = match (hit.components.bm25_rank, hit.components.vector_rank) {
                (Some(_), Some(_)) => MatchType::Both,
                (None, Some(_)) => MatchType::Vector,
                _ => MatchType::Bm25,
            };
            Some(Found {
                row,
                score: hit.score,
                match_type,
                passage: passages.get(&hit.file).copied(),
                components: hit.components,
            })
        })
        .collect())
}

fn text_list(
    snapshot: &Snapshot,
    query: &Query,
    request: &Request<'_>,
    allowed: Option<&FileSet>,
    limit: usize,
) -> Result<Vec<Ranked>> {
    let ask = Ask {
        words: &query.words,
        must: &query.must,
        must_not: &query.must_not,
        all: request.all,
        allowed,
        limit,
    };
    let hits = snapshot.bm25.search(&ask, &Tuning::default())?;
    Ok(hits.into_iter().map(|hit| Ranked { file: hit.file, score: hit.score }).collect())
}

/// Finds the nearest passages and gives their notes, each with its best passage.
fn vector_list(
    snapshot: &Snapshot,
    index: &Index,
    vector: &[f32],
    allowed: Option<&FileSet>,
    limit: usize,
) -> Result<(Vec<Ranked>, HashMap<FileId, usize>)> {
    let keys: Option<HashSet<i64>> = match allowed {
        None => None,
        // Nearly every passage: what is left out is passed over below.
        Some(files) if files.is_all_but() => None,
        Some(files) => Some(passages_of(&index.catalog(), files)?),
    };
    let mut count = limit.saturating_mul(2);
    loop {
        let near = snapshot.vectors.search(vector, count, keys.as_ref())?;
        let all = near.len() < count;
        let catalog = index.catalog();
        let mut list: Vec<Ranked> = Vec::new();
        let mut best: HashMap<FileId, usize> = HashMap::new();
        catalog.at_once(|| {
            for passage in near {
                for (_, file, ord) in catalog.passages_at(&[passage.key])? {
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
            Ok(())
        })?;
        // A note has several passages, so that fewer notes than asked for are enough.
        if all || list.len() * 2 >= limit {
            return Ok((list, best));
        }
        // Passages of few notes, or vectors of texts that no note holds any more, stood in the way.
        count = count.saturating_mul(4);
    }
}

/// Drops notes found by meaning alone that miss a required word or phrase, or hold an excluded one.
fn keep_required(
    snapshot: &Snapshot,
    query: &Query,
    request: &Request<'_>,
    list: Vec<Ranked>,
) -> Result<Vec<Ranked>> {
    let strict = request.all && request.mode != Mode::Vector;
    if list.is_empty() || (query.must.is_empty() && query.must_not.is_empty() && !strict) {
        return Ok(list);
    }
    let files: FileSet = list.iter().map(|hit| hit.file).collect();
    let select = |words, must, must_not, all| -> Result<FileSet> {
        let ask = Ask { words, must, must_not, all, allowed: Some(&files), limit: files.len() };
        Ok(snapshot.bm25.search(&ask, &Tuning::default())?.into_iter().map(|hit| hit.file).collect())
    };
    let refused = if query.must_not.is_empty() {
        FileSet::default()
    } else {
        snapshot.bm25.any_of(&query.must_not, &files)?
    };
    let needs = !query.must.is_empty() || strict;
    let words: &[_] = if strict { &query.words } else { &[] };
    let fit = if needs { select(words, &query.must, &[], strict)? } else { files.clone() };
    Ok(list.into_iter().filter(|hit| fit.contains(hit.file) && !refused.contains(hit.file)).collect())
}

fn allowed_files(catalog: &Catalog, request: &Request<'_>) -> Result<Option<FileSet>> {
    let glob = request.path.as_deref().map(path_glob).transpose()?;
    if request.filter.is_open() && glob.is_none() {
        if request.among.is_some() {
            return Ok(request.among.cloned());
        }
        let put_away = catalog.put_away(request.filter.hidden)?;
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

/// Compiles a path glob: `*` stays within a folder, `**` does not, case does not count; a pattern without a slash or
/// star names a folder or a part of the path's beginning.
pub fn path_glob(pattern: &str) -> Result<GlobMatcher> {
    let whole = if pattern.contains(['*', '?', '[', '{']) {
        pattern.to_owned()
    } else {
        format!("{}{{,/**,*}}", pattern.trim_end_matches('/'))
    };
    GlobBuilder::new(&whole)
        .literal_separator(true)
        .case_insensitive(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| {
            Error::invalid(format!("the path {pattern:?} is not a glob"))
                .with_source(error)
                .with_hint("write Projects/** or *.canvas")
        })
}
