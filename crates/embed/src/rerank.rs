//! The trait [`Rerank`], which every reranker implements, and the reordering of a list by its scores.

use std::time::Duration;

use sidenote_base::error::Result;

/// A reranking model. It reads a query and a text together, and scores how well the text answers the query (Nogueira &
/// Cho 2019).
pub trait Rerank: Send + Sync {
    /// Returns the name of the model.
    fn name(&self) -> &str;

    /// Scores the texts in order, as many as `budget` allows. Higher scores are better.
    ///
    /// The time of loading the model, once per process, is not part of the budget.
    ///
    /// # Errors
    /// Returns an error if the model cannot be loaded or run.
    fn rerank(&self, query: &str, texts: &[&str], budget: Duration) -> Result<Vec<f32>>;
}

impl std::fmt::Debug for dyn Rerank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the order of the first entries of a list by their scores, as indexes, best first. Entries with equal scores
/// keep their order.
pub fn order_by(scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let score = |at: &usize| scores.get(*at).copied().unwrap_or(f32::MIN);
    order.sort_by(|a, b| score(b).total_cmp(&score(a)));
    order
}
