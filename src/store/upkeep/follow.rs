//! Follows the files in the background: the index stays in step, and maintenance runs when it is due.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::index::SyncReport;
use crate::store::core::Core;
use crate::store::memory::Maintenance;
use crate::store::memory::maintain::{MaintainRequest, RETRY};
use crate::store::sync::IndexSync;
use crate::store::upkeep::Upkeep;
use crate::vault::watch::{WatchBatch, Watcher};

/// How often a process that does not keep the index looks whether it may.
pub(in crate::store) const TURN: Duration = Duration::from_secs(1);

/// How often the process that follows the files looks whether maintenance is due.
pub(in crate::store) const TENDING: Duration = Duration::from_secs(60);

/// So long one batch should take: an edit waits for the batch under way and for its own.
pub(in crate::store) const BATCH: Duration = Duration::from_millis(300);

/// So many files go into the first batch, and at least so many into every one.
pub(in crate::store) const FILES: usize = 128;

/// One step of following the files.
#[derive(Debug, Clone, Serialize)]
pub struct Followed {
    /// Paths at which something happened; none where everything was looked at.
    pub paths: Vec<String>,
    /// Why everything was looked at, where that was so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescan: Option<String>,
    /// What was found and done.
    #[serde(flatten)]
    pub report: SyncReport,
    /// Milliseconds that it took.
    pub took_ms: f64,
    /// Milliseconds from the first event of the batch until a search finds what it brought.
    pub stale_ms: f64,
}

/// Follows the files until it is dropped.
#[derive(Debug)]
pub struct Follower {
    pub(in crate::store) core: Core,
    pub(in crate::store) stop: Arc<AtomicBool>,
    pub(in crate::store) threads: Vec<JoinHandle<()>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        // What still waits to be told is left to the next command's scan.
        if let Some(watch) = self.core.state.watch.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            watch.stop();
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that follows the files panicked");
            }
        }
    }
}

impl Upkeep<'_> {
    /// Keeps the index in step with the files from now on, in a thread of its own, and takes the index over where the
    /// process that keeps it ends. `told` hears of every step that changed something.
    ///
    /// # Errors
    /// `Internal` where no thread can be started.
    pub fn follow(&self, told: impl FnMut(Followed) + Send + 'static) -> Result<Follower> {
        self.core.state.follows.store(true, Ordering::Relaxed);
        let stop = Arc::new(AtomicBool::new(false));
        let (core, stopped) = (self.core.clone(), Arc::clone(&stop));
        let mut told = told;
        let thread = std::thread::Builder::new()
            .name("sidenote-follow".to_owned())
            .spawn(move || {
                let mut said = String::new();
                while !stopped.load(Ordering::Relaxed) {
                    if let Err(error) = Upkeep::of(&core).follow_while_writing(&stopped, &mut told) {
                        // The vault may be away for long, and one sentence about that is enough.
                        if error.to_string() != said {
                            tracing::warn!("the files are not followed for the moment: {error}");
                            said = error.to_string();
                        }
                    }
                    IndexSync::of(&core).set_watch(None);
                    if !stopped.load(Ordering::Relaxed) {
                        // A process that reads looks now and then whether it may write.
                        std::thread::park_timeout(TURN);
                    }
                }
                core.state.follows.store(false, Ordering::Relaxed);
            })
            .map_err(unstarted)?;
        let mut follower =
            Follower { core: self.core.clone(), stop: Arc::clone(&stop), threads: vec![thread] };
        let core = self.core.clone();
        let tending = std::thread::Builder::new()
            .name("sidenote-tend".to_owned())
            .spawn(move || {
                // A backup that is due is made at the start: many servers do not run for long.
                let mut pause = if core.config.backup.auto { TURN } else { TENDING };
                while !stop.load(Ordering::Relaxed) {
                    std::thread::park_timeout(pause);
                    if !stop.load(Ordering::Relaxed) && IndexSync::of(&core).is_following() {
                        pause = TENDING;
                        if let Err(error) = Upkeep::of(&core).tend() {
                            tracing::warn!("maintenance is put off: {error}");
                        }
                    }
                }
            })
            .map_err(unstarted)?;
        follower.threads.push(tending);
        Ok(follower)
    }

    pub(in crate::store) fn follow_while_writing(
        &self,
        stop: &AtomicBool,
        told: &mut impl FnMut(Followed),
    ) -> Result<()> {
        if !self.core.index.promote()? {
            return Ok(());
        }
        let watch = Arc::new(Watcher::start(&self.core.vault, self.core.index.folder())?);
        // What happened before the watch began is found by one look at everything.
        let begun = WatchBatch {
            rescan: Some("the watch begins".to_owned()),
            since: Some(Instant::now()),
            ..WatchBatch::default()
        };
        self.step(&watch, begun, told)?;
        IndexSync::of(self.core).set_watch(Some(Arc::clone(&watch)));
        let mut most = FILES;
        while !stop.load(Ordering::Relaxed) {
            watch.wait(TURN);
            if self.core.index.is_displaced() {
                // Another index stands there, whose lock somebody else may hold.
                return Ok(());
            }
            IndexSync::of(self.core).note_moves();
            // Whoever wants to catch up waits for what is being taken in.
            let _turn = self.core.state.turn.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(batch) = watch.next(most) {
                let (started, count) = (Instant::now(), batch.files.len());
                self.step(&watch, batch, told)?;
                if count >= FILES {
                    most = (count as f64 * BATCH.as_secs_f64() / started.elapsed().as_secs_f64()) as usize;
                    most = most.clamp(FILES, 64 * FILES);
                }
            }
        }
        Ok(())
    }

    pub(in crate::store) fn step(
        &self,
        watch: &Watcher,
        batch: WatchBatch,
        told: &mut impl FnMut(Followed),
    ) -> Result<()> {
        let started = Instant::now();
        let since = batch.since.unwrap_or(started);
        let paths = batch.files.iter().map(ToString::to_string).chain(batch.gone.iter().cloned()).collect();
        let rescan = batch.rescan.clone();
        let report = IndexSync::of(self.core).take_in(watch, batch)?;
        if report.changed_anything() || !report.warnings.is_empty() {
            let (took_ms, stale_ms) = (millis(started.elapsed()), millis(since.elapsed()));
            told(Followed { paths, rescan, report, took_ms, stale_ms });
        }
        Ok(())
    }

    /// Does what a process that stays does by itself: maintenance each six hours, and backups where settings ask for them.
    ///
    /// # Errors
    /// As [`Maintenance::maintain`] and [`Self::backup`].
    pub fn tend(&self) -> Result<()> {
        if self.core.vault.is_read_only() {
            return Ok(());
        }
        let last =
            self.core.projection()?.as_ref().and_then(|projection| projection.ledger().last_maintained());
        let tended = self.core.state.tended.load(Ordering::Relaxed);
        let now = self.core.clock.now().millis();
        // Where nothing changed, nothing was written down.
        let last =
            last.map(Timestamp::millis).filter(|last| *last <= now).map_or(tended, |last| last.max(tended));
        if !(0..Maintenance::of(self.core).interval()).contains(&(now - last)) {
            Maintenance::of(self.core)
                .maintain(MaintainRequest { quiet: true, ..MaintainRequest::default() })?;
            self.core.state.tended.store(now, Ordering::Relaxed);
        }
        // Where it fails, it is not tried again at once.
        if !(0..RETRY).contains(&(now - self.core.state.backed_up.swap(now, Ordering::Relaxed))) {
            self.backup_if_due()?;
        }
        Ok(())
    }
}

pub(in crate::store) fn unstarted(error: std::io::Error) -> Error {
    Error::internal("cannot start a thread that follows the files").with_source(error)
}

pub(in crate::store) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}
