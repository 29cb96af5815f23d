//! Follows the files: a watch reports what changes on disk, so that the index stays up to date without scans.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_vault::flush_request::FlushRequester;
use sidenote_vault::watch::{MARKER_DIR, WatchBatch, Watcher};

use crate::{Index, SyncReport, SyncScope, WaitLimit, silent};

/// The interval at which a process that follows the files checks whether it still writes the index.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time that one batch should take: a change waits for the batch in progress and for its own.
const TARGET_BATCH_TIME: Duration = Duration::from_millis(300);
/// The maximum number of files in the first batch, and the lower bound of this maximum later.
const MIN_BATCH_FILES: usize = 128;
/// The interval at which a process polls for a commit of the process that writes the index.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// One batch of changes that was indexed.
#[derive(Debug, Clone, Serialize)]
pub struct Followed {
    /// The changed paths; empty if the whole vault was scanned.
    pub paths: Vec<String>,
    /// Why the whole vault was scanned, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescan: Option<String>,
    /// What the sync found and did.
    #[serde(flatten)]
    pub report: SyncReport,
    /// The duration of the sync in milliseconds.
    pub took_ms: f64,
    /// The milliseconds from the first event of the batch until a search finds the changes.
    pub stale_ms: f64,
}

/// The result of catching up with the files.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each call, and it is not kept")]
pub enum CatchUp {
    /// The index is up to date.
    Done(SyncReport),
    /// The limit was reached, and this number of changes is not indexed yet.
    Behind(usize),
}

/// The state of following the files.
#[derive(Debug, Default)]
pub(super) struct FollowState {
    /// Whether this process is to follow the files.
    is_requested: AtomicBool,
    /// The watch, while this process follows the files and writes the index.
    watch: Mutex<Option<Arc<Watcher>>>,
    /// Held while changes that the watch reported are indexed.
    batch_lock: TimedLock,
    /// The number of readers that have begun to catch up.
    arrivals: AtomicU64,
    /// The readers that have caught up: those with at most this number. It changes while `batch_lock` is held.
    caught_up: AtomicU64,
    /// What this process asks of another one that follows the files.
    requester: FlushRequester,
}

/// A lock that can be acquired with a time limit.
#[derive(Debug, Default)]
struct TimedLock {
    is_locked: Mutex<bool>,
    released: Condvar,
}

/// A guard that releases the lock when it is dropped.
struct TimedLockGuard<'a>(&'a TimedLock);

impl TimedLock {
    /// Waits for the lock and acquires it.
    fn lock(&self) -> TimedLockGuard<'_> {
        let locked = self.is_locked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked =
            self.released.wait_while(locked, |is_locked| *is_locked).unwrap_or_else(PoisonError::into_inner);
        *locked = true;
        TimedLockGuard(self)
    }

    /// Waits for the lock up to a limit. Returns `None` if the limit is reached.
    fn lock_within(&self, limit: Duration) -> Option<TimedLockGuard<'_>> {
        let locked = self.is_locked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.released.wait_timeout_while(locked, limit, |is_locked| *is_locked);
        let (mut locked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!std::mem::replace(&mut *locked, true)).then(|| TimedLockGuard(self))
    }
}

impl Drop for TimedLockGuard<'_> {
    fn drop(&mut self) {
        *self.0.is_locked.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.released.notify_one();
    }
}

impl FollowState {
    fn watch(&self) -> Option<Arc<Watcher>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_watch(&self, watch: Option<Arc<Watcher>>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
    }
}

impl Index {
    /// Returns the part of the index that follows the files.
    pub fn follower(&self) -> Follower<'_> {
        Follower(self)
    }

    /// Waits until the process that writes the index commits a later generation than `known`. Returns whether it
    /// did before `end`. Another process can only be polled.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn wait_for_commit(&self, known: i64, end: Instant) -> Result<bool> {
        while self.generation()? == known {
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(true)
    }
}

/// The part of an index that follows the files of the vault and indexes their changes.
#[derive(Debug, Clone, Copy)]
pub struct Follower<'a>(&'a Index);

impl Follower<'_> {
    /// Follows the files until `stop` is set or this process no longer writes the index. `on_wake` is called before
    /// each batch and about once a second, `on_batch` after each batch that changed something.
    ///
    /// # Errors
    /// `Io` if the vault cannot be watched or listed, or if the index cannot be written; `Corrupt` if the index is
    /// damaged and cannot be rebuilt.
    pub fn follow(
        &self,
        stop: &AtomicBool,
        on_wake: impl FnMut(),
        on_batch: impl FnMut(Followed),
    ) -> Result<()> {
        let followed = self.follow_while_writing(stop, on_wake, on_batch);
        self.0.following.set_watch(None);
        followed
    }

    fn follow_while_writing(
        &self,
        stop: &AtomicBool,
        mut on_wake: impl FnMut(),
        mut on_batch: impl FnMut(Followed),
    ) -> Result<()> {
        if !self.0.promote()? {
            return Ok(());
        }
        let watch = Arc::new(Watcher::start(&self.0.vault, self.0.folder())?);
        // A scan finds what happened before the watch began.
        let first = WatchBatch {
            rescan: Some("the watch started".to_owned()),
            since: Some(Instant::now()),
            ..WatchBatch::default()
        };
        self.step(&watch, first, &mut on_batch)?;
        self.0.following.set_watch(Some(Arc::clone(&watch)));
        let offer = || {
            if let Err(error) = watch.offer_answers() {
                tracing::debug!(%error, "other processes compare the files themselves");
            }
        };
        offer();
        let mut limit = MIN_BATCH_FILES;
        while !stop.load(Ordering::Relaxed) {
            watch.wait(CHECK_INTERVAL);
            if self.0.is_displaced() {
                // Another index is in the folder, whose lock another process may hold.
                return Ok(());
            }
            on_wake();
            offer();
            // Readers that catch up wait for the batch in progress.
            let _guard = self.0.following.batch_lock.lock();
            let (next, requests) = watch.next(limit);
            if let Some(batch) = next {
                let (started, count) = (Instant::now(), batch.files.len());
                self.step(&watch, batch, &mut on_batch)?;
                if count >= MIN_BATCH_FILES {
                    limit = (count as f64 * TARGET_BATCH_TIME.as_secs_f64() / started.elapsed().as_secs_f64())
                        as usize;
                    limit = limit.clamp(MIN_BATCH_FILES, 64 * MIN_BATCH_FILES);
                }
            }
            watch.answer(&requests);
        }
        Ok(())
    }

    fn step(&self, watch: &Watcher, batch: WatchBatch, on_batch: &mut impl FnMut(Followed)) -> Result<()> {
        let started = Instant::now();
        let since = batch.since.unwrap_or(started);
        let paths = batch.files.iter().map(ToString::to_string).chain(batch.gone.iter().cloned()).collect();
        let rescan = batch.rescan.clone();
        let report = self.index_batch(watch, batch)?;
        if report.changed_anything() || !report.warnings.is_empty() {
            let (took_ms, stale_ms) = (millis(started.elapsed()), millis(since.elapsed()));
            on_batch(Followed { paths, rescan, report, took_ms, stale_ms });
        }
        Ok(())
    }

    /// Indexes a batch of the watch. After an error, the next batch scans the whole vault.
    fn index_batch(&self, watch: &Watcher, batch: WatchBatch) -> Result<SyncReport> {
        self.0.sync(scope_of(batch), silent()).inspect_err(|error| watch.rescan(error.to_string()))
    }

    /// Sets whether this process is to follow the files. Readers then rely on the watch.
    pub fn set_requested(&self, is_requested: bool) {
        self.0.following.is_requested.store(is_requested, Ordering::Relaxed);
    }

    /// Returns whether this process is to follow the files.
    pub fn is_requested(&self) -> bool {
        self.0.following.is_requested.load(Ordering::Relaxed)
    }

    /// Returns whether this process follows the files now.
    pub fn is_following(&self) -> bool {
        self.0.following.watch().is_some()
    }

    /// Returns the number of the batch that this process is indexing, if it is a large one, which takes seconds.
    pub fn large_batch(&self) -> Option<u64> {
        Some(self.0.shared.large_batch.load(Ordering::SeqCst)).filter(|number| *number > 0)
    }

    /// Interrupts [`Follower::follow`] while it waits for events, and stops the watch.
    pub fn stop_watching(&self) {
        if let Some(watch) = self.0.following.watch() {
            watch.stop();
        }
    }

    /// Asks the process that writes the index to index all changes of the files until now, and waits for it. Returns
    /// `false` if no process follows the files, or if it does not answer in time; then the caller compares the files
    /// itself.
    pub fn wait_for_writer(&self, wait_limit: Duration) -> bool {
        let may_write = !self.0.options.read_only && !self.0.vault.is_read_only();
        let Some(holder) = self.0.holder().filter(|_| may_write) else { return false };
        self.0.following.requester.request(&self.0.folder().join(MARKER_DIR), holder.pid, wait_limit)
    }

    /// Removes what this process wrote to ask another one.
    pub(super) fn end_requests(&self) {
        self.0.following.requester.remove_marker(&self.0.folder().join(MARKER_DIR));
    }

    /// Returns the number of changes that wait to be indexed, at least 1.
    fn waiting(&self) -> usize {
        self.0.following.watch().map_or(1, |watch| watch.waiting().max(1))
    }

    /// Indexes all changes of the files until now: those that the watch reported or, if this process does not follow
    /// the files, those that a scan finds. When the time limit ends, the work continues in the background, and the result is
    /// [`CatchUp::Behind`].
    ///
    /// # Errors
    /// `Conflict` if another process writes the index; `Io` if the vault cannot be listed or the index cannot be
    /// written; `Corrupt` if the index is damaged and cannot be rebuilt.
    pub fn catch_up(&self, wait_limit: WaitLimit) -> Result<CatchUp> {
        let begin = Instant::now();
        let is_large = || self.large_batch().is_some();
        if !wait_limit.waits_for_large && is_large() {
            // Another scan in the queue would keep the writer from what comes after the batch.
            return Ok(CatchUp::Behind(self.waiting()));
        }
        let FollowState { arrivals, caught_up, batch_lock, .. } = &self.0.following;
        let arrival = arrivals.fetch_add(1, Ordering::SeqCst) + 1;
        let guard = wait_limit.wait_for(is_large, |limit| batch_lock.lock_within(limit));
        if guard.is_none() {
            return Ok(CatchUp::Behind(self.waiting()));
        }
        // While this reader waited for the lock, another one may have begun after it and indexed everything.
        if caught_up.load(Ordering::SeqCst) >= arrival {
            return Ok(CatchUp::Done(SyncReport::default()));
        }
        let arrived = arrivals.load(Ordering::SeqCst);
        let watch = self.0.following.watch();
        let scope = match watch.as_ref().and_then(|watch| watch.flush()) {
            Some(batch) if batch.is_empty() => {
                caught_up.store(arrived, Ordering::SeqCst);
                return Ok(CatchUp::Done(SyncReport::default()));
            }
            Some(batch) => scope_of(batch),
            None => SyncScope::All,
        };
        let rescan = |why: String| watch.iter().for_each(|watch| watch.rescan(why.clone()));
        match self.0.sync_within(scope, 0, silent(), wait_limit.after(begin.elapsed())) {
            Ok(Some(report)) => {
                caught_up.store(arrived, Ordering::SeqCst);
                Ok(CatchUp::Done(report))
            }
            // Nothing waits for the result, which may be an error.
            Ok(None) => {
                rescan("a call did not wait for the last changes".to_owned());
                Ok(CatchUp::Behind(1))
            }
            Err(error) => {
                rescan(error.to_string());
                Err(error)
            }
        }
    }
}

/// Returns the scope of a sync that indexes a batch of the watch.
fn scope_of(batch: WatchBatch) -> SyncScope {
    match batch {
        WatchBatch { rescan: None, files, gone, .. } => SyncScope::Only { files, paths: gone },
        _ => SyncScope::All,
    }
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}
