//! Replies that take long to make and are kept until the index has another generation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::reply::{ApiError, packed};
use sidenote_store::{SimilarTexts, Store};

/// A reply as compressed JSON, with the generation of the index that it belongs to.
#[derive(Debug, Default)]
pub(crate) struct KeptReply(Mutex<Option<(i64, Arc<Vec<u8>>)>>);

/// The replies that are kept, so that they are not made again for each tab.
#[derive(Debug, Default)]
pub(crate) struct KeptReplies {
    /// The graph of the whole vault.
    pub(crate) graph: KeptReply,
    /// The problems of the whole vault.
    pub(crate) check: KeptReply,
    /// The pairs of notes that the check found to have about the same text.
    similar: Mutex<Vec<SimilarTexts>>,
}

impl KeptReplies {
    /// Returns the pairs of notes with about the same text, as the last check found them.
    pub(crate) fn similar(&self) -> MutexGuard<'_, Vec<SimilarTexts>> {
        self.similar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptReply {
    /// Returns the reply, or makes it if the index has another generation now. `make` returns the generation of its reply, too.
    ///
    /// # Errors
    /// Those of `make`, and `corrupt` if the index cannot be read.
    pub(crate) fn get(
        &self,
        store: &Store,
        make: impl FnOnce() -> Result<(i64, Vec<u8>), ApiError>,
    ) -> Result<Vec<u8>, ApiError> {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = store.index().generation()?;
        if let Some((_, bytes)) = stored.as_ref().filter(|(known, _)| *known == generation) {
            return Ok(bytes.as_ref().clone());
        }
        // The old one is dropped first, because it may have some megabytes.
        *stored = None;
        let (generation, bytes) = make()?;
        let bytes = packed(&bytes)?;
        *stored = Some((generation, Arc::new(bytes.clone())));
        Ok(bytes)
    }
}
