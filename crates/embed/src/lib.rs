//! Models: the trait [`Embed`], which every embedder implements, and the trait [`Rerank`]. Each embedder has a file of
//! its own. No type of a runtime, a tokenizer or an HTTP client appears in these traits.

mod e5;
pub mod onnx;
pub mod openai;
pub mod rerank;
pub mod download;
pub mod model_files;
pub mod model_selection;

use std::fmt;

pub use e5::E5;
pub use onnx::{CrossEncoder, OnnxEmbedder};
pub use openai::OpenAi;
pub use rerank::Rerank;
use sidenote_base::error::{Error, Result};

/// The duplicate threshold of a model that was not measured (docs/spec/memory.md, Duplicates).
const DEFAULT_DUPLICATE_THRESHOLD: f32 = 0.95;

/// An embedding model. It converts texts to vectors whose product tells how similar the texts are in meaning
/// (docs/spec/search.md, Embedders); [`Vectors::similarity`](sidenote_vectors::Vectors::similarity) brings it to one
/// scale for all models.
pub trait Embed: Send + Sync {
    /// Returns the id of the model and its exact weights, without loading them.
    fn model(&self) -> &ModelId;

    /// Returns the number of dimensions of the vectors.
    fn dimensions(&self) -> usize {
        self.model().dimensions()
    }

    /// Returns the most [tokens](Self::count_tokens) of a text that the model reads. The rest of a longer text has no
    /// effect.
    fn max_tokens(&self) -> usize;

    /// Returns the least similarity at which two texts can be duplicates, subject to the lexical guard
    /// (docs/spec/memory.md, Duplicates).
    fn duplicate_threshold(&self) -> f32;

    /// Returns the least distance between the similarity of a relevant passage and the similarity by chance, as a share
    /// of the distance between the latter and 1 (docs/dev/ranking.md, Recall). `None` for a model that was not
    /// measured; then only words decide.
    fn recall_floor(&self) -> Option<f32> {
        None
    }

    /// Returns the mean vector of passages about everything, if it is known. Its product with a vector is what an unrelated
    /// passage has with it, which is far from zero with some models.
    fn mean_passage(&self) -> Option<&'static [f32]> {
        None
    }

    /// Returns whether the model is part of the program, so that vectors may be computed before it is known whether they
    /// are needed: nothing is loaded, and nothing is asked.
    fn is_built_in(&self) -> bool {
        false
    }

    /// Returns a vector of length 1 for each text, in the order of the texts.
    ///
    /// The vector of a text depends on that text only: not on the other texts, and not on the effort.
    ///
    /// # Errors
    /// Returns an error if the model cannot be loaded, reached or run. Then there is no vector for any of the texts.
    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>>;

    /// Returns the vector of a query, with the effort [`Effort::Foreground`]. Some models embed queries differently
    /// from passages. Its length is the one at which its product with the vector of a passage of the same text is about 1.
    ///
    /// # Errors
    /// Returns an error if the model cannot be loaded, reached or run.
    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let vector = self.embed(&[text], Effort::Foreground)?.pop();
        vector.ok_or_else(|| Error::internal("the embedder returned no vector"))
    }

    /// Returns the best number of texts for one call of [`embed`](Self::embed).
    fn batch(&self, effort: Effort) -> usize {
        if effort == Effort::Bulk { 16 } else { 1 }
    }

    /// Counts the tokens of `text` as the model reads them, or estimates them if the tokenizer is not available.
    fn count_tokens(&self, text: &str) -> usize;
}

/// The effort for computing vectors: it depends on who waits for them, and determines the use of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// A user waits for one result: as many threads per text as make it fastest.
    Foreground,
    /// No call waits: one thread of the lowest priority.
    Background,
    /// A user waits for many results: one thread per text on every core, for the highest throughput.
    Bulk,
}

/// The id of the model that computed a vector. Vectors of different models are never compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelId {
    name: String,
    dimensions: usize,
    fingerprint: String,
}

impl ModelId {
    /// Creates an id from the configured name, the number of dimensions, and a fingerprint that changes whenever the
    /// vectors would.
    pub fn new(name: impl Into<String>, dimensions: usize, fingerprint: impl Into<String>) -> Self {
        Self { name: name.into(), dimensions, fingerprint: fingerprint.into() }
    }

    /// Returns the name as configured.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of dimensions of the vectors.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the fingerprint of the weights.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the name of the folder for the model's vectors.
    pub fn folder(&self) -> String {
        // Names of models can contain slashes, and Windows takes no space at the end of a name.
        let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let name: String = self.name.trim_start_matches('.').chars().map(plain).take(80).collect();
        let fingerprint: String = self.fingerprint.chars().map(plain).take(12).collect();
        format!("{name}-{fingerprint}")
    }

    /// Returns the text that identifies the model in stored and cached vectors: `name/dimensions/fingerprint`.
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
    /// Prints the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Normalizes a vector to length 1. Returns `None` if its length is zero or not finite.
fn normalize(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_normal() {
        return None;
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    Some(vector)
}
