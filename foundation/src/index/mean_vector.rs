//! The mean of the vectors of an index, which tells how similar any passage is to a query.

use std::sync::Arc;

use super::{Index, Snapshot};
use crate::error::Result;

/// The number of passages in the sample.
const SAMPLE: usize = 512;
/// The number of zero vectors that are counted in, so that in an index of a few passages the mean says little.
const ZEROS: f32 = 20.0;

impl Index {
    /// Returns the mean of the vectors of a sample of the passages, with some vectors of zero counted in. Its product with
    /// the vector of a query is the cosine that a passage has by chance. The sample depends on the passages alone, so that
    /// an index with a history answers like one made anew.
    ///
    /// # Errors
    /// `Io` or `Corrupt` if the catalog or the vectors cannot be read.
    pub fn mean_vector(&self, snapshot: &Snapshot) -> Result<Arc<Vec<f32>>> {
        if let Some(mean) = snapshot.mean_vector.get() {
            return Ok(Arc::clone(mean));
        }
        let mut keys = snapshot.catalog().passages().lowest_keys(2 * SAMPLE)?;
        keys.retain(|&key| snapshot.vectors.contains(key));
        keys.truncate(SAMPLE);
        let mut mean = snapshot.vectors.mean(&keys)?.unwrap_or_default();
        let weight = keys.len() as f32 / (keys.len() as f32 + ZEROS);
        mean.iter_mut().for_each(|value| *value *= weight);
        Ok(Arc::clone(snapshot.mean_vector.get_or_init(|| Arc::new(mean))))
    }
}
