//! A cache of replies that take long to make, valid for one generation of the index.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use sidenote_store::{RepeatedTexts, Store};

use crate::reply::ApiError;

/// The interval at which a request that waits for another one looks whether its client is gone.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(100);

/// A value with the generation of the index that it belongs to.
#[derive(Debug)]
pub(crate) struct Cached<T> {
    state: Mutex<CacheState<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct CacheState<T> {
    /// The value and its generation.
    made: Option<(i64, T)>,
    /// Whether a request makes the value now.
    is_making: bool,
}

/// What is cached, so that it is not made again for each tab.
#[derive(Debug, Default)]
pub(crate) struct ReplyCache {
    /// The reply with the graph of the whole vault, as compressed JSON.
    pub(crate) graph: Cached<Bytes>,
    /// The reply with the problems of the whole vault, as compressed JSON.
    pub(crate) check: Cached<Bytes>,
    /// The notes with the same or about the same text.
    pub(crate) repeated_texts: Cached<Arc<RepeatedTexts>>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        let state = Mutex::new(CacheState { made: None, is_making: false });
        Self { state, changed: Condvar::default() }
    }
}

/// Lets another request make the value when the one that makes it ends in any way.
struct Making<'a, T>(&'a Cached<T>);

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        self.0.lock().is_making = false;
        self.0.changed.notify_all();
    }
}

impl<T> Cached<T> {
    fn lock(&self) -> MutexGuard<'_, CacheState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Cached<T> {
    /// Returns the value, or makes it if the index has another generation now. `make` returns the generation of its
    /// value, too. Only one request at a time makes it, and the others wait; the lock is not held meanwhile.
    ///
    /// # Errors
    /// Those of `make`; `conflict` if the client is gone; `corrupt` if the index cannot be read.
    pub(crate) fn get(
        &self,
        store: &Store,
        make: impl FnOnce() -> Result<(i64, T), ApiError>,
    ) -> Result<T, ApiError> {
        loop {
            // It is read after each wait, because the vault may have changed meanwhile.
            let generation = store.index().generation()?;
            let mut state = self.lock();
            if let Some((_, value)) = state.made.as_ref().filter(|(known, _)| *known == generation) {
                return Ok(value.clone());
            }
            if !state.is_making {
                state.is_making = true;
                // The old one is dropped first, because it may have some megabytes.
                state.made = None;
                break;
            }
            drop(
                self.changed
                    .wait_timeout(state, CANCELLATION_INTERVAL)
                    .unwrap_or_else(PoisonError::into_inner),
            );
            store.check_cancelled()?;
        }
        let _making = Making(self);
        let (generation, value) = make()?;
        self.lock().made = Some((generation, value.clone()));
        Ok(value)
    }
}
