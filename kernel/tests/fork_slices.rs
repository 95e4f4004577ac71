//! `for_each`, `map` and `reduce` over slices and ranges: each item is visited once, results keep their order,
//! and the first failure wins.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use proptest::prelude::*;
use tools::{on_each, runtime, watch};
use weald_kernel::{
    Runtime,
    fork::{self, Grain},
    spawn,
};

fn spawn_in<R: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> R + Send + 'static) -> R {
    runtime.block_on(async { spawn(async move { f() }).await.unwrap() })
}

#[test]
fn every_item_is_visited_once() {
    on_each(|runtime| {
        spawn_in(runtime, || {
            let mut items = vec![0_u32; 10_000];
            fork::for_each(&mut items, |item| *item += 1);
            assert!(items.iter().all(|item| *item == 1));
            let visits: Vec<AtomicUsize> = (0..10_000).map(|_| AtomicUsize::new(0)).collect();
            fork::for_each(0..10_000_usize, |i| {
                visits[i].fetch_add(1, Ordering::Relaxed);
            });
            fork::for_each(&visits, |visit| {
                assert_eq!(visit.load(Ordering::Relaxed), 1)
            });
        });
    });
}

#[test]
fn nothing_runs_for_no_items() {
    let _watch = watch();
    fork::for_each(5..5_u64, |_| panic!("no item"));
    assert_eq!(fork::map(&[0_u8; 0], |item| *item), []);
    let (first, end) = (7, 3);
    assert_eq!(fork::reduce(first..end, |item: i32| item, |a, _| a), None);
}

#[test]
fn ranges_reach_their_ends() {
    let _watch = watch();
    assert_eq!(
        Grain::of(1).map(i8::MIN..i8::MAX, i64::from),
        Vec::from_iter(-128..127)
    );
    assert_eq!(
        Grain::of(3).map(u64::MAX - 9..u64::MAX, |n| u64::MAX - n),
        [9, 8, 7, 6, 5, 4, 3, 2, 1]
    );
}

#[test]
fn sums_of_fractions_are_the_same_on_any_number_of_workers() {
    let fraction = |n: u32| 1.0 / f64::from(n + 1);
    let sum = move || fork::reduce(0..100_000_u32, fraction, |a, b| a + b).unwrap();
    let mut sums = Vec::new();
    on_each(|_| {});
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        sums.extend((0..10).map(|_| spawn_in(&runtime, sum).to_bits()));
    }
    sums.dedup();
    assert_eq!(sums.len(), 1);
}

#[test]
fn the_first_error_wins_even_if_a_later_item_fails_before() {
    let _watch = watch();
    let runtime = runtime(2);
    for _ in 0..20 {
        let error = spawn_in(&runtime, || {
            let late = AtomicBool::new(false);
            Grain::of(1).try_for_each(0..2_u32, |n| {
                match n {
                    // With two threads, the other item has already failed.
                    0 => until_or(1000, || late.load(Ordering::SeqCst)),
                    _ => late.store(true, Ordering::SeqCst),
                }
                Err(n)
            })
        });
        assert_eq!(error, Err(0));
    }
}

fn until_or(most: usize, condition: impl Fn() -> bool) {
    for _ in 0..most {
        if condition() {
            return;
        }
        thread::yield_now();
    }
}

#[test]
fn the_first_failure_wins_whether_it_is_a_panic_or_an_error() {
    let of = |bad: [u32; 2]| {
        move || {
            Grain::of(1).try_map(0..100_u32, |n| {
                assert_ne!(n, bad[0], "panic");
                if n == bad[1] { Err(n) } else { Ok(n) }
            })
        }
    };
    on_each(|runtime| {
        for _ in 0..10 {
            assert_eq!(spawn_in(runtime, of([70, 30])), Err(30));
            let panics = move || catch_unwind(AssertUnwindSafe(of([30, 70]))).is_err();
            assert!(spawn_in(runtime, panics));
        }
    });
}

#[test]
fn a_panic_comes_out_and_results_are_dropped() {
    let _watch = watch();
    let drops = tools::Drops::default();
    let mapped = catch_unwind(AssertUnwindSafe(|| {
        Grain::of(1).map(0..100_u32, |n| {
            assert_ne!(n, 50, "bad");
            drops.token()
        })
    }));
    assert!(mapped.is_err());
    assert_eq!(drops.made(), drops.count());
    assert!(drops.made() >= 50);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn map_and_reduce_do_what_iterators_do(
        items in prop::collection::vec(0_u64..1000, 0..300),
        grain in 0_usize..40,
    ) {
        let grain = Grain::of(grain);
        prop_assert_eq!(
            grain.map(&items, |n| n * 2),
            items.iter().map(|n| n * 2).collect::<Vec<_>>()
        );
        prop_assert_eq!(
            grain.reduce(&items, |n| n.to_string(), |a, b| a + &b),
            items.iter().map(u64::to_string).reduce(|a, b| a + &b)
        );
        let check = |n: &u64| if *n > 900 { Err(*n) } else { Ok(*n) };
        prop_assert_eq!(
            grain.try_map(&items, check),
            items.iter().map(check).collect::<Result<Vec<_>, _>>()
        );
    }
}
