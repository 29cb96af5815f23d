//! Owns the vectors that cannot wait: what was written a moment ago is embedded before the next answer. Also owns
//! snapshots that pretend that only some notes are embedded, for measuring.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::index::catalog::{CatalogReader, FileId};
use crate::index::embed::Effort;
use crate::index::writer_thread::WriterThread;
use crate::index::{Index, Job, Snapshot, passages_of};
use crate::text::path::NotePath;

/// So many of the files that changed last are looked at.
const NEWEST: usize = 16;
/// A file with more passages to embed than this is left to the background.
const FEW: usize = 16;

/// A vault without any vector that lacks more than this is one that nobody has embedded: words alone answer there.
const FEW_IN_ALL: usize = 64;

/// The files to embed at once, until when, and who waits for it.
pub(super) struct Urgent {
    files: Vec<FileId>,
    end: Instant,
    reply: Sender<Result<usize>>,
}

impl Index {
    /// Lists those of the files that changed last that lack a few vectors, where this process can make them.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read.
    pub fn recent(&self) -> Result<Vec<FileId>> {
        let snapshot = self.snapshot()?;
        let is_looked_at = self.recent.load(Ordering::Relaxed) == snapshot.generation;
        if snapshot.pending == 0
            || snapshot.is_former
            || (snapshot.vectors.is_empty() && snapshot.pending > FEW_IN_ALL)
            || is_looked_at
            || self.embedder().is_none()
            || !self.is_writer()
        {
            return Ok(Vec::new());
        }
        let files = waiting(&self.catalog(), &snapshot)?;
        if files.is_empty() {
            self.recent.store(snapshot.generation, Ordering::Relaxed);
        }
        Ok(files)
    }

    /// Embeds what these files lack and waits for it: as many passages as `budget` is time enough for, and one at
    /// least. Gives the number of vectors made.
    ///
    /// # Errors
    /// `Conflict` where another process writes the index; the embedder's own.
    pub fn embed_within(&self, files: Vec<FileId>, budget: Duration) -> Result<usize> {
        let end = Instant::now() + budget;
        Ok(self.ask(None, |reply| Job::Urgent(Urgent { files, end, reply }))?.unwrap_or(0))
    }

    /// Gives a snapshot in which only the notes that `is_embedded` names have vectors.
    ///
    /// # Errors
    /// `Io` or `Corrupt` where the index cannot be read.
    pub fn partly(&self, whole: &Snapshot, is_embedded: impl Fn(&NotePath) -> bool) -> Result<Snapshot> {
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
            vectors: Arc::new(whole.vectors.only(&keys)?),
            generation: whole.generation,
            pending: pending.len(),
            model: whole.model.clone(),
            is_former: whole.is_former,
            catalog: Arc::clone(&whole.catalog),
            file_table: OnceLock::new(),
        })
    }
}

/// Lists those of the newest files that lack a few vectors.
fn waiting(catalog: &CatalogReader, snapshot: &Snapshot) -> Result<Vec<FileId>> {
    let mut files = Vec::new();
    for file in catalog.newest_first(Some(NEWEST))? {
        let keys = catalog.passages().of(file)?;
        let missing = keys.iter().filter(|&&key| !snapshot.vectors.contains(key)).count();
        if (1..=FEW).contains(&missing) {
            files.push(file);
        }
    }
    Ok(files)
}

impl WriterThread {
    /// Embeds what a search waits for, and shows it.
    pub(super) fn hurry(&mut self, urgent: Urgent) {
        let Urgent { files, end, reply } = urgent;
        // Whoever asked may be gone; the vectors are there all the same.
        drop(reply.send(self.embed_until(&files, end)));
    }

    fn embed_until(&mut self, files: &[FileId], end: Instant) -> Result<usize> {
        let Some(embedder) = self.embedder.clone().filter(|_| !self.shared.is_displaced()) else {
            return Ok(0);
        };
        self.writer.open_vectors()?;
        self.writer.break_seal()?;
        let stop = Arc::clone(&self.stop);
        let begun = std::cell::Cell::new(false);
        // The first passage is embedded however late it is, or a slow model would never come to it.
        let halt = || stop.load(Ordering::Relaxed) || (begun.replace(true) && Instant::now() >= end);
        let made = self.writer.embed_files(files, &*embedder, Effort::Foreground, &|_| {}, &halt)?;
        let pending = self.writer.catalog.reader().meta("pending")?.unwrap_or(0);
        // Counting again looks at every passage, which pays only where the last one may be done.
        match pending - i64::try_from(made).unwrap_or(0) {
            left if left > 0 => self.writer.catalog.set_meta("pending", left)?,
            _ => self.writer.recount()?,
        }
        // The background may have made them already, and not shown them yet.
        self.shared.publish()?;
        self.writer.drop_replaced()?;
        Ok(made)
    }
}
