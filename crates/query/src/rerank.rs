//! Scores the best hits with a cross-encoder, for the reranker of the pipeline.

use std::time::Duration;

use sidenote_base::parallel;
use sidenote_base::wording::Wording;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_language::terms::CachedStemmer;
use sidenote_search::query::Query;
use sidenote_search::snippet::best_passage;
use sidenote_search::{Mode, SearchHit};

use crate::Searches;

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

    /// Reads the first hits of a hybrid search and scores them, as many as the time allows. Returns no score without a
    /// reranker.
    pub(super) fn rerank_scores(
        &self,
        asked: Mode,
        query: &Query,
        hits: &[SearchHit],
        notes: &mut Vec<Wording>,
    ) -> Vec<f32> {
        let Some(model) = self.core.state.reranker.model.as_ref().filter(|_| self.reranks(asked, query))
        else {
            return Vec::new();
        };
        let config = &self.core.config.rerank;
        let top = hits.get(..config.top.min(hits.len())).unwrap_or_default();
        let texts =
            parallel::map(top, 2, CachedStemmer::default, |stem, hit| self.passage_text(hit, query, stem));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match model.rerank(query.text_to_embed(), &texts, Duration::from_millis(config.budget_ms)) {
            Ok(scores) => {
                if scores.is_empty() && !texts.is_empty() {
                    notes.push(format!("{} had no time to rerank any hit", model.name()).into());
                }
                scores
            }
            Err(error) => {
                notes.push(format!("the hits are not reranked: {error}").into());
                Vec::new()
            }
        }
    }

    /// Returns the displayed passage of a hit, with its title and headings.
    fn passage_text(&self, hit: &SearchHit, query: &Query, stem: &mut CachedStemmer) -> String {
        // A note that was removed since is left out of the page later.
        let Ok(Some(bytes)) = self.core.read_searched(&hit.row) else { return String::new() };
        let reading = ParsedNote::new(&hit.row.path, &bytes);
        let place = best_passage(&reading, &query.words, hit.passage, stem);
        reading.embedded_texts().into_iter().nth(place).unwrap_or_default()
    }
}
