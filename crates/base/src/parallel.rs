//! Parallel map over a slice on all cores, with scoped threads or with those of a pool.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Error, ErrorKind};

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

/// The number of runs that each thread takes where all take equally long.
const RUNS: usize = 8;
/// The number of threads of the process for work that mostly waits.
pub const WAITING_THREADS: usize = 8;

/// Applies `work` to every item, in parallel if there are enough items, and returns the results in order. Concurrent
/// calls share the cores.
///
/// Each thread takes one run of at least `least` items after another, since some items take longer than others, and passes
/// the state that `start` returns to each `work`. The threads begin far apart: neighbours are often files of one folder, whose
/// lock two threads would wait for.
pub fn map<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    least: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
) -> Vec<R> {
    map_with(items, (least, 1), start, work, on_new_threads)
}

/// Maps like [`map`], for work that mostly waits for the disk: on `most` threads even if there are fewer cores, but all such
/// calls together on no more than [`WAITING_THREADS`] beyond the first of each.
pub fn map_waiting<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    (least, most): (usize, usize),
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
) -> Vec<R> {
    let threads = WaitingThreads::take(most);
    map_with(items, (least, threads.0.max(1)), start, work, on_new_threads)
}

/// The threads of [`map_waiting`] that are in use.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Threads of a call of [`map_waiting`], which are free again when it is dropped.
struct WaitingThreads(usize);

impl WaitingThreads {
    fn take(most: usize) -> Self {
        let free = |used: usize| WAITING_THREADS.saturating_sub(used).min(most);
        let before =
            WAITING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used + free(used)));
        Self(free(before.unwrap_or_else(|used| used)))
    }
}

impl Drop for WaitingThreads {
    fn drop(&mut self) {
        WAITING.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Takes runs on this thread and on as many new ones as the system can start.
fn on_new_threads<R: Send>(threads: usize, take_runs: &(dyn Fn() -> Done<R> + Sync)) -> Done<R> {
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, take_runs);
        let missing = |error: &std::io::Error| tracing::debug!("work has fewer threads: {error}");
        let others: Vec<_> = (1..threads).flat_map(|at| start(at).inspect_err(missing)).collect();
        let mut done = take_runs();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}

/// Runs `other` on a new thread while `own` runs on this one, and returns what both return. Where the system cannot start a
/// thread, `other` runs after `own`, so `own` must not wait for it.
pub fn join<A: Send, B>(other: impl FnOnce() -> A + Send, own: impl FnOnce() -> B) -> (A, B) {
    let waiting = Mutex::new(Some(other));
    let run = || {
        let other = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        other.expect("the work is taken by the thread, or without one by the caller")()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, run);
        let own = own();
        let other = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => {
                tracing::debug!("work has no thread of its own: {error}");
                run()
            }
        };
        (other, own)
    })
}

/// Starts `wanted` threads, at least one, each by a call of `start` with its number. Where the system starts fewer, those do the
/// work.
///
/// # Errors
/// The error of the first thread if it cannot be started.
pub fn start_some(wanted: usize, start: impl Fn(usize) -> std::io::Result<()>) -> std::io::Result<()> {
    start(0)?;
    if let Some(error) = (1..wanted).find_map(|at| start(at).err()) {
        tracing::debug!("work has fewer threads: {error}");
    }
    Ok(())
}

/// Returns the error about a thread that the system cannot start.
pub fn no_thread(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "the system cannot start a thread")
        .with_hint("end other programs, or raise the limit of processes, and try again")
        .with_source(error)
}

/// Maps like [`map`], for work that mostly takes less than a millisecond: the other threads are those of a pool, since a new
/// thread costs a tenth of that. One call uses the pool at a time, and others start threads: no call waits for the work of
/// another one.
pub fn map_briefly<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    least: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
) -> Vec<R> {
    let Some(_use) = PoolUse::begin() else { return map(items, least, start, work) };
    let Some(pool) = pool() else { return map(items, least, start, work) };
    map_with(items, (least, 1), start, work, |threads, take_runs| {
        let all = Mutex::new(Vec::new());
        let add = |done| all.lock().unwrap_or_else(PoisonError::into_inner).extend(done);
        pool.in_place_scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| add(take_runs()));
            }
            add(take_runs());
        });
        all.into_inner().unwrap_or_else(PoisonError::into_inner)
    })
}

/// Maps like [`map_briefly`], but begins the work in the order of the items.
pub fn map_in_order<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    // A thread takes the first item that is left, not the one that it was given.
    let take = |state: &mut S, _: &'t T| {
        let at = next.fetch_add(1, Ordering::Relaxed);
        Some((at, work(state, items.get(at)?)))
    };
    let mut done: Vec<(usize, R)> = map_briefly(items, 1, start, take).into_iter().flatten().collect();
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Maps like [`map_briefly`] where some items take much longer than others, in proportion to `size`: those are taken first, so
/// that no thread begins one of them when the others have nothing left to do.
pub fn map_largest_first<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    size: impl Fn(&T) -> u64,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
) -> Vec<R> {
    let mut order: Vec<(usize, &'t T)> = items.iter().enumerate().collect();
    order.sort_by_key(|(_, item)| Reverse(size(item)));
    let work = |state: &mut S, (at, item): &(usize, &'t T)| (*at, work(state, item));
    let mut done = map_in_order(&order, start, work);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Whether a call uses the pool.
static POOL_IS_USED: AtomicBool = AtomicBool::new(false);

/// The use of the pool by one call, until it is dropped.
struct PoolUse;

impl PoolUse {
    /// Begins the use, unless another call uses the pool.
    fn begin() -> Option<Self> {
        (!POOL_IS_USED.swap(true, Ordering::Acquire)).then_some(Self)
    }
}

impl Drop for PoolUse {
    fn drop(&mut self) {
        POOL_IS_USED.store(false, Ordering::Release);
    }
}

/// Returns the threads for brief work, one fewer than cores; `None` if the system cannot start them.
fn pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let threads = core_count().saturating_sub(1).max(1);
    let build = || {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let built = builder.thread_name(|at| format!("sidenote-brief-{at}")).build();
        built.inspect_err(|error| tracing::debug!("brief work uses new threads: {error}")).ok()
    };
    POOL.get_or_init(build).as_ref()
}

/// The results of some runs, each with its index.
type Done<R> = Vec<(usize, Vec<R>)>;

/// Maps with the threads that `on_threads` starts: it calls the function that takes runs on this many threads. Each has
/// `least` items or more, and `threads` are used even if there are fewer cores.
fn map_with<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    (least, threads): (usize, usize),
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
    on_threads: impl FnOnce(usize, &(dyn Fn() -> Done<R> + Sync)) -> Done<R>,
) -> Vec<R> {
    let others = ACTIVE_CALLERS.fetch_add(1, Ordering::Relaxed);
    let _shares = ActiveCaller;
    let idle = core_count().saturating_sub(others).max(threads);
    let threads = idle.min(items.len().div_ceil(least.max(1))).max(1);
    if threads == 1 {
        let mut state = start();
        return items.iter().map(|item| work(&mut state, item)).collect();
    }
    let runs: Vec<&'t [T]> = items.chunks(items.len().div_ceil(threads * RUNS).max(least).max(1)).collect();
    let next = AtomicUsize::new(0);
    let distance = runs.len().div_ceil(threads);
    let take_runs = || {
        let mut state = start();
        let mut done: Done<R> = Vec::new();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= threads * distance {
                return done;
            }
            let at = turn % threads * distance + turn / threads;
            let Some(run) = runs.get(at) else { continue };
            done.push((at, run.iter().map(|item| work(&mut state, item)).collect()));
        }
    };
    let mut done = on_threads(threads, &take_runs);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().flat_map(|(_, results)| results).collect()
}
