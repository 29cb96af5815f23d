//! Finds the notes that can contain a text, by searching the terms of the index for it.
//!
//! Every run of letters and digits of a file is a substring of one of its terms. So a note can contain a run only if
//! one of its terms does. A run that no letter or digit adjoins is a term of its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_language::folding::{fold_into, is_unspaced};
use sidenote_language::terms::{begins_with_mark, is_clitic};
use sidenote_markdown::path::to_nfc;
use sidenote_sets::file_set::{FileId, FileSet};
use tantivy::index::SegmentId;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::{Field, Term};
use tantivy::{InvertedIndexReader, SegmentReader};

use crate::file_documents::file_column;
use crate::statistics::count_documents;
use crate::term_lookup::{SortedTerms, unreadable};
use crate::{Bm25Snapshot, DocSet, failed};

/// The term that marks a note with text that is not indexed, such as an extremely long word.
pub(super) const INCOMPLETE: &str = "\u{7f}";

/// The least length of a run of ASCII. Shorter runs are in nearly every note, and the rest of `don't` is not indexed.
const MIN_RUN_LENGTH: usize = 3;
/// The most postings that are read for one run. A run with more is taken to occur in every note.
const MAX_POSTINGS: u64 = 4_000_000;

/// The number of parts in which the terms of a field are read.
const PARTS: usize = 8;

/// The number of runs whose candidates are cached per snapshot.
const CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(128).expect("not zero");

/// A cache of the candidates for each run in one snapshot.
pub(super) type CandidateCache = Mutex<LruCache<(String, Extent), Option<FileSet>>>;

/// What a text is in the notes that contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Any part of the note, also within a word.
    Anywhere,
    /// Whole words.
    WholeWords,
}

/// Creates an empty cache.
pub(super) fn new_candidate_cache() -> CandidateCache {
    Mutex::new(LruCache::new(CACHE_SIZE))
}

/// A cache of the terms of each segment and field. A segment never changes, so its terms are listed once.
#[derive(Default)]
pub(super) struct TermTextCache {
    texts: Mutex<HashMap<(SegmentId, Field), TermTexts>>,
    /// Whether a text was asked for since [`TermTextCache::release_unused`] was called.
    is_used: AtomicBool,
}

/// The bytes of a term and its line feed in a usual list.
const USUAL_TERM: usize = 12;
/// The most terms for which a part takes memory before it has read them.
const MOST_EXPECTED: usize = 1 << 17;

/// All terms of one field of a segment, in parts.
type TermTexts = Arc<[TermText]>;

/// Some consecutive terms of one field of a segment, each followed by a line feed.
struct TermText {
    text: String,
    /// The start of each term in `text`.
    starts: Vec<u32>,
}

impl TermText {
    /// Lists the terms of a field from `from` on and before `to`; without these, from the first to the last.
    fn between(terms: &SortedTerms, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<Self> {
        // An index of somebody else can state any number of terms.
        let expected = (terms.num_terms() / PARTS + 1).min(MOST_EXPECTED);
        let mut text = String::with_capacity(expected * USUAL_TERM);
        let mut starts = Vec::with_capacity(expected);
        let mut range = terms.range();
        if let Some(from) = from {
            range = range.ge(from);
        }
        if let Some(to) = to {
            range = range.lt(to);
        }
        let mut stream = range.into_stream().map_err(unreadable)?;
        while stream.advance() {
            starts.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
            text.push_str(&String::from_utf8_lossy(stream.key()));
            text.push('\n');
        }
        Ok(Self { text, starts })
    }

    /// Iterates over the terms that contain `run`, each once.
    fn containing<'a>(&'a self, run: &'a str) -> impl Iterator<Item = &'a str> {
        let mut last = None;
        memchr::memmem::find_iter(self.text.as_bytes(), run)
            .map(|at| self.starts.partition_point(|&start| start as usize <= at))
            .filter(move |&index| last.replace(index) != Some(index))
            .filter_map(|index| self.term(index.checked_sub(1)?))
    }

    fn term(&self, index: usize) -> Option<&str> {
        let start = *self.starts.get(index)? as usize;
        let end = self.starts.get(index + 1).map_or(self.text.len(), |&next| next as usize);
        self.text.get(start..end.checked_sub(1)?)
    }
}

/// Lists the terms of a field in parts of the same number, on all cores.
fn list_terms(terms: &SortedTerms) -> Result<Vec<TermText>> {
    let mut bounds: Vec<Vec<u8>> = Vec::with_capacity(PARTS);
    for part in 1..PARTS {
        let mut bound = Vec::new();
        let at = (terms.num_terms() / PARTS * part) as u64;
        terms.ord_to_term(at, &mut bound).map_err(unreadable)?;
        bounds.push(bound);
    }
    let bound = |at: usize| bounds.get(at).map(Vec::as_slice);
    let parts: Vec<usize> = (0..PARTS).collect();
    let list = |(): &mut (), part: &usize| {
        TermText::between(terms, part.checked_sub(1).and_then(bound), bound(*part))
    };
    parallel::map_briefly(&parts, 1, || (), list).into_iter().collect()
}

/// Splits a text into the runs of letters and digits to search for, folded as terms are.
fn runs(text: &str, extent: Extent) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |run: &str| {
        let mut folded = String::new();
        fold_into(run, &mut folded);
        // Folding may yield signs, as it does for a ligature of units or a fraction.
        let parts = folded.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        match extent {
            Extent::Anywhere => found.extend(
                parts.filter(|part| !part.is_ascii() || part.len() >= MIN_RUN_LENGTH).map(str::to_owned),
            ),
            Extent::WholeWords => {
                found.extend(parts.filter(|part| *part == folded && !is_clitic(part)).map(str::to_owned))
            }
        }
    };
    // A dot above an i is what lower case leaves of İ, whose words are whole in the index.
    let text = to_nfc(text).replace("i\u{307}", "İ");
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let unspaced = is_unspaced(first);
            let end = rest.find(|c| is_unspaced(c) != unspaced).unwrap_or(rest.len());
            let (part, remainder) = rest.split_at(end);
            rest = remainder;
            if !unspaced {
                // Marks without a letter before them are in no term.
                if extent == Extent::Anywhere || !begins_with_mark(part) {
                    add(part);
                }
                continue;
            }
            // For scripts without spaces the index has bigrams.
            let starts: Vec<usize> = part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
            let width = if starts.len() > 2 { 2 } else { 1 };
            for pair in starts.windows(width + 1) {
                if let [from, .., to] = pair {
                    add(part.get(*from..*to).unwrap_or(""));
                }
            }
        }
    }
    found.sort_by_key(|run| std::cmp::Reverse(run.len()));
    found.dedup();
    found
}

impl Bm25Snapshot {
    /// Returns the notes and canvases that may contain a text, regardless of case; no others contain it. Returns `None`
    /// if that would be nearly all of them.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn may_contain(&self, text: &str, extent: Extent) -> Result<Option<FileSet>> {
        let mut found: Option<FileSet> = None;
        for run in runs(text, extent) {
            if let Some(files) = self.may_contain_run(run, extent)? {
                found = Some(match found {
                    None => files,
                    Some(found) => found.and(&files),
                });
            }
        }
        Ok(found)
    }

    /// Returns the candidates for one run. They are cached, because a query and its repetitions ask for the same runs.
    fn may_contain_run(&self, run: String, extent: Extent) -> Result<Option<FileSet>> {
        let cache = || self.candidates.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (run, extent);
        if let Some(files) = cache().get(&key) {
            return Ok(files.clone());
        }
        // Scripts without spaces have no words, and their terms are bigrams.
        let is_term = extent == Extent::WholeWords && !key.0.starts_with(is_unspaced);
        let found = if is_term {
            Some(self.with_term(&self.fields.content(), &key.0)?)
        } else {
            self.search_terms(&key.0)?
        };
        let incomplete = self.with_term(&[self.fields.rest], INCOMPLETE)?;
        let files = found.map(|found| found.or(&incomplete));
        cache().put(key, files.clone());
        Ok(files)
    }

    /// Returns the notes with a term that contains a run. `None` if the terms are in too many notes.
    fn search_terms(&self, run: &str) -> Result<Option<FileSet>> {
        let mut found = FileSet::default();
        let mut budget = MAX_POSTINGS;
        for (at, segment) in self.searcher.segment_readers().iter().enumerate() {
            let mut docs = DocSet::new(segment.max_doc());
            for field in self.fields.content() {
                let Some(dictionary) = self.dictionaries.of(at, segment, field)? else { continue };
                let inverted = segment.inverted_index(field).map_err(failed("read"))?;
                let terms = self.term_texts.terms(segment, field, dictionary)?;
                for term in terms.iter().flat_map(|part| part.containing(run)) {
                    if !add_postings((dictionary, &inverted), term, &mut docs, &mut budget)? {
                        return Ok(None);
                    }
                }
            }
            self.add_files(segment, &docs, &mut found)?;
        }
        Ok(Some(found))
    }

    /// Returns the notes that have a term in one of these fields.
    fn with_term(&self, fields: &[Field], term: &str) -> Result<FileSet> {
        let mut found = FileSet::default();
        for (at, segment) in self.searcher.segment_readers().iter().enumerate() {
            let mut docs = DocSet::new(segment.max_doc());
            for &field in fields {
                if let Some(info) = self.dictionaries.find(at, segment, field, term)? {
                    docs.add(&*segment.inverted_index(field).map_err(failed("read"))?, &info)?;
                }
            }
            self.add_files(segment, &docs, &mut found)?;
        }
        Ok(found)
    }

    /// Finds the word of some body that is nearest to an out-of-vocabulary word, among those that `may_be_meant`: by edit
    /// distance (Damerau–Levenshtein, adjacent transpositions only), then by the number of notes that contain it. Returns
    /// `None` if there is no near word.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn nearest_word(&self, word: &str, may_be_meant: impl Fn(&str) -> bool) -> Result<Option<String>> {
        let length = word.chars().count();
        let max_distance = if length < 4 { return Ok(None) } else { 1 + usize::from(length >= 7) };
        // Its automaton (Schulz & Mihov 2002) passes over the terms that cannot be near, and does not tell how near the others are.
        let text = Term::from_field_text(self.fields.words, word);
        let near = FuzzyTermQuery::new(text, max_distance as u8, true);
        let mut best: HashMap<String, (usize, u64)> = HashMap::new();
        for (at, segment) in self.searcher.segment_readers().iter().enumerate() {
            let Some(terms) = self.dictionaries.of(at, segment, self.fields.words)? else { continue };
            let terms = terms.search(near.automaton().map_err(failed("read"))?);
            let mut terms = terms.into_stream().map_err(unreadable)?;
            while terms.advance() {
                let Ok(term) = std::str::from_utf8(terms.key()) else { continue };
                let distance = strsim::osa_distance(word, term);
                if distance <= max_distance && term.starts_with(char::is_alphabetic) && may_be_meant(term) {
                    let notes = count_documents(segment, &[(self.fields.words, terms.value().term_info()?)])?;
                    best.entry(term.to_owned()).or_insert((distance, 0)).1 += notes;
                }
            }
        }
        let nearest = best.into_iter().filter(|(_, (_, notes))| *notes > 0).min_by(
            |(one, (near, many)), (other, (nearer, more))| {
                near.cmp(nearer).then(more.cmp(many)).then_with(|| one.cmp(other))
            },
        );
        Ok(nearest.map(|(term, _)| term))
    }

    /// Drops the lists of terms that searches keep, unless they were used since the last call.
    pub fn release_unused(&self) {
        self.term_texts.release_unused();
    }

    /// Returns the notes that have a property with one of these names, which are normalized for comparison.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn with_property(&self, keys: &[String]) -> Result<FileSet> {
        let with = |key: &String| self.with_term(&[self.fields.keys], &as_term(key));
        keys.iter().try_fold(FileSet::default(), |found, key| Ok(found.or(&with(key)?)))
    }

    /// Adds the files of the live documents of a segment.
    fn add_files(&self, segment: &SegmentReader, docs: &DocSet, found: &mut FileSet) -> Result<()> {
        let column = file_column(segment)?;
        for doc in docs.iter().filter(|&doc| doc < segment.max_doc() && !segment.is_deleted(doc)) {
            found.insert(column.get_val(doc) as FileId);
        }
        Ok(())
    }
}

/// Converts the name of a property to a term, which is not empty and has no control characters, since term lists use
/// them.
pub(super) fn as_term(key: &str) -> Cow<'_, str> {
    if key.is_empty() {
        Cow::Borrowed(" ")
    } else if key.contains(char::is_control) {
        Cow::Owned(key.replace(char::is_control, " "))
    } else {
        Cow::Borrowed(key)
    }
}

/// Adds the documents in the posting list of a term. Returns `false` if that would exceed the budget of postings.
fn add_postings(
    (dictionary, inverted): (&SortedTerms, &InvertedIndexReader),
    term: &str,
    docs: &mut DocSet,
    budget: &mut u64,
) -> Result<bool> {
    let Some(found) = dictionary.get(term).map_err(unreadable)? else { return Ok(true) };
    let info = found.term_info()?;
    let Some(remaining) = budget.checked_sub(u64::from(info.doc_freq)) else { return Ok(false) };
    *budget = remaining;
    docs.add(inverted, &info)?;
    Ok(true)
}

impl TermTextCache {
    /// Returns the terms of a field of a segment.
    fn terms(&self, segment: &SegmentReader, field: Field, dictionary: &SortedTerms) -> Result<TermTexts> {
        let key = (segment.segment_id(), field);
        self.is_used.store(true, Ordering::Relaxed);
        if let Some(terms) = self.texts.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(terms));
        }
        let terms: TermTexts = list_terms(dictionary)?.into();
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&terms));
        Ok(terms)
    }

    /// Removes all terms if none were asked for since the last call.
    fn release_unused(&self) {
        if !self.is_used.swap(false, Ordering::Relaxed) {
            self.texts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Removes the terms of all but these segments.
    pub(super) fn retain_segments(&self, segments: &[SegmentReader]) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.retain(|(id, _), _| segments.iter().any(|segment| segment.segment_id() == *id));
    }
}
