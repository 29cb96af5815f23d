//! Measures whether a note is about a text, so that recall can stay silent if none is.

use std::collections::HashSet;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::parallel;
use sidenote_base::wording::Wording;
use sidenote_bm25::Word;
use sidenote_catalog::{FileKind, Filter, Inactive};
use sidenote_index::Snapshot;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_language::english::english_rank;
use sidenote_language::terms::CachedStemmer;
use sidenote_markdown::path::{NotePath, key};
use sidenote_memory::evidence::MatchEvidence;
use sidenote_memory::mention::{Mention, PromptWord, mention_of};
use sidenote_memory::types::GENERAL;
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::Searches;
use sidenote_query::memory_weights::{Memory, MemoryWeights};
use sidenote_query::search::hide;
use sidenote_search::SearchHit;
use sidenote_search::query::Query;
use sidenote_search::snippet::{excerpt_of, matched_words};

use crate::candidates::Candidates;
use crate::scope::is_uuid;
use crate::{Memories, Recalls};

/// The number of best hits that are examined for the one that a query means.
const LOOKED_AT: usize = 10;

/// The length of the passage of a recalled memory, in bytes.
pub(super) const LONGEST: usize = 600;

/// The longest part of a prompt, in bytes, whose meaning is compared: about as much as has twenty key terms.
pub(super) const COMPARED_BYTES: usize = 300;

/// Notes whose shares of matched words differ by less than this are considered equal matches.
const AS_GOOD: f32 = 0.1;

/// A note that was compared with a text.
pub(crate) struct EvaluatedMatch {
    /// The evidence that the note is about the text.
    pub(crate) evidence: MatchEvidence,
    /// How the text names the note.
    pub(crate) mention: Option<Mention>,
    /// The words of the text that the passage or the names of the note have.
    pub(crate) found: Vec<String>,
    /// The passage that matches.
    pub(crate) passage: String,
}

/// The notes that match a prompt.
pub(super) struct Matches {
    pub(super) found: Vec<SearchHit>,
    /// Sentences about what the answer lacks.
    pub(super) notices: Vec<String>,
    /// The words by which the prompt can name a note.
    pub(super) prompt: Vec<PromptWord>,
    /// Each of the notes compared with the prompt; `None` if it was removed.
    pub(super) weighed: Vec<Option<EvaluatedMatch>>,
    /// The filter of the notes that may be given.
    pub(super) filter: Filter,
}

impl EvaluatedMatch {
    /// Returns whether the text names the note by a whole title, alias or file name.
    pub(crate) fn has_whole_name(&self) -> bool {
        self.evidence.is_named || self.mention == Some(Mention::Whole)
    }
}

impl Recalls<'_> {
    /// Reads notes and measures the evidence that each is about a text, given by its words. The result holds `None` for
    /// a note that was removed. `by_chance` is the similarity that a passage has with the text by chance, `prompt` are the
    /// words by which the text can name a note, and `length` is the length of passages, in bytes.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub(super) fn evaluate_matches(
        &self,
        hits: &[SearchHit],
        by_chance: f32,
        words: &[Word],
        prompt: &[PromptWord],
        length: usize,
    ) -> Result<Vec<Option<EvaluatedMatch>>> {
        let snapshot = self.core.index.snapshot()?;
        let weights = weights_of(words, &snapshot)?;
        let identifiers = identifiers(words, &snapshot)?;
        let kinds = MemoryWeights::of(self.core).kinds();
        let kinds: Vec<&str> = words.iter().map(|word| kinds.classify(&word.exact)).collect();
        let weigh = |stem: &mut CachedStemmer, hit: &SearchHit| {
            self.evaluate_match(hit, by_chance, (words, &weights, &identifiers, &kinds), prompt, length, stem)
        };
        let size = |hit: &SearchHit| hit.row.size;
        Ok(parallel::map_largest_first(hits, size, CachedStemmer::with_small_cache, weigh))
    }

    fn evaluate_match(
        &self,
        hit: &SearchHit,
        by_chance: f32,
        (words, weights, identifiers, kinds): (&[Word], &[f32], &HashSet<usize>, &[&str]),
        prompt: &[PromptWord],
        length: usize,
        stem: &mut CachedStemmer,
    ) -> Option<EvaluatedMatch> {
        if hit.row.kind == FileKind::Attachment {
            return None;
        }
        // A note that was removed since is not returned.
        let bytes = self.core.read_bytes(&hit.row.path).ok()?;
        let reading = ParsedNote::new(&hit.row.path, &bytes);
        let shown = excerpt_of(&reading, words, (hit.quoted, hit.passage), length, stem);
        let front = reading.note.frontmatter.as_ref();
        let aliases = front.map_or_else(String::new, |front| front.aliases.join("\n"));
        let own_names = [reading.title.as_str(), hit.row.path.stem()];
        let all_names = own_names
            .into_iter()
            .chain(front.into_iter().flat_map(|front| front.aliases.iter().map(String::as_str)));
        let mention = all_names.filter_map(|name| mention_of(prompt, name, &english_rank, stem)).min();
        // The parts of an identifier are counted, so the identifier itself is not.
        let is_word = |at: usize| words.get(at).is_some_and(|word| word.single);
        let names = [&reading.title, hit.row.path.stem(), &aliases].join("\n");
        let names = matched_words(&names, words, &reading, stem);
        let text = [shown.trail.as_str(), &shown.passage].join("\n");
        let text = matched_words(&text, words, &reading, stem);
        // "What did we decide" asks for a decision, whatever words it is put in.
        let of_kind = (0..words.len()).filter(|&at| {
            let kind = kinds.get(at).copied().filter(|kind| *kind != GENERAL);
            kind.zip(hit.row.note_type.as_ref()).is_some_and(|(kind, own)| own.eq_ignore_ascii_case(kind))
        });
        let met: HashSet<usize> =
            names.union(&text).copied().chain(of_kind).filter(|&at| is_word(at)).collect();
        let sum: f32 = met.iter().filter_map(|&at| weights.get(at)).sum();
        let all: f32 = weights.iter().sum();
        let evidence = MatchEvidence {
            similarity: hit.components.cosine.map(|similarity| (similarity - by_chance) / (1.0 - by_chance)),
            words: if all > 0.0 { sum / all } else { 0.0 },
            count: met.len(),
            in_name: names.iter().filter(|&&at| is_word(at)).count(),
            is_named: hit.components.from_name.is_some(),
            has_identifier: names.union(&text).any(|at| identifiers.contains(at)),
        };
        let found = met.iter().filter_map(|&at| Some(words.get(at)?.exact.clone())).collect();
        let (similarity, share) = (evidence.similarity, evidence.words);
        tracing::debug!(
            "{}: similarity {similarity:?}, words {share:.3} ({}), {mention:?}",
            hit.row.path,
            evidence.count
        );
        Some(EvaluatedMatch { evidence, mention, found, passage: shown.snippet })
    }

    /// Finds a memory by a name or, if no note has it, by a query that is clearly about one memory. Returns whether it
    /// was found by the query. A text that has the form of a name is never used as a query.
    ///
    /// # Errors
    /// `NotFound` if no memory has the name or matches the query; `Exists` if several notes have the name.
    #[tracing::instrument(skip_all)]
    pub fn find_by_name_or_query(&self, text: &str, include: Inactive) -> Result<(Memory, bool)> {
        let unknown = match Memories::of(self.core).memory(text) {
            Err(error) if error.kind() == ErrorKind::NotFound => error,
            found => return Ok((found?, false)),
        };
        if is_name(text) {
            return Err(unknown);
        }
        match self.best_match_for(text, hide(&Filter::default(), include))? {
            Some(memory) => Ok((memory, true)),
            None => Err(Error::not_found(format!("no memory is named {text:?} or clearly matches it"))
                .with_hint(
                Wording::new(
                    "`sidenote memory search` finds what is near; give the path or id of the one you mean",
                    "give the path or id of the one you mean",
                )
                .with_tool("search_notes", "search_notes finds what is near"),
            )),
        }
    }

    /// Finds the memory that a query is clearly about. Returns `None` if there is no such memory, or if the text has
    /// the form of a name.
    ///
    /// # Errors
    /// `Invalid` for an invalid query or filter; `NotFound` for vector mode without a model; `Corrupt` if the index
    /// cannot be read.
    pub fn best_match_for(&self, query: &str, filter: Filter) -> Result<Option<Memory>> {
        if is_name(query) {
            return Ok(None);
        }
        IndexSync::of(self.core).refresh()?;
        let query = Query::plain(query);
        Searches::of(self.core).embed_recent(None, &query)?;
        let Candidates { mut found, by_chance, .. } = self.candidates(&query, None, filter, LOOKED_AT)?;
        let weighed = self.evaluate_matches(&found, by_chance, &query.words, &[], 0)?;
        let Some(row) = single_certain_match(&weighed).map(|at| found.swap_remove(at).row) else {
            return Ok(None);
        };
        Ok(MemoryWeights::of(self.core).weigh(vec![row], self.core.clock.now())?.pop())
    }
}

/// Returns the only note that a text is certainly about, or `None` if another one matches equally well.
fn single_certain_match(weighed: &[Option<EvaluatedMatch>]) -> Option<usize> {
    let evidence = |at: &usize| weighed.get(*at).and_then(Option::as_ref).map(|weighed| weighed.evidence);
    // A note that the text names matches all of it.
    let weight = |evidence: MatchEvidence| {
        if evidence.is_named { 1.0 + AS_GOOD + evidence.words } else { evidence.words }
    };
    let certain: Vec<(usize, f32)> = (0..weighed.len())
        .filter_map(|at| Some((at, evidence(&at).filter(MatchEvidence::is_certain).map(weight)?)))
        .collect();
    let best = certain.iter().map(|(_, weight)| *weight).fold(0.0, f32::max);
    let mut as_good = certain.into_iter().filter(|(_, weight)| *weight > best - AS_GOOD);
    let (at, _) = as_good.next()?;
    as_good.next().is_none().then_some(at)
}

/// Returns the inverse document frequency of each word. A word in no note has that of the rarest one.
fn weights_of(words: &[Word], snapshot: &Snapshot) -> Result<Vec<f32>> {
    let notes = snapshot.bm25.documents() as f32;
    let idf = |word: &Word| {
        // A word in no note has the weight of the rarest word.
        let holding = snapshot.bm25.document_frequency(word)?.max(1) as f32;
        // Whole identifiers have no weight, because their parts are counted.
        let weight = if word.single { 1.0 } else { 0.0 };
        Ok(weight * (1.0 + (notes - holding + 0.5).max(0.0) / (holding + 0.5)).ln())
    };
    words.iter().map(idf).collect()
}

/// The most notes that have a word which can be an identifier of something in them.
const MOST_IDENTIFIED: u64 = 3;
/// The least number of digits of an identifier; words such as `utf-8` and `h264` have fewer or name no single thing.
const MIN_IDENTIFIER_DIGITS: usize = 3;

/// Returns the numbers of the words that are identifiers of something in few notes, such as `E-1107`.
fn identifiers(words: &[Word], snapshot: &Snapshot) -> Result<HashSet<usize>> {
    let mut found = HashSet::new();
    for (at, word) in words.iter().enumerate() {
        let digits = word.exact.chars().filter(char::is_ascii_digit).count();
        if digits >= MIN_IDENTIFIER_DIGITS
            && word.exact.chars().any(char::is_alphabetic)
            && (1..=MOST_IDENTIFIED).contains(&snapshot.bm25.document_frequency(word)?)
        {
            found.insert(at);
        }
    }
    Ok(found)
}

/// Returns whether a text has the form of an id, a path or a link. Such a text names one note or none.
pub(crate) fn is_name(text: &str) -> bool {
    let text = text.trim();
    let is_path = text.contains(['/', '\\'])
        || NotePath::parse(text).is_ok_and(|path| path.is_note() || path.is_canvas());
    let is_link = text.starts_with("[[") || text.starts_with("![[");
    let is_hex = |c: char| c.is_ascii_hexdigit() || c == '-';
    let is_id = is_uuid(text)
        || (text.len() >= 8 && text.chars().all(is_hex) && text.contains(|c: char| c.is_ascii_digit()));
    !text.contains('\n') && (is_link || is_id || (is_path && !key(text).is_empty()))
}
