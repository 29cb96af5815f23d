//! Follows the files in the background: the index stays in step, and maintenance runs when it is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
pub use crate::index::follow::Followed;
use crate::store::core::Core;
use crate::store::memory::Maintenance;
use crate::store::memory::maintain::{MaintainRequest, RETRY};
use crate::store::sync::IndexSync;
use crate::store::upkeep::Upkeep;

/// How often a process that does not keep the index looks whether it may.
const TURN: Duration = Duration::from_secs(1);

/// How often the process that follows the files looks whether maintenance is due.
const MAINTENANCE_CHECK: Duration = Duration::from_secs(60);

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
        // Changes that are not reported yet are left to the scan of the next command.
        self.core.index.follower().stop_watching();
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
    /// `Internal` if no thread can be started.
    pub fn follow(&self, told: impl FnMut(Followed) + Send + 'static) -> Result<Follower> {
        self.core.index.follower().set_requested(true);
        let stop = Arc::new(AtomicBool::new(false));
        let (core, stopped) = (self.core.clone(), Arc::clone(&stop));
        let mut told = told;
        let thread = std::thread::Builder::new()
            .name("sidenote-follow".to_owned())
            .spawn(move || {
                let mut said = String::new();
                while !stopped.load(Ordering::Relaxed) {
                    let woken = || IndexSync::of(&core).note_moves();
                    if let Err(error) = core.index.follower().follow(&stopped, woken, &mut told) {
                        // The vault may be away for long, and one sentence about that is enough.
                        if error.to_string() != said {
                            tracing::warn!("the files are not followed for the moment: {error}");
                            said = error.to_string();
                        }
                    }
                    if !stopped.load(Ordering::Relaxed) {
                        // A process that reads looks now and then whether it may write.
                        std::thread::park_timeout(TURN);
                    }
                }
                core.index.follower().set_requested(false);
            })
            .map_err(unstarted)?;
        let mut follower =
            Follower { core: self.core.clone(), stop: Arc::clone(&stop), threads: vec![thread] };
        let core = self.core.clone();
        let tending = std::thread::Builder::new()
            .name("sidenote-tend".to_owned())
            .spawn(move || {
                // A backup that is due is made at the start: many servers do not run for long.
                let mut pause = if core.config.backup.auto { TURN } else { MAINTENANCE_CHECK };
                while !stop.load(Ordering::Relaxed) {
                    std::thread::park_timeout(pause);
                    if !stop.load(Ordering::Relaxed) && IndexSync::of(&core).is_following() {
                        pause = MAINTENANCE_CHECK;
                        if let Err(error) = Upkeep::of(&core).run_due_maintenance() {
                            tracing::warn!("maintenance is put off: {error}");
                        }
                    }
                }
            })
            .map_err(unstarted)?;
        follower.threads.push(tending);
        Ok(follower)
    }

    /// Does what a process that stays does by itself: maintenance each six hours, and backups where settings ask for them.
    ///
    /// # Errors
    /// `Conflict` if another process writes the vault or makes a backup; `Io` if the journal, the notes or the backup
    /// cannot be written; `Invalid` if the backup folder lies among the notes.
    pub fn run_due_maintenance(&self) -> Result<()> {
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

fn unstarted(error: std::io::Error) -> Error {
    Error::internal("cannot start a thread that follows the files").with_source(error)
}
