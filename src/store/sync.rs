//! Brings the index in line with the files, by the events of the watch or by a scan.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{ErrorKind, Result};
use crate::index::catalog::Counts;
use crate::index::follow::CatchUp;
use crate::index::{Holder, Progress, SyncReport, SyncScope};
use crate::journal::event::{Event, OP_MOVED, TouchedFile};
use crate::store::core::{Core, former_of};
use crate::store::lookup::Lookup;
use crate::text::edit::FileLocation;
use crate::text::path::NotePath;

/// How long a search waits for changes to be indexed. Then it answers from what is indexed, and says so.
const SEARCH: Duration = Duration::from_millis(300);

/// How long a search waits where nothing is indexed yet.
const FIRST: Duration = Duration::from_secs(5);

/// How long a reader waits for the process that writes the index to index what it sees.
const PATIENCE: Duration = Duration::from_millis(300);

impl IndexSync<'_> {
    /// Returns whether this process follows the files: a search then asks the watch instead of scanning.
    pub fn is_following(&self) -> bool {
        self.core.index.follower().is_following()
    }

    /// Brings the index in line with the files for a caller that must not wait. What takes longer than `patience` is left
    /// to other processes, or to the next call.
    pub(super) fn refresh_within(&self, patience: Duration) -> Result<()> {
        if self.core.index.promote()? {
            self.core.index.follower().catch_up(Some(patience))?;
            self.note_moves();
        }
        Ok(())
    }

    /// Brings the index in line with the files where this process may, and says how far behind it is: the number of
    /// files that differ. A process that follows the files, or reads beside one that keeps the index, waits a moment
    /// only.
    ///
    /// # Errors
    /// `Io` if the vault cannot be listed.
    #[tracing::instrument(skip_all)]
    pub fn refresh(&self) -> Result<usize> {
        let behind =
            if self.core.index.promote()? { self.refresh_as_writer()? } else { self.refresh_as_reader()? };
        Lookup::of(self.core).set_behind(behind);
        Ok(behind)
    }

    /// Returns how long a reply waits for the index: `patience`, or longer where nothing is indexed yet.
    fn patience(&self, patience: Duration) -> Result<Duration> {
        Ok(if self.core.index.generation()? == 0 { FIRST } else { patience })
    }

    /// Brings the index in line with the files where this process writes it; gives the number of changes that it lacks.
    fn refresh_as_writer(&self) -> Result<usize> {
        let files = self.core.index.follower();
        // A process that follows the files serves other requests, too, so this one does not wait for long.
        let limit = files.is_requested().then(|| self.patience(SEARCH)).transpose();
        match limit.and_then(|limit| files.catch_up(limit)) {
            // A full disk, for instance: the index can still be read.
            Err(error) if error.kind() == ErrorKind::Io && self.core.index.generation()? > 0 => {
                let drift = self.core.index.drift(&self.core.vault)?;
                Lookup::of(self.core).set_unindexed(Some(&drift));
                tracing::warn!("the index cannot be brought up to date, so it answers as it is: {error}");
                Ok(drift.len())
            }
            caught_up => {
                let behind = match caught_up? {
                    CatchUp::Done(report) => {
                        warn_of(&report);
                        0
                    }
                    CatchUp::Behind(changes) => changes,
                };
                Lookup::of(self.core).set_unindexed(None);
                self.note_moves();
                Ok(behind)
            }
        }
    }

    /// Waits a moment for the process that writes the index; gives the number of files that the index lacks.
    fn refresh_as_reader(&self) -> Result<usize> {
        let end = Instant::now() + self.patience(PATIENCE)?;
        loop {
            let generation = self.core.index.generation()?;
            let drift = self.core.index.drift(&self.core.vault)?;
            Lookup::of(self.core).set_unindexed(Some(&drift));
            if drift.is_empty() || !self.core.index.wait_for_commit(generation, end)? {
                return Ok(drift.len());
            }
        }
    }

    /// Writes down where used notes were moved by others, so that their uses go with them; a failure is logged.
    pub(in crate::store) fn note_moves(&self) {
        let moves = self.core.index.take_moves();
        if moves.is_empty() || self.core.vault.is_read_only() {
            return;
        }
        let journal = || -> Result<()> {
            let projection = self.core.projection()?;
            let is_known = |path: &NotePath| {
                projection.as_ref().is_some_and(|projection| {
                    !projection.ledger().usage(None, path.as_str()).events().is_empty()
                })
            };
            // What sidenote moved itself is known under its new path already.
            let files = moves.into_iter().filter(|(from, _)| is_known(from)).map(|(from, to)| TouchedFile {
                path: FileLocation::Vault(from),
                to: Some(FileLocation::Vault(to)),
                before: None,
                after: None,
            });
            let files: Vec<TouchedFile> = files.collect();
            drop(projection);
            if files.is_empty() {
                return Ok(());
            }
            self.core.journal().append(&Event { files, ..Event::new(OP_MOVED, self.core.clock.now()) })
        };
        if let Err(error) = journal() {
            tracing::warn!("uses of notes that were moved do not go with them: {error}");
        }
    }

    /// Brings the index in line with the files.
    ///
    /// # Errors
    /// `Conflict` if another process writes the index.
    #[tracing::instrument(skip_all)]
    pub fn sync(&self, progress: Arc<Progress>) -> Result<SyncReport> {
        self.core.index.sync(SyncScope::All, progress)
    }

    /// Tells `hearer` of every change that comes into the index here: by an editor, by us, in whichever way it was seen.
    pub fn on_change(&self, hearer: impl FnMut(&SyncReport) + Send + 'static) {
        self.core.index.on_change(hearer);
    }

    /// Counts the batches that the index took in, also those of another process that keeps it.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn generation(&self) -> Result<i64> {
        self.core.index.generation()
    }

    /// Embeds every passage that waits; gives the number of vectors made.
    ///
    /// # Errors
    /// `Conflict` if another process writes the index; an error of the embedder if it fails.
    #[tracing::instrument(skip_all)]
    pub fn embed_all(&self, progress: Arc<Progress>) -> Result<usize> {
        self.core.index.embed_all(progress)
    }

    /// Counts what the index holds, and the passages that wait for a vector, without looking at the files.
    pub fn totals(&self) -> Result<(Counts, usize)> {
        let pending = self.core.index.snapshot()?.pending;
        Ok((self.core.index.catalog().counts()?, pending))
    }

    /// Describes the state of vault and index.
    #[tracing::instrument(skip_all)]
    pub fn status(&self) -> Result<Status> {
        let at = self.core.clock.now();
        let snapshot = self.core.index.snapshot()?;
        let behind = self.core.index.drift(&self.core.vault)?.len();
        let (index_bytes, vector_bytes) = self.core.index.size_on_disk()?;
        Ok(Status {
            vault: self.core.vault.root().to_owned(),
            index: self.core.index.folder().to_owned(),
            counts: self.core.index.catalog().counts()?,
            generation: snapshot.generation,
            embedder: self.core.embedder_name(),
            former_embedder: former_of(&snapshot),
            vectors: snapshot.vectors.len(),
            pending: snapshot.pending,
            index_bytes,
            vector_bytes,
            behind,
            stale: behind > 0,
            locked_by: if self.core.index.is_writer() { None } else { self.core.index.holder() },
            at,
        })
    }

    /// Describes the whole index, one line for each fact; equal indexes give equal lines.
    pub fn dump(&self) -> Result<Vec<String>> {
        self.core.index.dump()
    }
}

/// Logs what a sync could not do.
fn warn_of(report: &SyncReport) {
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
}

/// The state of a vault and its index.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The vault's folder.
    pub vault: PathBuf,
    /// The index folder.
    pub index: PathBuf,
    /// Totals.
    #[serde(flatten)]
    pub counts: Counts,
    /// The number of batches committed.
    pub generation: i64,
    /// The model's name; `none` without one.
    pub embedder: String,
    /// The model before, while its vectors serve until all of the new one's are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_embedder: Option<String>,
    /// Vectors there are.
    pub vectors: usize,
    /// Passages that wait for a vector.
    pub pending: usize,
    /// Bytes of the index, vectors included.
    pub index_bytes: u64,
    /// Bytes of the vectors.
    pub vector_bytes: u64,
    /// Files that differ from the index right now.
    pub behind: usize,
    /// Whether the index is behind the files.
    pub stale: bool,
    /// Who holds the index lock, if another process does.
    pub locked_by: Option<Holder>,
    /// When this was asked.
    pub at: Timestamp,
}

/// Brings the index in line with the files, and describes its state.
#[derive(Debug, Clone, Copy)]
pub struct IndexSync<'a> {
    pub(in crate::store) core: &'a Core,
}

impl<'a> IndexSync<'a> {
    pub(in crate::store) fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
