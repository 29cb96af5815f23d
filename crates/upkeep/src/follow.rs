//! Follows the files in the background: keeps the index up to date, and runs maintenance when it is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform;
use sidenote_change::Changes;
use sidenote_config::AutomaticRepair;
use sidenote_index::attachments::Extent;
pub use sidenote_index::follow::Followed;
use sidenote_index::silent;
use sidenote_memories::Maintenance;
use sidenote_memories::maintain::{MaintainRequest, RETRY};
use sidenote_open_vault::Core;
use sidenote_open_vault::open::prepare_vectors;
use sidenote_open_vault::sync::IndexSync;
use sidenote_proposals::Proposals;
use sidenote_repair::{Certainty, RepairRequest, Repairs};
use sidenote_vault::authority::authority_of;
use sidenote_vectors::Vectors;

use crate::Upkeep;

/// The interval at which a process that only reads tries to become the writer of the index.
const TURN: Duration = Duration::from_secs(1);

/// The interval at which the process checks whether maintenance is due.
const MAINTENANCE_CHECK: Duration = Duration::from_secs(60);

/// Follows the files until it is dropped.
#[derive(Debug)]
pub struct Follower {
    pub(crate) core: Core,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) threads: Vec<JoinHandle<()>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        // Changes that were not reported yet are left to the scan of the next command.
        self.core.index.follower().stop_watching();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("the thread that follows the files panicked");
            }
        }
    }
}

impl Upkeep<'_> {
    /// Starts a thread that reads attachments as they appear, until `stop` is set.
    ///
    /// # Errors
    /// `Internal` if no thread can be started.
    fn read_attachments(&self, stop: &Arc<AtomicBool>) -> Result<JoinHandle<()>> {
        let (core, stopped) = (self.core.clone(), Arc::clone(stop));
        let read = move || {
            platform::lower_thread_priority();
            while !stopped.load(Ordering::Relaxed) {
                std::thread::park_timeout(TURN);
                if let Err(error) = core.index.read_attachments(
                    Extent::Background,
                    &|| stopped.load(Ordering::Relaxed),
                    &silent(),
                ) {
                    tracing::debug!("attachments are read later: {error}");
                }
            }
        };
        std::thread::Builder::new().name("sidenote-read".to_owned()).spawn(read).map_err(unstarted)
    }

    /// Starts a thread that keeps the index up to date, and that becomes the writer if the process that writes the
    /// index ends. `told` is called after every change.
    ///
    /// # Errors
    /// `Internal` if no thread can be started.
    pub fn follow(&self, told: impl FnMut(Followed) + Send + 'static) -> Result<Follower> {
        prepare_vectors(&self.core.index, Vectors::prepare_searches);
        if authority_of(&self.core.vault).is_shared() {
            // A copy changes only by catching up.
            let stop = Arc::new(AtomicBool::new(false));
            let threads = vec![self.read_attachments(&stop)?];
            return Ok(Follower { core: self.core.clone(), stop, threads });
        }
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
                        // The vault may be unavailable for a long time; this is logged once.
                        if error.to_string() != said {
                            tracing::warn!("the files cannot be followed at the moment: {error}");
                            said = error.to_string();
                        }
                    }
                    if !stopped.load(Ordering::Relaxed) {
                        // A process that only reads tries to become the writer from time to time.
                        std::thread::park_timeout(TURN);
                    }
                }
                core.index.follower().set_requested(false);
            })
            .map_err(unstarted)?;
        let mut follower =
            Follower { core: self.core.clone(), stop: Arc::clone(&stop), threads: vec![thread] };
        follower.threads.push(self.read_attachments(&stop)?);
        // What the files need is done with all of them in view.
        if self.core.vault.is_fenced() {
            return Ok(follower);
        }
        let core = self.core.clone();
        let tending = std::thread::Builder::new()
            .name("sidenote-tend".to_owned())
            .spawn(move || {
                // A due backup is created at the start, because many servers do not run for long.
                let mut pause = if core.config.backup.auto { TURN } else { MAINTENANCE_CHECK };
                while !stop.load(Ordering::Relaxed) {
                    std::thread::park_timeout(pause);
                    Changes::of(&core).end_quiet_sessions(core.clock.now());
                    if !stop.load(Ordering::Relaxed) && IndexSync::of(&core).is_following() {
                        pause = MAINTENANCE_CHECK;
                        if let Err(error) = Upkeep::of(&core).run_due_maintenance() {
                            tracing::warn!("maintenance is postponed: {error}");
                        }
                        // An index that cannot be read is reported by the next request.
                        if let Ok(snapshot) = core.index.snapshot() {
                            snapshot.bm25.release_unused();
                        }
                        core.state.parsed_notes.release_unused();
                        // Calls freed memory since, and maintenance that of all notes.
                        platform::release_free_memory();
                    }
                }
            })
            .map_err(unstarted)?;
        follower.threads.push(tending);
        if self.core.config.repair.auto == AutomaticRepair::Certain && !self.core.vault.is_read_only() {
            follower.threads.push(self.repair_links_meanwhile(&follower.stop)?);
        }
        Ok(follower)
    }

    /// Starts a thread that repairs links after files moved without sidenote, and once at its start.
    fn repair_links_meanwhile(&self, stop: &Arc<AtomicBool>) -> Result<JoinHandle<()>> {
        let (core, stop) = (self.core.clone(), Arc::clone(stop));
        let request =
            RepairRequest { apply: Some(Certainty::Certain), is_automatic: true, ..RepairRequest::default() };
        let repair = move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(TURN);
                let is_due = &core.state.repair_is_due;
                let is_ready = !stop.load(Ordering::Relaxed) && IndexSync::of(&core).is_following();
                if !is_ready || !is_due.swap(false, Ordering::Relaxed) {
                    continue;
                }
                match Repairs::of(&core).repair(&request) {
                    // Git is in the middle of something, or another process writes.
                    Ok(reply) if reply.waits_for.is_some() => is_due.store(true, Ordering::Relaxed),
                    Ok(reply) => {
                        reply.change.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
                        if reply.repaired > 0 {
                            tracing::info!("{} links were repaired", reply.repaired);
                        }
                    }
                    Err(error) => {
                        tracing::warn!("links are not repaired now: {error}");
                        is_due.store(error.kind() == ErrorKind::Conflict, Ordering::Relaxed);
                    }
                }
            }
        };
        std::thread::Builder::new().name("sidenote-repair".to_owned()).spawn(repair).map_err(unstarted)
    }

    /// Runs the automatic tasks of a long-running process: maintenance every six hours, and backups and a daily
    /// consolidation if the settings enable them.
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
        let last_maintenance_at = self.core.state.last_maintenance_at.load(Ordering::Relaxed);
        let now = self.core.clock.now().millis();
        // A run without changes was not recorded.
        let last = last
            .map(Timestamp::millis)
            .filter(|last| *last <= now)
            .map_or(last_maintenance_at, |last| last.max(last_maintenance_at));
        if !(0..Maintenance::of(self.core).interval()).contains(&(now - last)) {
            Maintenance::of(self.core)
                .maintain(MaintainRequest { quiet: true, ..MaintainRequest::default() })?;
            self.core.state.last_maintenance_at.store(now, Ordering::Relaxed);
        }
        // A failed backup is not tried again immediately.
        if !(0..RETRY).contains(&(now - self.core.state.last_backup_check.swap(now, Ordering::Relaxed))) {
            self.backup_if_due()?;
            if let Some(found) = Proposals::of(self.core).consolidate_if_due()? {
                found.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
                tracing::info!("{} proposals are new, {} wait", found.proposals.len(), found.waiting);
            }
        }
        Ok(())
    }
}

fn unstarted(error: std::io::Error) -> Error {
    Error::internal("cannot start a thread that follows the files").with_source(error)
}
