//! Following the files: a watch reports what changes on disk, so that the index stays up to date without scans.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::Result;
use crate::index::{Index, SyncReport, SyncScope, silent};
use crate::vault::watch::{WatchBatch, Watcher};

/// How often a process that follows the files checks whether it still writes the index.
const TURN: Duration = Duration::from_secs(1);
/// How long one batch should take: an edit waits for the batch in progress and for its own.
const BATCH: Duration = Duration::from_millis(300);
/// The most files in the first batch, and the least limit of every later one.
const FILES: usize = 128;
/// How often a process looks for a commit of the process that writes the index.
const POLL: Duration = Duration::from_millis(5);

/// One step of following the files.
#[derive(Debug, Clone, Serialize)]
pub struct Followed {
    /// Paths at which something happened; none where everything was scanned.
    pub paths: Vec<String>,
    /// Why everything was scanned, where that was so.
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

/// The result of updating the index within a limit of time.
#[derive(Debug)]
pub enum CatchUp {
    /// The index is up to date.
    Done(SyncReport),
    /// The limit was reached, and so many changes are not indexed yet.
    Behind(usize),
}

/// What an index has for following the files.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// Whether this process follows the files, or tries to.
    is_wanted: AtomicBool,
    /// The watch, while this process follows the files and writes the index.
    watch: Mutex<Option<Arc<Watcher>>>,
    /// Taken while changes that the watch reported are indexed.
    turn: Turn,
}

/// A lock that can be awaited with a limit of time.
#[derive(Debug, Default)]
struct Turn {
    is_taken: Mutex<bool>,
    freed: Condvar,
}

/// Frees the lock when it is dropped.
struct Taken<'a>(&'a Turn);

impl Turn {
    /// Waits for the lock.
    fn take(&self) -> Taken<'_> {
        let taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken =
            self.freed.wait_while(taken, |is_taken| *is_taken).unwrap_or_else(PoisonError::into_inner);
        *taken = true;
        Taken(self)
    }

    /// Waits for the lock until the limit has passed.
    fn take_within(&self, limit: Duration) -> Option<Taken<'_>> {
        let taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_timeout_while(taken, limit, |is_taken| *is_taken);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!std::mem::replace(&mut *taken, true)).then(|| Taken(self))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.freed.notify_one();
    }
}

impl Following {
    fn watch(&self) -> Option<Arc<Watcher>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_watch(&self, watch: Option<Arc<Watcher>>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
    }
}

impl Index {
    /// Returns the part of the index that follows the files.
    pub fn files(&self) -> Files<'_> {
        Files(self)
    }

    /// Waits until the process that writes the index commits after the generation `known`, and returns whether it did
    /// before `end`. Another process can only be polled.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read.
    pub fn wait_for_commit(&self, known: i64, end: Instant) -> Result<bool> {
        while self.generation()? == known {
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
        Ok(true)
    }
}

/// Following the files of the vault, and indexing what changed.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a>(&'a Index);

impl Files<'_> {
    /// Follows the files as long as this process writes the index, until `stop` is set. `woken` is called before each
    /// batch and about once a second, `told` after each batch that changed something.
    ///
    /// # Errors
    /// `Io` where the vault cannot be watched or listed; those of [`Index::sync`].
    pub fn follow(&self, stop: &AtomicBool, woken: impl FnMut(), told: impl FnMut(Followed)) -> Result<()> {
        let followed = self.follow_while_writing(stop, woken, told);
        self.0.following.set_watch(None);
        followed
    }

    fn follow_while_writing(
        &self,
        stop: &AtomicBool,
        mut woken: impl FnMut(),
        mut told: impl FnMut(Followed),
    ) -> Result<()> {
        if !self.0.promote()? {
            return Ok(());
        }
        let watch = Arc::new(Watcher::start(&self.0.vault, self.0.folder())?);
        // A scan finds what happened before the watch began.
        let first = WatchBatch {
            rescan: Some("the watch begins".to_owned()),
            since: Some(Instant::now()),
            ..WatchBatch::default()
        };
        self.step(&watch, first, &mut told)?;
        self.0.following.set_watch(Some(Arc::clone(&watch)));
        let mut most = FILES;
        while !stop.load(Ordering::Relaxed) {
            watch.wait(TURN);
            if self.0.is_displaced() {
                // Another index is in its place, whose lock another process may hold.
                return Ok(());
            }
            woken();
            // Readers that catch up wait for the batch in progress.
            let _turn = self.0.following.turn.take();
            if let Some(batch) = watch.next(most) {
                let (started, count) = (Instant::now(), batch.files.len());
                self.step(&watch, batch, &mut told)?;
                if count >= FILES {
                    most = (count as f64 * BATCH.as_secs_f64() / started.elapsed().as_secs_f64()) as usize;
                    most = most.clamp(FILES, 64 * FILES);
                }
            }
        }
        Ok(())
    }

    fn step(&self, watch: &Watcher, batch: WatchBatch, told: &mut impl FnMut(Followed)) -> Result<()> {
        let started = Instant::now();
        let since = batch.since.unwrap_or(started);
        let paths = batch.files.iter().map(ToString::to_string).chain(batch.gone.iter().cloned()).collect();
        let rescan = batch.rescan.clone();
        let report = self.index_batch(watch, batch)?;
        if report.changed_anything() || !report.warnings.is_empty() {
            let (took_ms, stale_ms) = (millis(started.elapsed()), millis(since.elapsed()));
            told(Followed { paths, rescan, report, took_ms, stale_ms });
        }
        Ok(())
    }

    /// Indexes a batch of the watch. After an error everything is scanned again.
    fn index_batch(&self, watch: &Watcher, batch: WatchBatch) -> Result<SyncReport> {
        self.0.sync(scope_of(batch), silent()).inspect_err(|error| watch.rescan(error.to_string()))
    }

    /// Sets whether this process follows the files, or tries to: readers then rely on the watch.
    pub fn set_followed(&self, is_wanted: bool) {
        self.0.following.is_wanted.store(is_wanted, Ordering::Relaxed);
    }

    /// Returns whether this process follows the files now.
    pub fn are_followed(&self) -> bool {
        self.0.following.watch().is_some()
    }

    /// Ends the wait of [`Files::follow`] for events, and what the watch is doing.
    pub fn stop_watching(&self) {
        if let Some(watch) = self.0.following.watch() {
            watch.stop();
        }
    }

    /// Indexes all changes of the files until now: those that the watch reported, or those that a scan finds.
    ///
    /// # Errors
    /// `Conflict` where another process writes the index; `Io` where the vault cannot be listed.
    pub fn catch_up(&self) -> Result<SyncReport> {
        if let Some(watch) = self.0.following.watch() {
            let _turn = self.0.following.turn.take();
            match watch.flush() {
                Some(batch) if batch.is_empty() => return Ok(SyncReport::default()),
                Some(batch) => return self.index_batch(&watch, batch),
                None => {}
            }
        }
        self.0.sync(SyncScope::All, silent())
    }

    /// As [`Files::catch_up`], and while this process follows the files no longer than `limit`: what takes longer goes on
    /// in the background.
    ///
    /// # Errors
    /// As [`Files::catch_up`].
    pub fn catch_up_within(&self, limit: Duration) -> Result<CatchUp> {
        if !self.0.following.is_wanted.load(Ordering::Relaxed) {
            return self.catch_up().map(CatchUp::Done);
        }
        let end = Instant::now() + limit;
        let left = || end.saturating_duration_since(Instant::now());
        let Some(watch) = self.0.following.watch() else {
            // The first scan is in progress, or about to begin.
            let report = self.0.sync_within(SyncScope::All, silent(), left())?;
            return Ok(report.map_or(CatchUp::Behind(1), CatchUp::Done));
        };
        let Some(_turn) = self.0.following.turn.take_within(left()) else {
            return Ok(CatchUp::Behind(watch.waiting().max(1)));
        };
        let scope = match watch.flush() {
            Some(batch) if batch.is_empty() => return Ok(CatchUp::Done(SyncReport::default())),
            Some(batch) => scope_of(batch),
            None => SyncScope::All,
        };
        match self.0.sync_within(scope, silent(), left()) {
            Ok(Some(report)) => Ok(CatchUp::Done(report)),
            // Nobody waits for the result, which may be an error.
            Ok(None) => {
                watch.rescan("a search did not wait for the last changes".to_owned());
                Ok(CatchUp::Behind(1))
            }
            Err(error) => {
                watch.rescan(error.to_string());
                Err(error)
            }
        }
    }
}

/// Returns what a sync looks at to index a batch of the watch.
fn scope_of(batch: WatchBatch) -> SyncScope {
    match batch {
        WatchBatch { rescan: None, files, gone, .. } => SyncScope::Only { files, places: gone },
        _ => SyncScope::All,
    }
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}
