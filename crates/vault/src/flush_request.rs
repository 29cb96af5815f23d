//! Requests of processes that only read the index to the process that follows the files: index every change up to now.
//!
//! A request is a marker file in the watched sidecar. Events arrive in order, so the following process has seen every earlier
//! change when it sees the marker; once these are indexed, it renames the marker, which is the answer.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use sidenote_base::safe_open;

/// How the name of a marker begins that waits for an answer.
const REQUEST: &str = "request-";
/// How the name of a marker begins that was answered.
const ANSWER: &str = "answer-";
/// How the name of the file begins by which a process says that it follows the files.
const FOLLOWING: &str = "following-";
/// The interval at which a process looks for the answer. An answer takes some milliseconds.
const ANSWER_INTERVAL: Duration = Duration::from_millis(1);

/// A request that the following process has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushRequest(String);

impl FlushRequest {
    /// Returns the request that a marker file with this name is; `None` for any other file.
    pub(super) fn of_file(name: &str) -> Option<Self> {
        name.strip_prefix(REQUEST).map(|rest| Self(rest.to_owned()))
    }

    /// Tells the process that asked that the index has every change that was made before the request.
    pub(super) fn answer(&self, folder: &Path) {
        let path = |kind| folder.join(format!("{kind}{}", self.0));
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        if let Err(error) = fs::rename(path(REQUEST), path(ANSWER)) {
            // Without an answer, the process that asked compares the files itself.
            tracing::debug!(%error, "a request to follow the files could not be answered");
        }
    }
}

/// The sign of a process that it follows the files and answers requests. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct FollowingSign(PathBuf);

impl FollowingSign {
    /// Puts the sign into the folder of the markers.
    pub(super) fn put(folder: &Path) -> io::Result<Self> {
        let path = sign(folder, std::process::id());
        safe_open::create(&path)?;
        Ok(Self(path))
    }

    /// Returns whether a file of this name is the sign of this process.
    pub(super) fn is_own(name: &str) -> bool {
        name.strip_prefix(FOLLOWING).is_some_and(|pid| pid == std::process::id().to_string())
    }
}

impl Drop for FollowingSign {
    fn drop(&mut self) {
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(%error, "the sign of a process that follows the files could not be removed");
        }
    }
}

fn sign(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{FOLLOWING}{pid}"))
}

/// What a process that only reads the index asks.
#[derive(Debug)]
pub struct FlushRequester {
    /// What tells the markers of this process from those of others; in containers two processes can have one number.
    id: String,
    /// The number of the last marker; 0 before the first one. Held while a request waits for its answer.
    last: Mutex<u64>,
    /// The number of callers that have come.
    arrivals: AtomicU64,
    /// The callers that have their answer: those with at most this number.
    answered: AtomicU64,
}

impl Default for FlushRequester {
    fn default() -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        Self { id, last: Mutex::default(), arrivals: AtomicU64::default(), answered: AtomicU64::default() }
    }
}

impl FlushRequester {
    /// Waits until the process `follower` has indexed every change of the files up to now. Returns `false` if that process does
    /// not follow the files, or does not answer within `wait_limit`. Callers that come while one waits share the next request.
    pub fn request(&self, folder: &Path, follower: u32, wait_limit: Duration) -> bool {
        if !sign(folder, follower).exists() {
            return false;
        }
        let end = Instant::now() + wait_limit;
        let arrival = self.arrivals.fetch_add(1, Ordering::SeqCst) + 1;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if self.answered.load(Ordering::SeqCst) >= arrival {
            return true;
        }
        let arrived = self.arrivals.load(Ordering::SeqCst);
        let Some(number) = self.put_marker(folder, *last) else { return false };
        *last = number;
        let answer = folder.join(self.marker(ANSWER, number));
        while !answer.exists() {
            if Instant::now() >= end {
                tracing::debug!(
                    "process {follower} does not answer in time; the files are compared with the index"
                );
                return false;
            }
            std::thread::sleep(ANSWER_INTERVAL);
        }
        self.answered.store(arrived, Ordering::SeqCst);
        true
    }

    /// Removes the marker of this process.
    pub fn remove_marker(&self, folder: &Path) {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        let remove = |kind: &&str| fs::remove_file(folder.join(self.marker(kind, last))).is_ok();
        if last > 0 && ![ANSWER, REQUEST].iter().any(remove) {
            tracing::debug!("the marker of a request could not be removed");
        }
    }

    /// Makes the marker of the last request, wherever it is, that of the next one. Returns its number; `None` if no file can
    /// be written.
    ///
    /// It is renamed, because a new file each time would be slow where a file system, such as ext4, does not reuse the numbers
    /// of removed files for some seconds.
    fn put_marker(&self, folder: &Path, last: u64) -> Option<u64> {
        let number = last + 1;
        let next = folder.join(self.marker(REQUEST, number));
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        let rename = |kind: &&str| fs::rename(folder.join(self.marker(kind, last)), &next).is_ok();
        if last == 0 || ![ANSWER, REQUEST].iter().any(rename) {
            // The first marker, or another process took the last one for that of a process that was killed.
            safe_open::create(&next).ok()?;
        }
        Some(number)
    }

    fn marker(&self, kind: &str, number: u64) -> String {
        format!("{kind}{}-{number}", self.id)
    }
}
