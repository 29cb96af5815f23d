//! The vector of a query that is computed while the index is opened.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use sidenote_base::error::Result;
use sidenote_embed::{Embed, ModelId};

/// Returns the key of the vector of a text.
pub(crate) fn vector_key(model: &ModelId, text: &str) -> String {
    format!("{}\n{text}", model.key())
}

/// The vector of a query that a thread computes while the index is opened and updated: loading the model takes about as
/// long as that.
#[derive(Debug)]
pub struct EarlyVector {
    key: String,
    thread: Mutex<Option<JoinHandle<Result<Vec<f32>>>>>,
}

impl EarlyVector {
    /// Starts to compute the vector of a query. Returns `None` without a model or a text, if the model is not part of the
    /// program, or if no thread can be started; then the vector is computed when it is needed.
    pub fn start(embedder: Option<&Arc<dyn Embed>>, text: Option<&str>) -> Option<Self> {
        let embedder = embedder.filter(|embedder| embedder.is_built_in())?;
        let text = text.filter(|text| !text.trim().is_empty())?;
        let (model, owned) = (Arc::clone(embedder), text.to_owned());
        let thread = thread::Builder::new().name("sidenote-query".to_owned());
        let thread = thread.spawn(move || model.embed_query(&owned)).ok()?;
        Some(Self { key: vector_key(embedder.model(), text), thread: Mutex::new(Some(thread)) })
    }

    /// Waits for the vector and returns it, if it is the one of this key and was not taken before.
    pub(crate) fn take(&self, key: &str) -> Option<Result<Vec<f32>>> {
        if self.key != key {
            return None;
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}
