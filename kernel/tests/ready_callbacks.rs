//! Ready callbacks behind one that blocks its thread run elsewhere, and the monitor moves few of them at a time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tools::{until, watch};
use weald_kernel::{
    Runtime,
    callback::{self, Owner, When},
    sleep,
};

/// How many callbacks have run.
type Ran = Arc<AtomicUsize>;

/// Starts ready callbacks of one owner at one site. The first blocks its thread until all others have run.
fn start_behind_a_blocker(count: usize, owner: fn() -> Owner, ran: &Ran) {
    for n in 0..count {
        let ran = ran.clone();
        let run = move || {
            if n == 0 {
                until(|| ran.load(Ordering::SeqCst) == count - 1);
            }
            ran.fetch_add(1, Ordering::SeqCst);
        };
        callback::once(owner(), When::Ready, run).detach();
    }
}

/// Starts callbacks from a job, which owns them; from a callback; and from a foreign thread. Returns when all have run.
fn run_behind_blockers(runtime: &Runtime, count: usize) {
    let ran = Ran::default();
    let counted = ran.clone();
    let job = runtime.spawn(async move {
        start_behind_a_blocker(count, Owner::current, &counted);
        sleep(Duration::from_secs(3600)).await;
    });
    until(|| ran.load(Ordering::SeqCst) == count);
    job.cancel();

    let (ran, counted) = (Ran::default(), Ran::default());
    let started = counted.clone();
    runtime.block_on(async {
        let start = move || start_behind_a_blocker(count, Owner::runtime, &started);
        callback::once(Owner::runtime(), When::Ready, start).detach();
    });
    until(|| counted.load(Ordering::SeqCst) == count);

    runtime.block_on(async { start_behind_a_blocker(count, Owner::runtime, &ran) });
    until(|| ran.load(Ordering::SeqCst) == count);
}

#[test]
fn callbacks_behind_one_that_blocks_run_on_a_worker_that_sleeps() {
    let _watch = watch();
    // The blocked worker is never retaken.
    let builder = Runtime::builder().workers(2);
    let runtime = builder
        .stuck_after(Duration::from_secs(3600))
        .build()
        .unwrap();
    for count in [2, 300, 5_000] {
        run_behind_blockers(&runtime, count);
    }
    assert!(runtime.metrics().moved_callbacks > 0);
    assert_eq!(runtime.metrics().detached, 0);
}

#[test]
fn callbacks_behind_one_that_blocks_the_only_worker_run_on_a_spare_thread() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    for count in [2, 5_000] {
        run_behind_blockers(&runtime, count);
    }
    assert_eq!(runtime.metrics().moved_callbacks, 0, "nobody is idle");
}

/// What the callbacks of [`a_million_ready_callbacks_are_not_carried_to_and_fro`] share.
#[derive(Default)]
struct Million {
    are_started: AtomicBool,
    ran: AtomicUsize,
    ticks: AtomicUsize,
    /// How many callbacks block their thread.
    blocked: AtomicUsize,
    /// How often a callback blocked the last worker, so that those which block must end.
    releases: AtomicUsize,
}

impl Million {
    /// Blocks until others went on: a callback has run, and the ticker. Or until no worker is left for them.
    fn block(&self) {
        let now = || [&self.ran, &self.ticks].map(|count| count.load(Ordering::SeqCst));
        let (before, releases) = (now(), self.releases.load(Ordering::SeqCst));
        if self.blocked.fetch_add(1, Ordering::SeqCst) > 0 {
            self.releases.fetch_add(1, Ordering::SeqCst);
        }
        until(|| {
            let went_on = now().iter().zip(&before).all(|(now, before)| now > before);
            went_on || self.releases.load(Ordering::SeqCst) > releases
        });
        self.blocked.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Some of a million ready callbacks block until others went on: behind each, the monitor moves callbacks to the worker
/// that is idle, and at the next one back.
#[test]
fn a_million_ready_callbacks_are_not_carried_to_and_fro() {
    const COUNT: usize = 1_000_000;
    let _watch = watch();
    let builder = Runtime::builder().workers(2);
    let runtime = builder
        .stuck_after(Duration::from_secs(3600))
        .build()
        .unwrap();
    let million = Arc::new(Million::default());
    let ticking = million.clone();
    let ticker = runtime.spawn(async move {
        loop {
            sleep(Duration::from_millis(1)).await;
            ticking.ticks.fetch_add(1, Ordering::SeqCst);
        }
    });
    let starting = million.clone();
    let starts = runtime.spawn(async move {
        for n in 0..COUNT {
            let million = starting.clone();
            let run = move || {
                // One of them waits here, on the other worker, and the rest gathers.
                until(|| million.are_started.load(Ordering::SeqCst));
                if n % 20_000 == 1_000 {
                    million.block();
                }
                million.ran.fetch_add(1, Ordering::SeqCst);
            };
            callback::once(Owner::runtime(), When::Ready, run).detach();
        }
        starting.are_started.store(true, Ordering::SeqCst);
    });
    runtime.block_on(starts).unwrap();
    until(|| million.ran.load(Ordering::SeqCst) == COUNT);
    ticker.cancel();
    let moved = runtime.metrics().moved_callbacks;
    assert!(moved < 2 * COUNT as u64, "{moved} moves");
}
