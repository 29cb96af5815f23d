//! The thread that writes the index. It runs jobs, and does maintenance when there are none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use sidenote_base::error::Result;
use sidenote_base::platform;
use sidenote_embed::{Effort, Embed};
use sidenote_vectors::VectorWriter;

use crate::diff::SyncReport;
use crate::directory::displaced;
use crate::writer::plan::BULK;
use crate::writer::{EmbeddingStep, Extent, MergeTime, State, Writer, panicked};
use crate::{EmbedReport, IndexState, Job, Phase, Progress, SyncScope};

/// The time without a job after which segments are merged and the log is emptied.
const IDLE_DELAY: Duration = Duration::from_millis(100);

/// The time without a job after which free memory goes back to the system. One-shot commands end earlier.
const RELEASE_DELAY: Duration = Duration::from_secs(3);

/// The time after which background embedding is tried again after a failure, such as an endpoint that is down.
const RETRY_DELAY: Duration = Duration::from_secs(600);

/// The thread that owns the write side.
pub(super) struct WriterThread {
    pub(super) writer: Writer,
    pub(super) shared: Arc<IndexState>,
    pub(super) embedder: Option<Arc<dyn Embed>>,
    pub(super) fill: bool,
    pub(super) merge_loads: bool,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) urgent: Arc<AtomicBool>,
}

impl WriterThread {
    /// Runs jobs until it receives [`Job::Stop`]. Between jobs it merges segments and embeds passages.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut unembedded: Option<Vec<EmbeddingStep>> = None;
        // Whether there may be segments to merge or a log to empty, which is done when there are no jobs.
        let mut needs_maintenance = false;
        // Whether there may be much free memory, at first of what opened the index.
        let mut has_free_memory = true;
        // When background embedding is tried again after a failure.
        let mut retry_at: Option<Instant> = None;
        loop {
            self.urgent.store(false, Ordering::SeqCst);
            let idle = !self.fill || unembedded.as_ref().is_some_and(Vec::is_empty);
            let job = if needs_maintenance {
                jobs.recv_timeout(IDLE_DELAY)
            } else if idle && has_free_memory {
                jobs.recv_timeout(RELEASE_DELAY)
            } else if let (true, Some(at)) = (idle, retry_at) {
                jobs.recv_timeout(at.saturating_duration_since(Instant::now()))
            } else if idle {
                jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                jobs.recv_timeout(Duration::ZERO)
            };
            match job {
                Ok(Job::Sync { scope, expected, progress, reply }) => {
                    if expected >= BULK {
                        self.shared.begin_large_batch();
                    }
                    let result = guard(|| self.sync(&scope, progress));
                    if result.as_ref().is_ok_and(SyncReport::changed_anything) {
                        (unembedded, has_free_memory) = (None, true);
                    }
                    // Who gets the reply waits for nothing any more.
                    self.shared.large_batch.store(0, Ordering::SeqCst);
                    // The receiver may be gone; the index is up to date anyway.
                    drop(reply.send(result));
                    // Times and intents are written even if nothing changed.
                    needs_maintenance = true;
                    self.maintenance_step(false);
                }
                Ok(Job::Embed(progress, reply)) => {
                    let result = guard(|| self.embed_all(&*progress));
                    (unembedded, has_free_memory) = (None, true);
                    drop(reply.send(result));
                }
                Ok(Job::Urgent(urgent)) => self.embed_urgent(urgent),
                Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if needs_maintenance => {
                    needs_maintenance = self.maintenance_step(true)
                }
                Err(RecvTimeoutError::Timeout) if idle && has_free_memory => {
                    platform::release_free_memory();
                    has_free_memory = false;
                }
                Err(RecvTimeoutError::Timeout) => {
                    has_free_memory = true;
                    if retry_at.take().is_some() {
                        unembedded = None;
                    }
                    if let Err(error) = self.embed_step(&mut unembedded) {
                        tracing::warn!("background embedding is paused: {error}");
                        unembedded = Some(Vec::new());
                        retry_at = Some(Instant::now() + RETRY_DELAY);
                    }
                }
            }
        }
        self.close();
    }

    fn close(&mut self) {
        if let Err(error) = self.merge_until_few(MergeTime::Closing) {
            tracing::warn!("segments of the full text cannot be merged now: {error}");
        }
        if self.shared.is_displaced() {
            // The folder contains an index of another process, which must not be changed.
            return self.writer.discard();
        }
        if let Err(error) = self.writer.close() {
            tracing::warn!(
                "the seal of the index cannot be written, so the next command checks the index: {error}"
            );
        }
    }

    fn sync(&mut self, scope: &SyncScope, progress: Arc<Progress>) -> Result<SyncReport> {
        if self.shared.is_displaced() {
            return Err(displaced());
        }
        self.reopen_replaced_catalog()?;
        let shared = Arc::clone(&self.shared);
        let show_progress = Arc::clone(&progress);
        let progress = move |phase, done, total| {
            if phase == Phase::Parse && total >= BULK {
                shared.begin_large_batch();
            }
            progress(phase, done, total);
        };
        let result = self.writer.sync(scope, &progress, &self.stop);
        self.reopen_replaced_catalog()?;
        let mut report = result?;
        self.shared.observed_moves().append(&mut report.moves);
        if report.generation != self.shared.current().generation {
            self.shared.publish()?;
        }
        if report.changed_anything() {
            self.shared.notify(&report);
        }
        if self.merge_loads && self.writer.has_loaded {
            show_progress(Phase::Merge, 0, 0);
            if let Err(error) = self.merge_until_few(MergeTime::Loaded) {
                report
                    .warnings
                    .push(format!("the index is complete, but its full text is not merged, so that searches take longer: {error}"));
            }
        }
        Ok(report)
    }

    /// Opens the catalog for readers again if the writer replaced its file.
    fn reopen_replaced_catalog(&mut self) -> Result<()> {
        if let State::Replaced = self.writer.state {
            self.shared.reopen()?;
            self.writer.state = State::Open;
            self.shared.publish()?;
        }
        Ok(())
    }

    /// Empties the catalog's log and merges segments if that is due. Returns whether there may be more to merge.
    fn maintenance_step(&mut self, is_idle: bool) -> bool {
        if self.shared.is_displaced() {
            return false;
        }
        self.writer.checkpoint_if_due(is_idle);
        let time = if is_idle { MergeTime::Idle } else { MergeTime::BetweenWork };
        let merged = self.writer.merge_if_due(time);
        let shown =
            merged.and_then(|merged| if merged { self.shared.publish().map(|()| true) } else { Ok(false) });
        shown.unwrap_or_else(|error| {
            tracing::warn!("segments of the full text cannot be merged now: {error}");
            false
        })
    }

    /// Merges segments until there are few, or the work that waits for it is stopped. After each merge the snapshot
    /// drops the replaced segments, so that old and new ones do not stay in memory together.
    fn merge_until_few(&mut self, time: MergeTime) -> Result<()> {
        let is_stopped = || time == MergeTime::Loaded && self.stop.load(Ordering::Relaxed);
        while !is_stopped() && !self.shared.is_displaced() && self.writer.merge_if_due(time)? {
            self.shared.publish()?;
        }
        Ok(())
    }

    fn embed_all(&mut self, progress: &Progress) -> Result<EmbedReport> {
        let Some(embedder) = self.embedder.clone() else {
            return Ok(EmbedReport::default());
        };
        self.writer.open_vectors()?;
        let total = usize::try_from(self.writer.count_pending()?).unwrap_or(0);
        let (steps, reused) = self.writer.embedding_steps()?;
        let stop = Arc::clone(&self.stop);
        let mut report = EmbedReport { embedded: 0, reused };
        if total == 0 && reused == 0 && self.writer.are_vectors_finished()? {
            // The index stays as it is, with its seal.
            self.writer.remove_unused_vectors()?;
            return Ok(report);
        }
        if total > 0 {
            self.writer.remove_seal()?;
        }
        progress(Phase::Embed, reused, total);
        // Files are embedded in groups that are large enough for all cores, and first passages before all others.
        let groups = steps.chunk_by(|one, next| one.1 == next.1).flat_map(|same| same.chunks(128));
        for group in groups {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let done = self.writer.embed_files(
                group,
                &*embedder,
                Effort::Bulk,
                &|done| progress(Phase::Embed, report.count() + done, total),
                &|| stop.load(Ordering::Relaxed),
            );
            match done {
                Ok(done) => report.add(done),
                Err(error) => {
                    // The vectors made so far are kept and counted.
                    self.finish_embedding(progress)?;
                    return Err(error);
                }
            }
            progress(Phase::Embed, report.count(), total);
        }
        self.finish_embedding(progress)?;
        Ok(report)
    }

    /// Embeds what one step names. The pending count and the snapshot are updated after every 64 files.
    fn embed_step(&mut self, unembedded: &mut Option<Vec<EmbeddingStep>>) -> Result<()> {
        let Some(embedder) = self.embedder.clone().filter(|_| !self.shared.is_displaced()) else {
            *unembedded = Some(Vec::new());
            return Ok(());
        };
        if unembedded.is_none() {
            self.writer.open_vectors()?;
            let (mut steps, reused) = self.writer.embedding_steps()?;
            steps.reverse();
            *unembedded = Some(steps);
            // Vectors that were all there may have no graph, or one of an earlier version.
            let is_due = self.writer.vectors.as_ref().is_some_and(VectorWriter::graph_is_due);
            if reused > 0 || is_due {
                self.writer.remove_seal()?;
                self.finish_embedding(&|_, _, _| {})?;
            }
        }
        let Some(step) = unembedded.as_ref().and_then(|steps| steps.last().copied()) else {
            return Ok(());
        };
        self.writer.remove_seal()?;
        let (stop, urgent) = (Arc::clone(&self.stop), Arc::clone(&self.urgent));
        let halt = || stop.load(Ordering::Relaxed) || urgent.load(Ordering::Relaxed);
        self.writer.embed_files(&[step], &*embedder, Effort::Background, &|_| {}, &halt)?;
        if let (false, Some(steps)) = (halt(), unembedded) {
            steps.pop();
            // The first passage of a file takes a fraction of the time of the whole file.
            let interval = if step.1 == Extent::FirstPassage { 512 } else { 64 };
            if steps.len().is_multiple_of(interval) {
                self.finish_embedding(&|_, _, _| {})?;
            }
        }
        Ok(())
    }

    fn finish_embedding(&mut self, progress: &Progress) -> Result<()> {
        let stop = Arc::clone(&self.stop);
        progress(Phase::Graph, 0, 0);
        self.writer.finish_vectors(&|| stop.load(Ordering::Relaxed))?;
        self.shared.publish()?;
        self.writer.remove_unused_vectors()
    }
}

/// Does a job, and makes an error of a panic: the thread goes on, and so does the operation that waits for it.
fn guard<T>(job: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| Err(panicked()))
}
