//! Bursts of many kinds, and kinds beside a burst: which are kept from the workers, and for how long.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/bursts.rs"]
mod bursts;
#[path = "support/tickers.rs"]
mod tickers;
#[path = "support/tools.rs"]
mod tools;

use std::{
    cell::Cell,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use blocker::Blocker;
use bursts::{burst, join_all, others_run, with_spare_threads};
use tickers::Tickers;
use tools::{Latch, until, watch};
use weald_kernel::{JoinHandle, Runtime, Wait, sleep, worker_index};

/// Two jobs of a type of their own.
fn two_of_a_kind<const KIND: usize>(runtime: &Runtime, blocker: &Blocker) -> [JoinHandle<()>; 2] {
    struct Blocks<const KIND: usize>(Blocker);
    impl<const KIND: usize> Future for Blocks<KIND> {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            self.0.block();
            Poll::Ready(())
        }
    }
    [(); 2].map(|()| runtime.spawn(Blocks::<KIND>(blocker.clone())))
}

/// Whether a job that has never run is kept from the workers.
fn is_fresh_kept(runtime: &Runtime) -> bool {
    runtime
        .block_on(runtime.spawn(async { worker_index() }))
        .unwrap()
        .is_none()
}

/// Each kind would cost a worker the bound, and a spare thread.
#[test]
fn blockers_of_very_many_kinds_stop_no_job_that_has_waited() {
    macro_rules! two_of_each { ($($kind:literal)*) => { [$(two_of_a_kind::<$kind>),*] } }
    let starts = two_of_each!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
        30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59
        60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89
    );
    let _watch = watch();
    let runtime = with_spare_threads(1, 80);
    let (stop, runs) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (stopped, counts) = (stop.clone(), runs.clone());
    let other = runtime.spawn(async move {
        while !stopped.load(Ordering::SeqCst) {
            sleep(Duration::from_micros(100)).await;
            counts.fetch_add(1, Ordering::SeqCst);
        }
    });
    let more_runs = || {
        let before = runs.load(Ordering::SeqCst);
        until(|| runs.load(Ordering::SeqCst) > before + 100);
    };
    more_runs();
    // On a busy machine the first kinds may be forgotten before so many are suspect; then they begin again.
    let (first, others) = starts.split_at(20);
    let (blocker, mut jobs) = loop {
        let blocker = Blocker::default();
        let jobs: Vec<_> = first
            .iter()
            .flat_map(|start| start(&runtime, &blocker))
            .collect();
        // The second of a kind begins once the first one has made it suspect. A job is kept once: then its code is
        // trusted.
        let is_kept = Cell::new(false);
        until(|| {
            is_kept.set(is_fresh_kept(&runtime));
            is_kept.get() || blocker.begun() == jobs.len()
        });
        if is_kept.get() {
            break (blocker, jobs);
        }
        blocker.open();
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    };
    jobs.extend(others.iter().flat_map(|start| start(&runtime, &blocker)));
    // Seven eighths of the spare threads.
    until(|| blocker.begun() >= 70);
    more_runs();
    assert!(blocker.begun() < 80, "{} have a thread", blocker.begun());
    blocker.open();
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(other).unwrap();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

/// The kind stays suspect while its jobs hold all threads that they may have, so that its next jobs hold none of those
/// that are left for other kinds.
#[test]
fn later_jobs_of_a_kind_that_blocks_for_long_stop_no_other_kind() {
    let _watch = watch();
    let runtime = with_spare_threads(1, 16);
    let blocker = Blocker::default();
    let mut bursts = vec![burst(&runtime, &blocker, 40)];
    until(|| blocker.begun() >= 14);
    for _ in 0..3 {
        // Longer than a kind is remembered.
        let pause = runtime.spawn(sleep(Duration::from_millis(1_100)));
        runtime.block_on(pause).unwrap();
        bursts.push(burst(&runtime, &blocker, 1));
        others_run(&runtime);
    }
    assert!(blocker.begun() < 16, "{} have a thread", blocker.begun());
    blocker.open();
    for burst in bursts {
        join_all(&runtime, burst);
    }
}

/// While a kind is suspect, a job of another one that blocks loses its worker before the bound. That is no offence:
/// kinds that block for a short time do not keep each other suspect for ever.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the units block their threads, for a short time"
)]
fn short_blocks_beside_a_suspect_are_no_offence() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .stuck_after(Duration::from_millis(200))
        .build()
        .unwrap();
    let (stop, runs) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    // A macro, because each kind needs a type and a site of its own.
    macro_rules! unit {
        () => {{
            let (stop, runs) = (stop.clone(), runs.clone());
            runtime.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(1)).await;
                    thread::sleep(Duration::from_millis(5));
                    runs.fetch_add(1, Ordering::SeqCst);
                }
            })
        }};
    }
    let blocks = |count| {
        let before = runs.load(Ordering::SeqCst);
        until(|| runs.load(Ordering::SeqCst) >= before + count);
    };
    let blocker = Blocker::default();
    let offender = burst(&runtime, &blocker, 1);
    until(|| runtime.metrics().detached > 0);
    blocker.open();
    join_all(&runtime, offender);
    // One after the other, so that there would always be one that is suspect.
    let first = unit!();
    blocks(80);
    let second = unit!();
    let mut before = 0;
    // Without the offender all is as it was: no job loses its worker any more.
    while runtime.metrics().detached != before {
        before = runtime.metrics().detached;
        // They take longer than a kind stays suspect.
        blocks(600);
    }
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(first).unwrap();
    runtime.block_on(second).unwrap();
}

/// The kind of these jobs stays suspect, because one of them that stays where it is, as its stack was suspended, goes
/// on being late now and then. All threads of the quarantine are held by others.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the unit blocks its thread, for a short time"
)]
fn a_kind_that_is_late_now_and_then_runs_on_while_the_quarantine_is_full() {
    let _watch = watch();
    let runtime = with_spare_threads(2, 16);
    let blocker = Blocker::default();
    let blocked = burst(&runtime, &blocker, 40);
    until(|| blocker.begun() >= 14);
    let (stop, late) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let unit = |is_late: bool| {
        let (stop, late) = (stop.clone(), late.clone());
        runtime.spawn(async move {
            while is_late && !stop.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(300)).wait();
                thread::sleep(Duration::from_millis(30));
                late.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let first = unit(true);
    for rounds in 1..=3 {
        until(|| late.load(Ordering::SeqCst) >= rounds);
        // Without the early end they would wait until the one that is late stops.
        for _ in 0..10 {
            runtime.block_on(unit(false)).unwrap();
        }
    }
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(first).unwrap();
    blocker.open();
    join_all(&runtime, blocked);
}

/// As requests that are read first, and then block in a database. Each kind would cost a worker the bound, and a spare
/// thread.
#[test]
fn blockers_of_very_many_kinds_that_have_waited_once_stop_no_other_kind() {
    struct WaitsAndBlocks<const KIND: usize>(Latch, Blocker);
    impl<const KIND: usize> Future for WaitsAndBlocks<KIND> {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            let waits = Pin::new(&mut self.0).poll(cx);
            waits.map(|()| self.1.block())
        }
    }
    fn eight<const KIND: usize>(
        runtime: &Runtime,
        latch: &Latch,
        blocker: &Blocker,
    ) -> [JoinHandle<()>; 8] {
        [(); 8].map(|()| runtime.spawn(WaitsAndBlocks::<KIND>(latch.clone(), blocker.clone())))
    }
    macro_rules! eight_of_each { ($($kind:literal)*) => { [$(eight::<$kind>),*] } }
    let starts = eight_of_each!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19
        20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
        40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59
        60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79
    );
    let _watch = watch();
    let runtime = with_spare_threads(2, 256);
    let (latch, blocker) = (Latch::default(), Blocker::default());
    let jobs: Vec<_> = starts
        .iter()
        .flat_map(|start| start(&runtime, &latch, &blocker))
        .collect();
    until(|| latch.waiters() == jobs.len());
    let tickers = Tickers::start(&runtime, 20);
    latch.open();
    // Seven eighths of the spare threads.
    until(|| blocker.begun() >= 224);
    tickers.tick(50);
    others_run(&runtime);
    assert!(blocker.begun() < 256, "{} have a thread", blocker.begun());
    blocker.open();
    tickers.end(&runtime);
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}
