//! A shutdown while destructors block, compute, or wait for each other: it ends, and names what holds a thread.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/gate.rs"]
mod gate;
#[path = "support/tools.rs"]
mod tools;

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gate::Gate;
use tools::{Latch, runtime, until, watch};
use weald_kernel::{Runtime, ShutdownReport, Spawn, Wait};

/// Calls a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Starts a job that waits for ever and holds a value whose destructor is `destructor`, and waits until it has begun.
fn spawn_with(runtime: &Runtime, name: &'static str, destructor: impl FnMut() + Send + 'static) {
    let begun = Arc::new(AtomicUsize::new(0));
    let (guard, begins) = (OnDrop(destructor), begun.clone());
    let named = Spawn::new().name(name);
    let job = async move {
        let _guard = guard;
        begins.fetch_add(1, Ordering::SeqCst);
        pending::<()>().await;
    };
    runtime.block_on(async { named.spawn(job).detach() });
    until(|| begun.load(Ordering::SeqCst) == 1);
}

fn names(report: &ShutdownReport) -> Vec<&str> {
    let names = report.not_stopped.iter();
    let mut names: Vec<_> = names.filter_map(|job| job.name.as_deref()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_shutdown_leaves_destructors_that_block_behind_and_names_them() {
    let _watch = watch();
    for workers in [1, 2] {
        let (runtime, gate, drops) = (runtime(workers), Gate::default(), Arc::default());
        let blocks = || {
            let (gate, drops) = (gate.clone(), Arc::<AtomicUsize>::clone(&drops));
            move || {
                gate.block();
                drops.fetch_add(1, Ordering::SeqCst);
            }
        };
        spawn_with(&runtime, "one", blocks());
        spawn_with(&runtime, "two", blocks());
        spawn_with(&runtime, "none", || ());
        let report = runtime.shutdown(Duration::from_millis(100));
        assert_eq!(names(&report), ["one", "two"]);
        assert_eq!(gate.begun(), 2, "they block beside each other");
        gate.open();
        until(|| drops.load(Ordering::SeqCst) == 2);
    }
}

/// More than there are spare threads, so that some have no turn before the runtime stops.
#[test]
fn a_shutdown_ends_although_more_destructors_block_than_there_are_threads() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).spare_threads(2);
    let (runtime, gate) = (runtime.build().unwrap(), Gate::default());
    let dropped = Arc::new(AtomicUsize::new(0));
    for _ in 0..8 {
        let (gate, dropped) = (gate.clone(), dropped.clone());
        let destructor = move || {
            gate.block();
            dropped.fetch_add(1, Ordering::SeqCst);
        };
        spawn_with(&runtime, "blocks", destructor);
    }
    let report = runtime.shutdown(Duration::from_millis(50));
    assert_eq!(names(&report), ["blocks"; 8]);
    gate.open();
    until(|| dropped.load(Ordering::SeqCst) == 8);
}

#[test]
fn a_destructor_that_waits_for_what_another_job_holds_does_not_hang_a_shutdown() {
    let _watch = watch();
    let (runtime, latch, dropped) = (runtime(1), Latch::default(), Arc::default());
    let (waits, counts) = (latch.clone(), Arc::<AtomicUsize>::clone(&dropped));
    let waits = move || {
        waits.clone().wait();
        counts.fetch_add(1, Ordering::SeqCst);
    };
    spawn_with(&runtime, "waits", waits);
    spawn_with(&runtime, "opens", move || latch.open());
    let report = runtime.shutdown(Duration::from_secs(10));
    assert_eq!(names(&report), [""; 0]);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// Its future is gone, so it is not a live job.
#[test]
fn a_job_whose_output_blocks_when_it_is_dropped_is_named() {
    let _watch = watch();
    let (runtime, gate) = (runtime(1), Gate::default());
    let blocks = gate.clone();
    let named = Spawn::new().name("has ended");
    runtime.block_on(async {
        named
            .spawn(async { OnDrop(move || blocks.block()) })
            .detach()
    });
    until(|| gate.begun() == 1 && runtime.metrics().detached == 1);
    let report = runtime.shutdown(Duration::from_millis(50));
    assert_eq!(names(&report), ["has ended"]);
    gate.open();
}
