//! The vectors that the servers of a shared vault share through its authority: a text that one server embedded is not
//! embedded by another one. Nothing depends on this: a failure is logged, and the passages are embedded.

use std::collections::HashSet;
use std::sync::Arc;

use sidenote_base::error::Result;
use sidenote_embed::Embed;
use sidenote_vault::Vault;
use sidenote_vault::authority::{StoredVector, authority_of};
use sidenote_vectors::{VectorRecord, record_size};

use crate::shared_vectors::model_hash;

/// How many vectors are asked for, or stored, at once.
const AT_ONCE: usize = 1_000;

/// The vectors of one model that the authority of a vault has.
#[derive(Debug)]
pub(crate) struct ServiceVectors {
    vault: Arc<Vault>,
    model: i64,
    record_size: usize,
}

impl ServiceVectors {
    /// Creates the access to the vectors of a model. Returns `None` if the vault's authority shares none.
    pub(crate) fn new(vault: &Arc<Vault>, embedder: &dyn Embed) -> Option<Self> {
        authority_of(vault).shared_vectors()?;
        let [a, b, c, d, e, f, g, h, ..] = *model_hash(embedder).as_bytes();
        let model = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Some(Self { vault: Arc::clone(vault), model, record_size: record_size(embedder.dimensions()) })
    }

    /// Gives the vectors of `wanted` passages that are shared, and takes their keys out of `wanted`. Returns their number.
    ///
    /// # Errors
    /// The errors of `give`.
    pub(crate) fn take(
        &self,
        wanted: &mut HashSet<i64>,
        give: &mut dyn FnMut(&[VectorRecord]) -> Result<()>,
    ) -> Result<usize> {
        let Some(shared) = authority_of(&self.vault).shared_vectors() else { return Ok(0) };
        let count = wanted.len();
        let keys: Vec<i64> = wanted.iter().copied().collect();
        for keys in keys.chunks(AT_ONCE) {
            let found = match shared.find(self.model, keys) {
                Ok(found) => found,
                Err(error) => {
                    tracing::debug!("the vectors of the service are not used: {error}");
                    break;
                }
            };
            let record = |stored: &StoredVector| VectorRecord::from_stored(stored, self.record_size);
            let records: Vec<VectorRecord> =
                found.iter().filter_map(record).filter(|record| wanted.contains(&record.key())).collect();
            give(&records)?;
            for record in &records {
                wanted.remove(&record.key());
            }
        }
        Ok(count - wanted.len())
    }

    /// Stores vectors that this process computed.
    pub(crate) fn append(&self, records: &[VectorRecord]) {
        let Some(shared) = authority_of(&self.vault).shared_vectors() else { return };
        for records in records.chunks(AT_ONCE) {
            let stored: Vec<StoredVector> = records.iter().map(VectorRecord::to_stored).collect();
            if let Err(error) = shared.store(self.model, &stored) {
                tracing::debug!("new vectors are not shared with other servers: {error}");
                return;
            }
        }
    }
}
