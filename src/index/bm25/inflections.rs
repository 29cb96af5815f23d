//! Owns the question which terms of the index share a stem: those are what a word of a query stands for.
//!
//! The index holds words as they stand. A stem is nearly always the beginning of its words, so few terms have to be
//! stemmed to find them.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use tantivy::SegmentReader;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;

use super::{Bm25Snapshot, DocSet, as_it_stands, each_term, failed};
use crate::error::Result;
use crate::text::terms::{Stem, openings};

/// So many stems are remembered for a snapshot, each for one field.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

/// The terms of one field that share a stem.
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
        let mut stemmer = Stem::brief();
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
            spread.documents += count(segment, &terms)?;
            spread.terms.push(terms);
        }
        Ok(spread)
    }
}

/// Counts the documents that hold any of these terms.
fn count(segment: &SegmentReader, terms: &[(Field, TermInfo)]) -> Result<u64> {
    if let [] | [_] = terms {
        return Ok(terms.iter().map(|(_, info)| u64::from(info.doc_freq)).sum());
    }
    let mut docs = DocSet::new(segment.max_doc());
    for (field, info) in terms {
        let inverted = segment.inverted_index(*field).map_err(failed("read"))?;
        docs.add(&inverted, info)?;
    }
    Ok(docs.len())
}
