//! A random mix of forks, waits, panics and cancels, by seed. `WEALD_SOAK=<seconds>` sets how long it runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};

use tools::{Drops, Random, soak};
use weald_kernel::{Runtime, Wait, fork, sleep, spawn, yield_now};

/// The payload of a deliberate panic.
struct Deliberate;

/// Forks at random. Returns how many leaves completed.
fn work(mut random: Random, drops: &Drops, depth: u32) -> usize {
    let _token = drops.token();
    if depth == 0 {
        return 1;
    }
    let (left, right) = (Random(random.next()), Random(random.next()));
    match random.below(40) {
        0 => resume_unwind(Box::new(Deliberate)),
        1 => sleep(Duration::from_micros(random.below(2000) as u64)).wait(),
        2 => return spawn(async { yield_now().await }).wait().map_or(0, |()| 1),
        3 => drop(catch_unwind(AssertUnwindSafe(|| {
            work(Random(left.0), drops, depth - 1)
        }))),
        4 => {
            let mut sums = [0; 3];
            fork::scope(|scope| {
                for sum in &mut sums {
                    let random = Random(random.next());
                    scope.spawn(move || *sum = work(random, drops, depth / 2));
                }
            });
            return sums.iter().sum();
        }
        5 => {
            let mut numbers: Vec<usize> = (0..5000).map(|_| random.below(1000)).collect();
            fork::sort(&mut numbers);
            assert!(numbers.is_sorted());
        }
        _ => {}
    }
    let (left, right) = fork::join(
        || work(left, drops, depth - 1),
        || work(right, drops, depth - 1),
    );
    left + right
}

#[test]
fn soak_forks() {
    soak(|random| {
        let drops = Drops::default();
        let runtime = Runtime::builder()
            .workers(1 + random.below(4))
            .stuck_after(Duration::from_millis(2))
            .build()
            .unwrap();
        let jobs: Vec<_> = (0..4)
            .map(|_| {
                let (random, drops) = (Random(random.next()), drops.clone());
                runtime.spawn(async move { work(random, &drops, 10) })
            })
            .collect();
        for (at, job) in jobs.into_iter().enumerate() {
            if at % 2 == 1 {
                job.cancel();
            }
            let _ended = runtime.block_on(job);
        }
        drop(runtime);
        assert_eq!(drops.made(), drops.count());
    });
}
