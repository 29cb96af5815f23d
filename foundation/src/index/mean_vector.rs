//! The mean of the vectors of an index, which tells how similar any passage is to a query.

use std::sync::Arc;

use super::{Index, Snapshot};
use crate::error::Result;

/// The number of passages in the sample.
const SAMPLE: usize = 512;
/// The number of zero vectors that are counted in, so that in an index of a few passages the mean says little.
const ZEROS: f32 = 20.0;

/// The mean of the vectors of a sample of the passages.
#[derive(Debug)]
pub struct MeanVector {
    /// The mean, with some vectors of zero counted in. Its product with the vector of a query is the cosine that a passage
    /// has by chance.
    pub values: Vec<f32>,
    /// The cosine that two passages have by chance, less in an index of a few passages, where the mean says little.
    pub cosine_of_pairs: f32,
}

impl Index {
    /// Returns the mean of the vectors of a sample of the passages. The sample depends on the passages alone, so that an index
    /// with a history answers like one made anew.
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
        let mut values = snapshot.vectors.mean(&keys)?.unwrap_or_default();
        let weight = keys.len() as f32 / (keys.len() as f32 + ZEROS);
        let cosine_of_pairs = weight * values.iter().map(|value| value * value).sum::<f32>();
        values.iter_mut().for_each(|value| *value *= weight);
        let mean = MeanVector { values, cosine_of_pairs };
        Ok(Arc::clone(snapshot.mean_vector.get_or_init(|| Arc::new(mean))))
    }
}
