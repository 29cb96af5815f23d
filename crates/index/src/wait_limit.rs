//! How long a call waits for the thread that writes the index.

use std::time::{Duration, Instant};

/// How often a caller that does not wait for a large batch checks whether there is one.
const LARGE_BATCH_CHECK: Duration = Duration::from_millis(5);
/// The longest single wait of a caller that waits as long as it takes.
const LONG_WAIT: Duration = Duration::from_secs(3600);

/// How long a caller waits until the index is up to date. Work for which it does not wait goes on in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimit {
    limit: Option<Duration>,
    /// Whether it waits for a large batch, which takes seconds.
    pub(super) waits_for_large: bool,
}

impl WaitLimit {
    /// As long as it takes.
    pub const ENDLESS: Self = Self { limit: None, waits_for_large: true };

    /// No longer than a limit.
    pub fn within(limit: Duration) -> Self {
        Self { limit: Some(limit), waits_for_large: true }
    }

    /// The same, but not while a large batch is indexed, which takes seconds.
    pub fn unless_large(self) -> Self {
        Self { waits_for_large: false, ..self }
    }

    /// Returns what is left of it after some time.
    pub(super) fn after(self, waited: Duration) -> Self {
        Self { limit: self.limit.map(|limit| limit.saturating_sub(waited)), ..self }
    }

    /// Calls `wait` with the time that it may take, until it gives a result. Returns `None` when the time limit ends before.
    pub(super) fn wait_for<T>(
        self,
        is_large: impl Fn() -> bool,
        mut wait: impl FnMut(Duration) -> Option<T>,
    ) -> Option<T> {
        let begin = Instant::now();
        let step = if self.waits_for_large { LONG_WAIT } else { LARGE_BATCH_CHECK };
        loop {
            let left = self.after(begin.elapsed()).limit.unwrap_or(step);
            if let Some(done) = wait(left.min(step)) {
                return Some(done);
            }
            if left.is_zero() || (!self.waits_for_large && is_large()) {
                return None;
            }
        }
    }
}
