//! Parallel map over a slice on all cores, with scoped threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of running calls of [`map`].
static ACTIVE_CALLERS: AtomicUsize = AtomicUsize::new(0);

/// Counts a call as active until it is dropped.
struct ActiveCaller;

impl Drop for ActiveCaller {
    fn drop(&mut self) {
        ACTIVE_CALLERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the number of cores. The system is asked once.
pub fn core_count() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Applies `work` to every item, in parallel if there are enough items, and returns the results in order. Concurrent
/// calls share the cores.
///
/// Each thread takes a run of at least `least` items, and passes the state that `start` returns to each `work`.
pub fn map<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    least: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
) -> Vec<R> {
    let others = ACTIVE_CALLERS.fetch_add(1, Ordering::Relaxed);
    let _shares = ActiveCaller;
    let idle = core_count().saturating_sub(others).max(1);
    let share = items.len().div_ceil(idle).max(least).max(1);
    let run = |items: &'t [T]| {
        let mut state = start();
        items.iter().map(|item| work(&mut state, item)).collect::<Vec<R>>()
    };
    let run = &run;
    std::thread::scope(|scope| {
        let mut shares = items.chunks(share);
        let own = shares.next();
        let others: Vec<_> = shares.map(|items| scope.spawn(move || run(items))).collect();
        let mut results = own.map_or_else(Vec::new, run);
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}
