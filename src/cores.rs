//! Owns the sharing of independent work among the machine's cores.

/// Does `work` on every item, on all cores where there are enough items, and gives the results in order.
///
/// Each core does a run of at least `least` items, and `work` gets what `start` makes once for each run.
pub fn each<'t, T: Sync, S, R: Send>(
    items: &'t [T],
    least: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'t T) -> R + Sync,
) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(least).max(1);
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
