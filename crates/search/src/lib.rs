//! Search: answers a query from one snapshot. It ranks by words and by vectors, fuses both rankings, and orders equal
//! scores by path. It opens no file: callers pass in a reader of
//! what it needs besides the index.

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
pub mod quotation;
pub mod sequence;
pub mod typed_relations;
pub mod validity_order;
pub mod updated_fact;
mod reranked;
pub mod note_date;
pub mod reader;
pub mod stage;
mod lists;
mod rescorer;
mod named_first;
pub mod pipeline;
pub mod date_phrase;

use std::sync::Arc;

use globset::{GlobBuilder, GlobSet};
use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{CatalogReader, FileId, FileRow, Filter, Kinds};
use sidenote_markdown::path::typed_path;
use sidenote_markdown::relation::RelationRules;
use sidenote_sets::file_set::FileSet;

use crate::fuse::Fusion;
use crate::query::Query;
use crate::relation_answer::Evidence;
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
    /// Whether the order after each stage is recorded.
    pub is_traced: bool,
    /// Whether all ranked notes are returned, in the order in which `limit` of them would be the first.
    pub is_whole: bool,
}

impl Request<'_> {
    /// Returns the number of notes to return.
    pub fn most_hits(&self) -> usize {
        if self.is_whole { usize::MAX } else { self.limit }
    }
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
    /// What is added because most words of a long query stand in one place of the note, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_quotation: Option<f32>,
    /// What is added or subtracted because of the time for which the note holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_time: Option<f32>,
    /// Why the time changes the place of the note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeReason>,
}

impl Components {
    /// Returns whether the note is first because of its name, a relation or a quotation, and not by rank.
    pub fn is_put_first(&self) -> bool {
        let is_related = self.from_relation.is_some() || self.from_link.is_some();
        self.from_name.is_some() || self.from_quotation.is_some() || is_related
    }

    /// Returns the sum of the parts.
    pub fn total(&self) -> f32 {
        let ranked = self.from_bm25 + self.from_vector + self.from_others + self.from_adjacent.unwrap_or(0.0);
        let related = self.from_relation.unwrap_or(0.0) + self.from_link.unwrap_or(0.0);
        let put = related + self.from_name.unwrap_or(0.0) + self.from_quotation.unwrap_or(0.0);
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
    /// The index of the passage that the query quotes, if it quotes one.
    pub quoted: Option<usize>,
    /// The parts of the score.
    pub components: Components,
    /// What states the relation by which the note answers, or holds the link, if it answers by one.
    pub evidence: Option<Evidence>,
    /// The newest note near the top that says nearly the same.
    pub updated_by: Option<FileId>,
}

impl SearchHit {
    /// Returns the score by which the note is ranked, without what puts it first because the query names or quotes it.
    pub fn rank_score(&self) -> f32 {
        let Components { from_name, from_quotation, .. } = self.components;
        self.score - from_name.unwrap_or(0.0) - from_quotation.unwrap_or(0.0)
    }
}

/// The minimum number of notes of each list that are scored by both measures; it is twice the limit if that is
/// more. More notes change nDCG@10 by less than 0.001 on every evaluation set, and each costs time.
const MIN_RESCORED: usize = 20;

/// The vector of a query, or `None` if only words rank.
pub type QueryVector = Option<Arc<Vec<f32>>>;

/// Returns the files that match the filters of a request, or `None` if all do.
///
/// # Errors
/// `Invalid` for a malformed glob; `Corrupt` if the catalog cannot be read.
pub fn allowed_files(catalog: &CatalogReader, request: &Request<'_>) -> Result<Option<FileSet>> {
    let glob = path_filter(request.path.as_deref())?;
    // Canvases are searched like notes.
    let kinds = match request.filter.kinds {
        Kinds::Searched => Kinds::Searched,
        Kinds::Notes | Kinds::NotesAndCanvases => Kinds::NotesAndCanvases,
    };
    if request.filter.is_unrestricted() && glob.is_none() {
        let mut put_away = catalog.inactive_files(request.filter.hidden)?;
        if kinds != Kinds::Searched {
            put_away.extend(catalog.paths().read_attachments()?);
        }
        return Ok(match request.among {
            Some(among) if put_away.is_empty() => Some(among.clone()),
            Some(among) => Some(among.and(&FileSet::all_but(put_away))),
            None => (!put_away.is_empty()).then(|| FileSet::all_but(put_away)),
        });
    }
    let filter = Filter { kinds, ..request.filter.clone() };
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
