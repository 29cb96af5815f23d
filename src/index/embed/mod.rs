//! Owns [`Embed`], what every embedder is to the rest of the program; one file per embedder beside it.
//!
//! No type of a runtime, tokenizer or HTTP client crosses this trait.

mod http;
pub mod minilm;
pub mod onnx;
pub mod openai;
pub mod rerank;
pub mod wordpiece;
pub mod download;
pub mod model_files;
pub mod model_selection;

use std::fmt;

use crate::error::{Error, Result};

pub use minilm::MiniLm;
pub use onnx::{CrossEncoder, OnnxEmbedder};
pub use openai::OpenAi;
pub use rerank::Rerank;

/// The cosine from which texts may be duplicates under a model that was not measured (spec/memory.md, Duplicates).
const OTHER_THRESHOLD: f32 = 0.95;

/// Turns texts into vectors whose cosine says how near two texts are in meaning (spec/search.md, Embedders).
pub trait Embed: Send + Sync {
    /// Names the model and the exact weights behind it, without loading them.
    fn model(&self) -> &ModelId;

    /// Counts the numbers of a vector.
    fn dimensions(&self) -> usize {
        self.model().dimensions()
    }

    /// Gives the length in [tokens](Self::count_tokens) up to which a text is seen whole; the rest is not seen.
    fn max_tokens(&self) -> usize;

    /// Gives the cosine from which two texts may be duplicates, subject to the lexical guard (spec/memory.md,
    /// Duplicates).
    fn duplicate_threshold(&self) -> f32;

    /// Gives the cosine from which a passage is about what a prompt asks (docs/dev/ranking.md, Recall); nothing under a model
    /// that was not measured, of which words alone tell.
    fn recall_floor(&self) -> Option<f32> {
        None
    }

    /// Gives one vector of length 1 for each text, in the order of the texts.
    ///
    /// A text's vector depends on that text alone: not on its neighbours, and not on the effort.
    ///
    /// # Errors
    /// Where the model cannot be loaded, reached or run; then there is no vector for any of the texts.
    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>>;

    /// Gives the vector of a query, for which somebody waits; some models tell queries from passages.
    ///
    /// # Errors
    /// As [`Embed::embed`].
    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let vector = self.embed(&[text], Effort::Foreground)?.pop();
        vector.ok_or_else(|| Error::internal("the embedder gave no vector"))
    }

    /// Gives the number of texts that are best handed over at once.
    fn batch(&self, effort: Effort) -> usize {
        if effort == Effort::Bulk { 16 } else { 1 }
    }

    /// Counts the tokens of `text` as the model sees them, or estimates them where the tokenizer is out of reach.
    fn count_tokens(&self, text: &str) -> usize;
}

/// Says who waits for the vectors, and so how much of the machine to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Somebody waits for one answer: a few threads on each text, the shortest time to the first vector.
    Foreground,
    /// Nobody waits: one thread that gives way to all others.
    Background,
    /// Somebody waits for a long list: one thread per text on every core, the most texts a second.
    Bulk,
}

/// Tells which model made a vector; vectors of two models are never compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelId {
    name: String,
    dimensions: usize,
    fingerprint: String,
}

impl ModelId {
    /// Makes an id of the configured name, the length of its vectors, and a fingerprint that changes whenever the
    /// vectors would.
    pub fn new(name: impl Into<String>, dimensions: usize, fingerprint: impl Into<String>) -> Self {
        Self { name: name.into(), dimensions, fingerprint: fingerprint.into() }
    }

    /// Gives the name as configured.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts the numbers of a vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Gives the fingerprint of the weights.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Gives the name of the folder that holds the model's vectors.
    pub fn folder(&self) -> String {
        // Names of models have slashes in them.
        let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let name: String = self.name.trim_start_matches('.').chars().map(plain).take(80).collect();
        format!("{name}-{}", self.fingerprint.get(..12).unwrap_or(&self.fingerprint))
    }

    /// Gives the text under which vectors are stored and cached: `name/dimensions/fingerprint`.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.name, self.dimensions, self.fingerprint)
    }
}

impl fmt::Debug for dyn Embed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.model().name())
    }
}

impl fmt::Display for ModelId {
    /// Prints the name alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Brings a vector to length 1; nothing where it has no direction.
fn unit(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_normal() {
        return None;
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    Some(vector)
}

/// Gives the calling thread the niceness 19, which on Linux belongs to each thread.
#[cfg(target_os = "linux")]
fn lower_priority() {
    use rustix::{process, thread};
    if let Err(error) = process::setpriority_process(Some(thread::gettid()), 19) {
        tracing::debug!(%error, "embedding in the background runs at full priority");
    }
}

/// Does nothing where a thread has no priority of its own that it may lower.
#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
