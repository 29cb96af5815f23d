//! The queue of the threads of this process that want the write lock of a vault: first come, first served. Without it,
//! each thread would ask for the lock file now and then, and one that asks at the right moment would overtake the
//! others. A process that passes the lock from thread to thread leaves it free for a moment now and then, so that other
//! processes get it, too.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest time for which the threads of this process pass the lock on without a pause.
const MAX_RUN: Duration = Duration::from_secs(1);
/// The pause after that. It is longer than the interval at which other processes ask for the lock file.
const PAUSE: Duration = Duration::from_millis(120);

/// The queue of one vault. Clones are the same queue.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteQueue(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    tickets: Mutex<Tickets>,
    /// Somebody left the queue.
    left: Condvar,
}

#[derive(Debug, Default)]
struct Tickets {
    /// The tickets of those who wait, after that of the one who is served.
    queue: VecDeque<u64>,
    /// The number of tickets that were given out.
    given: u64,
    /// When the first thread of those that pass the lock on was served.
    run_began: Option<Instant>,
}

impl WriteQueue {
    /// Returns the number of those who are served or wait.
    pub(super) fn len(&self) -> usize {
        self.0.tickets().queue.len()
    }

    /// Waits until everybody who came before has left, at most for `timeout`. Returns `None` if that does not suffice.
    pub(super) fn wait(&self, timeout: Duration) -> Option<Served> {
        let mut tickets = self.0.tickets();
        tickets.given += 1;
        let ticket = tickets.given;
        if tickets.queue.is_empty() {
            tickets.run_began = Some(Instant::now());
        }
        tickets.queue.push_back(ticket);
        // It leaves the queue in any case.
        let place = Served { queue: self.clone(), ticket };
        let is_waiting = |tickets: &mut Tickets| tickets.queue.front() != Some(&ticket);
        let waited = self.0.left.wait_timeout_while(tickets, timeout, is_waiting);
        let (mut tickets, result) = waited.unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() {
            // The place is left when the tickets are not locked.
            drop(tickets);
            return None;
        }
        let is_long = tickets.run_began.is_some_and(|began| began.elapsed() >= MAX_RUN);
        if is_long {
            tickets.run_began = Some(Instant::now() + PAUSE);
        }
        drop(tickets);
        if is_long {
            std::thread::sleep(PAUSE);
        }
        Some(place)
    }
}

impl Waiting {
    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first place of a queue. Dropping it serves the next one.
#[derive(Debug)]
pub(super) struct Served {
    queue: WriteQueue,
    ticket: u64,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.queue.0.tickets().queue.retain(|ticket| *ticket != self.ticket);
        self.queue.0.left.notify_all();
    }
}
