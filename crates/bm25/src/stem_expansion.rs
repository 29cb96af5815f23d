//! Expands a stem of a query to the terms of the index that have this stem.
//!
//! The index holds unstemmed words. A stem is nearly always a prefix of its words, so few terms have to be stemmed to
//! find them.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_language::terms::{CachedStemmer, stem_prefixes};
use tantivy::postings::TermInfo;
use tantivy::schema::Field;

use crate::statistics::{SegmentTerms, count_documents};
use crate::{Bm25Snapshot, Fields, Word};

/// The number of expansions that are cached per snapshot.
const CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(2048).expect("not zero");

/// The most terms that a prefix is expanded to.
const MAX_PREFIX_TERMS: usize = 64;
/// The suffix of a cache key that marks an expansion by prefix. No term contains this character.
const PREFIX_MARK: char = '\u{0}';
/// The suffix of a cache key that marks a single term. No term contains this character.
const EXACT_MARK: char = '\u{1}';
/// What separates the stem of a word from the word in a cache key. No term contains this character.
const TYPED_MARK: char = '\u{2}';

/// The terms of one field that share a stem or a prefix, or a single term.
#[derive(Debug)]
pub(super) struct Expansion {
    /// The terms of each segment.
    pub(super) terms: Vec<SegmentTerms>,
    /// The languages, one bit for each, in whose notes each term does not count, because its stem does; none for the terms that
    /// are not listed.
    pub(super) stemmed_in: Vec<Vec<u64>>,
    /// The number of documents that contain any of the terms.
    pub(super) documents: u64,
}

/// A cache of the expansions in one snapshot.
pub(super) struct ExpansionCache {
    expansions: Mutex<LruCache<(Field, String), Arc<Expansion>>>,
}

impl Default for ExpansionCache {
    fn default() -> Self {
        Self { expansions: Mutex::new(LruCache::new(CACHE_SIZE)) }
    }
}

impl Bm25Snapshot {
    /// Finds the terms of a field that have the stem of a word or equal it: a whole identifier is its own stem.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub(super) fn expand_stem(&self, field: Field, word: &Word) -> Result<Arc<Expansion>> {
        self.cached_expansion((field, self.stem_key(word)?), || {
            self.find_terms_with_stem(field, word, |_, _, _| {})
        })
    }

    /// Returns the expansion with a key, which is found first if it is not cached.
    pub(super) fn cached_expansion(
        &self,
        key: (Field, String),
        find: impl FnOnce() -> Result<Expansion>,
    ) -> Result<Arc<Expansion>> {
        let cache = || self.expansions.expansions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(expansion) = cache().get(&key) {
            return Ok(Arc::clone(expansion));
        }
        let expansion = Arc::new(find()?);
        cache().put(key, Arc::clone(&expansion));
        Ok(expansion)
    }

    /// Returns the key of the expansions of a word by stem. Where notes are in other languages than English, the word has
    /// other stems there.
    fn stem_key(&self, word: &Word) -> Result<String> {
        let is_english = self.languages()?.is_english();
        let typed = word.typed.as_deref().unwrap_or_default();
        Ok(if is_english { word.stem.clone() } else { format!("{}{TYPED_MARK}{typed}", word.stem) })
    }

    /// Looks up words of a query in the dictionaries of several segments on all cores, and caches what is found.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn look_up(&self, words: &[Word]) -> Result<()> {
        if self.searcher.segment_readers().len() < 2 {
            return Ok(());
        }
        let Fields { title, headings, words: body, meta, code, .. } = self.fields;
        let mut lookups = Vec::new();
        let mut stems = HashSet::new();
        for word in words.iter().filter(|word| !word.prefix) {
            lookups.push((word, code));
            if stems.insert(self.stem_key(word)?) {
                lookups.extend([title, headings, body, meta].map(|field| (word, field)));
            }
        }
        let find = |(): &mut (), (word, field): &(&Word, Field)| -> Result<()> {
            if *field == code {
                self.expand_exact(*field, &word.exact).map(drop)
            } else if *field == title || *field == body {
                self.expand_stem_and_exact(*field, word)
            } else {
                self.expand_stem(*field, word).map(drop)
            }
        };
        parallel::map_briefly(&lookups, 1, || (), find).into_iter().collect()
    }

    /// Finds the terms of a field that have a stem, and among them the term that is the word itself. Both are cached.
    fn expand_stem_and_exact(&self, field: Field, word: &Word) -> Result<()> {
        let (stem, exact) = (&*word.stem, &*word.exact);
        let cache = || self.expansions.expansions.lock().unwrap_or_else(PoisonError::into_inner);
        let (stem_key, exact_key) = ((field, self.stem_key(word)?), (field, format!("{exact}{EXACT_MARK}")));
        let is_inflection = exact == stem
            || stem_prefixes(stem).iter().any(|prefix| exact.starts_with(prefix))
                && CachedStemmer::with_small_cache().of(exact) == stem;
        if cache().contains(&stem_key) || !is_inflection {
            self.expand_stem(field, word)?;
            self.expand_exact(field, exact)?;
            return Ok(());
        }
        let segments = self.searcher.segment_readers();
        let mut exact_terms = vec![Vec::new(); segments.len()];
        let expansion = self.find_terms_with_stem(field, word, |segment, term, found| {
            if let Some(terms) = exact_terms.get_mut(segment).filter(|_| term == exact) {
                terms.push(found.clone());
            }
        })?;
        let mut documents = 0;
        for (segment, terms) in segments.iter().zip(&exact_terms) {
            documents += count_documents(segment, terms)?;
        }
        let mut cache = cache();
        cache.put(stem_key, Arc::new(expansion));
        cache.put(exact_key, Arc::new(Expansion { terms: exact_terms, stemmed_in: Vec::new(), documents }));
        Ok(())
    }

    /// Finds the terms of a field that have a stem, and shows each to `visit` with the index of its segment.
    fn find_terms_with_stem(
        &self,
        field: Field,
        word: &Word,
        mut visit: impl FnMut(usize, &str, &(Field, TermInfo)),
    ) -> Result<Expansion> {
        let stem = &*word.stem;
        let mut stemmer = CachedStemmer::with_small_cache();
        let mut expansion = Expansion { terms: Vec::new(), stemmed_in: Vec::new(), documents: 0 };
        let prefixes = stem_prefixes(stem);
        let word_stems = self.word_stems(word)?;
        for (at_segment, segment) in self.searcher.segment_readers().iter().enumerate() {
            let (stem_terms, languages) = word_stems.terms(at_segment, field, &self.fields);
            let (mut terms, mut texts) = (Vec::new(), Vec::new());
            let mut add = |term: &str, found: (Field, TermInfo)| {
                visit(at_segment, term, &found);
                terms.push(found);
                if !languages.is_empty() {
                    texts.push(term.to_owned());
                }
            };
            for part in self.fields.scored_together(field) {
                // The terms with the first prefix begin with the stem itself, if that is the prefix.
                if prefixes.first().is_none_or(|prefix| prefix != stem)
                    && let Some(found) = self.dictionaries.find(at_segment, segment, part, stem)?
                {
                    add(stem, (part, found));
                }
                for (at, prefix) in prefixes.iter().enumerate() {
                    self.dictionaries.for_each_with_prefix(
                        at_segment,
                        segment,
                        part,
                        prefix,
                        |term, found| {
                            let is_listed = if term == stem {
                                at == 0 && prefix == stem
                            } else {
                                stemmer.of(term) == stem
                            };
                            if is_listed {
                                add(term, (part, found.term_info()?));
                            }
                            Ok(true)
                        },
                    )?;
                }
            }
            let stemmers = languages.iter().filter_map(|&language| Some((language, language.stemmer()?)));
            let mut stemmers: Vec<_> = stemmers.collect();
            let languages_of = |text: &String| word_stems.languages_of(self, &mut stemmers, text);
            expansion.stemmed_in.push(texts.iter().map(languages_of).collect::<Result<_>>()?);
            terms.extend(stem_terms);
            expansion.documents += count_documents(segment, &terms)?;
            expansion.terms.push(terms);
        }
        Ok(expansion)
    }

    /// Finds a term of a field.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub(super) fn expand_exact(&self, field: Field, term: &str) -> Result<Arc<Expansion>> {
        let cache = || self.expansions.expansions.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (field, format!("{term}{EXACT_MARK}"));
        if let Some(expansion) = cache().get(&key) {
            return Ok(Arc::clone(expansion));
        }
        let mut expansion = Expansion { terms: Vec::new(), stemmed_in: Vec::new(), documents: 0 };
        for (at, segment) in self.searcher.segment_readers().iter().enumerate() {
            let found = self.dictionaries.find(at, segment, field, term)?;
            let terms: Vec<_> = found.into_iter().map(|found| (field, found)).collect();
            expansion.documents += count_documents(segment, &terms)?;
            expansion.terms.push(terms);
        }
        let expansion = Arc::new(expansion);
        cache().put(key, Arc::clone(&expansion));
        Ok(expansion)
    }

    /// Finds the terms of a field with a prefix: the first in order of those that a live note contains.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub(super) fn expand_prefix(&self, field: Field, prefix: &str) -> Result<Arc<Expansion>> {
        let cache = || self.expansions.expansions.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (field, format!("{prefix}{PREFIX_MARK}"));
        if let Some(expansion) = cache().get(&key) {
            return Ok(Arc::clone(expansion));
        }
        let expansion = Arc::new(self.find_terms_with_prefix(field, prefix)?);
        cache().put(key, Arc::clone(&expansion));
        Ok(expansion)
    }

    fn find_terms_with_prefix(&self, field: Field, prefix: &str) -> Result<Expansion> {
        let segments = self.searcher.segment_readers();
        let mut expansion =
            Expansion { terms: vec![Vec::new(); segments.len()], stemmed_in: Vec::new(), documents: 0 };
        for part in self.fields.scored_together(field) {
            // The first terms of all segments are among the first of each, without those that no live note contains.
            let mut first: BTreeMap<String, Vec<(usize, TermInfo)>> = BTreeMap::new();
            for (at, segment) in segments.iter().enumerate() {
                let mut found = Vec::new();
                self.dictionaries.for_each_with_prefix(at, segment, part, prefix, |term, values| {
                    let info = values.term_info()?;
                    if count_documents(segment, &[(part, info.clone())])? > 0 {
                        found.push((term.to_owned(), info));
                    }
                    Ok(found.len() < MAX_PREFIX_TERMS)
                })?;
                for (term, info) in found {
                    first.entry(term).or_default().push((at, info));
                }
            }
            for (at, info) in first.into_values().take(MAX_PREFIX_TERMS).flatten() {
                if let Some(terms) = expansion.terms.get_mut(at) {
                    terms.push((part, info));
                }
            }
        }
        for (segment, terms) in segments.iter().zip(&expansion.terms) {
            expansion.documents += count_documents(segment, terms)?;
        }
        Ok(expansion)
    }
}
