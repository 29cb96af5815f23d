//! Owns the sharing of independent work among the machine's cores.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many callers share their work this moment.
static SHARING: AtomicUsize = AtomicUsize::new(0);

/// Counts a caller until it is dropped.
struct ActiveCaller;

impl Drop for ActiveCaller {
    fn drop(&mut self) {
        SHARING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Gives the number of cores. It is asked for once: to find it out, files of the system are read.
pub fn core_count() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Does `work` on every item, on all cores where there are enough items, and gives the results in order. Where others
/// share theirs already there are fewer idle cores, and more threads would only stand in each other's way.
///
/// Each core does a run of at least `least` items, and `work` gets what `start` makes once for each run.
pub fn map<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    least: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
) -> Vec<R> {
    let others = SHARING.fetch_add(1, Ordering::Relaxed);
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
