//! The pipeline of a search: lists by words and by meaning, and the stages from hits to hits that order them.
//!
//! [`rank`] runs the stages that need the index alone, and [`finish`] those that read the best notes. Between them, a caller
//! leaves out the notes that do not meet a condition. Each stage has a name in [`Stage`], and a [`Trace`] records what it did
//! where a request asks for it.

use std::collections::HashMap;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_bm25::Ranking;
use sidenote_catalog::{CatalogReader, FileId, FileRow};
use sidenote_index::{Index, Snapshot};
use sidenote_sets::file_set::FileSet;

use crate::fuse::{self, FusedHit, Ranked};
use crate::lists::{VectorHits, text_list, vector_list};
use crate::named_first::{named_by, put_name_matches_first};
use crate::query::Query;
use crate::reader::SearchReader;
use crate::related_first::put_related_first;
use crate::relation_answer::{RelationAnswer, RelationLookup};
use crate::rescorer::Rescorer;
use crate::stage::{Stage, Trace};
use crate::tie_order::best_first;
use crate::validity_order::TimeReason;
use crate::{
    MIN_RESCORED, MatchType, Mode, QueryVector, Request, SearchHit, allowed_files, quotation,
    relation_question, reranked, sequence, updated_fact, validity_order,
};

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
    /// The order after each stage, if the request asked for it.
    pub trace: Option<Trace>,
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
            quoted: None,
            components: hit.components,
            evidence,
            updated_by,
        }
    }
}

/// A stage that orders the hits.
type OrderingStage = for<'a> fn(&Search<'a>, &mut Hits<'a>) -> Result<()>;

/// The stages behind the lists, in their order.
const STAGES: [(Stage, OrderingStage); 7] = [
    (Stage::Fusion, merge_lists),
    (Stage::AdjacentNotes, add_adjacent_notes),
    (Stage::MissingVectors, raise_notes_with_vectors),
    (Stage::Names, put_named_first),
    (Stage::Relations, put_answers_first),
    (Stage::NewerFacts, put_newer_facts_first),
    (Stage::Validity, order_by_validity),
];

/// Ranks notes without reading their rows. A hybrid search asks `reader` for the vector of the query while another thread
/// looks up the words. The condition of the query is not evaluated here.
///
/// # Errors
/// `Invalid` for a malformed glob; `Io` or `Corrupt` if the index cannot be read; the errors of `reader`.
pub fn rank(
    index: &Index,
    snapshot: &Snapshot,
    request: &Request<'_>,
    reader: &dyn SearchReader,
) -> Result<FusedRanking> {
    let mut trace = request.is_traced.then(Trace::default);
    let Some(search) = Search::of(index, snapshot, request, reader)? else {
        return Ok(FusedRanking { trace, ..FusedRanking::default() });
    };
    let mut hits = search.lists(trace.as_mut())?;
    for (stage, run) in STAGES {
        run(&search, &mut hits)?;
        if let Some(trace) = &mut trace {
            trace.record(stage, hits.order(&index.catalog())?);
        }
    }
    let Hits { fused, passages, answer, has_words, updates, .. } = hits;
    Ok(FusedRanking { fused, passages, answer, has_words, updates, trace })
}

/// Runs the stages that read the best notes, for the first `best` hits: those that the query quotes, the reranker, and the order of
/// superseded notes, which these, a condition or a period may have separated from what supersedes them. `now` is the time of the
/// request.
///
/// # Errors
/// `Corrupt` if the index cannot be read.
pub fn finish(
    index: &Index,
    snapshot: &Snapshot,
    (query, now, reader): (&Query, Option<Timestamp>, &dyn SearchReader),
    mut hits: Vec<SearchHit>,
    best: usize,
    mut trace: Option<&mut Trace>,
) -> Result<Vec<SearchHit>> {
    let rest = hits.split_off(best.min(hits.len()));
    let mut record = |stage, hits: &[SearchHit]| {
        if let Some(trace) = &mut trace {
            trace.record(stage, hits.iter().chain(&rest).map(|hit| hit.row.id));
        }
    };
    quotation::put_quoted_first(query, reader, &mut hits);
    record(Stage::Quotations, &hits);
    reranked::rerank(reader, &mut hits);
    record(Stage::Reranker, &hits);
    if let Some(now) = now {
        hits = validity_order::order_hits(index, snapshot, hits, now)?;
        record(Stage::Validity, &hits);
    }
    hits.extend(rest);
    Ok(hits)
}

/// Runs all stages for a query without a condition, and returns the best notes with their rows.
///
/// # Errors
/// The errors of [`rank`] and [`finish`].
pub fn run(
    index: &Index,
    snapshot: &Snapshot,
    request: &Request<'_>,
    reader: &dyn SearchReader,
) -> Result<Vec<SearchHit>> {
    let hits = rank(index, snapshot, request, reader)?.hits(&index.catalog(), request.limit)?;
    match request.query {
        Some(query) => finish(index, snapshot, (query, request.now, reader), hits, request.limit, None),
        None => Ok(hits),
    }
}

/// The number of candidates of a condition that are ranked by words; the others follow by name.
const CONDITION_DEPTH: usize = 5_000;

/// What the stages of a search read.
struct Search<'a> {
    index: &'a Index,
    snapshot: &'a Snapshot,
    request: &'a Request<'a>,
    query: &'a Query,
    reader: &'a dyn SearchReader,
    allowed: Option<FileSet>,
    /// The most notes of a list.
    depth: usize,
    /// The most notes of each list that are scored by both measures.
    most_rescored: usize,
}

/// What is looked up before any order.
#[derive(Default)]
struct Lists<'a> {
    ranking: Ranking<'a>,
    near: VectorHits,
    /// The notes whose name is the query.
    named: Vec<FileId>,
    answer: Option<RelationAnswer>,
}

/// What the stages of a search order.
struct Hits<'a> {
    text: Vec<Ranked>,
    vector: Vec<Ranked>,
    /// The index of the passage nearest to the query, by note.
    passages: HashMap<FileId, usize>,
    /// Whether some note that was searched has a word of the query.
    has_words: bool,
    /// The notes whose name is the query.
    named: Vec<FileId>,
    answer: Option<RelationAnswer>,
    scorer: Rescorer<'a>,
    /// Whether the notes before and after the best ones gain by them.
    counts_adjacent: bool,
    fused: Vec<FusedHit>,
    /// Whether hits with equal scores are in their final order.
    is_ordered: bool,
    updates: HashMap<FileId, FileId>,
}

impl Hits<'_> {
    /// Returns the order of the hits. Before the stage that does so for all, hits with equal scores are ordered by path.
    fn order(&self, catalog: &CatalogReader) -> Result<Vec<FileId>> {
        let mut order: Vec<(FileId, f32)> = self.fused.iter().map(|hit| (hit.file, hit.score)).collect();
        if !self.is_ordered {
            best_first(catalog, &mut order, |(file, score)| (*score, *file))?;
        }
        Ok(order.into_iter().map(|(file, _)| file).collect())
    }
}

impl<'a> Search<'a> {
    /// Returns what the stages read, or `None` if nothing can be found.
    fn of(
        index: &'a Index,
        snapshot: &'a Snapshot,
        request: &'a Request<'a>,
        reader: &'a dyn SearchReader,
    ) -> Result<Option<Self>> {
        let Some(query) = request.query else { return Ok(None) };
        let allowed = allowed_files(&index.catalog(), request)?;
        if allowed.as_ref().is_some_and(FileSet::is_empty) {
            return Ok(None);
        }
        let documents = usize::try_from(snapshot.bm25.documents()).unwrap_or(usize::MAX);
        let depth = request.depth.unwrap_or_else(|| request.limit.saturating_mul(5));
        let depth = depth.max(50).min(documents.max(1));
        let most_rescored = request.limit.saturating_mul(2).max(MIN_RESCORED);
        Ok(Some(Self { index, snapshot, request, query, reader, allowed, depth, most_rescored }))
    }

    /// Makes the lists, and looks up the notes that the query names and those that answer it by relation.
    fn lists(&self, trace: Option<&mut Trace>) -> Result<Hits<'a>> {
        let Lists { ranking, near, named, answer } = match self.request.mode {
            Mode::Bm25 => Lists { ranking: self.words()?, named: self.named()?, ..Lists::default() },
            Mode::Vector => {
                let near = self.meaning(self.reader.query_vector()?)?;
                Lists { near, named: self.named()?, ..Lists::default() }
            }
            Mode::Hybrid => self.words_beside_meaning()?,
        };
        let mut text: Vec<Ranked> =
            ranking.hits.iter().map(|hit| Ranked { file: hit.file, score: hit.score }).collect();
        let VectorHits { list: mut vector, passages, vector: query_vector } = near;
        if let Some(trace) = trace {
            trace.record(Stage::Words, text.iter().map(|hit| hit.file));
            trace.record(Stage::Meaning, vector.iter().map(|hit| hit.file));
        }
        let (fusion, is_hybrid) = (self.request.fusion, self.request.mode == Mode::Hybrid);
        if fusion.rescores() && is_hybrid {
            // Candidates of a condition are kept, because all of them may be needed.
            text.truncate(if self.query.condition.is_some() { text.len() } else { self.most_rescored });
            vector.truncate(self.most_rescored);
        }
        // If vectors are missing, every fusion method needs to know where.
        let query_vector = query_vector.filter(|_| fusion.rescores() || self.snapshot.pending > 0);
        let counts_adjacent = query_vector.is_some() && fusion.rescores() && is_hybrid;
        let has_words = !ranking.hits.is_empty();
        let scorer = Rescorer::new(self.snapshot, self.index, query_vector, ranking)?;
        Ok(Hits {
            text,
            vector,
            passages,
            has_words,
            named,
            answer,
            scorer,
            counts_adjacent,
            fused: Vec::new(),
            is_ordered: false,
            updates: HashMap::new(),
        })
    }

    /// Looks up the words, and then the relations, on another thread than the meaning.
    fn words_beside_meaning(&self) -> Result<Lists<'a>> {
        let other = || -> Result<_> {
            let (ranking, named) = (self.words()?, self.named()?);
            let answer = self.related(&named)?;
            Ok((ranking, named, answer))
        };
        let (other, near) = parallel::join(other, || self.meaning(self.reader.query_vector()?));
        let (ranking, named, answer) = other?;
        Ok(Lists { ranking, near: near?, named, answer })
    }

    /// The stage of the words: ranks notes by BM25.
    fn words(&self) -> Result<Ranking<'a>> {
        // With a condition more notes are ranked, because it is not known yet which of them match.
        let has_condition = self.query.condition.is_some();
        let depth = if has_condition { self.depth.max(CONDITION_DEPTH) } else { self.depth };
        let is_alone = self.request.mode == Mode::Bm25;
        text_list(self.snapshot, self.index, self.query, self.allowed.as_ref(), depth, is_alone)
    }

    /// The stage of the meaning: ranks notes by the passages nearest to the query.
    fn meaning(&self, vector: QueryVector) -> Result<VectorHits> {
        let Some(vector) = vector.filter(|_| !self.snapshot.vectors.is_empty()) else {
            return Ok(VectorHits::default());
        };
        let is_approximate = self.query.condition.is_some();
        let allowed = self.allowed.as_ref();
        let (list, passages) =
            vector_list(self.snapshot, self.index, &vector, allowed, self.depth, is_approximate)?;
        Ok(VectorHits { list, passages, vector: Some(vector) })
    }

    fn named(&self) -> Result<Vec<FileId>> {
        named_by(self.index, self.query, self.allowed.as_ref())
    }

    fn related(&self, named: &[FileId]) -> Result<Option<RelationAnswer>> {
        match self.request.relations {
            // A note that the whole query names is what was asked for.
            Some(rules) if self.query.condition.is_none() && named.is_empty() => {
                let lookup = RelationLookup { rules, reader: self.reader };
                let catalog = &self.index.catalog();
                relation_question::answer((catalog, self.snapshot), lookup, &self.query.text)
            }
            _ => Ok(None),
        }
    }
}

fn merge_lists<'a>(search: &Search<'a>, hits: &mut Hits<'a>) -> Result<()> {
    let most = search.depth.min(search.most_rescored);
    let best = hits.text.get(..hits.text.len().min(most)).unwrap_or_default();
    hits.scorer.add(best.iter().chain(&hits.vector).map(|hit| hit.file).collect())?;
    hits.fused = fuse::fuse(&hits.scorer.candidates(&hits.text, &hits.vector, &[]), search.request.fusion);
    Ok(())
}

fn add_adjacent_notes<'a>(search: &Search<'a>, hits: &mut Hits<'a>) -> Result<()> {
    if !hits.counts_adjacent {
        return Ok(());
    }
    best_first(&search.index.catalog(), &mut hits.fused, |hit| (hit.score, hit.file))?;
    let allowed = search.allowed.as_ref();
    let adjacent = sequence::adjacent_to_best(&search.index.catalog(), &hits.fused, allowed)?;
    if !adjacent.is_empty() {
        let unlisted = hits.scorer.add(adjacent.iter().map(|note| note.file).collect())?;
        let candidates = hits.scorer.candidates(&hits.text, &hits.vector, &unlisted);
        hits.fused = fuse::fuse(&candidates, search.request.fusion);
        sequence::add_adjacent_scores(&mut hits.fused, &adjacent);
    }
    Ok(())
}

/// This is the last stage with the scorer, so it takes over the passages that were compared.
fn raise_notes_with_vectors<'a>(search: &Search<'a>, hits: &mut Hits<'a>) -> Result<()> {
    let candidates = hits.scorer.candidates(&hits.text, &hits.vector, &[]);
    fuse::raise_embedded(&mut hits.fused, &candidates, search.request.fusion);
    hits.passages.extend(std::mem::take(&mut hits.scorer.passages));
    Ok(())
}

fn put_named_first<'a>(_: &Search<'a>, hits: &mut Hits<'a>) -> Result<()> {
    put_name_matches_first(std::mem::take(&mut hits.named), &mut hits.fused);
    Ok(())
}

/// This is the last stage that changes scores alone, so it orders the hits by them.
fn put_answers_first<'a>(search: &Search<'a>, hits: &mut Hits<'a>) -> Result<()> {
    let answer = hits.answer.take();
    hits.answer =
        answer.and_then(|answer| put_related_first(answer, search.allowed.as_ref(), &mut hits.fused));
    hits.is_ordered = true;
    best_first(&search.index.catalog(), &mut hits.fused, |hit| (hit.score, hit.file))
}

fn put_newer_facts_first<'a>(search: &Search<'a>, hits: &mut Hits<'a>) -> Result<()> {
    if search.request.mode == Mode::Bm25 {
        return Ok(());
    }
    let Search { index, snapshot, query, .. } = *search;
    hits.updates = updated_fact::newer_first(index, snapshot, query, &hits.passages, &mut hits.fused)?;
    Ok(())
}

fn order_by_validity<'a>(search: &Search<'a>, hits: &mut Hits<'a>) -> Result<()> {
    let Some(now) = search.request.now else { return Ok(()) };
    let fused = std::mem::take(&mut hits.fused);
    let allowed = search.allowed.as_ref();
    hits.fused = validity_order::order(search.index, search.snapshot, allowed, fused, now)?;
    Ok(())
}
