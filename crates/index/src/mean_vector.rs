//! The mean of the vectors of an index, which tells how similar any passage is to a query.

use std::sync::Arc;

use sidenote_base::error::Result;
use sidenote_vectors::Vectors;

use super::{Index, Snapshot};

/// The number of passages in the sample.
const SAMPLE: usize = 512;
/// The number of unrelated passages that are counted in, so that in an index of a few passages the mean says little.
const UNRELATED: f32 = 20.0;

/// The mean of the vectors of a sample of the passages, with some unrelated ones.
#[derive(Debug)]
pub struct MeanVector {
    values: Vec<f32>,
    /// The share of the sample in the mean.
    weight: f32,
    /// The similarity that two passages have by chance, less in an index of a few passages, where the mean says little.
    pub similarity_of_pairs: f32,
}

impl MeanVector {
    /// Returns the similarity that a passage has with the vector of a query by chance.
    pub fn similarity(&self, vectors: &Vectors, query: &[f32]) -> f32 {
        self.weight * vectors.similarity(query, &self.values)
    }
}

impl Index {
    /// Returns the mean of the vectors of a sample of the passages. The sample depends on the passages alone, so that
    /// an updated index answers like a rebuilt one.
    ///
    /// # Errors
    /// `Io` or `Corrupt` if the catalog or the vectors cannot be read.
    pub fn mean_vector(&self, snapshot: &Snapshot) -> Result<Arc<MeanVector>> {
        if let Some(mean) = snapshot.mean_vector.get() {
            return Ok(Arc::clone(mean));
        }
        let mut keys = snapshot.catalog().passages().lowest_keys(2 * SAMPLE)?;
        keys.retain(|&key| snapshot.vectors.contains(key));
        keys.truncate(SAMPLE);
        let values = snapshot.vectors.mean(&keys)?.unwrap_or_default();
        let weight = keys.len() as f32 / (keys.len() as f32 + UNRELATED);
        let mut mean = MeanVector { values, weight, similarity_of_pairs: 0.0 };
        mean.similarity_of_pairs = mean.similarity(&snapshot.vectors, &mean.values);
        Ok(Arc::clone(snapshot.mean_vector.get_or_init(|| Arc::new(mean))))
    }
}
