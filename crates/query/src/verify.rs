//! Verifies the candidates of a conditional query by reading the files.
//!
//! Files are read in the order of the results, and only until the page is full.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::error::{ErrorKind, Result};
use sidenote_base::parallel;
use sidenote_catalog::{FileId, FileKind, FileRow, Kinds};
use sidenote_index::Snapshot;
use sidenote_index::file_table::FileTable;
use sidenote_markdown::path::{NotePath, key};
use sidenote_memory::tier::Tier;
use sidenote_open_vault::Core;
use sidenote_open_vault::lookup::Lookup;
use sidenote_search::candidates::{Bounds, CandidateSelector, MetadataMatches, is_in_period};
use sidenote_search::fuse::FusedHit;
use sidenote_search::metadata_filter::MetadataFilter;
use sidenote_search::pipeline::{FusedRanking, rank};
use sidenote_search::predicate::{Content, Evaluator, FileData};
use sidenote_search::query_parser::{Field, QueryNode, TextUnit};
use sidenote_search::reader::SearchReader;
use sidenote_search::relation_answer::RelationAnswer;
use sidenote_search::stage::{Stage, Trace};
use sidenote_search::typed_relations::TypedRelations;
use sidenote_search::{Components, Request, SearchHit, allowed_files, path_filter};
use sidenote_sets::file_set::FileSet;

use crate::Searches;
use crate::memory_weights::MemoryWeights;

/// The number of files that are read at first; the number doubles each time.
const FIRST: usize = 16;

/// The largest number of files that are read at once, because their texts are in memory meanwhile.
const MOST: usize = 1_024;
/// The number of files in which a regular expression may exceed its steps before the search ends: it would exceed them
/// in most files.
const MOST_UNDECIDED: usize = 64;

/// The notes that match a request.
#[derive(Debug, Default)]
pub struct SearchHits {
    /// The hits, best first.
    pub found: Vec<SearchHit>,
    /// The number of the first hits from which a search takes its results. There are more only if all were asked for.
    pub(crate) best: usize,
    /// The answer by relation, if the query asks for one.
    pub(crate) answer: Option<RelationAnswer>,
    /// What could not be decided, as a sentence.
    pub(crate) undecided: Option<String>,
    /// How a condition was met, where the query is one.
    pub(crate) sifted: Option<Verification>,
    /// Whether some note that was searched has a word of the query, or what replaces one.
    pub(crate) has_words: bool,
    /// The order after each stage, if it was recorded.
    pub(crate) trace: Option<Trace>,
}

impl SearchHits {
    /// Returns the hits from which a search takes its results.
    pub(crate) fn best(&self) -> &[SearchHit] {
        self.found.get(..self.best).unwrap_or(&self.found)
    }
}

/// How a condition was verified on the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The number of files that certainly meet the condition, according to the index.
    pub sure: usize,
    /// The number of files that may meet the condition, including the certain ones.
    pub maybe: usize,
    /// The number of files that were read for this page.
    pub judged: usize,
    /// The number of these that did not meet the condition.
    pub dropped: usize,
    /// The first of those, in the order of the results.
    pub first_dropped: Vec<String>,
}

/// The largest number of rejected files that are named.
const NAMED: usize = 5;

/// The files that can match a query, before any is read.
struct Narrowed {
    bounds: Bounds,
    /// The attachments that match by their names.
    attachments: FileSet,
    known: MetadataMatches,
}

impl Searches<'_> {
    /// Finds the notes that match a request, best first, and reports what could not be decided.
    ///
    /// # Errors
    /// `Invalid` for a malformed filter; `NotFound` for vector mode without a model; `Corrupt` if the index cannot be
    /// read.
    pub fn found(
        &self,
        snapshot: &Snapshot,
        request: &Request<'_>,
        reader: &dyn SearchReader,
    ) -> Result<SearchHits> {
        let Some(condition) = request.query.and_then(|query| query.condition.as_ref()) else {
            let ranking = rank(&self.core.index, snapshot, request, reader)?;
            let found = ranking.hits(&self.core.index.catalog(), request.most_hits())?;
            let best = found.len().min(request.limit);
            let FusedRanking { answer, has_words, trace, .. } = ranking;
            return Ok(SearchHits { found, best, answer, has_words, trace, ..SearchHits::default() });
        };
        let table = self.core.index.file_table(snapshot)?;
        let scope = self.narrowed(condition, request, snapshot, &table)?;
        let among = Request { among: Some(&scope.bounds.possible), ..request.clone() };
        let ranking = rank(&self.core.index, snapshot, &among, reader)?;
        let mut hits = self.verify_candidates(condition, &scope, &ranking, &table, request.most_hits())?;
        hits.best = hits.found.len().min(request.limit);
        hits.trace = ranking.trace;
        if let Some(trace) = &mut hits.trace {
            trace.record(Stage::Condition, hits.found.iter().map(|hit| hit.row.id));
        }
        Ok(hits)
    }

    fn narrowed(
        &self,
        condition: &QueryNode,
        request: &Request<'_>,
        snapshot: &Snapshot,
        table: &FileTable,
    ) -> Result<Narrowed> {
        let known = self.known(condition, snapshot)?;
        let catalog = self.core.index.catalog();
        let selector = CandidateSelector::new(snapshot, &catalog, table, &known);
        let mut bounds = selector.bounds(condition)?;
        let mut attachments = selector.attachments(condition);
        let allowed = allowed_files(&catalog, request)?;
        // Filters select notes; a path alone selects any file.
        let glob = path_filter(request.path.as_deref())?;
        let finds_attachments = request.filter.is_unrestricted() && request.filter.kinds == Kinds::Searched;
        let loose: FileSet = table
            .entries()
            .iter()
            .filter(|entry| entry.kind == FileKind::Attachment && finds_attachments)
            .filter(|entry| glob.as_ref().is_none_or(|glob| glob.is_match(entry.path.as_str())))
            .filter(|entry| request.among.is_none_or(|among| among.contains(entry.id)))
            .map(|entry| entry.id)
            .collect();
        attachments = attachments.and(&loose);
        if let Some(allowed) = allowed {
            let kept = |files: &FileSet| files.and(&allowed).or(&files.and(&loose));
            bounds = Bounds { certain: kept(&bounds.certain), possible: kept(&bounds.possible) };
        }
        drop(catalog);
        Ok(Narrowed { bounds, attachments, known })
    }

    /// Reads the facts about links and states from the catalog.
    fn known(&self, condition: &QueryNode, snapshot: &Snapshot) -> Result<MetadataMatches> {
        let mut wanted: Vec<MetadataFilter> = Vec::new();
        each_filter(condition, &mut |filter| wanted.push(filter.clone()));
        let mut known = HashMap::new();
        for filter in wanted {
            let files: Vec<FileId> = match &filter {
                MetadataFilter::LinksTo(name) => {
                    let row = Lookup::of(self.core).find(name)?;
                    self.core
                        .index
                        .catalog()
                        .links()
                        .incoming(row.id)?
                        .into_iter()
                        .map(|link| link.source)
                        .collect()
                }
                MetadataFilter::LinkedFrom(name) => {
                    let row = Lookup::of(self.core).find(name)?;
                    let links = self.core.index.catalog().links().outgoing(row.id)?;
                    links.into_iter().filter_map(|link| link.target).collect()
                }
                MetadataFilter::Relation(kind, name) => self.related_by(kind.as_deref(), name.as_deref())?,
                MetadataFilter::Orphan => {
                    self.core.index.catalog().links().orphans()?.into_iter().map(|row| row.id).collect()
                }
                MetadataFilter::Pinned => {
                    let having = snapshot.bm25.with_property(&["pinned".to_owned()])?;
                    let ids: Vec<FileId> = having.iter().collect();
                    let properties = self.core.index.catalog().properties().of(&ids)?;
                    properties.into_iter().filter(|(_, map)| is_pinned(map)).map(|(id, _)| id).collect()
                }
                _ => continue,
            };
            known.insert(filter, files.into_iter().collect());
        }
        Ok(known)
    }

    /// Lists the files at one end of relations of a type, or of any, whose other end is a note, or any. `works_at` gives the
    /// subjects, and its inverse `employs` the objects.
    fn related_by(&self, kind: Option<&str>, name: Option<&str>) -> Result<Vec<FileId>> {
        let named = name.map(|name| Lookup::of(self.core).find(name)).transpose()?.map(|row| row.id);
        let catalog = self.core.index.catalog();
        let rules = &self.core.state.relation_rules;
        let relations = TypedRelations::new(&catalog, rules);
        let mut found = Vec::new();
        let Some(kind) = kind else {
            let of_note = named.map(|file| relations.of(file)).transpose()?.unwrap_or_default();
            found.extend(
                of_note.iter().flat_map(|one| [one.subject, one.object]).filter(|file| Some(*file) != named),
            );
            return Ok(found);
        };
        for (kind, end) in rules.meant_by(kind) {
            let matching = match named {
                Some(file) => relations.with_end(&kind, file, end.other())?,
                None => relations.of_type(&kind)?,
            };
            found.extend(matching.iter().map(|relation| relation.at(end)));
        }
        Ok(found)
    }

    /// Evaluates a condition for one file, regardless of the index. Returns whether it holds, and whether it could not
    /// be decided.
    ///
    /// # Errors
    /// `Invalid` for a malformed filter; `NotFound` for vector mode without a model; `Corrupt` if the index cannot be
    /// read.
    pub(super) fn judged(
        &self,
        condition: &QueryNode,
        row: &FileRow,
        snapshot: &Snapshot,
    ) -> Result<(bool, bool)> {
        let scope = Narrowed {
            bounds: Bounds::default(),
            attachments: FileSet::default(),
            known: self.known(condition, snapshot)?,
        };
        let hit = FusedHit { file: row.id, score: 0.0, components: Components::default() };
        match self.candidates_of(condition, &[hit], &scope)?.first() {
            Some(candidate) => candidate.verdict(self.core, condition, &scope),
            None => Ok((false, false)),
        }
    }

    /// Reads the files in the order of the results, and keeps those that meet the condition.
    fn verify_candidates(
        &self,
        condition: &QueryNode,
        scope: &Narrowed,
        ranking: &FusedRanking,
        table: &FileTable,
        limit: usize,
    ) -> Result<SearchHits> {
        let ranked: FileSet = ranking.fused.iter().map(|hit| hit.file).collect();
        let unranked = table.entries().iter().map(|entry| entry.id).filter(|&id| {
            !ranked.contains(id) && (scope.bounds.possible.contains(id) || scope.attachments.contains(id))
        });
        let by_name = unranked.map(|file| FusedHit { file, score: 0.0, components: Components::default() });
        let mut order = ranking.fused.iter().copied().chain(by_name);
        let (certain, possible) = (&scope.bounds.certain, &scope.bounds.possible);
        let mut sifted = Verification {
            sure: certain.len() + scope.attachments.len(),
            maybe: possible.len() + scope.attachments.len(),
            ..Verification::default()
        };
        let mut found = Vec::new();
        let mut gave_up: Vec<NotePath> = Vec::new();
        let mut count = FIRST;
        // This is checked between batches of fixed sizes, so that the same files are read on a slow machine.
        while found.len() < limit && gave_up.len() < MOST_UNDECIDED {
            let hits: Vec<FusedHit> = order.by_ref().take(count).collect();
            if hits.is_empty() {
                break;
            }
            count = count.saturating_mul(2).min(MOST);
            let candidates = self.candidates_of(condition, &hits, scope)?;
            let verdicts = parallel::map(
                &candidates,
                2,
                || (),
                |(), candidate| candidate.verdict(self.core, condition, scope),
            );
            for (candidate, verdict) in candidates.into_iter().zip(verdicts) {
                let (holds, unsure) = verdict?;
                if unsure {
                    gave_up.push(candidate.row.path.clone());
                }
                if found.len() >= limit {
                    break;
                }
                sifted.judged += 1;
                if holds {
                    found.push(ranking.hit(candidate.row, &candidate.hit));
                    continue;
                }
                sifted.dropped += 1;
                if sifted.first_dropped.len() < NAMED {
                    sifted.first_dropped.push(candidate.row.path.as_str().to_owned());
                }
            }
        }
        let undecided = gave_up.first().map(|first| {
            let count = gave_up.len();
            let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
            let stopped = order.next().is_some() && count >= MOST_UNDECIDED;
            let rest = if stopped { "; the remaining files were not searched" } else { "" };
            format!("a regular expression takes too many steps in {files}, such as {first}{rest}")
        });
        let has_words = !found.is_empty();
        Ok(SearchHits { found, undecided, sifted: Some(sifted), has_words, ..SearchHits::default() })
    }

    /// Reads the facts about files that the condition needs from the catalog.
    fn candidates_of(
        &self,
        condition: &QueryNode,
        hits: &[FusedHit],
        scope: &Narrowed,
    ) -> Result<Vec<Candidate>> {
        let needs_property = condition.any(&|node| matches!(node, QueryNode::Property(..)));
        let needs_tag = condition.any(&|node| matches!(node, QueryNode::Text(Field::Tag, _)));
        let needs_section = condition.any(&|node| matches!(node, QueryNode::Within(TextUnit::Section, _)));
        let catalog = self.core.index.catalog();
        let mut candidates = Vec::with_capacity(hits.len());
        for &hit in hits {
            let ids = [hit.file];
            // A file that was removed since it was indexed is left out.
            let Some(row) = catalog.rows(&ids)?.pop() else { continue };
            let is_certain = scope.bounds.certain.contains(row.id) || scope.attachments.contains(row.id);
            let mut candidate = Candidate {
                row,
                hit,
                is_certain,
                properties: Map::new(),
                tags: Vec::new(),
                sections: None,
                tier: None,
            };
            if needs_property && !is_certain {
                let mut found = catalog.properties().of(&ids)?;
                candidate.properties = found.remove(&hit.file).unwrap_or_default();
            }
            if needs_tag && !is_certain {
                candidate.tags = catalog.tags_of(hit.file)?;
            }
            if needs_section && !is_certain && candidate.row.kind == FileKind::Note {
                candidate.sections = catalog.sections_of(hit.file)?;
            }
            candidates.push(candidate);
        }
        drop(catalog);
        if condition.any(&|node| matches!(node, QueryNode::Metadata(MetadataFilter::Tier(_)))) {
            let rows = candidates.iter().map(|candidate| candidate.row.clone());
            let notes = rows.filter(|row| row.kind == FileKind::Note).collect();
            let weighed = MemoryWeights::of(self.core).weigh_for_scores(notes, self.core.clock.now())?;
            let tiers: HashMap<FileId, Tier> =
                weighed.into_iter().map(|memory| (memory.row.id, memory.state.tier)).collect();
            for candidate in &mut candidates {
                candidate.tier = tiers.get(&candidate.row.id).copied();
            }
        }
        Ok(candidates)
    }
}

/// A file that may meet a condition, with facts from the catalog.
struct Candidate {
    row: FileRow,
    hit: FusedHit,
    is_certain: bool,
    properties: Map<String, Value>,
    tags: Vec<String>,
    /// The lines at which its sections began when it was indexed.
    sections: Option<Vec<usize>>,
    tier: Option<Tier>,
}

impl Candidate {
    /// Returns whether the file meets the condition, and whether that could not be decided.
    fn verdict(&self, core: &Core, condition: &QueryNode, scope: &Narrowed) -> Result<(bool, bool)> {
        if self.is_certain {
            return Ok((true, false));
        }
        let file = File { candidate: self, core, known: &scope.known, content: OnceCell::new() };
        let evaluator = Evaluator::new(&file);
        let holds = evaluator.matches(condition)?;
        Ok((holds, evaluator.hit_step_limit()))
    }
}

/// A file for the evaluator, which reads it only if the condition needs its text.
struct File<'a> {
    candidate: &'a Candidate,
    core: &'a Core,
    known: &'a MetadataMatches,
    content: OnceCell<Option<Content>>,
}

impl FileData for File<'_> {
    fn path(&self) -> &NotePath {
        &self.candidate.row.path
    }

    fn properties(&self) -> Result<&Map<String, Value>> {
        Ok(&self.candidate.properties)
    }

    fn tags(&self) -> Result<&[String]> {
        Ok(&self.candidate.tags)
    }

    fn content(&self) -> Option<&Content> {
        let row = &self.candidate.row;
        let read = || {
            // A file that the index could not read is not read here: it is too large or not accessible.
            if row.kind != FileKind::Attachment && row.hash.is_none() {
                return None;
            }
            if row.kind == FileKind::Attachment && row.hash.is_some() {
                let text = self.core.read_searched(row);
                let text = text.inspect_err(|error| self.core.warn_unless_gone(error)).ok().flatten();
                return text.map(|text| Content::of_attachment(&text));
            }
            match self.core.read_bytes(&row.path) {
                Ok(bytes) => {
                    let content = Content::new(&row.path, &bytes);
                    // The file may have changed since it was indexed.
                    let is_as_indexed = || row.hash.is_some_and(|hash| blake3::hash(&bytes) == hash);
                    Some(match &self.candidate.sections {
                        Some(sections) if is_as_indexed() => content.with_sections(sections.clone()),
                        _ => content,
                    })
                }
                Err(error) => {
                    if error.kind() != ErrorKind::NotFound {
                        tracing::warn!("{error}; it is treated as empty");
                    }
                    None
                }
            }
        };
        self.content.get_or_init(read).as_ref()
    }

    fn matches_filter(&self, filter: &MetadataFilter) -> Result<bool> {
        let row = &self.candidate.row;
        let is = |text: &Option<String>, name: &String| {
            text.as_ref().is_some_and(|text| text.to_lowercase() == *name)
        };
        Ok(match filter {
            MetadataFilter::Tier(tier) => self.candidate.tier == Some(*tier),
            MetadataFilter::Type(name) => is(&row.note_type, name),
            MetadataFilter::Category(name) => is(&row.category, name),
            MetadataFilter::Created(from, to) => row.time_sources.created.admits(row.created, *from, *to),
            MetadataFilter::Updated(from, to) => is_in_period(row.updated, *from, *to),
            MetadataFilter::LinksTo(_)
            | MetadataFilter::LinkedFrom(_)
            | MetadataFilter::Relation(..)
            | MetadataFilter::Orphan
            | MetadataFilter::Pinned => self.known.get(filter).is_some_and(|files| files.contains(row.id)),
        })
    }
}

/// Visits the metadata filters of a condition.
fn each_filter<'a>(node: &'a QueryNode, visit: &mut impl FnMut(&'a MetadataFilter)) {
    match node {
        QueryNode::All(nodes) | QueryNode::Any(nodes) => {
            nodes.iter().for_each(|node| each_filter(node, visit))
        }
        QueryNode::Not(node) | QueryNode::Within(_, node) => each_filter(node, visit),
        QueryNode::Metadata(filter) => visit(filter),
        QueryNode::Text(..) | QueryNode::Property(..) | QueryNode::Null | QueryNode::Compare(..) => {}
    }
}

fn is_pinned(properties: &Map<String, Value>) -> bool {
    let is_true = |value: &Value| {
        value
            .as_bool()
            .unwrap_or_else(|| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true")))
    };
    properties.iter().any(|(name, value)| key(name) == "pinned" && is_true(value))
}
