//! Owns [`Rerank`], what every reranker is to the rest of the program, and how its verdicts change an order.

use std::time::Duration;

use crate::error::Result;

/// Reads a query and a text together and says how well the text answers (Nogueira & Cho 2019).
pub trait Rerank: Send + Sync {
    /// Names the model.
    fn name(&self) -> &str;

    /// Gives a score for each text, the higher the better, for as many of the first ones as `budget` allows.
    ///
    /// Loading the model, once a process, is not counted.
    ///
    /// # Errors
    /// Where the model cannot be loaded or run.
    fn rerank(&self, query: &str, texts: &[&str], budget: Duration) -> Result<Vec<f32>>;
}

impl std::fmt::Debug for dyn Rerank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Gives the new order of the first entries of a list, as places in it, best first: those that were scored change places
/// among themselves, and equal ones stay as they are.
pub fn order_by(scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let of = |at: &usize| scores.get(*at).copied().unwrap_or(f32::MIN);
    order.sort_by(|a, b| of(b).total_cmp(&of(a)));
    order
}
