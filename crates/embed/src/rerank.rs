//! The trait [`Rerank`], which every reranker implements.

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
