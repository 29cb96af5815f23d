//! Lists memories with their texts, and finds those most similar to a query.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{ErrorKind, Result};
use sidenote_catalog::{FileId, FileRow, Filter, Inactive, path_id};
use sidenote_change::Planner;
use sidenote_links::resolve::{FileNames, name_keys};
use sidenote_markdown::link::Link;
use sidenote_markdown::note::{Note, PieceKind, Separator};
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::related_section::bullet_links;
use sidenote_markdown::tag_conversion;
use sidenote_memory::duplicate::digest;
use sidenote_memory::lexical_similarity::likeness;
use sidenote_memory::recall::key_terms;
use sidenote_memory::types::GENERAL;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::source::{Source, body_of};
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::Searches;
use sidenote_query::memory_weights::{Memory, MemoryWeights};
use sidenote_query::search::hide;
use sidenote_search::query::Query;
use sidenote_search::updated_fact::newer_before_older;
use sidenote_search::{Mode, SearchHit};

use crate::Recalls;
use crate::candidates::Candidates;
use crate::scope::is_uuid;

/// The least number of search results that are compared with a query.
const POOL: usize = 100;

/// The similarity above which a text may be equal to the query, considering titles: of texts with one, the least has .60 to
/// itself (docs/dev/memory.md, Near duplicates).
const ALMOST: f64 = 0.5;

/// The cosine of an unrelated text with a query, in the scale of clients' thresholds. They are chosen for the cosines
/// of all-MiniLM-L6-v2; with .15, as many answers pass .3, .5 and .7 as with that model (docs/dev/ranking.md, Fusion).
const UNRELATED: f64 = 0.15;

/// The longest query, in bytes, that is searched by all its words. A longer one is searched by its key terms.
const SHORT: usize = 1000;

/// A memory with the text of its note.
#[derive(Debug, Clone)]
pub struct MemoryText {
    /// The memory.
    pub memory: Memory,
    /// The id if it is a UUID, or the UUID made from the path.
    pub uuid: String,
    /// The text without frontmatter, trimmed.
    pub content: String,
    /// The text without markup.
    pub plain: String,
    /// The tags, those of the frontmatter first.
    pub tags: Vec<String>,
    /// The property `metadata`.
    pub metadata: Map<String, Value>,
    /// All properties.
    pub properties: Map<String, Value>,
}

/// The memories whose text is most similar to a query.
#[derive(Debug, Clone, Default)]
pub struct SimilarMemories {
    /// The memories, each with its similarity from 0 to 1, the most similar first.
    pub memories: Vec<(MemoryText, f64)>,
    /// Sentences about what the answer lacks, such as that only words were searched.
    pub notices: Vec<String>,
}

/// The order of a list of memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextOrder {
    /// By creation time, the newest first.
    #[default]
    Newest,
    /// By importance, then by creation time.
    Important,
}

/// The selection of a list of memories.
#[derive(Debug, Clone, Default)]
pub struct TextsRequest {
    /// Only memories of this type. A note without a type is general.
    pub kind: Option<String>,
    /// Only memories of this category.
    pub category: Option<String>,
    /// Only memories with any of these tags.
    pub any_tag: Vec<String>,
    /// Only memories created at or after this time.
    pub from: Option<Timestamp>,
    /// Only memories created at or before this time.
    pub to: Option<Timestamp>,
    /// The order.
    pub order: TextOrder,
    /// The number of memories to skip.
    pub skip: usize,
    /// The largest number of memories.
    pub limit: usize,
}

impl Recalls<'_> {
    /// Reads the text of a memory in a list. Returns `None` and logs a warning if it cannot be read, so that one note
    /// does not hide all others.
    fn text_if_readable(&self, memory: Memory) -> Option<MemoryText> {
        self.memory_text(memory).unwrap_or_else(|error| {
            self.core.warn_unless_gone(&error);
            None
        })
    }

    /// Reads the text of a memory. Returns `None` if the note no longer exists.
    ///
    /// # Errors
    /// `Io` if it cannot be read.
    pub fn memory_text(&self, memory: Memory) -> Result<Option<MemoryText>> {
        let bytes = match Lookup::of(self.core).bytes_of(&memory.row) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let source = Source::unplaced(memory.row.path.clone(), &bytes);
        let note = &source.note;
        let mut known = HashSet::new();
        let tags = note.tags.iter().filter(|tag| known.insert(key(&tag.name)));
        let front = note.frontmatter.as_ref();
        let names = tags
            .map(|tag| tag.name.clone())
            .chain(front.into_iter().flat_map(tag_conversion::unconverted_names))
            .collect();
        let value = |name: &str| front.and_then(|front| front.get(name)).map(|property| &property.value);
        let tags = tag_conversion::in_original_form(names, value("tags"), value(tag_conversion::ORIGINALS));
        let properties = note.frontmatter.as_ref().map(|front| front.values()).unwrap_or_default();
        let metadata = properties.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let plain = plain_of(&source.text, note);
        let uuid = uuid_of(&memory.row);
        let content = source.body().to_owned();
        Ok(Some(MemoryText { memory, uuid, content, plain, tags, metadata, properties }))
    }

    /// Lists memories with their texts, and counts all that match. Forgotten memories are left out.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read; `Io` if a note cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn memory_texts(&self, request: &TextsRequest) -> Result<(usize, Vec<MemoryText>)> {
        IndexSync::of(self.core).refresh()?;
        let hidden = Inactive { forgotten: true, archived: false };
        let category = request.category.clone();
        let filter = Filter { hidden, created_after: request.from, category, ..Filter::default() };
        let mut rows = self.with_any_tag(&self.scoped(filter), &request.any_tag)?;
        rows.retain(|row| {
            let kind = row.note_type.as_deref().unwrap_or(GENERAL);
            request.to.is_none_or(|to| row.created <= to)
                && request.kind.as_ref().is_none_or(|wanted| kind.eq_ignore_ascii_case(wanted))
        });
        MemoryWeights::of(self.core).sort_by_creation(&mut rows, true, |row| row)?;
        let now = self.core.clock.now();
        let total = rows.len();
        let page = if request.order == TextOrder::Newest {
            MemoryWeights::of(self.core)
                .weigh(rows.into_iter().skip(request.skip).take(request.limit).collect(), now)?
        } else {
            let mut memories = MemoryWeights::of(self.core).weigh(rows, now)?;
            if request.order == TextOrder::Important {
                memories.sort_by(|one, other| other.state.importance.total_cmp(&one.state.importance));
            }
            memories.into_iter().skip(request.skip).take(request.limit).collect()
        };
        Ok((total, page.into_iter().filter_map(|memory| self.text_if_readable(memory)).collect()))
    }

    /// Selects notes with any of some tags, or all notes if no tags are given.
    fn with_any_tag(&self, filter: &Filter, tags: &[String]) -> Result<Vec<FileRow>> {
        let catalog = self.core.index.catalog();
        if tags.is_empty() {
            return catalog.select(filter);
        }
        let mut known = HashSet::new();
        let mut rows = Vec::new();
        for tag in tags {
            let tagged = catalog.select(&Filter { tags: vec![tag.clone()], ..filter.clone() })?;
            rows.extend(tagged.into_iter().filter(|row| known.insert(row.id)));
        }
        Ok(rows)
    }

    /// Finds the memories whose text is most similar to a query: by their vectors or, without a model, by shared words.
    /// Memories below the threshold are left out. Records a use of each.
    ///
    /// # Errors
    /// `Invalid` for an invalid query or filter; `NotFound` for vector mode without a model; `Corrupt` if the index
    /// cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn most_similar(&self, query: &str, limit: usize, threshold: f64) -> Result<SimilarMemories> {
        IndexSync::of(self.core).refresh()?;
        let query = query.trim();
        if query.is_empty() {
            return Ok(SimilarMemories::default());
        }
        let words = if query.len() > SHORT { key_terms(query).join(" ") } else { String::new() };
        let asked = Query::plain(if words.is_empty() { query } else { &words }).with_prompt(query);
        Searches::of(self.core).embed_recent(Some(Mode::Hybrid), &asked)?;
        let live = hide(&self.scoped(Filter::default()), Inactive::default());
        let most = limit.saturating_mul(3).max(POOL);
        let Candidates { found, mut notices, by_meaning, .. } =
            self.candidates(&asked, Some(Mode::Hybrid), live, most)?;
        let updates: HashMap<FileId, FileId> =
            found.iter().filter_map(|hit| Some((hit.row.id, hit.updated_by?))).collect();
        let mut scored = Vec::with_capacity(found.len());
        for (score, hit) in self.scores(&found, query)?.into_iter().zip(found) {
            // The texts that are returned are those that are compared.
            if shown(score) >= threshold {
                scored.push((hit.row, score));
            }
        }
        // The sort is stable, so equal scores stay in order of creation time.
        MemoryWeights::of(self.core).sort_by_creation(&mut scored, true, |(row, _)| row)?;
        scored.sort_by(|one, other| other.1.total_cmp(&one.1));
        newer_before_older(&mut scored, |(row, _)| Some(row.id), |(row, _)| updates.get(&row.id).copied());
        scored.truncate(limit);
        notices.extend(by_meaning.filter(|_| !scored.is_empty()));
        let (rows, scores): (Vec<FileRow>, Vec<f64>) = scored.into_iter().unzip();
        // The reply shows what the use made of the importance.
        MemoryWeights::of(self.core).note_use(rows.iter(), "search");
        let memories = MemoryWeights::of(self.core).weigh(rows, self.core.clock.now())?;
        let texts = memories
            .into_iter()
            .zip(scores)
            .filter_map(|(memory, score)| Some((self.text_if_readable(memory)?, shown(score))));
        Ok(SimilarMemories { memories: texts.collect(), notices })
    }

    /// Returns the cosines of notes and a query in the scale of a sentence model: by the stored vector of the nearest
    /// passage, or by words if it has none. An equal text has 1, whatever title is in its vector.
    fn scores(&self, found: &[SearchHit], query: &str) -> Result<Vec<f64>> {
        let snapshot = self.core.index.snapshot()?;
        let vectors = &snapshot.vectors;
        let asked = match self.core.query_vector(snapshot.model.as_ref(), query) {
            Ok(asked) => asked.filter(|_| !vectors.is_empty()),
            Err(error) => {
                tracing::warn!("memories are compared by words only: {error}");
                None
            }
        };
        let wanted = digest(query);
        // The similarities of a model without a known mean are cosines.
        let has_mean = snapshot.model.as_ref().is_some_and(|model| model.mean_passage().is_some());
        let unrelated = if has_mean { UNRELATED } else { 0.0 };
        let usual_cosine = |similarity: f64| unrelated + (1.0 - unrelated) * similarity;
        let score = |hit: &SearchHit| {
            let nearest = match &asked {
                None => None,
                Some(asked) => {
                    let keys = self.core.index.catalog().passages().of(hit.row.id)?;
                    let similarities = vectors.compare(asked, &keys)?.into_iter().map(|near| near.similarity);
                    similarities.max_by(f32::total_cmp).map(f64::from)
                }
            };
            if let Some(similarity) = nearest.filter(|similarity| *similarity < ALMOST) {
                return Ok(usual_cosine(similarity));
            }
            let body = match self.core.read_bytes(&hit.row.path) {
                Ok(bytes) => body_of(&bytes),
                Err(error) => {
                    self.core.warn_unless_gone(&error);
                    return Ok(-1.0);
                }
            };
            let is_same = digest(&body) == wanted;
            Ok(if is_same { 1.0 } else { nearest.map_or_else(|| likeness(query, &body), usual_cosine) })
        };
        found.iter().map(score).collect()
    }

    /// Returns the ids of the memories that a memory links to: those in its `links` property, then those that its text
    /// links to.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    pub fn linked_ids(&self, text: &MemoryText) -> Result<Vec<String>> {
        self.ids_of_links(text, |source| source.note.links.iter().collect())
    }

    /// Returns the ids of the memories that a memory is related to: those in its `links` property, then those of its related
    /// section. A link in running text is no relation.
    ///
    /// # Errors
    /// `Io` if the note cannot be read; `Corrupt` if the catalog cannot be read.
    pub fn related_ids(&self, text: &MemoryText) -> Result<Vec<String>> {
        let section = Planner::of(self.core).related_section();
        self.ids_of_links(text, |source| bullet_links(&source.text, &source.note, &section))
    }

    /// Returns the ids in the `links` property of a memory, then those of the notes that some of its links lead to.
    fn ids_of_links(&self, text: &MemoryText, links: impl Fn(&Source) -> Vec<&Link>) -> Result<Vec<String>> {
        let named = text.properties.get("links").and_then(Value::as_array).into_iter().flatten();
        let mut ids: Vec<String> = named.filter_map(Value::as_str).map(str::to_owned).collect();
        for path in self.linked_from(&text.memory.row.path, links)? {
            let row = Lookup::of(self.core).row_at(path.as_str())?;
            let row = row.filter(|row| row.path.is_note() && row.path != text.memory.row.path);
            ids.extend(row.map(|row| row.note_id).filter(|id| !ids.contains(id)));
        }
        Ok(ids)
    }

    /// Lists the files that some links of a note on disk lead to.
    fn linked_from(&self, path: &NotePath, links: impl Fn(&Source) -> Vec<&Link>) -> Result<Vec<NotePath>> {
        let source = match self.core.read_bytes(path) {
            Ok(bytes) => Source::unplaced(path.clone(), &bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let links = links(&source).into_iter().filter(|link| !link.path.is_empty());
        let keys: Vec<String> = links.clone().flat_map(|link| name_keys(&link.path)).collect();
        let dialects = Arc::new(self.core.index.catalog().links().dialects()?);
        let mut names = FileNames::default().with_dialects(dialects);
        let known = self.core.index.catalog().paths().named(&keys)?;
        let unindexed = Lookup::of(self.core).unindexed_files();
        let known = known.iter().map(|(path, _)| path).filter(|path| !unindexed.is_gone(path));
        known.chain(unindexed.notes()).for_each(|path| names.insert(path));
        let found = links.filter_map(|link| Some(names.follow(link, path)?.path.clone()));
        let found: BTreeSet<NotePath> = found.collect();
        Ok(found.into_iter().collect())
    }
}

/// Returns the score that is shown: a part of 1, with three digits.
fn shown(score: f64) -> f64 {
    (score.clamp(0.0, 1.0) * 1000.0).round() / 1000.0
}

/// Returns the text of a note without markup. A link becomes the text that it shows.
fn plain_of(text: &str, note: &Note) -> String {
    let mut plain = String::new();
    let mut is_link = false;
    for piece in note.pieces.iter().filter(|piece| piece.kind != PieceKind::Comment) {
        let before = text.get(..piece.span.start).unwrap_or("");
        if piece.kind == PieceKind::Url && (before.ends_with('(') || before.ends_with("(<")) {
            is_link = true;
            continue;
        }
        let said = piece.span.of(text);
        match piece.separator {
            _ if plain.is_empty() => {}
            Separator::Block => plain.push('\n'),
            // The target of a link was separated from the text around it.
            Separator::Line if !is_link => plain.push(' '),
            Separator::Line | Separator::None => {}
        }
        is_link = false;
        plain.push_str(said);
    }
    plain
}

fn uuid_of(row: &FileRow) -> String {
    if is_uuid(&row.note_id) { row.note_id.clone() } else { path_id(&row.path) }
}
