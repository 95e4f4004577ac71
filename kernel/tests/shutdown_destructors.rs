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
    thread,
    time::Duration,
};

use gate::Gate;
use tools::{Latch, runtime, until, watch};
use weald_kernel::{Runtime, ShutdownReport, Spawn, Wait, block_in_place};

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
    // Beside each other, because each takes the whole deadline, which is long enough for a monitor that waits for a core.
    thread::scope(|scope| {
        for workers in [1, 2] {
            scope.spawn(move || leaves_behind(workers));
        }
    });
}

fn leaves_behind(workers: usize) {
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
    let report = runtime.shutdown(Duration::from_secs(2));
    assert_eq!(names(&report), ["one", "two"]);
    assert_eq!(gate.begun(), 2, "they block beside each other");
    gate.open();
    until(|| drops.load(Ordering::SeqCst) == 2);
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

/// A job ends whose output has this `destructor`, once nobody has a handle to it: else the handle would drop the output.
fn ends_unjoined(runtime: &Runtime, destructor: impl FnMut() + Send + 'static) {
    let has_no_handle = Latch::default();
    let waits = has_no_handle.clone();
    let job = async move {
        waits.await;
        OnDrop(destructor)
    };
    runtime.block_on(async { Spawn::new().name("has ended").spawn(job).detach() });
    has_no_handle.open();
}

/// Its future is gone, so it is not a live job.
#[test]
fn a_job_whose_output_blocks_when_it_is_dropped_is_named() {
    let _watch = watch();
    let (runtime, gate) = (runtime(1), Gate::default());
    let blocks = gate.clone();
    ends_unjoined(&runtime, move || blocks.block());
    until(|| gate.begun() == 1 && runtime.metrics().detached == 1);
    let report = runtime.shutdown(Duration::from_millis(50));
    assert_eq!(names(&report), ["has ended"]);
    gate.open();
}

/// As above, but the destructor announces that it blocks, or nobody could take the worker from it.
#[test]
fn a_job_whose_output_holds_its_thread_unwatched_is_named() {
    let _watch = watch();
    for announces in [true, false] {
        let spare = usize::from(announces) * 8;
        let runtime = Runtime::builder().workers(1).spare_threads(spare);
        let (runtime, gate) = (runtime.build().unwrap(), Gate::default());
        let blocks = gate.clone();
        let destructor = move || match announces {
            true => block_in_place(|| blocks.block()),
            false => blocks.block(),
        };
        ends_unjoined(&runtime, destructor);
        until(|| gate.begun() == 1);
        let report = runtime.shutdown(Duration::from_millis(50));
        assert_eq!(names(&report), ["has ended"]);
        gate.open();
    }
}

/// One after another, as no thread is spare: each lets the next one begin.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a destructor that takes its time"
)]
fn many_short_destructors_do_not_delay_a_shutdown_beyond_its_deadline() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).spare_threads(0);
    let runtime = runtime.build().unwrap();
    let (dropped, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (jobs, gate) = (2_000, Gate::default());
    for _ in 0..jobs {
        let (dropped, is_over) = (dropped.clone(), is_over.clone());
        let destructor = move || {
            if is_over.load(Ordering::SeqCst) == 0 {
                thread::sleep(Duration::from_millis(10));
            }
            dropped.fetch_add(1, Ordering::SeqCst);
        };
        spawn_with(&runtime, "short", destructor);
    }
    // Holds the only worker, so that the shutdown's own thread ends the jobs.
    let blocks = gate.clone();
    let blocks = async move { blocks.block() };
    runtime.block_on(async { Spawn::new().name("holder").spawn(blocks).detach() });
    until(|| gate.begun() == 1);
    let report = runtime.shutdown(Duration::from_millis(20));
    assert!(dropped.load(Ordering::SeqCst) < jobs / 2);
    assert!(names(&report).len() > jobs / 2);
    is_over.store(1, Ordering::SeqCst);
    gate.open();
    until(|| dropped.load(Ordering::SeqCst) == jobs);
}

/// No thread can take the worker over, so that nobody would run the jobs that the caller has cancelled.
#[test]
fn a_job_that_holds_the_only_worker_drops_its_runtime_at_once() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).spare_threads(0);
    let runtime = runtime.shutdown_deadline(Duration::from_secs(3_600));
    let runtime = Arc::new(std::sync::Mutex::new(Some(runtime.build().unwrap())));
    let (own, dropped) = (runtime.clone(), Arc::new(AtomicUsize::new(0)));
    let counts = dropped.clone();
    let lock = runtime.lock().unwrap();
    let count = move || _ = counts.fetch_add(1, Ordering::SeqCst);
    spawn_with(lock.as_ref().unwrap(), "waits", count);
    let drops_runtime = async move { drop(own.lock().unwrap().take()) };
    lock.as_ref().unwrap().spawn(drops_runtime).detach();
    drop(lock);
    until(|| dropped.load(Ordering::SeqCst) == 1);
}

/// The stop falls into the poll, so that no round of the wait sees it begin.
#[test]
fn a_wait_in_a_destructor_looks_again_once_the_runtime_has_stopped() {
    let _watch = watch();
    let (runtime, gate, dropped) = (runtime(1), Gate::default(), Arc::default());
    let (blocks, counts) = (gate.clone(), Arc::<AtomicUsize>::clone(&dropped));
    spawn_with(&runtime, "waits", move || {
        let mut polls = 0;
        let looks_twice = std::future::poll_fn(|_| {
            polls += 1;
            if polls == 1 {
                blocks.block();
                return std::task::Poll::Pending;
            }
            std::task::Poll::Ready(())
        });
        looks_twice.wait();
        counts.fetch_add(1, Ordering::SeqCst);
    });
    let report = runtime.shutdown(Duration::from_millis(50));
    assert_eq!(names(&report), ["waits"]);
    gate.open();
    until(|| dropped.load(Ordering::SeqCst) == 1);
}
