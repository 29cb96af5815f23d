//! Searches: parses the query, ranks notes, and shows their best passages.

use std::sync::PoisonError;
use std::time::Duration;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{ErrorKind, Result};
use crate::index::catalog::{FileKind, Filter, Inactive};
use crate::index::indexed_document::ParsedNote;
use crate::memory::score::IntentScore;
use crate::memory::tier::Tier;
use crate::parallel;
use crate::search::fuse::Fusion;
use crate::search::predicate::matching_spans;
use crate::search::query::Query;
use crate::search::snippet::{excerpt, excerpt_of_parts};
use crate::search::{Components, MatchType, Mode, QueryVector, Request, SearchHit};
use crate::store::core::former_of;
use crate::store::lookup::Lookup;
use crate::store::memory_weights::Memory;
use crate::store::query::Searches;
use crate::store::query::memory_ranking::MemoryRanking;
use crate::store::query::verify::{SearchHits, Verification};
use crate::store::sync::IndexSync;
use crate::text::terms::{CachedStemmer, is_stop_word, terms};
use crate::wording::Wording;

impl Searches<'_> {
    /// Forgets cached query vectors, so that a bench pays for each.
    pub fn forget_query_vectors(&self) {
        self.core.state.query_vectors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Searches the vault. A search counts as no use of what it finds.
    ///
    /// # Errors
    /// `Invalid` for a malformed filter; `NotFound` for vector mode without a model.
    #[tracing::instrument(skip_all)]
    pub fn search(&self, request: &SearchRequest) -> Result<SearchReply> {
        let started = std::time::Instant::now();
        let stale = !request.no_sync && IndexSync::of(self.core).refresh()? > 0;
        if !request.no_sync {
            self.embed_recent(request.mode, &request.parsed(self.core.clock.now()).unwrap_or_default())?;
        }
        let mut reply = self.search_as_is(request, None)?;
        reply.stale = stale;
        if request.no_sync {
            reply.notes.push("the files were not compared with the index".into());
        }
        reply.took_ms = (started.elapsed().as_secs_f64() * 1e5).round() / 100.0;
        Ok(reply)
    }

    /// Searches what the index holds, without looking at the files' times.
    fn search_as_is(
        &self,
        request: &SearchRequest,
        among: Option<&crate::index::file_set::FileSet>,
    ) -> Result<SearchReply> {
        let config = &self.core.config.search;
        let asked = request.mode.map_or_else(|| Mode::parse(&config.mode), Ok)?;
        let mut notes = Vec::new();
        let mut query = request.understood(self.core.clock.now(), &mut notes)?;
        let snapshot = self.core.index.snapshot()?;
        let mut mode = asked;
        let limit = request.limit.unwrap_or(config.limit).saturating_add(request.skip).min(MOST_RESULTS);
        let most = request.memories.map_or(limit, |ranking| ranking.candidates(limit));
        let mut sought = |query: &Query, notes: &mut Vec<Wording>| {
            let request = Request {
                query: Some(query),
                mode: asked,
                fusion: Fusion::parse(&config.fusion)?,
                limit: self.rerank_depth(asked, query, most),
                // A ranking that orders all candidates anew need not look deeper.
                depth: (most > limit).then_some(most),
                filter: hide(
                    &Lookup::of(self.core).with_canonical_folder(&request.filter)?,
                    request.included(),
                ),
                path: request.path.clone(),
                among,
            };
            self.found(&snapshot, &request, || {
                let vector;
                (mode, vector) = self.vector_for(asked, query, &snapshot, notes)?;
                Ok(vector)
            })
        };
        let mut found = sought(&query, &mut notes)?;
        if let Some(words) = request.words_of(&query).filter(|_| found.found.is_empty()) {
            notes.clear();
            notes.push(WORDS_INSTEAD.into());
            query = words;
            found = sought(&query, &mut notes)?;
        }
        let SearchHits { mut found, undecided, sifted } = found;
        notes.extend(undecided.map(Wording::from));
        self.rerank(asked, &query, &mut found, &mut notes);
        found.truncate(most);
        if mode != Mode::Bm25 {
            notes.extend(self.pending_notice(&snapshot).map(Wording::from));
        }
        let by_words = |hit: &SearchHit| hit.match_type != MatchType::Vector;
        let did_you_mean = if request.skip == 0 && !found.iter().any(by_words) {
            corrected(&request.query, &query, &snapshot)?
        } else {
            None
        };
        let explain = if request.explain {
            Some(self.explained(request, &query, mode, sifted, &snapshot)?)
        } else {
            None
        };
        let results = self.page(request, &query, found, limit)?;
        Ok(SearchReply {
            did_you_mean,
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

    /// Says how many passages have no vector yet; nothing where all have one.
    fn pending_notice(&self, snapshot: &crate::index::Snapshot) -> Option<String> {
        (snapshot.pending > 0).then(|| match former_of(snapshot) {
            Some(former) => format!(
                "vectors of {former} answer; {} for those of {}",
                waiting(snapshot.pending),
                self.core.embedder_name()
            ),
            None => format!("{} for a vector", waiting(snapshot.pending)),
        })
    }

    /// Shows the page that a request asks for of the hits, each as a memory where the request weighs memories.
    fn page(
        &self,
        request: &SearchRequest,
        query: &Query,
        mut found: Vec<SearchHit>,
        limit: usize,
    ) -> Result<Vec<SearchResult>> {
        let mut ranked = match request.memories {
            Some(ranking) => self.rank_memories(ranking, &mut found)?,
            None => Vec::new(),
        };
        found.truncate(limit);
        ranked.truncate(limit);
        let ranked = ranked.split_off(request.skip.min(ranked.len()));
        let mut results = self.show(found.get(request.skip..).unwrap_or_default(), query, request.explain);
        for ranked in self.complete_memories(ranked)? {
            // What is gone since the index was read is not shown.
            if let Some(result) = results.iter_mut().find(|result| result.path == ranked.memory.path) {
                result.intent_score = ranked.intent_score;
                result.memory = Some(ranked.memory);
            }
        }
        Ok(results)
    }

    /// Embeds the query where the mode needs it; hybrid falls back to the words and says so.
    pub(in crate::store) fn vector_for(
        &self,
        asked: Mode,
        query: &Query,
        snapshot: &crate::index::Snapshot,
        notes: &mut Vec<Wording>,
    ) -> Result<(Mode, QueryVector)> {
        if asked == Mode::Bm25 || query.text_to_embed.trim().is_empty() {
            return Ok((if asked == Mode::Hybrid { Mode::Bm25 } else { asked }, None));
        }
        if snapshot.vectors.is_empty() {
            // Loading a model to compare with nothing would cost time and give nothing.
            let is_hybrid = asked == Mode::Hybrid;
            let so =
                if is_hybrid { "this searched by words only" } else { "a search by meaning finds nothing" };
            notes.push(match (self.core.index.embedder(), &self.core.state.embed_trouble) {
                (None, Some(why)) => why.clone().led_by(&format!("{so}: ")),
                (None, None) => self.without_vectors(&format!("no embedding model is set, so {so}")),
                (Some(_), _) if is_hybrid => Wording::new(
                    format!("{so}; run `sidenote index` once to search by meaning too"),
                    format!("{so}: no passage has a vector yet"),
                ),
                (Some(_), _) => self.without_vectors(&format!("no passage has a vector yet, so {so}")),
            });
            return Ok((if asked == Mode::Hybrid { Mode::Bm25 } else { asked }, None));
        }
        match self.core.query_vector(snapshot.model.as_ref(), &query.text_to_embed) {
            Ok(vector) => Ok((asked, vector)),
            Err(error) if asked == Mode::Hybrid => {
                notes.push(format!("this searched by words only: {error}").into());
                Ok((Mode::Bm25, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Embeds what was written a moment ago before a query is answered by meaning, as far as there is time. A model that
    /// fails is told of by the answer itself, so it keeps nobody from answering.
    ///
    /// # Errors
    /// `Invalid` if the settings name an unknown mode; `Corrupt` if the index cannot be read.
    pub(in crate::store) fn embed_recent(&self, mode: Option<Mode>, query: &Query) -> Result<()> {
        let asked = mode.map_or_else(|| Mode::parse(&self.core.config.search.mode), Ok)?;
        if asked == Mode::Bm25 || query.text_to_embed.trim().is_empty() {
            return Ok(());
        }
        let files = self.core.index.recent_without_vectors()?;
        if files.is_empty() {
            return Ok(());
        }
        // The query comes first: it loads the model, which would use up the time for the passages.
        let done = self
            .core
            .query_vector(self.core.index.embedder(), &query.text_to_embed)
            .and_then(|_| self.core.index.embed_within(files, EMBEDDING));
        if let Err(error) = done {
            tracing::warn!("what was written last is not embedded yet: {error}");
        }
        Ok(())
    }

    /// Tells how a query was understood.
    fn explained(
        &self,
        request: &SearchRequest,
        query: &Query,
        mode: Mode,
        sifted: Option<Verification>,
        snapshot: &crate::index::Snapshot,
    ) -> Result<Explained> {
        let mut words = Vec::new();
        for word in &query.words {
            let notes = snapshot.bm25.body_document_frequency(&word.stem)?;
            let idf = snapshot.bm25.idf(&word.stem)?;
            words.push(WordWeight { word: word.exact.clone(), stem: word.stem.clone(), notes, idf });
        }
        words.sort_by_key(|word| word.notes);
        let mut stop_words: Vec<String> = terms(&query.text_to_embed)
            .into_iter()
            .map(|term| term.text)
            .filter(|text| is_stop_word(text) && query.words.iter().all(|word| word.exact != *text))
            .collect();
        stop_words.dedup();
        Ok(Explained {
            words,
            stop_words,
            meaning: if mode == Mode::Bm25 || self.core.index.embedder().is_none() {
                String::new()
            } else {
                query.text_to_embed.clone()
            },
            condition: query.condition.as_ref().map(ToString::to_string),
            sifted,
            filters: request.filters(),
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

    /// Loads the text of the notes on this page and cuts their excerpts, on all cores.
    pub(in crate::store) fn show(
        &self,
        found: &[SearchHit],
        query: &Query,
        explain: bool,
    ) -> Vec<SearchResult> {
        let shown = parallel::map(found, 2, CachedStemmer::default, |stem, hit| {
            self.show_one(hit, query, explain, stem)
        });
        shown.into_iter().flatten().collect()
    }

    fn show_one(
        &self,
        hit: &SearchHit,
        query: &Query,
        explain: bool,
        stem: &mut CachedStemmer,
    ) -> Option<SearchResult> {
        if hit.row.kind == FileKind::Attachment {
            return Some(SearchResult {
                path: hit.row.path.as_str().to_owned(),
                id: String::new(),
                title: hit.row.path.name().to_owned(),
                heading: String::new(),
                lines: (1, 1),
                snippet: String::new(),
                marks: Vec::new(),
                score: hit.score,
                match_type: hit.match_type,
                explain: explain.then_some(hit.components),
                memory: None,
                intent_score: None,
            });
        }
        let bytes = match self.core.read_bytes(&hit.row.path) {
            Ok(bytes) => bytes,
            // What is gone since the sync is not shown.
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!("{error}, so it is left out");
                return None;
            }
        };
        let reading = ParsedNote::new(&hit.row.path, &bytes);
        let asked_for =
            query.condition.as_ref().map(|condition| matching_spans(&hit.row.path, &reading.text, condition));
        // What cannot be judged has been told of by the search itself.
        let parts = asked_for.and_then(Result::ok).unwrap_or_default();
        let shown = excerpt_of_parts(&reading, &parts, &query.words, stem)
            .unwrap_or_else(|| excerpt(&reading, &query.words, hit.passage, stem));
        Some(SearchResult {
            path: hit.row.path.as_str().to_owned(),
            id: hit.row.note_id.clone(),
            title: reading.title.clone(),
            heading: shown.trail,
            lines: shown.lines,
            snippet: shown.snippet,
            marks: shown.marks,
            score: hit.score,
            match_type: hit.match_type,
            explain: explain.then_some(hit.components),
            memory: None,
            intent_score: None,
        })
    }

    /// Says what is so where there are no vectors, and to a person how there will be some.
    pub(super) fn without_vectors(&self, what: &str) -> Wording {
        if self.core.index.embedder().is_some() {
            Wording::new(format!("{what}; run `sidenote index` once"), what)
        } else {
            Wording::new(format!("{what}; `sidenote model use minilm` sets one"), what)
        }
    }

    /// Reads the bounds of `--created-after` and its kin into a filter.
    ///
    /// # Errors
    /// `Invalid` if the text is neither a date nor a distance from `now`.
    pub fn date_bound(flag: &str, text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>> {
        text.map(|text| Timestamp::parse_bound_at(flag, text, now)).transpose()
    }
}

/// So long a search may take to embed what was written just before.
const EMBEDDING: Duration = Duration::from_millis(100);

/// A reply never holds more results than this.
const MOST_RESULTS: usize = 10_000;

/// When plain words answer in place of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// Never: a condition that nothing meets finds nothing.
    #[default]
    Never,
    /// Where nothing meets the condition.
    IfEmpty,
    /// There, and where the query is no valid condition: an agent sends a person's message as it is.
    IfEmptyOrInvalid,
}

/// A search.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// What was typed.
    pub query: String,
    /// Whether it is words alone, in which no sign has a meaning.
    pub plain: bool,
    /// When plain words answer in place of the condition that the query is.
    pub fallback: Fallback,
    /// Which lists answer; the configured mode where not given.
    pub mode: Option<Mode>,
    /// How many notes; the configured number where not given.
    pub limit: Option<usize>,
    /// Leave out this many of the best: they were on the pages before.
    pub skip: usize,
    /// Conditions on the note.
    pub filter: Filter,
    /// What is found although it is put away.
    pub include: Inactive,
    /// A glob that the path must match.
    pub path: Option<String>,
    /// Whether every word must occur.
    pub all: bool,
    /// Whether to tell how scores came about.
    pub explain: bool,
    /// Answer from the index as it is.
    pub no_sync: bool,
    /// How what is found is weighed as memories; without it, notes are ranked by relevance alone.
    pub memories: Option<MemoryRanking>,
}

/// A note that answers, with its best passage.
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
    /// First and last line of the passage, counted from 1.
    pub lines: (usize, usize),
    /// Source text around the best matches.
    pub snippet: String,
    /// Byte ranges of the snippet that match.
    pub marks: Vec<(usize, usize)>,
    /// Comparable within one reply.
    pub score: f32,
    /// Which list found it.
    pub match_type: MatchType,
    /// How the score came about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Components>,
    /// The note as a memory, where the request weighs memories.
    #[serde(skip)]
    pub memory: Option<Memory>,
    /// How the score for an intent came about, where the request has one.
    #[serde(skip)]
    pub intent_score: Option<IntentScore>,
}

/// What a search gives.
#[derive(Debug, Clone, Serialize)]
pub struct SearchReply {
    /// Best first.
    pub results: Vec<SearchResult>,
    /// The mode that answered: `bm25` where hybrid had no vectors.
    pub mode: Mode,
    /// Whether files changed that the index does not hold yet; unknown, and so false, where nobody looked.
    pub stale: bool,
    /// The model's name; `none` without one.
    pub embedder: String,
    /// Passages that wait for a vector; meaning finds nothing in them yet.
    pub pending: usize,
    /// Sentences about what the reply lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Wording>,
    /// What was asked, and of what, where that was to be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explained>,
    /// The query with words that stand in no note put right, where nothing was found by words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
    /// Milliseconds spent, freshness included.
    pub took_ms: f64,
}

/// How a query was understood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// The words that rank, by the rarest.
    pub words: Vec<WordWeight>,
    /// Words that were left out: too common to rank by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop_words: Vec<String>,
    /// The text that was embedded; empty where none was.
    pub meaning: String,
    /// What a note must hold, as it was understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// How the condition was met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sifted: Option<Verification>,
    /// Filters beside the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// How the lists were merged.
    pub fusion: Fusion,
    /// The model; `none` without one.
    pub model: String,
    /// Notes that the index holds.
    pub notes: u64,
    /// Notes that are out of search: archived or forgotten.
    pub put_away: usize,
}

/// A word, and what it counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WordWeight {
    /// The word, folded.
    pub word: String,
    /// Its stem.
    pub stem: String,
    /// Notes that hold it in their body, in any inflection.
    pub notes: u64,
    /// Its inverse document frequency there.
    pub idf: f32,
}

impl SearchRequest {
    /// Gives what is found although it is put away. A search of the archive finds what is archived.
    fn included(&self) -> Inactive {
        let tier = self.memories.and_then(|ranking| ranking.tier);
        Inactive { archived: self.include.archived || tier == Some(Tier::Archive), ..self.include }
    }

    /// Names the filters beside the query.
    fn filters(&self) -> Vec<String> {
        let filter = &self.filter;
        let dated =
            |name: &str, bound: Option<Timestamp>| bound.map(|bound| format!("{name} {}", bound.rfc3339()));
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
            .collect()
    }

    /// Reads the query.
    ///
    /// # Errors
    /// `Invalid`, with the position of the mistake, for a query that is not valid.
    pub(super) fn parsed(&self, now: Timestamp) -> Result<Query> {
        if self.plain && !self.all {
            Ok(Query::plain(&self.query))
        } else {
            Query::parse_at(&self.query, self.all, now)
        }
    }

    /// Reads the query as [`SearchRequest::parsed`] does. A text that is no valid query is taken as plain words where the
    /// request allows that, and `notes` says so.
    ///
    /// # Errors
    /// `Invalid`, with the position of the mistake, for a query that is not valid.
    fn understood(&self, now: Timestamp, notes: &mut Vec<Wording>) -> Result<Query> {
        match self.parsed(now) {
            Err(error) if self.fallback == Fallback::IfEmptyOrInvalid => {
                // The first line says what is wrong; those below point at the place.
                let why = error.message().lines().next().unwrap_or_default().trim_end_matches(':');
                notes.push(
                    format!("the query is taken as plain words, for it is no valid condition: {why}").into(),
                );
                Ok(Query::plain(&self.query))
            }
            parsed => parsed,
        }
    }

    /// Gives the plain words of a condition that nothing met, where they are to answer.
    fn words_of(&self, query: &Query) -> Option<Query> {
        let applies = self.fallback != Fallback::Never && query.condition.is_some() && !self.all;
        (applies && !query.words.is_empty()).then(|| Query { condition: None, ..query.clone() })
    }
}

/// Says that the words of a condition answered in its place.
const WORDS_INSTEAD: &str = "no note meets the whole condition, so its words answer";

/// Says how many passages have no vector yet, as the beginning of a sentence.
fn waiting(passages: usize) -> String {
    if passages == 1 { "1 passage waits".to_owned() } else { format!("{passages} passages wait") }
}

/// Keeps what is put away out of a search, but for what is asked for.
pub(in crate::store) fn hide(filter: &Filter, include: Inactive) -> Filter {
    let hidden = Inactive { archived: !include.archived, forgotten: !include.forgotten };
    Filter { hidden, ..filter.clone() }
}

/// Gives a query with each word that stands in no note replaced by the nearest that does; nothing where there is none.
fn corrected(typed: &str, query: &Query, snapshot: &crate::index::Snapshot) -> Result<Option<String>> {
    let mut better = typed.to_owned();
    for word in &query.words {
        if word.prefix || !snapshot.bm25.is_out_of_vocabulary(word)? {
            continue;
        }
        let Some(nearest) = snapshot.bm25.nearest_word(&word.exact)? else { continue };
        // What stands behind an operator, or is not to occur, was not meant to rank.
        let is_free = |start: usize| !better.get(..start).unwrap_or("").ends_with([':', '-', '#', '/', '[']);
        let found = terms(&better).into_iter().find(|term| term.text == word.exact && is_free(term.start));
        if let Some(term) = found {
            better.replace_range(term.start..term.end, &nearest);
        }
    }
    Ok((better != typed).then_some(better))
}
