//! Owns the question which notes can hold a text: the terms of the index are looked through for it.
//!
//! Every run of letters and digits in a file is a part of one of its terms, so a note none of whose terms holds a run
//! does not hold the run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use tantivy::index::SegmentId;
use tantivy::schema::Field;
use tantivy::{InvertedIndexReader, SegmentReader};

use crate::error::Result;
use crate::index::bm25::statistics::holding;
use crate::index::bm25::{Bm25Snapshot, DocSet, failed};
use crate::index::file_set::{FileId, FileSet};
use crate::text::path::composed;
use crate::text::terms::{fold_into, is_unspaced};

/// The term of a note of whose text something is not in the index: a word or identifier beyond reason.
pub(super) const INCOMPLETE: &str = "\u{7f}";

/// Runs of ASCII shorter than this are in nearly every note; and what `don't` leaves behind is not in the index.
const SHORTEST: usize = 3;
/// So many postings are read for one run; then it is taken to be everywhere.
const MOST_POSTINGS: u64 = 4_000_000;

/// So many runs are remembered for a snapshot, with the files that may hold them.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(128).expect("not zero");

/// What was looked for in one state of the index.
pub(super) type Held = Mutex<LruCache<String, Option<FileSet>>>;

/// Remembers nothing yet.
pub(super) fn nothing_held() -> Held {
    Mutex::new(LruCache::new(REMEMBERED))
}

/// The terms of the segments met so far. A segment never changes, so its terms are listed once.
#[derive(Default)]
pub(super) struct Vocabulary {
    lists: Mutex<HashMap<(SegmentId, Field), Arc<TermText>>>,
}

/// The terms of one field of a segment in one text.
struct TermText {
    text: String,
    /// Where each term begins; a line feed stands behind it.
    starts: Vec<u32>,
}

impl TermText {
    fn new(inverted: &InvertedIndexReader) -> Result<Self> {
        let (mut text, mut starts) = (String::new(), Vec::new());
        let mut stream = inverted.terms().stream().map_err(|error| failed("read")(error.into()))?;
        while stream.advance() {
            starts.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
            text.push_str(&String::from_utf8_lossy(stream.key()));
            text.push('\n');
        }
        Ok(Self { text, starts })
    }

    /// Gives the terms that hold `run`, each once.
    fn holding<'a>(&'a self, run: &'a str) -> impl Iterator<Item = &'a str> {
        let mut last = None;
        memchr::memmem::find_iter(self.text.as_bytes(), run)
            .map(|at| self.starts.partition_point(|&start| start as usize <= at))
            .filter(move |&place| last.replace(place) != Some(place))
            .filter_map(|place| self.term(place.checked_sub(1)?))
    }

    fn term(&self, place: usize) -> Option<&str> {
        let start = *self.starts.get(place)? as usize;
        let end = self.starts.get(place + 1).map_or(self.text.len(), |&next| next as usize);
        self.text.get(start..end.checked_sub(1)?)
    }
}

/// Cuts a text into the runs of letters and digits by which it can be looked for, folded as terms are.
fn runs(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |run: &str| {
        let mut folded = String::new();
        fold_into(run, &mut folded);
        // Folding may leave signs behind: a ligature of units, a fraction.
        let parts = folded.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        found.extend(parts.filter(|part| !part.is_ascii() || part.len() >= SHORTEST).map(str::to_owned));
    };
    for run in composed(text).split(|c: char| !c.is_alphanumeric()) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let unspaced = is_unspaced(first);
            let end = rest.find(|c| is_unspaced(c) != unspaced).unwrap_or(rest.len());
            let (part, behind) = rest.split_at(end);
            rest = behind;
            if !unspaced {
                add(part);
                continue;
            }
            // The index has pairs of neighbours.
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
    /// Lists the notes and canvases that may hold a text, whatever its case; all others do not. `None` where that
    /// would be nearly all of them.
    ///
    /// # Errors
    /// Where the index cannot be read.
    pub fn may_hold(&self, text: &str) -> Result<Option<FileSet>> {
        let mut found: Option<FileSet> = None;
        for run in runs(text) {
            if let Some(files) = self.may_hold_run(&run)? {
                found = Some(match found {
                    None => files,
                    Some(found) => found.and(&files),
                });
            }
        }
        Ok(found)
    }

    /// As [`Bm25Snapshot::may_hold`] for one run; a query asks for some more than once, and people ask again.
    fn may_hold_run(&self, run: &str) -> Result<Option<FileSet>> {
        let held = || self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = held().get(run) {
            return Ok(files.clone());
        }
        let files = self.look_for_run(run)?;
        held().put(run.to_owned(), files.clone());
        Ok(files)
    }

    fn look_for_run(&self, run: &str) -> Result<Option<FileSet>> {
        let mut found = FileSet::default();
        let mut budget = MOST_POSTINGS;
        for segment in self.searcher.segment_readers() {
            let mut docs = DocSet::new(segment.max_doc());
            for field in self.fields.content() {
                let inverted = segment.inverted_index(field).map_err(failed("read"))?;
                let terms = self.vocabulary.terms(segment, field, &inverted)?;
                for term in terms.holding(run) {
                    if !add_postings(&inverted, term, &mut docs, &mut budget)? {
                        return Ok(None);
                    }
                }
            }
            let inverted = segment.inverted_index(self.fields.rest).map_err(failed("read"))?;
            add_all_postings(&inverted, INCOMPLETE, &mut docs)?;
            self.add_files(segment, &docs, &mut found)?;
        }
        Ok(Some(found))
    }

    /// Finds the word of a body that is nearest to one that stands nowhere: by edit distance (Damerau–Levenshtein, of
    /// neighbours only), then by the number of notes that hold it. Nothing where none is near.
    ///
    /// # Errors
    /// Where the index cannot be read.
    pub fn nearest_word(&self, word: &str) -> Result<Option<String>> {
        let length = word.chars().count();
        let most = if length < 4 { return Ok(None) } else { 1 + usize::from(length >= 7) };
        let letters = letters_of(word);
        let mut best: HashMap<String, (usize, u64)> = HashMap::new();
        for segment in self.searcher.segment_readers() {
            let inverted = segment.inverted_index(self.fields.words).map_err(failed("read"))?;
            let terms = self.vocabulary.terms(segment, self.fields.words, &inverted)?;
            for term in terms.text.lines() {
                // Each edit exchanges one letter for another at most.
                if term.len().abs_diff(word.len()) > 4 * most
                    || (letters_of(term) ^ letters).count_ones() as usize > 2 * most
                    || term.starts_with(|c: char| !c.is_alphabetic())
                {
                    continue;
                }
                let distance = strsim::osa_distance(word, term);
                if distance <= most
                    && let Some(info) =
                        inverted.terms().get(term).map_err(|error| failed("read")(error.into()))?
                {
                    let notes = holding(segment, &[(self.fields.words, info)])?;
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

    /// Lists the notes that have a property whose name, in the form that names are compared by, is one of these.
    ///
    /// # Errors
    /// Where the index cannot be read.
    pub fn with_property(&self, keys: &[String]) -> Result<FileSet> {
        let mut found = FileSet::default();
        for segment in self.searcher.segment_readers() {
            let inverted = segment.inverted_index(self.fields.keys).map_err(failed("read"))?;
            let mut docs = DocSet::new(segment.max_doc());
            for key in keys {
                add_all_postings(&inverted, &as_term(key), &mut docs)?;
            }
            self.add_files(segment, &docs, &mut found)?;
        }
        Ok(found)
    }

    fn add_files(&self, segment: &SegmentReader, docs: &DocSet, found: &mut FileSet) -> Result<()> {
        let column = segment.fast_fields().u64("file").map_err(failed("read"))?.first_or_default_col(0);
        for doc in docs.iter().filter(|&doc| doc < segment.max_doc() && !segment.is_deleted(doc)) {
            found.insert(column.get_val(doc) as FileId);
        }
        Ok(())
    }
}

/// Gives the set of a word's letters, as bits; letters may share one.
fn letters_of(word: &str) -> u64 {
    word.chars().fold(0, |letters, c| letters | 1 << (u32::from(c) % u64::BITS))
}

/// Writes the name of a property as one term: not empty, and without the characters by which terms are listed.
pub(super) fn as_term(key: &str) -> Cow<'_, str> {
    if key.is_empty() {
        Cow::Borrowed(" ")
    } else if key.contains(char::is_control) {
        Cow::Owned(key.replace(char::is_control, " "))
    } else {
        Cow::Borrowed(key)
    }
}

/// Adds the documents of a term.
fn add_all_postings(inverted: &InvertedIndexReader, term: &str, docs: &mut DocSet) -> Result<()> {
    let mut unbounded = u64::MAX;
    add_postings(inverted, term, docs, &mut unbounded).map(drop)
}

/// Adds the documents of a term; `false` where too many were read already.
fn add_postings(
    inverted: &InvertedIndexReader,
    term: &str,
    docs: &mut DocSet,
    budget: &mut u64,
) -> Result<bool> {
    let Some(info) = inverted.terms().get(term).map_err(|error| failed("read")(error.into()))? else {
        return Ok(true);
    };
    let Some(left) = budget.checked_sub(u64::from(info.doc_freq)) else { return Ok(false) };
    *budget = left;
    docs.add(inverted, &info)?;
    Ok(true)
}

impl Vocabulary {
    fn terms(
        &self,
        segment: &SegmentReader,
        field: Field,
        inverted: &InvertedIndexReader,
    ) -> Result<Arc<TermText>> {
        let key = (segment.segment_id(), field);
        if let Some(terms) = self.lists.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(terms));
        }
        let terms = Arc::new(TermText::new(inverted)?);
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&terms));
        Ok(terms)
    }

    /// Forgets the segments that are no more.
    pub(super) fn keep_only(&self, segments: &[SegmentReader]) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|(id, _), _| segments.iter().any(|segment| segment.segment_id() == *id));
    }
}
