//! Bursts of callbacks that block: those of the offender's kind run in quarantine, and keep what callbacks promise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use blocker::Blocker;
use reports::{collect_reports, reports};
use tools::{Drops, Token, until, watch};
use weald_kernel::{
    Runtime,
    callback::{self, Handle, Next, Owner, When},
    current_name, worker_index,
};

fn with_spare_threads(workers: usize, spare: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder.spare_threads(spare).build().unwrap()
}

/// Callbacks of one kind; each blocks at the blocker, and has a token until then.
fn burst(runtime: &Runtime, blocker: &Blocker, drops: &Drops, count: usize) -> Vec<Handle> {
    let start = |token: Token| {
        let blocker = blocker.clone();
        let block = move || {
            blocker.block();
            drop(token);
        };
        callback::once(Owner::runtime(), When::Ready, block)
    };
    let tokens = (0..count).map(|_| drops.token());
    runtime.block_on(async { tokens.map(start).collect() })
}

/// Jobs, and callbacks of another kind, run to their ends.
fn others_run(runtime: &Runtime) {
    for _ in 0..100 {
        runtime.block_on(runtime.spawn(async {})).unwrap();
        let (ran, runs) = std::sync::mpsc::channel();
        runtime.block_on(async {
            let run = move || ran.send(()).unwrap();
            callback::once(Owner::runtime(), When::Ready, run).detach();
        });
        runs.recv().unwrap();
    }
}

#[test]
fn more_callbacks_that_block_than_spare_threads_stop_nobody_else_and_are_named() {
    collect_reports();
    for workers in [1, 2] {
        let _watch = watch();
        let runtime = with_spare_threads(workers, 8);
        let (blocker, drops) = (Blocker::default(), Drops::default());
        let handles = burst(&runtime, &blocker, &drops, 100);
        // At least one spare thread is left for a worker that is retaken.
        until(|| blocker.begun() >= 7);
        others_run(&runtime);
        assert!(blocker.begun() < 10, "{} have a thread", blocker.begun());
        let told = || reports("weald::monitor", "further jobs of these kinds wait");
        let named = "`callback callback_bursts::burst::";
        until(|| told().iter().any(|report| report.text.contains(named)));
        blocker.open();
        until(|| drops.count() == 100 && handles.iter().all(Handle::is_over));
        assert_eq!(blocker.begun(), 100);
    }
}

#[test]
fn a_callback_that_waits_in_quarantine_is_cancelled_at_once_and_never_runs() {
    let _watch = watch();
    let runtime = with_spare_threads(1, 8);
    let (blocker, drops) = (Blocker::default(), Drops::default());
    let handles = burst(&runtime, &blocker, &drops, 100);
    until(|| blocker.begun() >= 7);
    others_run(&runtime);
    let cancelled = handles.iter().filter(|handle| handle.cancel()).count();
    assert!(cancelled > 90, "{cancelled}");
    assert_eq!(drops.count(), cancelled);
    blocker.open();
    until(|| drops.count() == 100);
    assert_eq!(blocker.begun(), 100 - cancelled);
}

#[test]
fn a_shutdown_drops_callbacks_that_wait_in_quarantine() {
    let _watch = watch();
    let runtime = with_spare_threads(2, 8);
    let (blocker, drops) = (Blocker::default(), Drops::default());
    let handles = burst(&runtime, &blocker, &drops, 100);
    until(|| blocker.begun() >= 7);
    let report = runtime.shutdown(Duration::from_millis(100));
    assert!(report.not_stopped.len() <= 10, "{report:?}");
    let begun = blocker.begun();
    assert!(drops.count() >= 90 && begun < 11, "{begun}");
    blocker.open();
    until(|| handles.iter().all(Handle::is_over));
    assert_eq!(blocker.begun(), begun);
}

/// Its kind is suspect from its first round on. Each round belongs to the owner and has the callback's name.
#[test]
fn a_callback_in_quarantine_runs_its_rounds_one_at_a_time() {
    let _watch = watch();
    let runtime = with_spare_threads(2, 8);
    let (running, rounds) = (AtomicBool::new(false), Arc::new(AtomicUsize::new(0)));
    let (elsewhere, count) = (Arc::new(AtomicUsize::new(0)), rounds.clone());
    let apart = elsewhere.clone();
    let blocker = Blocker::default();
    let blocks = blocker.clone();
    let round = move || {
        assert!(!running.swap(true, Ordering::SeqCst), "two at a time");
        let name = current_name().unwrap().name.unwrap();
        assert!(name.contains("callback_bursts"), "{name}");
        if worker_index().is_none() {
            apart.fetch_add(1, Ordering::SeqCst);
        }
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            blocks.block();
        }
        running.store(false, Ordering::SeqCst);
        match count.load(Ordering::SeqCst) {
            1_000 => Next::Ended,
            _ => Next::Ready,
        }
    };
    let handle = runtime.block_on(async { callback::rounds(Owner::current(), When::Ready, round) });
    // Once it holds its thread beyond the bound, its kind is suspect.
    until(|| runtime.metrics().detached > 0);
    blocker.open();
    until(|| handle.is_over());
    assert_eq!(rounds.load(Ordering::SeqCst), 1_000);
    assert!(
        elsewhere.load(Ordering::SeqCst) > 0,
        "none ran in quarantine"
    );
}
