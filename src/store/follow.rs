//! Following the files: the index keeps step with every editor, and a look at the watch replaces a scan.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{SyncScope, SyncReport, silent};
use crate::vault::watch::{WatchBatch, Watcher};

/// How often a process that does not keep the index looks whether it may.
const TURN: Duration = Duration::from_secs(1);
/// How long a search waits for changes to be taken in; then it answers from what is there, and says so.
const SEARCH: Duration = Duration::from_millis(300);
/// How long a search waits where nothing is indexed yet.
const FIRST: Duration = Duration::from_secs(5);
/// How long a reader waits for the process that keeps the index to see what it sees.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often the process that follows the files looks whether maintenance is due.
const TENDING: Duration = Duration::from_secs(60);

/// So long one batch should take: an edit waits for the batch under way and for its own.
const BATCH: Duration = Duration::from_millis(300);
/// So many files go into the first batch, and at least so many into every one.
const FILES: usize = 128;

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
    store: Store,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        // What still waits to be told is left to the next command's scan.
        if let Some(watch) = self.store.watch.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            watch.stop();
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that follows the files panicked");
            }
        }
    }
}

impl Store {
    /// Keeps the index in step with the files from now on, in a thread of its own, and takes the index over where the
    /// process that keeps it ends. `told` hears of every step that changed something.
    ///
    /// # Errors
    /// `Internal` where no thread can be started.
    pub fn follow(&self, told: impl FnMut(Followed) + Send + 'static) -> Result<Follower> {
        self.follows.store(true, Ordering::Relaxed);
        let stop = Arc::new(AtomicBool::new(false));
        let (store, stopped) = (self.clone(), Arc::clone(&stop));
        let mut told = told;
        let thread = std::thread::Builder::new()
            .name("sidenote-follow".to_owned())
            .spawn(move || {
                let mut said = String::new();
                while !stopped.load(Ordering::Relaxed) {
                    if let Err(error) = store.follow_while_writing(&stopped, &mut told) {
                        // The vault may be away for long, and one sentence about that is enough.
                        if error.to_string() != said {
                            tracing::warn!("the files are not followed for the moment: {error}");
                            said = error.to_string();
                        }
                    }
                    store.set_watch(None);
                    if !stopped.load(Ordering::Relaxed) {
                        // A process that reads looks now and then whether it may write.
                        std::thread::park_timeout(TURN);
                    }
                }
                store.follows.store(false, Ordering::Relaxed);
            })
            .map_err(unstarted)?;
        let mut follower = Follower { store: self.clone(), stop: Arc::clone(&stop), threads: vec![thread] };
        let store = self.clone();
        let tending = std::thread::Builder::new()
            .name("sidenote-tend".to_owned())
            .spawn(move || {
                // A backup that is due is made at the start: many servers do not run for long.
                let mut pause = if store.config().backup.auto { TURN } else { TENDING };
                while !stop.load(Ordering::Relaxed) {
                    std::thread::park_timeout(pause);
                    if !stop.load(Ordering::Relaxed) && store.is_following() {
                        pause = TENDING;
                        if let Err(error) = store.tend() {
                            tracing::warn!("maintenance is put off: {error}");
                        }
                    }
                }
            })
            .map_err(unstarted)?;
        follower.threads.push(tending);
        Ok(follower)
    }

    /// Says whether this process follows the files: a search then asks the watch instead of scanning.
    pub fn is_following(&self) -> bool {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn follow_while_writing(&self, stop: &AtomicBool, told: &mut impl FnMut(Followed)) -> Result<()> {
        if !self.index.promote()? {
            return Ok(());
        }
        let watch = Arc::new(Watcher::start(&self.vault, self.index.folder())?);
        // What happened before the watch began is found by one look at everything.
        let begun = WatchBatch {
            rescan: Some("the watch begins".to_owned()),
            since: Some(Instant::now()),
            ..WatchBatch::default()
        };
        self.step(&watch, begun, told)?;
        self.set_watch(Some(Arc::clone(&watch)));
        let mut most = FILES;
        while !stop.load(Ordering::Relaxed) {
            watch.wait(TURN);
            if self.index.is_displaced() {
                // Another index stands there, whose lock somebody else may hold.
                return Ok(());
            }
            self.note_moves();
            // Whoever wants to catch up waits for what is being taken in.
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn step(&self, watch: &Watcher, batch: WatchBatch, told: &mut impl FnMut(Followed)) -> Result<()> {
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

    fn set_watch(&self, watch: Option<Arc<Watcher>>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
    }

    /// Brings the index in line with a batch of the watch; what fails is looked at again.
    fn take_in(&self, watch: &Watcher, batch: WatchBatch) -> Result<SyncReport> {
        let changes = match batch.rescan {
            Some(_) => SyncScope::All,
            None => SyncScope::Only { files: batch.files, places: batch.gone },
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
        self.index.sync(SyncScope::All, silent())
    }

    /// As [`Store::catch_up`], for a search, which does not wait long while this process follows the files: gives the
    /// number of places that are not taken in yet.
    fn catch_up_soon(&self) -> Result<usize> {
        if !self.follows.load(Ordering::Relaxed) {
            return self.catch_up().map(|report| warn_of(&report));
        }
        let is_empty = self.index.generation()? == 0;
        let end = Instant::now() + if is_empty { FIRST } else { SEARCH };
        let left = || end.saturating_duration_since(Instant::now());
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(watch) = watch else {
            // The first look at everything is under way, or about to be.
            let done = self.index.sync_within(SyncScope::All, silent(), left())?;
            return Ok(usize::from(done.is_none()));
        };
        let _turn = loop {
            match self.turn.try_lock() {
                Ok(turn) => break turn,
                Err(TryLockError::Poisoned(turn)) => break turn.into_inner(),
                Err(TryLockError::WouldBlock) if left().is_zero() => return Ok(watch.waiting().max(1)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let changes = match watch.flush() {
            Some(batch) if batch.is_empty() => return Ok(0),
            Some(WatchBatch { rescan: None, files, gone, .. }) => SyncScope::Only { files, places: gone },
            _ => SyncScope::All,
        };
        match self.index.sync_within(changes, silent(), left()) {
            Ok(Some(report)) => Ok(warn_of(&report)),
            // Whether it went well is not known here.
            Ok(None) => {
                watch.rescan("a search did not wait for the last changes".to_owned());
                Ok(1)
            }
            Err(error) => {
                watch.rescan(error.to_string());
                Err(error)
            }
        }
    }

    /// As [`Store::freshen`], for whoever must not wait: what takes longer is left to others, or to the next time.
    pub(super) fn freshen_within(&self, patience: Duration) -> Result<()> {
        if self.index.promote()? {
            self.index.sync_within(SyncScope::All, silent(), patience)?;
            self.note_moves();
        }
        Ok(())
    }

    /// Brings the index in line with the files where this process may, and says how far behind it is: the number of
    /// files that differ. A process that follows the files, or reads beside one that keeps the index, waits a moment
    /// only.
    ///
    /// # Errors
    /// `Io` where the vault cannot be listed.
    #[tracing::instrument(skip_all)]
    pub fn freshen(&self) -> Result<usize> {
        let behind = self.freshen_soon()?;
        self.set_behind(behind);
        Ok(behind)
    }

    fn freshen_soon(&self) -> Result<usize> {
        if self.index.promote()? {
            match self.catch_up_soon() {
                // A full disk, for instance: what the index holds answers all the same.
                Err(error) if error.kind() == ErrorKind::Io && self.index.generation()? > 0 => {
                    let drift = self.index.drift(&self.vault)?;
                    self.set_unseen(Some(&drift));
                    tracing::warn!("the index cannot be brought up to date, so it answers as it is: {error}");
                    return Ok(drift.len());
                }
                behind => {
                    let behind = behind?;
                    self.set_unseen(None);
                    self.note_moves();
                    return Ok(behind);
                }
            }
        }
        let is_empty = self.index.generation()? == 0;
        let end = Instant::now() + if is_empty { FIRST } else { PATIENCE };
        loop {
            let generation = self.index.generation()?;
            let drift = self.index.drift(&self.vault)?;
            self.set_unseen(Some(&drift));
            if drift.is_empty() {
                return Ok(0);
            }
            while self.index.generation()? == generation {
                if Instant::now() >= end {
                    return Ok(drift.len());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn unstarted(error: std::io::Error) -> Error {
    Error::internal("cannot start a thread that follows the files").with_source(error)
}

/// Tells of what a sync could not do; gives 0, for nothing is left to be taken in.
fn warn_of(report: &SyncReport) -> usize {
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
    0
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}
