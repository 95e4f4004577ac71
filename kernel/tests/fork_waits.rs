//! The thread of a stolen half waits, and cannot suspend its stack: what it waits for may be pinned to the thread of
//! the join, which waits for the half.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use tools::{Latch, runtime, until, watch};
use weald_kernel::{
    Runtime, Wait,
    fork::{join, scope},
    spawn_local,
};

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

/// The half mostly goes on soon, and the job may want a lock of `std` that the thread's own code holds.
#[test]
fn a_job_of_a_foreign_thread_that_joins_runs_only_once_a_half_that_unwinds_has_waited_for_a_while()
{
    let _watch = watch();
    let runtime = runtime(2);
    let (done, joins) = (Latch::default(), Mutex::new(None));
    let ran = Arc::new(Mutex::new(None));
    let joined = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let (opens, notes) = (done.clone(), ran.clone());
            let job = async move {
                *notes.lock().unwrap() = Some(Instant::now());
                opens.open();
            };
            spawn_local(job).unwrap().detach();
            join(
                || {
                    until(|| done.waiters() == 1);
                    // It shows about now that it holds its thread.
                    (0..1000).for_each(|_| thread::yield_now());
                    *joins.lock().unwrap() = Some(Instant::now());
                },
                || {
                    let _guard = AtDrop(|| done.clone().wait());
                    panic!("on purpose");
                },
            );
        });
    }));
    assert!(joined.is_err());
    let (joins, ran) = (joins.into_inner().unwrap(), *ran.lock().unwrap());
    let waited = ran.unwrap() - joins.unwrap();
    assert!(waited >= Duration::from_millis(10), "{waited:?}");
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

/// A join whose stolen half blocks for what a half of its own does, after the joining thread has taken that one.
fn join_a_half_that_blocks() {
    let (sender, receiver) = mpsc::channel();
    let pushed = AtomicBool::new(false);
    join(
        || until(|| pushed.load(Ordering::SeqCst)),
        || {
            let blocks = move || receiver.recv().unwrap();
            fork_a_half_that_waits(&pushed, blocks, move || sender.send(()).unwrap());
        },
    );
}

/// The join holds a lock. A local job of its thread, which wants the lock, is runnable before the half is.
#[test]
fn a_half_blocks_for_a_half_of_its_own_that_the_joining_thread_took() {
    let _watch = watch();
    let runtime = two_busy_workers();
    let job = runtime.spawn(async {
        let lock = Arc::new(Mutex::new(()));
        let wants = lock.clone();
        let local = spawn_local(async move { wants.try_lock().is_ok() }).unwrap();
        let held = lock.lock().unwrap();
        join_a_half_that_blocks();
        drop(held);
        local.wait().unwrap()
    });
    assert!(runtime.block_on(job).unwrap(), "it ran on top of the lock");
}

#[test]
fn a_half_blocks_for_a_half_of_its_own_that_a_foreign_thread_took() {
    let _watch = watch();
    two_busy_workers().block_on(async { join_a_half_that_blocks() });
}

/// The cancel reaches the half that is suspended on the joining thread, and that one ends what the stolen half blocks
/// for.
#[test]
fn a_cancel_ends_a_half_that_the_joining_thread_took_while_another_blocks_for_it() {
    let _watch = watch();
    let runtime = two_busy_workers();
    let blocked = Latch::default();
    let blocks = blocked.clone();
    let job = runtime.spawn(async move {
        let (sender, receiver) = mpsc::channel::<()>();
        let pushed = AtomicBool::new(false);
        join(
            || until(|| pushed.load(Ordering::SeqCst)),
            || {
                let pushed = &pushed;
                let first = move || {
                    pushed.store(true, Ordering::SeqCst);
                    assert!(receiver.recv().is_err());
                };
                join(first, move || {
                    blocks.wait();
                    drop(sender);
                });
            },
        );
    });
    until(|| blocked.waiters() == 1);
    job.cancel();
    assert!(runtime.block_on(job).unwrap_err().is_cancelled());
}

/// The body waits, so the loop of its thread runs a part, which waits in turn. Both are woken, and the body ends before
/// that part goes on.
#[test]
fn a_part_of_a_scope_blocks_for_one_that_the_loop_of_the_owners_thread_took() {
    let _watch = watch();
    let runtime = two_busy_workers();
    let job = runtime.spawn(async {
        let (sender, receiver) = mpsc::channel();
        let (begun, body, part) = (AtomicBool::new(false), Latch::default(), Latch::default());
        scope(|scope| {
            scope.spawn(|| {
                begun.store(true, Ordering::SeqCst);
                until(|| body.waiters() == 1 && part.waiters() == 1);
                body.open();
                part.open();
                let receiver = receiver;
                receiver.recv().unwrap();
            });
            until(|| begun.load(Ordering::SeqCst));
            scope.spawn(|| {
                part.clone().wait();
                sender.send(()).unwrap();
            });
            body.clone().wait();
        });
    });
    runtime.block_on(job).unwrap();
}

/// Forks two parts, of which the second may run elsewhere.
type Fork = fn(first: &(dyn Fn() + Sync), second: &(dyn Fn() + Sync));

fn by_join(first: &(dyn Fn() + Sync), second: &(dyn Fn() + Sync)) {
    join(first, second);
}

fn by_scope(first: &(dyn Fn() + Sync), second: &(dyn Fn() + Sync)) {
    scope(|scope| {
        scope.spawn(second);
        first();
    });
}

/// The owner of the outer fork waits, so the loop of its thread takes what the other part of that fork has forked,
/// which waits in turn. Both are woken, and the owner goes on before what the loop took, for which that part blocks.
fn a_part_blocks_for_a_part_of_its_own_that_a_loop_took(outer: Fork, inner: Fork) {
    let _watch = watch();
    let runtime = two_busy_workers();
    let job = runtime.spawn(async move {
        let (sender, receiver) = mpsc::channel();
        let (sender, receiver) = (Mutex::new(sender), Mutex::new(receiver));
        let (begun, owner, part) = (AtomicBool::new(false), Latch::default(), Latch::default());
        let blocks = || {
            until(|| owner.waiters() == 1 && part.waiters() == 1);
            owner.open();
            part.open();
            receiver.lock().unwrap().recv().unwrap();
        };
        let frees = || {
            part.clone().wait();
            sender.lock().unwrap().send(()).unwrap();
        };
        let waits = || {
            until(|| begun.load(Ordering::SeqCst));
            owner.clone().wait();
        };
        outer(&waits, &|| {
            begun.store(true, Ordering::SeqCst);
            inner(&blocks, &frees);
        });
    });
    runtime.block_on(job).unwrap();
}

#[test]
fn a_part_of_a_scope_blocks_for_a_half_of_its_own_that_the_loop_of_the_owners_thread_took() {
    a_part_blocks_for_a_part_of_its_own_that_a_loop_took(by_scope, by_join);
}

#[test]
fn a_part_of_a_scope_blocks_for_a_part_of_its_own_that_the_loop_of_the_owners_thread_took() {
    a_part_blocks_for_a_part_of_its_own_that_a_loop_took(by_scope, by_scope);
}

#[test]
fn a_half_blocks_for_a_part_of_its_own_that_the_loop_of_the_joining_thread_took() {
    a_part_blocks_for_a_part_of_its_own_that_a_loop_took(by_join, by_scope);
}

#[test]
fn a_half_blocks_for_a_half_of_its_own_that_the_loop_of_the_joining_thread_took() {
    a_part_blocks_for_a_part_of_its_own_that_a_loop_took(by_join, by_join);
}
