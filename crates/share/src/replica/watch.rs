//! Keeping a folder equal to a vault all the time: the folder is watched, and the service is asked at intervals.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_vault::watch::Watcher;
use sidenote_vault::write_lock::local_folder;

use crate::replica::{LeftOutFile, Progress, Replica, SyncReply};

/// The interval at which the service is asked what changed. The question costs it one short query.
pub const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The longest interval at which a service is asked that cannot be reached.
const MAX_INTERVAL: Duration = Duration::from_secs(30);
/// The interval at which the whole folder is looked at, whatever the system has told.
const LOOK_INTERVAL: Duration = Duration::from_secs(300);
/// How long the wait for changes lasts before it is seen whether it should end.
const SLICE: Duration = Duration::from_millis(200);

/// What happened while a folder was kept equal to a vault.
#[derive(Debug)]
pub enum SyncEvent<'a> {
    /// A synchronisation changed one of the sides, or left out files. Files that were told as left out before are not listed.
    Synchronised(&'a SyncReply),
    /// The service cannot be reached, or the folder not be read. It is tried again.
    Lost(&'a Error),
    /// It can be reached again.
    Found,
}

impl Replica {
    /// Makes folder and vault equal whenever one of them changes, until `stop` is set. `report` gets every event.
    ///
    /// # Errors
    /// `Invalid` if the service refuses the token or a right, or the first synchronisation needs a choice; `NotFound` if it
    /// has no such vault; `Internal` if the folder cannot be watched. A service that cannot be reached is no error.
    pub fn watch(
        &mut self,
        stop: &AtomicBool,
        progress: &Progress<'_>,
        report: &mut dyn FnMut(SyncEvent<'_>),
    ) -> Result<()> {
        let watcher = Watcher::start(self.folder.vault(), &local_folder(self.folder.vault()))?;
        let mut is_lost = false;
        let mut interval = POLL_INTERVAL;
        let mut left_out: HashSet<LeftOutFile> = HashSet::new();
        let mut looked = Instant::now();
        let mut is_due = true;
        while !stop.load(Ordering::Relaxed) {
            match self.follow(is_due, stop, progress) {
                Ok(reply) => {
                    if std::mem::take(&mut is_lost) {
                        report(SyncEvent::Found);
                    }
                    interval = POLL_INTERVAL;
                    is_due = reply.as_ref().is_some_and(|reply| reply.unfinished);
                    if let Some(reply) = reply {
                        if reply.needs_choice {
                            report(SyncEvent::Synchronised(&reply));
                            return Ok(());
                        }
                        // A file that is left out is reported once for each reason, not at every change.
                        let all = reply.left_out.clone();
                        let mut news = reply;
                        news.left_out.retain(|left| !left_out.contains(left));
                        if !news.is_quiet() || !news.left_out.is_empty() {
                            report(SyncEvent::Synchronised(&news));
                        }
                        left_out = all.into_iter().collect();
                    }
                }
                Err(error) if is_temporary(&error) => {
                    if !std::mem::replace(&mut is_lost, true) {
                        report(SyncEvent::Lost(&error));
                    } else {
                        tracing::debug!("{error}");
                        interval = (interval * 2).min(MAX_INTERVAL);
                    }
                    is_due = true;
                }
                Err(error) => return Err(error),
            }
            let has_changed = wait(&watcher, interval, is_lost, stop);
            if looked.elapsed() >= LOOK_INTERVAL {
                looked = Instant::now();
                is_due = true;
            }
            is_due |= has_changed;
        }
        Ok(())
    }

    /// Synchronises if the folder may have changed, or if the vault has. Returns `None` if neither has.
    fn follow(
        &mut self,
        is_due: bool,
        stop: &AtomicBool,
        progress: &Progress<'_>,
    ) -> Result<Option<SyncReply>> {
        if is_due {
            return self.synchronise(stop, progress).map(Some);
        }
        let changes = self.ask()?;
        if Some(&changes.head.position) == self.state.position.as_ref() {
            return Ok(None);
        }
        self.synchronise_from(Some(changes), stop, progress).map(Some)
    }
}

/// Says whether an error may be gone when it is tried again: the network, the disk, or another process.
fn is_temporary(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Conflict | ErrorKind::Corrupt | ErrorKind::Quota)
}

/// Waits for an interval, or until the folder changes, unless the service is away. Returns whether the folder has changed.
fn wait(watcher: &Watcher, interval: Duration, is_lost: bool, stop: &AtomicBool) -> bool {
    let end = Instant::now() + interval;
    let mut has_changed = false;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        watcher.wait(left.min(SLICE));
        while watcher.next(usize::MAX).0.is_some() {
            has_changed = true;
        }
        if has_changed && !is_lost {
            break;
        }
    }
    has_changed
}
