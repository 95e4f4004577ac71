//! `fork::scope`: parts may borrow and fork further parts, and all have ended when it returns.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tools::{Drops, Latch, on_each, runtime, until, watch};
use weald_kernel::{
    JoinError, Runtime, Wait,
    fork::{self, Scope, join},
    sleep, spawn,
};

fn spawn_in<R: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> R + Send + 'static) -> R {
    runtime.block_on(async { spawn(async move { f() }).await.unwrap() })
}

#[test]
fn parts_write_to_what_they_borrow() {
    on_each(|runtime| {
        let counts = spawn_in(runtime, || {
            let mut counts = vec![0; 1000];
            fork::scope(|scope| {
                for (at, count) in counts.iter_mut().enumerate() {
                    scope.spawn(move || *count = at);
                }
            });
            counts
        });
        assert_eq!(counts, Vec::from_iter(0..1000));
    });
}

#[test]
fn parts_fork_further_parts_and_join() {
    fn divide<'scope>(scope: &'scope Scope<'scope, '_>, n: usize, sum: &'scope AtomicUsize) {
        if n == 0 {
            let (a, b) = join(|| 1, || 2);
            sum.fetch_add(a + b, Ordering::Relaxed);
            return;
        }
        scope.spawn(move || divide(scope, n - 1, sum));
        scope.spawn(move || divide(scope, n - 1, sum));
    }
    on_each(|runtime| {
        let sum = spawn_in(runtime, || {
            let sum = AtomicUsize::new(0);
            fork::scope(|scope| divide(scope, 8, &sum));
            sum.into_inner()
        });
        assert_eq!(sum, 3 * 256);
    });
}

#[test]
fn a_part_runs_while_the_body_waits_for_it() {
    on_each(|runtime| {
        let value = spawn_in(runtime, || {
            let (sender, receiver) = futures_channel::oneshot::channel();
            fork::scope(|scope| {
                scope.spawn(move || sender.send(42).unwrap());
                receiver.wait()
            })
        });
        assert_eq!(value, Ok(42));
    });
}

#[test]
fn the_panic_of_the_part_that_was_spawned_first_comes_out() {
    on_each(|runtime| {
        let (message, ran) = spawn_in(runtime, || {
            let ran = AtomicUsize::new(0);
            let panic = catch_unwind(AssertUnwindSafe(|| {
                fork::scope(|scope| {
                    for n in 0..20 {
                        let ran = &ran;
                        scope.spawn(move || {
                            ran.fetch_add(1, Ordering::SeqCst);
                            assert!(n < 10, "part {n}");
                        });
                    }
                });
            }));
            let payload = panic.unwrap_err();
            (
                payload.downcast_ref::<String>().unwrap().clone(),
                ran.into_inner(),
            )
        });
        assert_eq!((message.as_str(), ran), ("part 10", 20));
    });
}

#[test]
fn a_panic_of_the_body_comes_out_after_all_parts() {
    on_each(|runtime| {
        let ran = spawn_in(runtime, || {
            let ran = AtomicUsize::new(0);
            let panic = catch_unwind(AssertUnwindSafe(|| {
                fork::scope(|scope| {
                    scope.spawn(|| {
                        ran.fetch_add(1, Ordering::SeqCst);
                    });
                    scope.spawn(|| panic!("part"));
                    panic!("body");
                });
            }));
            assert_eq!(panic.unwrap_err().downcast_ref::<&str>(), Some(&"body"));
            ran.into_inner()
        });
        assert_eq!(ran, 1);
    });
}

#[test]
fn a_cancel_ends_parts_that_wait() {
    let _watch = watch();
    let runtime = runtime(2);
    let (latch, drops) = (Latch::default(), Drops::default());
    let job = {
        let (latch, drops) = (latch.clone(), drops.clone());
        runtime.spawn(async move {
            fork::scope(|scope| {
                for _ in 0..3 {
                    let (latch, token) = (latch.clone(), drops.token());
                    scope.spawn(move || {
                        let _token = token;
                        latch.wait();
                    });
                }
            });
        })
    };
    until(|| latch.waiters() >= 2);
    job.cancel();
    assert!(matches!(runtime.block_on(job), Err(JoinError::Cancelled)));
    assert_eq!((drops.made(), drops.count()), (3, 3));
}

#[test]
fn scopes_work_on_foreign_threads() {
    let _watch = watch();
    let sum = Mutex::new(0);
    let result = fork::scope(|scope| {
        for n in 0..100 {
            let sum = &sum;
            scope.spawn(move || *sum.lock().unwrap() += n);
        }
        "body"
    });
    assert_eq!((result, sum.into_inner().unwrap()), ("body", 4950));
}

/// Its destructor runs two parts that meet, so that another thread runs one of them; both fork.
struct ScopeAtDrop<'a>(&'a AtomicUsize);

impl Drop for ScopeAtDrop<'_> {
    fn drop(&mut self) {
        let begun = AtomicUsize::new(0);
        let part = || {
            begun.fetch_add(1, Ordering::SeqCst);
            while begun.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            join(|| (), || ());
            self.0.fetch_add(1, Ordering::SeqCst);
        };
        fork::scope(|scope| {
            scope.spawn(part);
            scope.spawn(part);
        });
    }
}

#[test]
fn parts_of_a_scope_in_a_destructor_are_not_unwound_by_the_cancel_that_runs_it() {
    let _watch = watch();
    let runtime = runtime(3);
    for _ in 0..20 {
        let ended = Arc::new(AtomicUsize::new(0));
        let (latch, counted) = (Latch::default(), ended.clone());
        let begun = latch.clone();
        let job = runtime.spawn(async move {
            let forks_forever = || {
                let _scope = ScopeAtDrop(&counted);
                begun.open();
                loop {
                    join(|| (), || ());
                }
            };
            join(forks_forever, || ());
        });
        runtime.block_on(latch);
        job.cancel();
        assert!(matches!(runtime.block_on(job), Err(JoinError::Cancelled)));
        assert_eq!(ended.load(Ordering::SeqCst), 2);
    }
}

/// Runs `forks`, which panics, in a job that is cancelled while it waits; the job catches the panic and waits again.
fn a_wait_after(forks: impl FnOnce(Latch) + Send + 'static) {
    Runtime::test(7).block_on(async {
        let (first, second) = (Latch::default(), Latch::default());
        let (forks_wait, job_waits) = (first.clone(), second.clone());
        let job = spawn(async move {
            let caught = catch_unwind(AssertUnwindSafe(|| forks(forks_wait)));
            assert!(caught.is_err());
            job_waits.wait();
        });
        // Time moves on only when nothing can run any longer: the forks wait then.
        sleep(Duration::from_secs(1)).await;
        job.cancel();
        first.open();
        sleep(Duration::from_secs(1)).await;
        let ended = job.is_finished();
        second.open();
        assert!(ended, "the cancel was lost");
        assert!(job.await.is_err_and(|error| error.is_cancelled()));
    });
}

#[test]
fn a_cancel_that_the_panic_of_a_scopes_body_hides_unwinds_the_next_wait() {
    a_wait_after(|latch| {
        fork::scope(|scope| {
            for _ in 0..2 {
                let latch = latch.clone();
                scope.spawn(move || latch.wait());
            }
            panic!("the body");
        })
    });
}

#[test]
fn a_cancel_that_the_panic_of_a_part_hides_unwinds_the_next_wait() {
    a_wait_after(|latch| {
        fork::scope(|scope| {
            scope.spawn(|| panic!("the first part"));
            scope.spawn(move || latch.wait());
        })
    });
}

#[test]
fn a_cancel_that_the_panic_of_a_first_half_hides_unwinds_the_next_wait() {
    a_wait_after(|latch| {
        join(|| panic!("the first half"), move || latch.wait());
    });
}

/// Starts `count` parts that do `wait`, and then one that all of them wait for.
fn parts_that_wait_for_the_last_one(count: usize, wait: fn(&Latch)) {
    let _watch = watch();
    for workers in [1, 2] {
        let builder = Runtime::builder().workers(workers);
        let runtime = builder.stuck_after(Duration::from_millis(1)).build();
        let runtime = runtime.unwrap();
        spawn_in(&runtime, move || {
            let (last, ended) = (Latch::default(), AtomicUsize::new(0));
            fork::scope(|scope| {
                for _ in 0..count {
                    scope.spawn(|| {
                        wait(&last);
                        ended.fetch_add(1, Ordering::Relaxed);
                    });
                }
                scope.spawn(|| last.open());
            });
            assert_eq!(ended.into_inner(), count);
        });
    }
}

#[test]
fn more_parts_than_workers_may_wait_for_the_last_one() {
    parts_that_wait_for_the_last_one(6, |last| last.clone().wait());
}

#[test]
fn more_parts_than_workers_may_block_their_threads_for_the_last_one() {
    parts_that_wait_for_the_last_one(6, |last| {
        let (tx, rx) = std::sync::mpsc::channel();
        let last = last.clone();
        std::thread::spawn(move || {
            weald_kernel::block_on(last);
            tx.send(()).unwrap();
        });
        rx.recv().unwrap();
    });
}

/// The first two parts are noted as blocked, and then wait; only after that the body spawns the part that they wait
/// for.
#[test]
fn parts_that_blocked_their_threads_and_then_wait_get_what_is_spawned_later() {
    let _watch = watch();
    let builder = Runtime::builder().workers(2);
    let runtime = builder.stuck_after(Duration::from_millis(1)).build();
    let runtime = runtime.unwrap();
    spawn_in(&runtime, || {
        let (last, waiting) = (Latch::default(), Latch::default());
        let senders = Mutex::new(Vec::new());
        fork::scope(|scope| {
            for _ in 0..2 {
                let (tx, rx) = std::sync::mpsc::channel();
                senders.lock().unwrap().push(tx);
                let last = last.clone();
                scope.spawn(move || {
                    rx.recv().unwrap();
                    last.wait();
                });
            }
            // Begins only once a runner of the first two counts as waiting.
            scope.spawn(|| {
                for tx in senders.lock().unwrap().drain(..) {
                    tx.send(()).unwrap();
                }
                waiting.open();
            });
            waiting.clone().wait();
            until(|| last.waiters() == 2);
            scope.spawn(|| last.open());
            last.clone().wait();
        });
    });
}
