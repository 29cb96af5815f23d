//! Owns [`Embed`], what every embedder is to the rest of the program; one file per embedder beside it.
//!
//! No type of a runtime, tokenizer or HTTP client crosses this trait.

pub mod minilm;
pub mod wordpiece;

use std::fmt;

use crate::error::Result;

pub use minilm::MiniLm;

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

    /// Gives one vector of length 1 for each text, in the order of the texts.
    ///
    /// A text's vector depends on that text alone: not on its neighbours, and not on the effort.
    ///
    /// # Errors
    /// Where the model cannot be loaded, reached or run; then there is no vector for any of the texts.
    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>>;

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
        format!("{}-{}", self.name, self.fingerprint.get(..12).unwrap_or(&self.fingerprint))
    }

    /// Gives the text under which vectors are stored and cached: `name/dimensions/fingerprint`.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.name, self.dimensions, self.fingerprint)
    }
}

impl fmt::Display for ModelId {
    /// Prints the name alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
