//! Following the commits of other servers. A notification of the database brings the copy of an open vault up to date
//! at once; if none arrives, the database is polled at intervals.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use sidenote_base::error::{ErrorKind, Result};
use sidenote_store::Store;
use uuid::Uuid;

use crate::authority::SharedVault;
use crate::host::Host;
use crate::postgres::listener::{Commit, Listener};

/// How long one call waits for a notification.
const WAIT_LIMIT: Duration = Duration::from_millis(200);
/// The interval at which a connection for notifications is tried to be made.
const RETRY: Duration = Duration::from_secs(2);
/// The interval at which all open vaults are compared with the database, with or without notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// How a server learns of commits. One thread has it.
#[derive(Debug, Default)]
pub struct Follower {
    listener: Option<Listener>,
    /// When a connection for notifications was last tried to be made.
    tried: Option<Instant>,
    /// When all open vaults were last compared with the database.
    polled: Option<Instant>,
    /// Whether the copies that an earlier process left were compared with the database.
    is_cache_checked: bool,
    /// The newest notified generation of each vault, until a copy has it. A vault that is just being opened or closed
    /// is looked at in a later call.
    heard: HashMap<Uuid, i64>,
    /// The vaults that an operator has changed, until that was looked after.
    changed: BTreeSet<Uuid>,
}

impl Follower {
    fn remember(&mut self, commits: Vec<Commit>) {
        for commit in commits {
            let Some(generation) = commit.generation else {
                self.changed.insert(commit.vault);
                continue;
            };
            let newest = self.heard.entry(commit.vault).or_default();
            *newest = generation.max(*newest);
        }
    }
}

impl Host {
    /// Waits a moment for commits of other servers, and brings the copies of open vaults up to them, so that their
    /// subscribers are told. It is called again and again.
    pub fn follow(&self, follower: &mut Follower) {
        let commits = self.commits_since(follower);
        let with_files = commits.iter().filter(|commit| commit.generation.is_some());
        let heard: BTreeSet<Uuid> = with_files.map(|commit| commit.vault).collect();
        let has_changed = commits.iter().any(|commit| commit.generation.is_none());
        follower.remember(commits);
        let is_due = follower.polled.is_none_or(|at| at.elapsed() >= POLL_INTERVAL);
        if is_due && !self.is_away() {
            follower.polled = Some(Instant::now());
        }
        if has_changed || is_due {
            self.look_after_changed(follower);
        }
        let opened = self.opened_vaults();
        if !follower.is_cache_checked && !self.is_away() {
            follower.is_cache_checked =
                self.is_done("copies are not compared yet", self.begin_all_outdated_anew());
        }
        for vault in heard {
            if !opened.iter().any(|(shared, _)| shared.id() == vault) {
                self.is_done("a copy is not compared yet", self.begin_outdated_anew(vault));
            }
        }
        for (shared, store) in opened {
            // A notification from before the vault was opened is older than the copy, or brings it up to date now.
            let is_news = |news: &i64| *news > shared.generation();
            let news = follower.heard.remove(&shared.id()).filter(is_news);
            if news.is_some() || is_due && !self.is_away() {
                self.bring_up(&shared, &store);
            }
            // What could not be fetched yet is asked for again in a later call.
            if let Some(news) = news.filter(is_news) {
                follower.heard.insert(shared.id(), news);
            }
        }
    }

    /// Looks after the vaults that an operator has changed: at once, and again at intervals those that are still open.
    fn look_after_changed(&self, follower: &mut Follower) {
        follower.changed.retain(|id| match self.look_after(*id) {
            Ok(is_done) => !is_done,
            Err(error) => {
                self.log_failure(&format!("a vault that was changed is not looked after yet: {error}"));
                true
            }
        });
    }

    fn is_done(&self, what: &str, done: Result<()>) -> bool {
        if let Err(error) = &done {
            self.log_failure(&format!("{what}: {error}"));
        }
        done.is_ok()
    }

    /// Brings a copy up. An error is reported to the next caller, too.
    fn bring_up(&self, shared: &SharedVault, store: &Store) {
        if let Err(error) = store.index().refresh() {
            if error.kind() == ErrorKind::NotFound {
                // It was deleted, and is closed by the next request of any vault.
                return tracing::debug!("a vault is not brought up: {error}");
            }
            let copy = shared.root();
            self.log_failure(&format!("{} is not brought up to the database yet: {error}", copy.display()));
        }
    }

    /// Waits for notifications. Where there is no connection for them, one is made, and all vaults are compared at
    /// once, since no notification arrived until then.
    fn commits_since(&self, follower: &mut Follower) -> Vec<Commit> {
        if follower.listener.is_none() {
            if follower.tried.is_some_and(|at| at.elapsed() < RETRY) {
                std::thread::sleep(WAIT_LIMIT);
                return Vec::new();
            }
            follower.tried = Some(Instant::now());
            match self.listen() {
                Ok(listener) => {
                    follower.listener = Some(listener);
                    follower.polled = None;
                    return Vec::new();
                }
                Err(error) => {
                    tracing::debug!("commits of other servers are not heard of: {error}");
                    return Vec::new();
                }
            }
        }
        let heard = follower.listener.as_mut().map(|listener| listener.wait(WAIT_LIMIT));
        match heard {
            Some(Ok(heard)) => heard,
            Some(Err(error)) => {
                tracing::debug!("commits of other servers are not heard of: {error}");
                follower.listener = None;
                Vec::new()
            }
            None => Vec::new(),
        }
    }
}
