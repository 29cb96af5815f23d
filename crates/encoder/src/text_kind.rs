//! What a text is to the model: a query or a passage. Each has a prefix. Queries lose a part of their mean vector, because all of
//! them share a part that says nothing about the text ("All-but-the-Top", Mu and Viswanath 2018, arXiv:1702.01417; the assets'
//! README has the figures).

use std::array;
use std::sync::LazyLock;

/// The length of a vector.
const WIDTH: usize = 384;
/// The mean vector of passages, then that of queries, as `examples/means.rs` writes them.
static MEANS: &[u8; 2 * WIDTH * 4] = include_bytes!("../assets/multilingual-e5-small/means.f32");

/// The share of the mean vector of queries that a query loses. With more, questions find notes in other languages more often,
/// and notes in their own less often (the assets' README has the figures).
const MEAN_SHARE: f32 = 0.4;
/// What the vector of a query is divided by, so that its product with the passage of the same text is about 1: .97 on average over
/// the queries of [`MEANS`]. Thresholds are calibrated with it.
const SAME_TEXT: f32 = 0.96;

/// What a text is to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// A text that is found.
    Passage,
    /// A text that is searched for.
    Query,
}

impl TextKind {
    /// The number of tokens of a prefix.
    pub const PREFIX_TOKENS: usize = 2;

    /// Returns what the model was trained to see before such a text.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Passage => "passage: ",
            Self::Query => "query: ",
        }
    }

    /// Returns the vector of such a text, given the one that the encoder computes. A passage keeps it. A query loses a part
    /// of the mean vector of queries, and gets the length at which its product with the passage of the same text is about 1.
    /// Returns `None` if nothing is left.
    pub fn adapt(self, mut vector: Vec<f32>) -> Option<Vec<f32>> {
        if self == Self::Query {
            vector.iter_mut().zip(mean(Self::Query)).for_each(|(value, mean)| *value -= MEAN_SHARE * mean);
            vector = normalized(vector)?;
            vector.iter_mut().for_each(|value| *value /= SAME_TEXT);
        }
        Some(vector)
    }
}

/// Returns the mean vector of passages about everything. Its product with the vector of a text is what an unrelated passage
/// has with it.
pub fn mean_passage() -> &'static [f32] {
    static MEAN: LazyLock<[f32; WIDTH]> = LazyLock::new(|| mean(TextKind::Passage));
    MEAN.as_slice()
}

/// Returns the mean vector of texts of a kind.
fn mean(kind: TextKind) -> [f32; WIDTH] {
    let means = MEANS.as_chunks::<4>().0;
    let from = if kind == TextKind::Passage { 0 } else { WIDTH };
    array::from_fn(|at| means.get(from + at).map_or(0.0, |bytes| f32::from_le_bytes(*bytes)))
}

/// Normalizes a vector to the Euclidean norm 1. Returns `None` if its norm is zero or not finite.
pub(crate) fn normalized(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_normal() {
        return None;
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    Some(vector)
}
