//! Searches: parses the query, ranks notes, and shows their best passages.

use std::sync::PoisonError;
use std::time::Duration;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{ErrorKind, Result};
use sidenote_base::parallel;
use sidenote_base::wording::Wording;
use sidenote_catalog::{Filter, Inactive};
use sidenote_index::Snapshot;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_language::graphemes::shortened;
use sidenote_language::terms::CachedStemmer;
use sidenote_markdown::attachment::Place;
use sidenote_memory::score::IntentScore;
use sidenote_memory::tier::Tier;
use sidenote_memory::validity::Invalidity;
use sidenote_open_vault::sync::IndexSync;
use sidenote_open_vault::{Core, former_of};
use sidenote_search::fuse::Fusion;
use sidenote_search::predicate::matching_spans;
use sidenote_search::query::Query;
use sidenote_search::relation_answer::Evidence;
use sidenote_search::snippet::{excerpt, excerpt_of_parts, plain_text};
use sidenote_search::stage::Stage;
use sidenote_search::{Components, MatchType, Mode, QueryVector, SearchHit};

use crate::Searches;
use crate::corrected_query::suggestion;
use crate::extent::Extent;
use crate::memory_ranking::MemoryRanking;
use crate::memory_weights::Memory;
use crate::read::Reads;
use crate::validity::invalidities;
use crate::verify::{SearchHits, Verification};

impl Searches<'_> {
    /// Clears the cache of query vectors, so that a benchmark measures the embedding of each.
    pub fn forget_query_vectors(&self) {
        self.core.state.query_vectors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Searches the vault. A search does not count as a use of its results.
    ///
    /// # Errors
    /// `Invalid` for a malformed filter; `NotFound` for vector mode without a model.
    #[tracing::instrument(skip_all)]
    pub fn search(&self, request: &SearchRequest) -> Result<SearchReply> {
        let started = std::time::Instant::now();
        let stale = !request.no_sync && IndexSync::of(self.core).refresh()? > 0;
        if !request.no_sync {
            if request.finds_attachments() {
                IndexSync::of(self.core).read_new_attachments();
            }
            self.embed_recent(request.mode, &request.parsed(self.core.clock.now()).unwrap_or_default())?;
        }
        let mut reply = self.search_as_is(request)?;
        reply.stale = stale;
        if reply.results.is_empty() {
            let absent = Reads::of(self.core).absent(&request.filter, None, request.path.as_deref())?;
            reply.notes.extend(absent.into_iter().map(Wording::from));
        }
        if request.no_sync {
            reply.notes.push("the files were not compared with the index".into());
        }
        reply.took_ms = (started.elapsed().as_secs_f64() * 1e5).round() / 100.0;
        Ok(reply)
    }

    /// Searches the index without updating it.
    fn search_as_is(&self, request: &SearchRequest) -> Result<SearchReply> {
        let snapshot = self.core.index.snapshot()?;
        let ranked = self.ranked(request, &snapshot, Extent::Pages)?;
        let (query, mode, mut hits, mut notes) = (ranked.query, ranked.mode, ranked.hits, ranked.notes);
        // Nobody looks for the words of a date.
        let by_meaning = hits.by_meaning_notice(&query, &snapshot)?.filter(|_| !ranked.is_date_alone);
        let suggestion = match hits.has_words || request.skip > 0 {
            true => None,
            false => suggestion(self.core, &request.query, &query, &snapshot)?,
        };
        hits.found.truncate(ranked.most);
        if mode != Mode::Bm25 {
            notes.extend(pending_notice(self.core, &snapshot).map(Wording::from));
        }
        if request.finds_attachments() {
            notes.extend(unread_notice(self.core.index.catalog().totals().waiting()?));
        }
        let sifted = hits.sifted.take();
        let (results, stages) = self.page(request, &query, hits, ranked.limit)?;
        let mut explain = None;
        if request.explain {
            let explained = explain.insert(self.explained(request, &query, mode, sifted, &snapshot)?);
            explained.filters.extend(ranked.period.map(|period| period.filter));
            explained.stages = stages;
        }
        // Who asks for meaning alone expects other words.
        notes.extend(by_meaning.filter(|_| mode == Mode::Hybrid && !results.is_empty()));
        Ok(SearchReply {
            did_you_mean: suggestion,
            explain,
            results,
            mode,
            stale: false,
            embedder: self.core.embedder_name(),
            pending: snapshot.pending,
            notes,
            took_ms: 0.0,
        })
    }

    /// Returns the requested page of the hits, each with its state as a memory if the request ranks memories, and the stages
    /// that put them in order, if these were recorded.
    fn page(
        &self,
        request: &SearchRequest,
        query: &Query,
        hits: SearchHits,
        limit: usize,
    ) -> Result<(Vec<SearchResult>, Vec<Stage>)> {
        let SearchHits { mut found, mut trace, .. } = hits;
        let now = request.as_of.unwrap_or(self.core.clock.now());
        let mut ranked = match request.memories {
            Some(ranking) => self.rank_memories(ranking, &mut found, now)?,
            None => Vec::new(),
        };
        if let Some(trace) = trace.as_mut().filter(|_| request.memories.is_some()) {
            trace.record(Stage::Intent, found.iter().map(|hit| hit.row.id));
        }
        found.truncate(limit);
        ranked.truncate(limit);
        let ranked = ranked.split_off(request.skip.min(ranked.len()));
        let page = found.get(request.skip..).unwrap_or_default();
        let mut results = self.show(page, query, request.form());
        // What was valid then is shown as it was.
        let judged = page.iter().filter(|_| request.as_of.is_none()).map(|hit| hit.row.id);
        let mut invalid = invalidities(self.core, judged, now)?;
        for hit in page {
            let result = results.iter_mut().find(|result| result.path == *hit.row.path.as_str());
            if let (Some(result), Some(invalidity)) = (result, invalid.remove(&hit.row.id)) {
                result.invalidity = invalidity;
            }
        }
        for ranked in self.complete_memories(ranked)? {
            // A note that was removed since it was indexed is not returned.
            if let Some(result) = results.iter_mut().find(|result| result.path == ranked.memory.path) {
                result.intent_score = ranked.intent_score;
                result.memory = Some(ranked.memory);
            }
        }
        let shown = request.skip..request.skip.saturating_add(page.len());
        let stages = trace.map_or_else(Vec::new, |trace| trace.stages_that_order(shown));
        Ok((results, stages))
    }

    /// Embeds the query if the mode needs it. If that fails, hybrid mode uses words alone and adds a notice.
    pub fn vector_for(
        &self,
        asked: Mode,
        query: &Query,
        snapshot: &Snapshot,
        notes: &mut Vec<Wording>,
    ) -> Result<(Mode, QueryVector)> {
        if asked == Mode::Bm25 || query.text_to_embed().trim().is_empty() {
            return Ok((if asked == Mode::Hybrid { Mode::Bm25 } else { asked }, None));
        }
        if snapshot.vectors.is_empty() {
            // Loading a model to compare with nothing would cost time and give nothing.
            let is_hybrid = asked == Mode::Hybrid;
            let so =
                if is_hybrid { "this searched by words only" } else { "a search by meaning finds nothing" };
            notes.push(match (self.core.index.embedder(), &self.core.state.embedder_error) {
                (None, Some(why)) => why.clone().led_by(&format!("{so}: ")),
                (None, None) => self.missing_vectors_notice(&format!("no embedding model is set, so {so}")),
                (Some(_), _) if is_hybrid => Wording::new(
                    format!("{so}; run `sidenote index` once to search by meaning too"),
                    format!("{so}: no passage has a vector yet"),
                ),
                (Some(_), _) => self.missing_vectors_notice(&format!("no passage has a vector yet, so {so}")),
            });
            return Ok((if asked == Mode::Hybrid { Mode::Bm25 } else { asked }, None));
        }
        self.core.check_cancelled()?;
        match self.core.query_vector(snapshot.model.as_ref(), query.text_to_embed()) {
            Ok(vector) => Ok((asked, vector)),
            Err(error) if asked == Mode::Hybrid => {
                notes.push(format!("this searched by words only: {error}").into());
                Ok((Mode::Bm25, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Embeds the latest changes before a query by meaning, for a limited time, and returns whether there were any. If the
    /// model fails, the search itself reports it.
    ///
    /// # Errors
    /// `Invalid` if the settings name an unknown mode; `Corrupt` if the index cannot be read.
    pub fn embed_recent(&self, mode: Option<Mode>, query: &Query) -> Result<bool> {
        let asked = mode.map_or_else(|| Mode::parse(&self.core.config.search.mode), Ok)?;
        if asked == Mode::Bm25 || query.text_to_embed().trim().is_empty() {
            return Ok(false);
        }
        let files = self.core.index.recent_without_vectors()?;
        if files.is_empty() {
            return Ok(false);
        }
        // The query is embedded first, because loading the model could use up the time for the passages.
        let done = self
            .core
            .query_vector(self.core.index.embedder(), query.text_to_embed())
            .and_then(|_| self.core.index.embed_within(files, EMBEDDING));
        if let Err(error) = done {
            tracing::warn!("the latest changes are not embedded yet: {error}");
        }
        Ok(true)
    }

    /// Explains how a query was parsed.
    fn explained(
        &self,
        request: &SearchRequest,
        query: &Query,
        mode: Mode,
        sifted: Option<Verification>,
        snapshot: &Snapshot,
    ) -> Result<Explained> {
        let mut words = Vec::new();
        for word in &query.words {
            let (notes, idf) = snapshot.bm25.idf(word, query.words.len())?;
            words.push(WordWeight { word: word.exact.clone(), stem: word.stem.clone(), notes, idf });
        }
        words.sort_by_key(|word| word.notes);
        let ranks = |text: &str| query.words.iter().any(|word| word.exact == text);
        let stop_words =
            query.all_words.iter().map(|word| word.exact.clone()).filter(|text| !ranks(text)).collect();
        Ok(Explained {
            words,
            stop_words,
            meaning: if mode == Mode::Bm25 || self.core.index.embedder().is_none() {
                String::new()
            } else {
                query.text_to_embed().to_owned()
            },
            condition: query.condition.as_ref().map(ToString::to_string),
            sifted,
            filters: request.filters(),
            stages: Vec::new(),
            fusion: Fusion::parse(&self.core.config.search.fusion)?,
            model: self.core.embedder_name(),
            notes: snapshot.bm25.documents(),
            put_away: self
                .core
                .index
                .catalog()
                .inactive_files(hide(&request.filter, request.included()).hidden)?
                .len(),
        })
    }

    /// Reads the notes of a page in parallel and cuts their excerpts.
    pub(crate) fn show(&self, found: &[SearchHit], query: &Query, form: ResultForm) -> Vec<SearchResult> {
        let shown = parallel::map_largest_first(
            found,
            |hit| hit.row.size,
            CachedStemmer::with_small_cache,
            |stem, hit| self.show_one(hit, query, form, stem),
        );
        shown.into_iter().flatten().collect()
    }

    fn show_one(
        &self,
        hit: &SearchHit,
        query: &Query,
        form: ResultForm,
        stem: &mut CachedStemmer,
    ) -> Option<SearchResult> {
        let reading = match self.core.parsed_file(&hit.row) {
            Ok(reading) => reading,
            // A note that was removed since it was indexed is not returned.
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!("{error}; it is left out");
                return None;
            }
        };
        // The path of an attachment can meet a condition, whatever its text.
        let Some(reading) = reading else {
            return Some(SearchResult {
                path: hit.row.path.as_str().to_owned(),
                id: String::new(),
                title: hit.row.path.name().to_owned(),
                heading: String::new(),
                lines: (1, 1),
                snippet: String::new(),
                marks: Vec::new(),
                plain: None,
                statement: None,
                score: hit.score,
                match_type: hit.match_type,
                invalidity: Invalidity::default(),
                explain: form.explain.then_some(hit.components),
                memory: None,
                intent_score: None,
                place: None,
            });
        };
        let asked_for =
            query.condition.as_ref().map(|condition| matching_spans(&hit.row.path, &reading.text, condition));
        // The search itself reports conditions that cannot be evaluated.
        let mut parts = asked_for.and_then(Result::ok).unwrap_or_default();
        let statement = hit.evidence.and_then(|evidence| statement(self.core, hit, evidence, &reading));
        if let Some(evidence) = hit.evidence.filter(|evidence| evidence.source == hit.row.id) {
            parts = vec![evidence.span];
        }
        let shown = excerpt_of_parts(&reading, &parts, &query.words, stem)
            .unwrap_or_else(|| excerpt(&reading, &query.words, (hit.quoted, hit.passage), stem));
        let plain = form.plain.then(|| {
            let (text, marks) = plain_text(&reading, &shown, &query.words, stem);
            PlainSnippet { text, marks }
        });
        let place = reading.place_of(shown.lines);
        Some(SearchResult {
            path: hit.row.path.as_str().to_owned(),
            id: if reading.is_attachment { String::new() } else { hit.row.note_id.clone() },
            title: reading.title.clone(),
            heading: shown.trail.clone(),
            place,
            lines: shown.lines,
            snippet: shown.snippet,
            marks: shown.marks,
            plain,
            statement,
            score: hit.score,
            match_type: hit.match_type,
            invalidity: Invalidity::default(),
            explain: form.explain.then_some(hit.components),
            memory: None,
            intent_score: None,
        })
    }

    /// Returns a notice about missing vectors; for a person, with the command that creates them.
    pub(super) fn missing_vectors_notice(&self, what: &str) -> Wording {
        if self.core.index.embedder().is_some() {
            Wording::new(format!("{what}; run `sidenote index` once"), what)
        } else {
            Wording::new(format!("{what}; `sidenote model use e5` sets one"), what)
        }
    }

    /// Parses a bound of a date filter, such as `--created-after`.
    ///
    /// # Errors
    /// `Invalid` if the text is neither a date nor a distance from `now`.
    pub fn date_bound(flag: &str, text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>> {
        text.map(|text| Timestamp::parse_bound_at(flag, text, now)).transpose()
    }
}

/// Returns what states the relation by which a hit answers. `reading` is the note of the hit. A note that was changed
/// since it was indexed may state nothing at this place.
fn statement(
    core: &Core,
    hit: &SearchHit,
    evidence: Evidence,
    reading: &ParsedNote,
) -> Option<RelationStatement> {
    let text_of = |reading: &ParsedNote| -> Option<String> {
        let stated = evidence.span.of(&reading.text);
        // A value of a property is shown with its line.
        let is_link =
            stated.starts_with('[') && stated.ends_with([']', ')']) && stated.matches('[').count() < 3;
        let (first, last) = reading.lines_of(evidence.span);
        let text = if is_link { reading.lines_span(first, last)?.of(&reading.text) } else { stated };
        Some(shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "), MOST_STATED))
    };
    let (path, text) = if evidence.source == hit.row.id {
        (hit.row.path.as_str().to_owned(), text_of(reading)?)
    } else {
        let row = core.index.catalog().rows(&[evidence.source]).ok()?.pop()?;
        let source = core.parsed_note(&row.path)?;
        (row.path.as_str().to_owned(), text_of(&source)?)
    };
    Some(RelationStatement { path, line: evidence.line, text })
}

/// The time that a search spends on embedding the latest changes.
const EMBEDDING: Duration = Duration::from_millis(100);

/// The most characters of what states a relation.
const MOST_STATED: usize = 300;

/// The largest number of results.
pub(super) const MOST_RESULTS: usize = 10_000;

/// When plain words replace a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// Never: a condition that no note meets has no results.
    #[default]
    Never,
    /// If no note meets the condition.
    IfEmpty,
    /// If no note meets the condition, or if the query is not a valid condition. Agents may send a person's message as
    /// the query.
    IfEmptyOrInvalid,
}

/// A search.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// The query.
    pub query: String,
    /// Whether the query is plain words without operators.
    pub plain: bool,
    /// When plain words replace the condition of the query.
    pub fallback: Fallback,
    /// The mode. Without it, that of the settings is used.
    pub mode: Option<Mode>,
    /// The number of results. Without it, that of the settings is used.
    pub limit: Option<usize>,
    /// The number of best results to skip.
    pub skip: usize,
    /// The filter of notes.
    pub filter: Filter,
    /// Inactive notes to include.
    pub include: Inactive,
    /// The instant at which a note must be valid. Without it, the present time counts for the order only.
    pub as_of: Option<Timestamp>,
    /// A glob that the path must match.
    pub path: Option<String>,
    /// The tier to which results are limited, without a change of their order.
    pub tier: Option<Tier>,
    /// Whether a question such as "who works at Acme" is not answered by relations.
    pub no_relations: bool,
    /// Whether every word must occur.
    pub all: bool,
    /// Whether the query is a filter: a condition, in which `#name` is a tag.
    pub is_filter: bool,
    /// Whether results have their snippets without markup, too.
    pub plain_snippets: bool,
    /// Whether to explain the scores.
    pub explain: bool,
    /// Whether to search without updating the index.
    pub no_sync: bool,
    /// How results are ranked as memories. Without it, they are ranked by relevance alone.
    pub memories: Option<MemoryRanking>,
    /// Whether attachments are left out, as they always are where results are ranked as memories.
    pub notes_only: bool,
}

/// What a note states about the result of a question by relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelationStatement {
    /// The path of the note.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The sentence, line or property.
    pub text: String,
}

/// A snippet without markup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlainSnippet {
    /// The text.
    pub text: String,
    /// Byte ranges of the text that match.
    pub marks: Vec<(usize, usize)>,
}

/// A note that matches, with its best passage.
#[derive(Debug, Clone, Serialize)]
pub struct SearchResult {
    /// Vault path.
    pub path: String,
    /// The note's id.
    pub id: String,
    /// The note's title.
    pub title: String,
    /// Headings above the passage, joined by ` > `; empty at the top of a note.
    pub heading: String,
    /// The page, slide, sheet or chapter of an attachment in which the passage begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// First and last line of the passage, counted from 1.
    pub lines: (usize, usize),
    /// Source text around the best matches, with an ellipsis where it begins amid a line or the passage goes on.
    pub snippet: String,
    /// Byte ranges of the snippet that match.
    pub marks: Vec<(usize, usize)>,
    /// The snippet without markup, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plain: Option<PlainSnippet>,
    /// What states the relation by which the note answers, or holds the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<RelationStatement>,
    /// The score, comparable only within one reply.
    pub score: f32,
    /// The ranking that found the note.
    pub match_type: MatchType,
    /// Why the note is not valid now, if so.
    #[serde(flatten)]
    pub invalidity: Invalidity,
    /// The components of the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Components>,
    /// The note as a memory, if the request ranks memories.
    #[serde(skip)]
    pub memory: Option<Memory>,
    /// The components of the score for an intent, if the request has one.
    #[serde(skip)]
    pub intent_score: Option<IntentScore>,
}

/// The result of a search.
#[derive(Debug, Clone, Serialize)]
pub struct SearchReply {
    /// The results, best first.
    pub results: Vec<SearchResult>,
    /// The mode that was used: `bm25` if hybrid mode had no vectors.
    pub mode: Mode,
    /// Whether the index lacks some changes of the files; `false` if it was not compared with them.
    pub stale: bool,
    /// The model's name; `none` without one.
    pub embedder: String,
    /// The number of passages without a vector, which are not found by meaning yet.
    pub pending: usize,
    /// Notices about what the reply lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Wording>,
    /// How the query was parsed, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explained>,
    /// The query with corrected spelling, if no note contains some of its words and nothing was found by words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
    /// The time of the search in milliseconds, with the update of the index.
    pub took_ms: f64,
}

/// An explanation of how a query was parsed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// The words that rank, the rarest first.
    pub words: Vec<WordWeight>,
    /// The words that are too common to rank.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop_words: Vec<String>,
    /// The text that was embedded, if any.
    pub meaning: String,
    /// The condition that notes must meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// How the condition was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sifted: Option<Verification>,
    /// The filters besides the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// The stages of the search that changed which results these are, or their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// How the rankings were merged.
    pub fusion: Fusion,
    /// The model; `none` without one.
    pub model: String,
    /// The number of notes in the index.
    pub notes: u64,
    /// The number of inactive notes: archived or forgotten.
    pub put_away: usize,
}

/// A word and its weight.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WordWeight {
    /// The normalized word.
    pub word: String,
    /// Its stem.
    pub stem: String,
    /// The number of notes with an inflection of the word in their body.
    pub notes: u64,
    /// The inverse document frequency of the word.
    pub idf: f32,
}

/// What results have besides the snippet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResultForm {
    /// The components of the score.
    pub(crate) explain: bool,
    /// The snippet without markup.
    pub(crate) plain: bool,
}

impl SearchRequest {
    /// Returns the inactive notes to include. A search of the tier ARCHIVE includes archived notes.
    pub fn included(&self) -> Inactive {
        let tier = self.memories.and_then(|ranking| ranking.tier).or(self.tier);
        Inactive { archived: self.include.archived || tier == Some(Tier::Archive), ..self.include }
    }

    /// Returns the text whose vector the search needs first, for [`Open::first_query`](sidenote_open_vault::open::Open::first_query). `None`
    /// for a search by words or a query that is not valid.
    pub fn text_to_embed(&self, now: Timestamp) -> Option<String> {
        (self.mode != Some(Mode::Bm25))
            .then(|| self.parsed(now).ok())?
            .map(|query| query.text_to_embed().to_owned())
    }

    /// Returns whether attachments are found, too.
    pub(super) fn finds_attachments(&self) -> bool {
        !self.notes_only && self.memories.is_none()
    }

    fn form(&self) -> ResultForm {
        ResultForm { explain: self.explain, plain: self.plain_snippets }
    }

    /// Returns whether a question is answered by the relations of notes.
    pub(super) fn uses_relations(&self, asked: Mode) -> bool {
        asked == Mode::Hybrid && self.memories.is_none() && !self.no_relations
    }

    /// Lists the filters besides the query.
    fn filters(&self) -> Vec<String> {
        let filter = &self.filter;
        let dated = |name: &str, bound: Option<Timestamp>| {
            bound.map(|bound| format!("{name} {}", bound.local_rfc3339()))
        };
        let named = |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("{name} {text}"));
        filter
            .tags
            .iter()
            .map(|tag| format!("tag {tag}"))
            .chain(named("folder", &filter.folder))
            .chain(named("type", &filter.note_type))
            .chain(named("category", &filter.category))
            .chain(named("path", &self.path))
            .chain(dated("created from", filter.created_after))
            .chain(dated("created before", filter.created_before))
            .chain(dated("updated from", filter.updated_after))
            .chain(dated("updated before", filter.updated_before))
            .chain(dated("valid as of", self.as_of))
            .collect()
    }

    /// Parses the query.
    ///
    /// # Errors
    /// `Invalid`, with the position of the mistake, for a query that is not valid.
    pub fn parsed(&self, now: Timestamp) -> Result<Query> {
        if self.is_filter {
            Query::filter_at(&self.query, now)
        } else if self.plain && !self.all {
            Ok(Query::plain(&self.query))
        } else {
            Query::parse_at(&self.query, self.all, now)
        }
    }

    /// Parses the query. If it is not a valid condition and the request allows it, it is used as plain words, and
    /// `notes` says so.
    ///
    /// # Errors
    /// `Invalid`, with the position of the mistake, for a query that is not valid.
    pub(super) fn understood(&self, now: Timestamp, notes: &mut Vec<Wording>) -> Result<Query> {
        match self.parsed(now) {
            Err(error) if self.fallback == Fallback::IfEmptyOrInvalid => {
                // The first line says what is wrong; the following lines point at the position.
                let why = error.message().lines().next().unwrap_or_default().trim_end_matches(':');
                notes.push(
                    format!("the query is taken as plain words, because it is not a valid condition: {why}")
                        .into(),
                );
                Ok(Query::plain(&self.query))
            }
            parsed => parsed,
        }
    }

    /// Returns whether dates in the query may narrow the search: it is not a condition, and there is no filter by date.
    pub(super) fn may_be_dated(&self, query: &Query) -> bool {
        let Filter { created_after, created_before, updated_after, updated_before, .. } = &self.filter;
        let bounds = [created_after, created_before, updated_after, updated_before];
        query.condition.is_none() && !self.plain && bounds.iter().all(|bound| bound.is_none())
    }

    /// Returns whether the query, a property by its form, may be a message of a person in brackets.
    pub(super) fn may_be_message(&self) -> bool {
        self.fallback == Fallback::IfEmptyOrInvalid && is_text_in_brackets(&self.query)
    }

    /// Returns the plain words of a condition, if they may replace it.
    pub(super) fn plain_words(&self, query: &Query) -> Option<Query> {
        if self.fallback == Fallback::Never || query.condition.is_none() || self.all {
            return None;
        }
        let words = match query.words.is_empty() && self.may_be_message() {
            true => Query::plain(&self.query),
            false => Query { condition: None, ..query.clone() },
        };
        (!words.words.is_empty()).then_some(words)
    }
}

/// Returns whether a query is several words in brackets, such as `[opening with music]`, which a person's message may be. A
/// property can have such a name, too.
fn is_text_in_brackets(query: &str) -> bool {
    let inner = query.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| {
        inner.split_whitespace().nth(1).is_some() && !inner.contains(['[', ']', ':', '"', '/'])
    })
}

/// Returns a notice about passages without a vector, if there are any.
fn pending_notice(core: &Core, snapshot: &Snapshot) -> Option<String> {
    (snapshot.pending > 0).then(|| match former_of(snapshot) {
        Some(former) => format!(
            "vectors of {former} answer; {} for those of {}",
            waiting(snapshot.pending),
            core.embedder_name()
        ),
        None => format!("{} for a vector", waiting(snapshot.pending)),
    })
}

/// Returns a notice about attachments whose text is still to be read, if there are any.
fn unread_notice(waiting: usize) -> Option<Wording> {
    let what = match waiting {
        0 => return None,
        1 => "1 attachment is not read yet, so its text is not found".to_owned(),
        waiting => format!("{waiting} attachments are not read yet, so their text is not found"),
    };
    Some(Wording::new(format!("{what}; `sidenote index` reads all"), what))
}

/// Returns the beginning of a notice about passages without a vector.
fn waiting(passages: usize) -> String {
    if passages == 1 { "1 passage waits".to_owned() } else { format!("{passages} passages wait") }
}

/// Excludes inactive notes from a filter, except those to include.
pub fn hide(filter: &Filter, include: Inactive) -> Filter {
    let hidden = Inactive { archived: !include.archived, forgotten: !include.forgotten };
    Filter { hidden, ..filter.clone() }
}

impl SearchHits {
    /// Returns the notice that no note has a word of the query, if meaning alone found the notes. Meaning always finds some.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the index cannot be read.
    pub fn by_meaning_notice(&self, query: &Query, snapshot: &Snapshot) -> Result<Option<Wording>> {
        let is_by_meaning = |hit: &SearchHit| hit.match_type == MatchType::Vector;
        let is_by_words = self.has_words || query.condition.is_some() || query.words.is_empty();
        if is_by_words || self.found.is_empty() || !self.found.iter().all(is_by_meaning) {
            return Ok(None);
        }
        let mut single = query.words.iter().filter(|word| word.single);
        let what = match (single.next(), single.next()) {
            (Some(only), None) => format!("the word {:?}", query.as_typed(only)),
            _ => "a word of the query".to_owned(),
        };
        let mut alone = "";
        for word in &query.words {
            if snapshot.bm25.is_in_longer_word(word)? {
                alone = " by itself";
            }
        }
        let said = format!("no note that was searched has {what}{alone}; these are the nearest in meaning");
        Ok(Some(said.into()))
    }
}
