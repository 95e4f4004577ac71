//! The thread of a stolen half waits, and cannot suspend its stack: what it waits for may be pinned to the thread of the
//! join, which waits for the half.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tools::{Latch, runtime, until, watch};
use weald_kernel::{Runtime, Wait, fork::join, spawn_local};

/// Calls its closure when it is dropped.
struct AtDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Two workers, none of which is retaken: while one waits in a join and one runs what it stole, nobody else looks for
/// work.
fn two_busy_workers() -> Runtime {
    let builder = Runtime::builder().workers(2);
    builder
        .stuck_after(Duration::from_secs(60))
        .build()
        .unwrap()
}

/// Forks again, so that the thread of the join takes the second half while it helps. That half waits, and goes on once
/// the first one has called `begin_wait`. The first half ends only after the second has called `end_wait`.
fn fork_a_half_that_waits(
    pushed: &AtomicBool,
    first_waits: impl FnOnce() + Send,
    end_wait: impl FnOnce() + Send,
) {
    let go = Latch::default();
    join(
        || {
            pushed.store(true, Ordering::SeqCst);
            until(|| go.waiters() == 1);
            go.open();
            first_waits();
        },
        || {
            go.clone().wait();
            end_wait();
        },
    );
}

#[test]
fn a_half_that_unwinds_waits_for_a_local_job_of_the_joining_thread() {
    let _watch = watch();
    let runtime = runtime(2);
    let job = runtime.spawn(async {
        let (done, begun) = (Latch::default(), AtomicBool::new(false));
        let opens = done.clone();
        spawn_local(async move { opens.open() }).unwrap().detach();
        join(
            || until(|| begun.load(Ordering::SeqCst)),
            || {
                begun.store(true, Ordering::SeqCst);
                let _guard = AtDrop(|| done.clone().wait());
                panic!("on purpose");
            },
        );
    });
    assert!(runtime.block_on(job).unwrap_err().is_panic());
}

#[test]
fn a_half_that_unwinds_waits_for_a_half_of_its_own_that_the_joining_thread_took() {
    let _watch = watch();
    let runtime = two_busy_workers();
    let job = runtime.spawn(async {
        let (done, pushed) = (Latch::default(), AtomicBool::new(false));
        join(
            || until(|| pushed.load(Ordering::SeqCst)),
            || {
                let waits = || done.clone().wait();
                let _guard = AtDrop(|| fork_a_half_that_waits(&pushed, waits, || done.open()));
                panic!("on purpose");
            },
        );
    });
    assert!(runtime.block_on(job).unwrap_err().is_panic());
}
