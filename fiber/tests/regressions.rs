//! Programs that once broke a promise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]
#![allow(unsafe_code)]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tools::{Drops, Latch, until, watch};
use weald_fiber as thread;
use weald_kernel::{Runtime, Wait, fork, spawn, spawn_local, yield_now};

/// A stack that is suspended when the driver of a test runtime leaves still uses what the driver lent to it.
#[test]
fn a_job_that_waits_when_a_test_runtime_returns() {
    let _watch = watch();
    let drops = Drops::default();
    for seed in 0..20 {
        let token = drops.token();
        Runtime::test(seed).block_on(async move {
            spawn(async move {
                let _token = token;
                std::future::pending::<()>().wait();
            })
            .detach();
            for _ in 0..5 {
                yield_now().await;
            }
        });
    }
    assert_eq!(drops.count(), 20);
}

/// A scope in which nothing can run any longer must not unwind before its threads have ended.
#[test]
fn a_scope_that_is_stuck_on_a_test_runtime() {
    struct Reads<'a>(&'a AtomicUsize);
    impl Drop for Reads<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _watch = watch();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let stuck = catch_unwind(AssertUnwindSafe(|| {
        Runtime::test(1).block_on(async move {
            let own = counted;
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _reads = Reads(&own);
                    thread::park();
                });
            });
        });
    }));
    assert!(stuck.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

/// While a foreign thread joins, no job that is pinned to the thread runs on top of the join.
#[test]
fn local_jobs_beside_a_join_of_a_foreign_thread() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    for _ in 0..20 {
        runtime.block_on(async {
            let nap = || weald_kernel::sleep(Duration::from_micros(200)).wait();
            let local = (0..3).map(|_| spawn_local(async move { fork::join(nap, nap) }).unwrap());
            let local: Vec<_> = local.collect();
            fork::join(nap, || fork::join(nap, nap));
            for job in local {
                job.await.unwrap();
            }
        });
    }
}

/// A job holds a lock of `std` across a join, and one half starts another job that wants the lock.
#[test]
fn a_lock_of_std_across_a_join() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let lock = Arc::new(Mutex::new(0));
    for _ in 0..30 {
        let holds = lock.clone();
        let job = runtime.spawn(async move {
            let guard = holds.lock().unwrap();
            let wants = holds.clone();
            let wanted = Arc::new(AtomicBool::new(false));
            let wanting = wanted.clone();
            let (other, ()) = fork::join(
                || {
                    spawn(async move {
                        wanting.store(true, Ordering::SeqCst);
                        *wants.lock().unwrap() += 1;
                    })
                },
                || until(|| wanted.load(Ordering::SeqCst)),
            );
            drop(guard);
            other
        });
        let other = runtime.block_on(job).unwrap();
        runtime.block_on(other).unwrap();
    }
    assert_eq!(*lock.lock().unwrap(), 30);
}

/// Destructors that sleep come to an end, and so the runtime's shutdown does.
#[test]
fn destructors_that_sleep_while_a_runtime_is_dropped() {
    struct Sleeps(Drops);
    impl Drop for Sleeps {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(1));
            drop(self.0.token());
        }
    }
    let _watch = watch();
    let (drops, begun) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
    let runtime = Runtime::builder().workers(2).build().unwrap();
    for _ in 0..20 {
        let (sleeps, begun) = (Sleeps(drops.clone()), begun.clone());
        runtime.block_on(async move {
            let handle = thread::spawn(move || {
                let _sleeps = sleeps;
                begun.fetch_add(1, Ordering::SeqCst);
                thread::park();
            });
            handle.detach();
        });
    }
    until(|| begun.load(Ordering::SeqCst) == 20);
    let report = runtime.shutdown(Duration::from_secs(20));
    assert!(report.not_stopped.is_empty(), "{report:?}");
    assert_eq!(drops.count(), 20);
}

/// A scope of forks whose owner is cancelled drops the parts that have not begun. Until the last part is gone, the
/// second one computes: if it waited, another runner would begin the last.
#[test]
fn a_cancelled_scope_of_forks_begins_nothing_more() {
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let (begun, last) = (Latch::default(), Arc::new(AtomicUsize::new(0)));
    let (cancelled, gone) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let job = {
        let (begun, last, cancelled) = (begun.clone(), last.clone(), cancelled.clone());
        runtime.spawn(async move {
            let is_gone: Arc<AtomicBool> = gone;
            let kept = Gone(is_gone.clone());
            fork::scope(|scope| {
                let (begun, last, cancelled) = (&begun, &last, &cancelled);
                let is_gone = &is_gone;
                scope.spawn(move || {
                    begun.open();
                    until(|| cancelled.load(Ordering::SeqCst));
                    std::future::pending::<()>().wait();
                });
                scope.spawn(move || until(|| is_gone.load(Ordering::SeqCst)));
                scope.spawn(move || {
                    let _kept = kept;
                    last.fetch_add(1, Ordering::SeqCst);
                });
            });
        })
    };
    runtime.block_on(begun);
    job.cancel();
    cancelled.store(true, Ordering::SeqCst);
    assert!(runtime.block_on(job).unwrap_err().is_cancelled());
    assert_eq!(last.load(Ordering::SeqCst), 0);
}

/// The number of the unit that waits, read from a thread-local of the OS thread in a poll that could be inlined.
struct RunningUnit;

impl Future for RunningUnit {
    type Output = usize;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<usize> {
        Poll::Ready(weald_sync::unit::current())
    }
}

/// Threads that may move between OS threads. Meant for a release build, where the compiler may keep thread-local
/// addresses across a switch.
#[test]
fn very_many_moves() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(4).build().unwrap();
    let moves = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..50)
        .map(|_| {
            let moves = moves.clone();
            runtime.block_on(async move {
                // SAFETY: it keeps nothing that depends on the OS thread.
                let started = unsafe {
                    thread::Builder::new().spawn_migrating(move || {
                        let me = RunningUnit.wait();
                        for _ in 0..500 {
                            let before = std::thread::current().id();
                            thread::yield_now();
                            assert_eq!(RunningUnit.wait(), me);
                            let moved = std::thread::current().id() != before;
                            moves.fetch_add(usize::from(moved), Ordering::Relaxed);
                        }
                    })
                };
                started.unwrap()
            })
        })
        .collect();
    for handle in threads {
        handle.join().unwrap();
    }
}
