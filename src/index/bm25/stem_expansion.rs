//! Owns the question which terms of the index share a stem: those are what a word of a query stands for.
//!
//! The index holds words as they stand. A stem is nearly always the beginning of its words, so few terms have to be
//! stemmed to find them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;

use crate::error::Result;
use crate::index::bm25::statistics::holding;
use crate::index::bm25::{Bm25Snapshot, as_it_stands, each_term, failed};
use crate::text::terms::{CachedStemmer, openings};

/// So many stems are remembered for a snapshot, each for one field.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

/// Of the terms that begin with a text so many count.
const MOST_BEGUN: usize = 64;
/// Stands behind a text in the place of whatever else a term holds; no term holds it.
const ANY_END: char = '\u{0}';

/// The terms of one field that share a stem, or begin with a text.
#[derive(Debug)]
pub(super) struct Spread {
    /// By segment; each with the field that it stands in.
    pub(super) terms: Vec<Vec<(Field, TermInfo)>>,
    /// How many documents hold any of them.
    pub(super) documents: u64,
}

/// What was looked for in one state of the index.
pub(super) struct Inflections {
    met: Mutex<LruCache<(Field, String), Arc<Spread>>>,
}

impl Default for Inflections {
    fn default() -> Self {
        Self { met: Mutex::new(LruCache::new(REMEMBERED)) }
    }
}

impl Bm25Snapshot {
    /// Finds the terms of a field that have this stem, or are written like it: a whole identifier is its own stem.
    pub(super) fn inflected(&self, field: Field, stem: &str) -> Result<Arc<Spread>> {
        let met = || self.inflections.met.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (field, stem.to_owned());
        if let Some(spread) = met().get(&key) {
            return Ok(Arc::clone(spread));
        }
        let spread = Arc::new(self.look_for_stem(field, stem)?);
        met().put(key, Arc::clone(&spread));
        Ok(spread)
    }

    fn look_for_stem(&self, field: Field, stem: &str) -> Result<Spread> {
        let mut stemmer = CachedStemmer::brief();
        let mut spread = Spread { terms: Vec::new(), documents: 0 };
        for segment in self.searcher.segment_readers() {
            let mut terms = Vec::new();
            for part in self.fields.as_one(field) {
                let inverted = segment.inverted_index(part).map_err(failed("read"))?;
                terms.extend(as_it_stands(segment, part, stem)?);
                for opening in openings(stem) {
                    each_term(&inverted, &opening, |term, info| {
                        if term != stem && stemmer.of(term) == stem {
                            terms.push((part, info.clone()));
                        }
                        true
                    })?;
                }
            }
            spread.documents += holding(segment, &terms)?;
            spread.terms.push(terms);
        }
        Ok(spread)
    }

    /// Finds the terms of a field that begin with a text: of all that some note holds, the first in order.
    pub(super) fn begun_by(&self, field: Field, opening: &str) -> Result<Arc<Spread>> {
        let met = || self.inflections.met.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (field, format!("{opening}{ANY_END}"));
        if let Some(spread) = met().get(&key) {
            return Ok(Arc::clone(spread));
        }
        let spread = Arc::new(self.look_for_opening(field, opening)?);
        met().put(key, Arc::clone(&spread));
        Ok(spread)
    }

    fn look_for_opening(&self, field: Field, opening: &str) -> Result<Spread> {
        let segments = self.searcher.segment_readers();
        let mut spread = Spread { terms: vec![Vec::new(); segments.len()], documents: 0 };
        for part in self.fields.as_one(field) {
            // The first of all are among the first of each segment, once those that no note holds are left out.
            let mut first: BTreeMap<String, Vec<(usize, TermInfo)>> = BTreeMap::new();
            for (at, segment) in segments.iter().enumerate() {
                let inverted = segment.inverted_index(part).map_err(failed("read"))?;
                let mut found = Vec::new();
                let mut failure = None;
                each_term(&inverted, opening, |term, info| {
                    match holding(segment, &[(part, info.clone())]) {
                        Ok(0) => {}
                        Ok(_) => found.push((term.to_owned(), info.clone())),
                        Err(error) => failure = Some(error),
                    }
                    found.len() < MOST_BEGUN && failure.is_none()
                })?;
                if let Some(failure) = failure {
                    return Err(failure);
                }
                for (term, info) in found {
                    first.entry(term).or_default().push((at, info));
                }
            }
            for (at, info) in first.into_values().take(MOST_BEGUN).flatten() {
                if let Some(terms) = spread.terms.get_mut(at) {
                    terms.push((part, info));
                }
            }
        }
        for (segment, terms) in segments.iter().zip(&spread.terms) {
            spread.documents += holding(segment, terms)?;
        }
        Ok(spread)
    }
}
