//! Vectors of recently changed files, which are made before the next answer. Also snapshots in which only some notes
//! have vectors, for evaluation.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sidenote_base::error::Result;
use sidenote_catalog::{CatalogReader, FileId};
use sidenote_embed::Effort;
use sidenote_markdown::path::NotePath;

use crate::writer::{EmbeddingStep, Extent};
use crate::writer_thread::WriterThread;
use crate::{Index, Job, Snapshot, WaitLimit, passages_of};

/// The number of recently changed files that are checked.
const RECENT_FILES: usize = 16;
/// The maximum number of passages that are embedded at once for a file. A file with more is left to the background.
const MAX_PASSAGES: usize = 16;

/// The number of pending passages above which a vault without vectors counts as never embedded, so that words alone
/// rank.
const MAX_PENDING: usize = 64;

/// The files to embed at once, the deadline, and where the result is sent.
pub(super) struct UrgentEmbedding {
    files: Vec<FileId>,
    end: Instant,
    reply: Sender<Result<usize>>,
}

impl Index {
    /// Returns the recently changed files that lack a few vectors, if this process can make them.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn recent_without_vectors(&self) -> Result<Vec<FileId>> {
        let snapshot = self.snapshot()?;
        let is_known_complete = self.recent_complete_at.load(Ordering::Relaxed) == snapshot.generation;
        if snapshot.pending == 0
            || snapshot.is_former
            || (snapshot.vectors.is_empty() && snapshot.pending > MAX_PENDING)
            || is_known_complete
            || self.embedder().is_none()
            || !self.is_writer()
        {
            return Ok(Vec::new());
        }
        let files = without_vectors(&self.catalog(), &snapshot)?;
        if files.is_empty() {
            self.recent_complete_at.store(snapshot.generation, Ordering::Relaxed);
        }
        Ok(files)
    }

    /// Embeds passages of these files that lack a vector, and waits for it: at least one, and more while the time
    /// `budget` lasts. Returns the number of new vectors.
    ///
    /// # Errors
    /// `Conflict` if another process writes the index; the errors of the embedder.
    pub fn embed_within(&self, files: Vec<FileId>, budget: Duration) -> Result<usize> {
        let end = Instant::now() + budget;
        let job = |reply| Job::Urgent(UrgentEmbedding { files, end, reply });
        if self.follower().large_batch().is_some() {
            // It would wait for the batch.
            return Ok(0);
        }
        Ok(self.submit(WaitLimit::ENDLESS.unless_large(), job)?.unwrap_or(0))
    }

    /// Returns a snapshot in which only the notes for which `is_embedded` is true have vectors.
    ///
    /// # Errors
    /// `Io` or `Corrupt` if the index cannot be read.
    pub fn with_vectors_of(
        &self,
        whole: &Snapshot,
        is_embedded: impl Fn(&NotePath) -> bool,
    ) -> Result<Snapshot> {
        let bm25 = Arc::clone(&self.shared.bm25.read().unwrap_or_else(PoisonError::into_inner));
        let catalog = self.catalog();
        let files =
            catalog.paths().all()?.into_iter().filter(|(path, _)| is_embedded(path)).map(|(_, id)| id);
        let keys = passages_of(&catalog, &files.collect())?;
        let mut pending = HashSet::new();
        catalog.passages().each(|key, _| {
            if !keys.contains(&key) {
                pending.insert(key);
            }
        })?;
        Ok(Snapshot {
            bm25: bm25.reload()?,
            vectors: Arc::new(whole.vectors.restricted_to(&keys)?),
            generation: whole.generation,
            pending: pending.len(),
            model: whole.model.clone(),
            is_former: whole.is_former,
            catalog: Arc::clone(&whole.catalog),
            file_table: OnceLock::new(),
            validity: OnceLock::new(),
            mean_vector: OnceLock::new(),
        })
    }
}

/// Returns the recently changed files that lack a few vectors.
fn without_vectors(catalog: &CatalogReader, snapshot: &Snapshot) -> Result<Vec<FileId>> {
    let mut files = Vec::new();
    for file in catalog.newest_first(Some(RECENT_FILES))? {
        let keys = catalog.passages().of(file)?;
        let missing = keys.iter().filter(|&&key| !snapshot.vectors.contains(key)).count();
        if (1..=MAX_PASSAGES).contains(&missing) {
            files.push(file);
        }
    }
    Ok(files)
}

impl WriterThread {
    /// Embeds the passages that a search waits for, and publishes the result.
    pub(super) fn embed_urgent(&mut self, urgent: UrgentEmbedding) {
        let UrgentEmbedding { files, end, reply } = urgent;
        // The receiver may be gone; the vectors are stored anyway.
        drop(reply.send(self.embed_until(&files, end)));
    }

    fn embed_until(&mut self, files: &[FileId], end: Instant) -> Result<usize> {
        let Some(embedder) = self.embedder.clone().filter(|_| !self.shared.is_displaced()) else {
            return Ok(0);
        };
        self.writer.open_vectors()?;
        self.writer.remove_seal()?;
        let stop = Arc::clone(&self.stop);
        let begun = std::cell::Cell::new(false);
        // The first passage is embedded even after the deadline; otherwise a slow model would never make any
        // progress.
        let halt = || stop.load(Ordering::Relaxed) || (begun.replace(true) && Instant::now() >= end);
        let steps: Vec<EmbeddingStep> = files.iter().map(|&file| (file, Extent::Whole)).collect();
        let made = self.writer.embed_files(&steps, &*embedder, Effort::Foreground, &|_| {}, &halt)?;
        let pending = self.writer.catalog.reader().meta("pending")?.unwrap_or(0);
        // A recount reads all passages, so it is done only if the last pending passage may be embedded.
        match pending - i64::try_from(made.count()).unwrap_or(0) {
            left if left > 0 => self.writer.catalog.set_meta("pending", left)?,
            _ => self.writer.recount()?,
        }
        // The background may have made these vectors already without publishing them.
        self.shared.publish()?;
        self.writer.remove_unused_vectors()?;
        Ok(made.count())
    }
}
