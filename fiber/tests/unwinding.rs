//! Destructors wait, fork and start threads: during an unwinding, at the end of a job, at the end of an OS thread.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]
#![allow(unsafe_code)]

#[path = "support/on_workers.rs"]
mod on_workers;
#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use on_workers::on_workers;
use reports::{collect_reports, reports};
use tools::{Drops, Latch, on_each, runtime, until, until_yielding, watch};
use weald_fiber as thread;
use weald_kernel::{Runtime, Wait, fork, scope, spawn, spawn_local};

/// Calls its closure when it is dropped.
struct AtDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Two halves that wait for each other, so that one is stolen; both fork again.
fn forks_that_meet() {
    let (first, second) = (Latch::default(), Latch::default());
    fork::join(
        || {
            first.open();
            fork::join(|| second.clone().wait(), || ());
        },
        || {
            first.clone().wait();
            fork::join(|| (), || second.open());
        },
    );
}

/// Starts a thread that holds a guard with `destructor` and waits, and cancels it once it waits.
fn cancel_a_waiter_with(destructor: impl FnMut() + Send + 'static) {
    let latch = Latch::default();
    let waits = latch.clone();
    let guard = AtDrop(destructor);
    let owner = thread::spawn(move || {
        let _guard = guard;
        waits.wait();
    });
    while latch.waiters() == 0 {
        thread::yield_now();
    }
    owner.cancel();
    assert!(owner.join().unwrap_err().is_cancelled());
}

/// A guard that ends the wait of a helper thread, and joins the thread.
fn join_guard(joined: &Arc<AtomicUsize>) -> impl FnMut() + Send + 'static {
    let (latch, joined) = (Latch::default(), joined.clone());
    let waits = latch.clone();
    let mut helper = Some(thread::spawn(move || waits.wait()));
    while latch.waiters() == 0 {
        thread::yield_now();
    }
    move || {
        latch.open();
        helper.take().unwrap().join().unwrap();
        joined.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_guard_of_a_cancelled_thread_joins_its_helper() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let joined = Arc::new(AtomicUsize::new(0));
            let never = Latch::default();
            let (waits, counts) = (never.clone(), joined.clone());
            let owner = thread::spawn(move || {
                let _guard = AtDrop(join_guard(&counts));
                waits.wait();
            });
            while never.waiters() == 0 {
                thread::yield_now();
            }
            owner.cancel();
            assert!(owner.join().unwrap_err().is_cancelled());
            assert_eq!(joined.load(Ordering::SeqCst), 1);
        });
    }
}

#[test]
fn a_guard_of_a_panicking_thread_joins_its_helper() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let joined = Arc::new(AtomicUsize::new(0));
            let counts = joined.clone();
            let owner = thread::spawn(move || {
                let _guard = AtDrop(join_guard(&counts));
                panic!("on purpose");
            });
            assert!(owner.join().unwrap_err().is_panic());
            assert_eq!(joined.load(Ordering::SeqCst), 1);
        });
    }
}

#[test]
fn a_destructor_of_a_cancelled_thread_forks() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let rounds = Arc::new(AtomicUsize::new(0));
            let counts = rounds.clone();
            cancel_a_waiter_with(move || {
                for _ in 0..20 {
                    forks_that_meet();
                    counts.fetch_add(1, Ordering::SeqCst);
                }
            });
            assert_eq!(rounds.load(Ordering::SeqCst), 20);
        });
    }
}

/// The root fork of these forks began before the cancel.
#[test]
fn a_destructor_within_a_half_forks() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let (latch, ended) = (Latch::default(), Arc::new(AtomicUsize::new(0)));
            let (waits, counts) = (latch.clone(), ended.clone());
            let owner = thread::spawn(move || {
                let half = || {
                    let _guard = AtDrop(|| {
                        for _ in 0..20 {
                            forks_that_meet();
                        }
                        counts.fetch_add(1, Ordering::SeqCst);
                    });
                    waits.clone().wait();
                };
                fork::join(half, half);
            });
            // Both wait, unless no worker takes the second one: then it never begins.
            while latch.waiters() == 0 {
                thread::yield_now();
            }
            owner.cancel();
            assert!(owner.join().unwrap_err().is_cancelled());
            assert!((1..=2).contains(&ended.load(Ordering::SeqCst)));
        });
    }
}

/// While a stack is suspended during its unwinding, the standard library takes every job of its OS thread to be
/// panicking.
#[test]
fn a_cancel_reaches_a_forker_beside_a_stack_suspended_while_unwinding() {
    let _watch = watch();
    let runtime = runtime(1);
    let (go, latch) = (Latch::default(), Latch::default());
    let begun = Arc::new(AtomicBool::new(false));
    let (waits, begins) = (go.clone(), begun.clone());
    let forks = runtime.block_on(async {
        thread::spawn(move || {
            waits.wait();
            begins.store(true, Ordering::SeqCst);
            loop {
                fork::join(|| (), || ());
            }
        })
    });
    until(|| go.waiters() == 1);
    let waits = latch.clone();
    let guard = AtDrop(move || {
        go.open();
        waits.clone().wait();
    });
    let unwinds = runtime.block_on(async {
        thread::spawn(move || {
            let _guard = guard;
            panic!("on purpose");
        })
    });
    until(|| begun.load(Ordering::SeqCst));
    forks.cancel();
    let ended = runtime.block_on(forks);
    latch.open();
    assert!(ended.unwrap_err().is_cancelled());
    assert!(runtime.block_on(unwinds).unwrap_err().is_panic());
}

#[test]
fn a_destructor_of_a_cancelled_future_forks() {
    on_each(|runtime| {
        let (latch, sorted) = (Latch::default(), Arc::new(AtomicBool::new(false)));
        let (waits, signals) = (latch.clone(), sorted.clone());
        let job = runtime.spawn(async move {
            let _guard = AtDrop(|| {
                for _ in 0..20 {
                    forks_that_meet();
                }
                let mut numbers: Vec<u32> = (0..50_000).rev().collect();
                fork::sort(&mut numbers);
                signals.store(numbers.is_sorted(), Ordering::SeqCst);
            });
            waits.await;
        });
        until(|| latch.waiters() == 1);
        job.cancel();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        assert!(sorted.load(Ordering::SeqCst));
    });
}

#[test]
fn the_scope_of_a_destructor_is_not_cancelled() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let ended = Arc::new(AtomicUsize::new(0));
            let counts = ended.clone();
            cancel_a_waiter_with(move || {
                thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| {
                            thread::yield_now();
                            forks_that_meet();
                            thread::yield_now();
                            counts.fetch_add(1, Ordering::SeqCst);
                        });
                    }
                });
            });
            assert_eq!(ended.load(Ordering::SeqCst), 4);
        });
    }
}

#[test]
fn a_park_in_an_unwinding_is_unparked() {
    on_each(|runtime| {
        let parked = Arc::new(AtomicBool::new(false));
        let signals = parked.clone();
        let owner = runtime.block_on(async {
            thread::spawn(move || {
                let _guard = AtDrop(|| {
                    let mut park = pin!(weald_kernel::park());
                    poll_fn(|cx| {
                        let polled = park.as_mut().poll(cx);
                        signals.store(true, Ordering::SeqCst);
                        polled
                    })
                    .wait();
                });
                panic!("on purpose");
            })
        });
        until(|| parked.load(Ordering::SeqCst));
        owner.thread().unpark();
        assert!(runtime.block_on(owner).unwrap_err().is_panic());
    });
}

/// Unwindings are counted per OS thread. So a migrating thread that waits during one holds its OS thread, even if
/// others must run there; this is reported.
#[test]
fn a_migrating_thread_stays_where_it_unwinds() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (go, latch) = (Latch::default(), Latch::default());
    let [begun, ended] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let (waits, begins, looks) = (go.clone(), begun.clone(), ended.clone());
    let pinned = runtime.block_on(async {
        thread::spawn(move || {
            waits.wait();
            begins.store(true, Ordering::SeqCst);
            until(|| looks.load(Ordering::SeqCst));
            assert!(!std::thread::panicking(), "no unwinding is left here");
        })
    });
    until(|| go.waiters() == 1);
    let (waits, ends) = (latch.clone(), ended.clone());
    let guard = AtDrop(move || {
        go.open();
        waits.clone().wait();
        ends.store(true, Ordering::SeqCst);
    });
    let moves = runtime.block_on(async {
        let named = thread::Builder::new().name("the mover");
        // SAFETY: it keeps nothing across a wait that depends on the OS thread, except its unwinding.
        let started = unsafe {
            named.spawn_migrating(move || {
                let _guard = guard;
                panic!("on purpose");
            })
        };
        started.unwrap()
    });
    let is_reported = || {
        reports("weald::monitor", "`the mover`")
            .iter()
            .any(|report| {
                report.level == tracing::Level::WARN && report.text.contains("holds its OS thread")
            })
    };
    until(|| is_reported() || begun.load(Ordering::SeqCst));
    latch.open();
    assert!(runtime.block_on(moves).unwrap_err().is_panic());
    runtime.block_on(pinned).unwrap();
    assert!(is_reported());
    let job = runtime.spawn(async { std::thread::panicking() });
    assert!(!runtime.block_on(job).unwrap());
}

/// An output whose destructor waits for a latch; with the latch, and a channel that reports the drop.
fn waits_at_drop() -> (AtDrop<impl FnMut() + Send>, Latch, mpsc::Receiver<()>) {
    let (go, (dropped, receiver)) = (Latch::default(), mpsc::channel());
    let waits = go.clone();
    let output = AtDrop(move || {
        waits.clone().wait();
        dropped.send(()).unwrap();
    });
    (output, go, receiver)
}

#[test]
fn the_output_of_a_detached_job_waits_in_its_destructor() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let (output, go, dropped) = waits_at_drop();
        // To detach a job that has ended is to drop its output in the caller; so this one ends later.
        let detached = Latch::default();
        let ends = detached.clone();
        let job = async move {
            ends.await;
            output
        };
        runtime.spawn(job).detach();
        detached.open();
        until(|| go.waiters() == 1);
        // Another job opens the latch, so the worker's jobs run meanwhile.
        runtime
            .block_on(runtime.spawn(async move { go.open() }))
            .unwrap();
        dropped.recv().unwrap();
        let report = runtime.shutdown(Duration::from_secs(20));
        assert!(report.not_stopped.is_empty(), "{report:?}");
    }
}

#[test]
fn the_output_of_a_detached_thread_waits_in_its_destructor() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let (output, go, dropped) = waits_at_drop();
        let detached = Latch::default();
        let ends = detached.clone();
        runtime.block_on(async {
            thread::spawn(move || {
                ends.wait();
                output
            })
            .detach();
        });
        detached.open();
        until(|| go.waiters() == 1);
        runtime
            .block_on(runtime.spawn(async move { go.open() }))
            .unwrap();
        dropped.recv().unwrap();
        let report = runtime.shutdown(Duration::from_secs(20));
        assert!(report.not_stopped.is_empty(), "{report:?}");
    }
}

/// Joins a thread that was cancelled before it began, and whose code waits when it is dropped.
fn join_a_cancelled_fresh_thread() -> u32 {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (begun, go) = (Latch::default(), Latch::default());
    let opener = {
        let (begun, go) = (begun.clone(), go.clone());
        spawn(async move {
            begun.await;
            go.open();
        })
    };
    let own = AtDrop(|| order.lock().unwrap().push("own"));
    let log = order.clone();
    let capture = AtDrop(move || {
        begun.open();
        go.clone().wait();
        log.lock().unwrap().push("capture");
    });
    let child = thread::spawn(move || {
        let _capture = capture;
        // Another worker may have begun it before the cancel.
        Latch::default().wait();
    });
    child.cancel();
    assert!(child.join().unwrap_err().is_cancelled());
    drop(own);
    assert_eq!(*order.lock().unwrap(), ["capture", "own"]);
    opener.wait().unwrap();
    7
}

#[test]
fn a_thread_joins_a_cancelled_fresh_thread_whose_destructor_waits() {
    on_each(|runtime| {
        for _ in 0..20 {
            let parent =
                runtime.block_on(async { thread::spawn(join_a_cancelled_fresh_thread).await });
            assert_eq!(parent.unwrap(), 7);
        }
    });
}

#[test]
fn a_job_joins_a_cancelled_fresh_thread_whose_destructor_waits() {
    on_each(|runtime| {
        for _ in 0..20 {
            let job = runtime.spawn(async { join_a_cancelled_fresh_thread() });
            assert_eq!(runtime.block_on(job).unwrap(), 7);
        }
    });
}

/// A scope whose body panics while a child waits with its stack.
async fn scope_that_panics(token: tools::Token) {
    let never = Latch::default();
    scope(async |scope| {
        let waits = never.clone();
        let child = scope.spawn(async move {
            let _token = token;
            waits.wait();
        });
        child.detach();
        until_yielding(|| never.waiters() == 1).await;
        panic!("the body");
    })
    .await;
}

#[test]
fn the_children_of_a_scope_whose_body_panics_may_wait_with_their_stacks() {
    on_each(|runtime| {
        let drops = Drops::default();
        let job = runtime.spawn(scope_that_panics(drops.token()));
        assert!(runtime.block_on(job).unwrap_err().is_panic());
        assert_eq!(drops.count(), 1);
    });
}

fn forks_local_jobs_and_threads() {
    // ThreadSanitizer keeps 65,536 calls of a thread at most, and then writes behind them.
    const DEPTH: u32 = if cfg!(weald_thread_sanitizer) {
        2_000
    } else {
        20_000
    };
    fn deep(depth: u32) -> u32 {
        match depth {
            0 => 0,
            _ => {
                let (below, here) = fork::join(|| deep(depth - 1), || 1);
                below + here
            }
        }
    }
    let mut numbers: Vec<u32> = (0..20_000).rev().collect();
    fork::sort(&mut numbers);
    assert!(numbers.is_sorted());
    assert_eq!(deep(DEPTH), DEPTH);
    let local = async { spawn_local(async { 5 }).unwrap().await.unwrap() };
    assert_eq!(weald_kernel::block_on(local), 5);
    assert_eq!(thread::spawn(|| 6).join().unwrap(), 6);
}

#[test]
fn a_destructor_of_a_thread_local_of_a_foreign_thread() {
    struct Works(Runtime, mpsc::Sender<()>);
    impl Drop for Works {
        fn drop(&mut self) {
            forks_local_jobs_and_threads();
            let _bytes = self.0.trim();
            self.1.send(()).unwrap();
        }
    }
    thread_local! {
        static WORKS: std::cell::RefCell<Option<Works>> = const { std::cell::RefCell::new(None) };
    }
    let _watch = watch();
    let (ended, receiver) = mpsc::channel();
    let runtime = runtime(2);
    let foreign = std::thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(move || {
            // Set before the kernel's own thread-locals exist, so that it outlives them; the forks come after.
            WORKS.set(Some(Works(runtime, ended)));
            forks_local_jobs_and_threads();
        });
    foreign.unwrap().join().unwrap();
    receiver.recv().unwrap();
}
