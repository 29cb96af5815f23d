//! Owns the thread that writes the index: jobs first, and upkeep where there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::index::diff::SyncReport;
use crate::index::directory::displaced;
use crate::index::embed::{Effort, Embed};
use crate::index::writer::{State, Writer};
use crate::index::{IndexState, Job, Phase, Progress, SyncScope};

/// Where so long nothing is asked for, there is time to merge and to tidy.
const LULL: Duration = Duration::from_millis(100);

/// A model that failed in the background is tried again after so long: an endpoint may be back by then.
const REST: Duration = Duration::from_secs(600);

/// The thread that owns the write side.
pub(super) struct WriterThread {
    pub(super) writer: Writer,
    pub(super) shared: Arc<IndexState>,
    pub(super) embedder: Option<Arc<dyn Embed>>,
    pub(super) fill: bool,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) urgent: Arc<AtomicBool>,
}

impl WriterThread {
    /// Does what it is asked until it is told to stop; merges and embeds where there is nothing else to do.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut waiting: Option<Vec<i64>> = None;
        // Whether there may be segments to merge or a log to empty, which waits until nothing else does.
        let mut untidy = false;
        // When to fill in vectors again, after that failed.
        let mut again: Option<Instant> = None;
        loop {
            self.urgent.store(false, Ordering::SeqCst);
            let idle = !self.fill || waiting.as_ref().is_some_and(Vec::is_empty);
            let job = if untidy {
                jobs.recv_timeout(LULL)
            } else if let (true, Some(at)) = (idle, again) {
                jobs.recv_timeout(at.saturating_duration_since(Instant::now()))
            } else if idle {
                jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                jobs.recv_timeout(Duration::ZERO)
            };
            match job {
                Ok(Job::Sync(changes, progress, reply)) => {
                    let result = self.sync(&changes, &*progress);
                    if result.as_ref().is_ok_and(SyncReport::changed_anything) {
                        waiting = None;
                    }
                    // Whoever asked may be gone; the index is in step all the same.
                    drop(reply.send(result));
                    // Also where nothing changed: times and intents are written all the same.
                    untidy = true;
                    self.tidy_step(false);
                }
                Ok(Job::Embed(progress, reply)) => {
                    let result = self.embed_all(&*progress);
                    waiting = None;
                    drop(reply.send(result));
                }
                Ok(Job::Urgent(urgent)) => self.hurry(urgent),
                Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if untidy => untidy = self.tidy_step(true),
                Err(RecvTimeoutError::Timeout) => {
                    if again.take().is_some() {
                        waiting = None;
                    }
                    if let Err(error) = self.fill_step(&mut waiting) {
                        tracing::warn!("vectors are not filled in for now: {error}");
                        waiting = Some(Vec::new());
                        again = Some(Instant::now() + REST);
                    }
                }
            }
        }
        if self.shared.is_displaced() {
            // What stands in the folder now belongs to whoever made it.
            return self.writer.abandon_files();
        }
        if let Err(error) = self.writer.close() {
            tracing::warn!("the index was not sealed, so the next command checks it: {error}");
        }
    }

    fn sync(&mut self, changes: &SyncScope, progress: &Progress) -> Result<SyncReport> {
        if self.shared.is_displaced() {
            return Err(displaced());
        }
        self.show_replaced()?;
        let result = self.writer.sync(changes, progress, &self.stop);
        self.show_replaced()?;
        let mut report = result?;
        self.shared.seen().append(&mut report.moves);
        if report.generation != self.shared.current().generation {
            self.shared.publish()?;
        }
        if report.changed_anything() {
            self.shared.tell(&report);
        }
        Ok(report)
    }

    /// Lets readers open the catalog again where the writer replaced it.
    fn show_replaced(&mut self) -> Result<()> {
        if let State::Replaced = self.writer.state {
            self.shared.reopen()?;
            self.writer.state = State::Open;
            self.shared.publish()?;
        }
        Ok(())
    }

    /// Merges a few segments and empties the catalog's log where it is due; says whether there may be more to merge.
    fn tidy_step(&mut self, is_idle: bool) -> bool {
        if self.shared.is_displaced() {
            return false;
        }
        self.writer.empty_log_if_due(is_idle);
        let merged = self.writer.merge_if_due(is_idle);
        let shown =
            merged.and_then(|merged| if merged { self.shared.publish().map(|()| true) } else { Ok(false) });
        shown.unwrap_or_else(|error| {
            tracing::warn!("the index is not merged for now: {error}");
            false
        })
    }

    fn embed_all(&mut self, progress: &Progress) -> Result<usize> {
        let Some(embedder) = self.embedder.clone() else {
            return Ok(0);
        };
        self.writer.open_vectors()?;
        let total = usize::try_from(self.writer.count_pending()?).unwrap_or(0);
        let files = self.writer.waiting_files()?;
        let stop = Arc::clone(&self.stop);
        let mut made = 0;
        if total > 0 {
            self.writer.break_seal()?;
        }
        progress(Phase::Embed, 0, total);
        // Files are joined into groups large enough to keep every core busy.
        for group in files.chunks(32) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let done = self.writer.embed_files(
                group,
                &*embedder,
                Effort::Bulk,
                &|done| progress(Phase::Embed, made + done, total),
                &|| stop.load(Ordering::Relaxed),
            );
            match done {
                Ok(done) => made += done,
                Err(error) => {
                    // What was made before is kept, and counts.
                    self.settle(progress)?;
                    return Err(error);
                }
            }
            progress(Phase::Embed, made, total);
        }
        self.settle(progress)?;
        Ok(made)
    }

    /// Embeds the passages of one file; the pending count and the snapshot follow now and then.
    fn fill_step(&mut self, waiting: &mut Option<Vec<i64>>) -> Result<()> {
        let Some(embedder) = self.embedder.clone().filter(|_| !self.shared.is_displaced()) else {
            *waiting = Some(Vec::new());
            return Ok(());
        };
        if waiting.is_none() {
            self.writer.open_vectors()?;
            let mut files = self.writer.waiting_files()?;
            files.reverse();
            *waiting = Some(files);
        }
        let Some(file) = waiting.as_ref().and_then(|files| files.last().copied()) else {
            return Ok(());
        };
        self.writer.break_seal()?;
        let (stop, urgent) = (Arc::clone(&self.stop), Arc::clone(&self.urgent));
        let halt = || stop.load(Ordering::Relaxed) || urgent.load(Ordering::Relaxed);
        self.writer.embed_files(&[file], &*embedder, Effort::Background, &|_| {}, &halt)?;
        if let (false, Some(files)) = (halt(), waiting) {
            files.pop();
            if files.len().is_multiple_of(64) {
                self.settle(&|_, _, _| {})?;
            }
        }
        Ok(())
    }

    fn settle(&mut self, progress: &Progress) -> Result<()> {
        let stop = Arc::clone(&self.stop);
        progress(Phase::Graph, 0, 0);
        self.writer.settle_vectors(&|| stop.load(Ordering::Relaxed))?;
        self.shared.publish()?;
        self.writer.drop_replaced()
    }
}
