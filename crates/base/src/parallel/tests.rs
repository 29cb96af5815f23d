//! Tests the parallel map: the order of results, the state of each thread, and panics.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::parallel;

#[test]
fn results_keep_the_order_of_the_items() {
    for count in [0, 1, 2, 7, 8, 9, 63, 64, 65, 1000] {
        let items: Vec<usize> = (0..count).collect();
        for least in [0, 1, 3, 16, 5000] {
            let doubled = parallel::map(&items, least, || (), |(), item| item * 2);
            let expected: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(doubled, expected, "{count} {least}");
            let briefly = parallel::map_briefly(&items, least, || (), |(), item| item * 2);
            assert_eq!(briefly, expected, "{count} {least}, on the threads of the pool");
            let sized =
                parallel::map_largest_first(&items, |item| *item as u64 % 5, || (), |(), item| item * 2);
            assert_eq!(sized, expected, "{count}, the largest first");
            let waiting = parallel::map_waiting(&items, (least, 8), || (), |(), item| item * 2);
            assert_eq!(waiting, expected, "{count} {least}, on more threads than cores");
        }
    }
}

#[test]
fn the_largest_items_are_taken_first() {
    let items: Vec<usize> = (0..100).collect();
    let is_large = |item: &usize| item % 10 == 7;
    let begun = AtomicUsize::new(0);
    let work = |(): &mut (), item: &usize| begun.fetch_add(usize::from(is_large(item)), Ordering::Relaxed);
    let size = |item: &usize| if is_large(item) { 1000 } else { 1 };
    let before = parallel::map_largest_first(&items, size, || (), work);
    // Each thread can be interrupted after it took a large item and before it begins it.
    let small = items.iter().zip(before).filter(|(item, _)| !is_large(item));
    assert!(small.into_iter().all(|(_, begun)| begun + parallel::core_count() >= 10));
}

#[test]
fn each_thread_keeps_one_state_over_all_its_runs() {
    let states = AtomicUsize::new(0);
    let items = vec![(); 500];
    let start = || {
        states.fetch_add(1, Ordering::Relaxed);
        0
    };
    let counts = parallel::map(&items, 1, start, |seen: &mut usize, ()| {
        *seen += 1;
        *seen
    });
    let states = states.load(Ordering::Relaxed);
    assert!((1..=parallel::core_count()).contains(&states), "{states}");
    // The last item of each thread has counted all items of it.
    let most = counts.iter().max().copied().unwrap_or(0);
    assert!(most * states >= items.len(), "{most} {states}");
}

/// Each item waits until all are begun, which on fewer threads would never be. Other tests may have some of the threads, so
/// it is tried again then.
#[test]
fn work_that_waits_has_more_threads_than_cores() {
    let items = [(); parallel::WAITING_THREADS];
    let met = (0..1000).any(|_| {
        let begun = AtomicUsize::new(0);
        let wait = |(): &mut (), (): &()| {
            begun.fetch_add(1, Ordering::Relaxed);
            (0..100_000).any(|_| {
                std::thread::yield_now();
                begun.load(Ordering::Relaxed) == items.len()
            })
        };
        let all = (1, parallel::WAITING_THREADS);
        parallel::map_waiting(&items, all, || (), wait).into_iter().all(|met| met)
    });
    assert!(met, "the items were never begun at the same time");
}

#[test]
fn a_panic_of_a_thread_is_passed_on() {
    let items: Vec<usize> = (0..100).collect();
    let panicked = std::panic::catch_unwind(|| {
        parallel::map(&items, 1, || (), |(), item| assert!(*item != 77, "item 77"))
    });
    assert!(panicked.is_err());
    let panicked = std::panic::catch_unwind(|| {
        parallel::map_briefly(&items, 1, || (), |(), item| assert!(*item != 77, "item 77"))
    });
    assert!(panicked.is_err());
    // The cores are free again.
    assert_eq!(parallel::map_briefly(&items, 1, || (), |(), item| *item).len(), 100);
    assert_eq!(parallel::map(&items, 1, || (), |(), item| *item).len(), 100);
}

#[test]
fn a_call_waits_for_no_work_of_another_one() {
    let items: Vec<usize> = (0..64).collect();
    let (has_begun, may_end) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            parallel::map_briefly(
                &items,
                1,
                || (),
                |(), _| {
                    has_begun.store(true, Ordering::Relaxed);
                    while !may_end.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                },
            )
        });
        while !has_begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let doubled = parallel::map_briefly(&items, 1, || (), |(), item| item * 2);
        may_end.store(true, Ordering::Relaxed);
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
    });
}
