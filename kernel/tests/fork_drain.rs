//! Forks while their runtime shuts down: parts still run at the same time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use tools::{Latch, runtime, until, watch};
use weald_kernel::{Runtime, Wait, fork, yield_now};

/// Two parts of a scope meet, so each needs a thread, or a stack, of its own; so do the halves of a join.
fn parts_meet(met: &AtomicUsize) {
    let meet = |own: &Latch, other: &Latch| {
        own.open();
        other.clone().wait();
        met.fetch_add(1, Ordering::SeqCst);
    };
    let (left, right) = (Latch::default(), Latch::default());
    fork::scope(|scope| {
        scope.spawn(|| meet(&left, &right));
        scope.spawn(|| meet(&right, &left));
    });
    let (left, right) = (Latch::default(), Latch::default());
    fork::join(|| meet(&left, &right), || meet(&right, &left));
}

/// Whether the runtime of the caller refuses jobs by now.
fn is_closing() -> bool {
    weald_kernel::is_shutting_down()
}

fn shut_down(runtime: Runtime) -> usize {
    runtime.shutdown(Duration::from_secs(3600)).cancelled
}

#[test]
fn parts_meet_in_a_drain() {
    for workers in [1, 2] {
        let _watch = watch();
        let (runtime, met) = (runtime(workers), Arc::<AtomicUsize>::default());
        let (begun, meets) = (Latch::default(), met.clone());
        let begins = begun.clone();
        runtime
            .spawn(async move {
                begins.open();
                while !is_closing() {
                    yield_now().await;
                }
                parts_meet(&meets);
            })
            .detach();
        runtime.block_on(begun);
        assert_eq!(shut_down(runtime), 0);
        assert_eq!(met.load(Ordering::SeqCst), 4);
    }
}

/// Has its parts meet when it is dropped.
struct MeetsAtDrop(Arc<AtomicUsize>);

impl Drop for MeetsAtDrop {
    fn drop(&mut self) {
        parts_meet(&self.0);
    }
}

#[test]
fn parts_meet_in_a_destructor_that_the_end_of_a_drain_runs() {
    for workers in [1, 2] {
        let _watch = watch();
        let (runtime, met) = (runtime(workers), Arc::<AtomicUsize>::default());
        let (waits, guard) = (Latch::default(), MeetsAtDrop(met.clone()));
        let forever = waits.clone();
        runtime
            .spawn(async move {
                let _guard = guard;
                forever.await;
            })
            .detach();
        until(|| waits.waiters() == 1);
        assert_eq!(shut_down(runtime), 1);
        assert_eq!(met.load(Ordering::SeqCst), 4);
    }
}

#[test]
fn parts_meet_in_a_wait_that_the_end_of_a_drain_unwinds() {
    for workers in [1, 2] {
        let _watch = watch();
        let (runtime, met) = (runtime(workers), Arc::<AtomicUsize>::default());
        let (waits, guard) = (Latch::default(), MeetsAtDrop(met.clone()));
        let forever = waits.clone();
        runtime
            .spawn(async move {
                let _guard = guard;
                forever.wait();
            })
            .detach();
        until(|| waits.waiters() == 1);
        assert_eq!(shut_down(runtime), 1);
        assert_eq!(met.load(Ordering::SeqCst), 4);
    }
}

/// Runs `fork` when it is dropped, and then tells that it has returned.
struct ForksAtDrop<F: Fn()>(F, mpsc::Sender<()>);

impl<F: Fn()> Drop for ForksAtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
        self.1.send(()).unwrap();
    }
}

/// A destructor forks so many parts, which wait beyond the deadline of a shutdown. The shutdown cancels every job, also
/// those that run such parts, but that cancel must not reach the destructor.
fn a_destructor_waits_beyond_a_deadline(unwinds: bool, count: usize, fork: fn(&Latch)) {
    let _watch = watch();
    let (runtime, (sender, returned)) = (runtime(2), mpsc::channel());
    let (waits, ends) = (Latch::default(), Latch::default());
    let (waited, awaited) = (waits.clone(), ends.clone());
    let job = runtime.spawn(async move {
        let _guard = ForksAtDrop(|| fork(&awaited), sender);
        match unwinds {
            true => waited.wait(),
            false => waited.await,
        }
    });
    until(|| waits.waiters() == 1);
    job.cancel();
    until(|| ends.waiters() == count);
    runtime.shutdown(Duration::from_millis(10));
    ends.open();
    assert!(returned.recv().is_ok(), "the destructor was unwound");
}

fn parts_wait(ends: &Latch) {
    fork::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| ends.clone().wait());
        }
    });
}

fn a_half_waits(ends: &Latch) {
    fork::join(|| until(|| ends.waiters() == 1), || ends.clone().wait());
}

#[test]
fn a_deadline_unwinds_no_scope_of_a_destructor() {
    a_destructor_waits_beyond_a_deadline(false, 4, parts_wait);
}

#[test]
fn a_deadline_unwinds_no_scope_of_a_destructor_that_a_cancel_runs() {
    a_destructor_waits_beyond_a_deadline(true, 4, parts_wait);
}

#[test]
fn a_deadline_unwinds_no_join_of_a_destructor() {
    a_destructor_waits_beyond_a_deadline(false, 1, a_half_waits);
}

#[test]
fn a_deadline_unwinds_no_join_of_a_destructor_that_a_cancel_runs() {
    a_destructor_waits_beyond_a_deadline(true, 1, a_half_waits);
}
