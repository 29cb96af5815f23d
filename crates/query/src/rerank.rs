//! Reranks the best hits with a cross-encoder.

use std::time::Duration;

use sidenote_base::parallel;
use sidenote_base::wording::Wording;
use sidenote_catalog::FileKind;
use sidenote_embed::rerank::order_by;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_language::terms::CachedStemmer;
use sidenote_search::query::Query;
use sidenote_search::snippet::best_passage;
use sidenote_search::{Mode, SearchHit};

use crate::Searches;
use crate::validity::newer_before_older;

impl Searches<'_> {
    /// Returns the number of hits that a search must find so that reranking leaves `limit` of them.
    pub(super) fn rerank_depth(&self, asked: Mode, query: &Query, limit: usize) -> usize {
        if self.reranks(asked, query) { limit.max(self.core.config.rerank.top) } else { limit }
    }

    /// The modes `bm25` and `vector` show the order of one ranking and are not reranked.
    fn reranks(&self, asked: Mode, query: &Query) -> bool {
        asked == Mode::Hybrid
            && self.core.state.reranker.model.is_some()
            && !query.text_to_embed().trim().is_empty()
    }

    /// Reads the best hits of a hybrid search and sorts them again, as many as the time allows. The set of scores stays
    /// the same: each hit gets the score of its new position.
    pub(crate) fn rerank(
        &self,
        asked: Mode,
        query: &Query,
        found: &mut [SearchHit],
        notes: &mut Vec<Wording>,
    ) {
        let Some(model) = self.core.state.reranker.model.as_ref().filter(|_| self.reranks(asked, query))
        else {
            return;
        };
        let config = &self.core.config.rerank;
        // A note that the query names stays first.
        let named = found.iter().take_while(|hit| hit.components.is_put_first()).count();
        let rest = found.get_mut(named..).unwrap_or_default();
        let most = config.top.min(rest.len());
        let top = rest.get_mut(..most).unwrap_or_default();
        let texts =
            parallel::map(top, 2, CachedStemmer::default, |stem, hit| self.passage_text(hit, query, stem));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match model.rerank(query.text_to_embed(), &texts, Duration::from_millis(config.budget_ms)) {
            Ok(scores) => {
                if scores.is_empty() && !texts.is_empty() {
                    notes.push(format!("{} had no time to rerank any hit", model.name()).into());
                }
                reorder(top, &scores);
            }
            Err(error) => notes.push(format!("the hits are not reranked: {error}").into()),
        }
    }

    /// Returns the displayed passage of a hit, with its title and headings.
    fn passage_text(&self, hit: &SearchHit, query: &Query, stem: &mut CachedStemmer) -> String {
        if hit.row.kind == FileKind::Attachment {
            return String::new();
        }
        // A note that was removed since is left out of the page later.
        let Ok(bytes) = self.core.read_bytes(&hit.row.path) else { return String::new() };
        let reading = ParsedNote::new(&hit.row.path, &bytes);
        let place = best_passage(&reading, &query.words, hit.passage, stem);
        reading.embedded_texts().into_iter().nth(place).unwrap_or_default()
    }
}

/// Sorts the hits with a score, which are the first ones, by it.
fn reorder(hits: &mut [SearchHit], scores: &[f32]) {
    let read = hits.get_mut(..scores.len().min(hits.len())).unwrap_or_default();
    let shares: Vec<f32> = read.iter().map(|hit| hit.score).collect();
    let mut sorted: Vec<SearchHit> = Vec::with_capacity(read.len());
    let mut order = order_by(scores);
    let hit_at = |at: &usize| read.get(*at);
    newer_before_older(
        &mut order,
        |at| hit_at(at).map(|hit| hit.row.id),
        |at| hit_at(at).and_then(|hit| hit.updated_by),
    );
    for (place, &at) in order.iter().enumerate() {
        let (Some(hit), Some(&share)) = (read.get(at), shares.get(place)) else { continue };
        let mut hit = hit.clone();
        hit.components.rerank = scores.get(at).copied();
        hit.components.from_rerank = Some(share - hit.score);
        hit.score = hit.components.total();
        sorted.push(hit);
    }
    read.iter_mut().zip(sorted).for_each(|(old, new)| *old = new);
}
