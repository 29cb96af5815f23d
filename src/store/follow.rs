//! Following the files: the index keeps step with every editor, and a look at the watch replaces a scan.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Store;
use crate::error::{Error, Result};
use crate::index::{Changes, SyncReport, silent};
use crate::vault::watch::{Batch, Watch};

/// How often a process that does not keep the index looks whether it may.
const TURN: Duration = Duration::from_millis(500);
/// How long a reader waits for the process that keeps the index to see what it sees.
const PATIENCE: Duration = Duration::from_millis(300);

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
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if self.thread.take().map(JoinHandle::join).is_some_and(|joined| joined.is_err()) {
            tracing::error!("the thread that follows the files panicked");
        }
    }
}

impl Store {
    /// Keeps the index in step with the files from now on, in a thread of its own, and takes the index over where the
    /// process that keeps it ends. `told` hears of every step that changed something.
    ///
    /// # Errors
    /// `Internal` where no thread can be started.
    pub fn follow(self: &Arc<Self>, told: impl FnMut(Followed) + Send + 'static) -> Result<Follower> {
        let stop = Arc::new(AtomicBool::new(false));
        let (store, stopped) = (Arc::clone(self), Arc::clone(&stop));
        let mut told = told;
        let thread = std::thread::Builder::new()
            .name("sidenote-follow".to_owned())
            .spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    if let Err(error) = store.follow_while_writing(&stopped, &mut told) {
                        tracing::warn!("the files are not followed for a moment: {error}");
                    }
                    store.set_watch(None);
                    // A process that reads looks now and then whether it may write.
                    wait(TURN, &stopped);
                }
            })
            .map_err(|error| {
                Error::internal("cannot start the thread that follows the files").with_source(error)
            })?;
        Ok(Follower { stop, thread: Some(thread) })
    }

    /// Says whether this process follows the files: a search then asks the watch instead of scanning.
    pub fn is_following(&self) -> bool {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn follow_while_writing(&self, stop: &AtomicBool, told: &mut impl FnMut(Followed)) -> Result<()> {
        if !self.index.promote()? {
            return Ok(());
        }
        let settings = self.vault.config_folder();
        let watch = Arc::new(Watch::start(self.vault.root(), &settings, self.index.folder())?);
        // What happened before the watch began is found by one look at everything.
        let begun = Batch {
            rescan: Some("the watch begins".to_owned()),
            since: Some(Instant::now()),
            ..Batch::default()
        };
        self.step(&watch, begun, told)?;
        self.set_watch(Some(Arc::clone(&watch)));
        while !stop.load(Ordering::Relaxed) {
            watch.wait(TURN);
            // Whoever wants to catch up waits for what is being taken in.
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(batch) = watch.next() {
                self.step(&watch, batch, told)?;
            }
        }
        Ok(())
    }

    fn step(&self, watch: &Watch, batch: Batch, told: &mut impl FnMut(Followed)) -> Result<()> {
        let started = Instant::now();
        let since = batch.since.unwrap_or(started);
        let paths = batch.files.iter().map(ToString::to_string).chain(batch.gone.iter().cloned()).collect();
        let rescan = batch.rescan.clone();
        let report = self.take_in(watch, batch)?;
        if report.changed_anything() || !report.warnings.is_empty() {
            let (took_ms, stale_ms) = (millis(started.elapsed()), millis(since.elapsed()));
            told(Followed { paths, rescan, report, took_ms, stale_ms });
        }
        Ok(())
    }

    fn set_watch(&self, watch: Option<Arc<Watch>>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
    }

    /// Brings the index in line with a batch of the watch; what fails is looked at again.
    fn take_in(&self, watch: &Watch, batch: Batch) -> Result<SyncReport> {
        let changes = match batch.rescan {
            Some(_) => Changes::All,
            None => Changes::Only { files: batch.files, places: batch.gone },
        };
        self.index.sync(changes, silent()).inspect_err(|error| watch.rescan(error.to_string()))
    }

    /// Brings the index in line with the files as they are this moment, where this process keeps it: by what the watch
    /// told, or by a look at everything.
    ///
    /// # Errors
    /// `Conflict` where another process keeps the index; `Io` where the vault cannot be listed.
    pub(super) fn catch_up(&self) -> Result<SyncReport> {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(watch) = watch {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            match watch.flush() {
                Some(batch) if batch.is_empty() => return Ok(SyncReport::default()),
                Some(batch) => return self.take_in(&watch, batch),
                None => {}
            }
        }
        self.index.sync(Changes::All, silent())
    }

    /// Brings the index in line with the files where this process may, and says how far behind it is: the number of
    /// files that differ. Beside a process that keeps the index it waits a moment for that one.
    ///
    /// # Errors
    /// `Io` where the vault cannot be listed.
    #[tracing::instrument(skip_all)]
    pub fn freshen(&self) -> Result<usize> {
        if self.index.promote()? {
            for warning in &self.catch_up()?.warnings {
                tracing::warn!("{warning}");
            }
            return Ok(0);
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let generation = self.index.catalog().generation()?;
            let behind = self.index.drift(&self.vault)?.len();
            if behind == 0 {
                return Ok(0);
            }
            while self.index.catalog().generation()? == generation {
                if Instant::now() >= end {
                    return Ok(behind);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}

/// Waits, in short steps, until the time is over or somebody says stop.
fn wait(time: Duration, stop: &AtomicBool) {
    let end = Instant::now() + time;
    while !stop.load(Ordering::Relaxed) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20).min(time));
    }
}
