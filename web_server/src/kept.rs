//! Replies that take long to make and are kept until the index has another generation.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;

use crate::reply::{ApiError, packed};
use sidenote_store::Store;

/// The interval at which a request that waits for another one looks whether its client is gone.
const LOOK: Duration = Duration::from_millis(100);

/// A reply as compressed JSON, with the generation of the index that it belongs to.
#[derive(Debug, Default)]
pub(crate) struct KeptReply {
    state: Mutex<KeptState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct KeptState {
    /// The reply and its generation.
    made: Option<(i64, Bytes)>,
    /// The generation for which a request makes the reply now.
    making: Option<i64>,
}

/// The replies that are kept, so that they are not made again for each tab.
#[derive(Debug, Default)]
pub(crate) struct KeptReplies {
    /// The graph of the whole vault.
    pub(crate) graph: KeptReply,
    /// The problems of the whole vault.
    pub(crate) check: KeptReply,
}

/// Lets another request make the reply when the one that makes it ends in any way.
struct Making<'a> {
    kept: &'a KeptReply,
    generation: i64,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut state = self.kept.lock();
        state.making = state.making.filter(|making| *making != self.generation);
        drop(state);
        self.kept.changed.notify_all();
    }
}

impl KeptReply {
    fn lock(&self) -> MutexGuard<'_, KeptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reply, or makes it if the index has another generation now. `make` returns the generation of its reply, too.
    /// The lock is not held meanwhile; a request for the same generation waits for the reply instead of making it, too.
    ///
    /// # Errors
    /// Those of `make`; `conflict` if the client is gone; `corrupt` if the index cannot be read.
    pub(crate) fn get(
        &self,
        store: &Store,
        make: impl FnOnce() -> Result<(i64, Vec<u8>), ApiError>,
    ) -> Result<Bytes, ApiError> {
        let generation = store.index().generation()?;
        let mut state = self.lock();
        loop {
            if let Some((_, bytes)) = state.made.as_ref().filter(|(known, _)| *known == generation) {
                return Ok(bytes.clone());
            }
            if state.making != Some(generation) {
                break;
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            store.check_cancelled()?;
        }
        state.making = Some(generation);
        // The old one is dropped first, because it may have some megabytes.
        state.made = None;
        drop(state);
        let making = Making { kept: self, generation };
        let (generation, bytes) = make()?;
        let bytes = Bytes::from(packed(&bytes)?);
        let mut state = self.lock();
        if state.made.as_ref().is_none_or(|(known, _)| *known <= generation) {
            state.made = Some((generation, bytes.clone()));
        }
        drop(state);
        drop(making);
        Ok(bytes)
    }
}
