//! `wait()` and `block_on` inside jobs: the stack is suspended, everything else runs on, and a cancel unwinds
//! the stack once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use tools::{Drops, Latch, for_seeds, on_each, runtime, until, until_yielding, watch};
use weald_kernel::{
    Mailbox, Spawn, Wait, block_on, sleep, spawn, spawn_child, spawn_local, yield_now,
};

#[test]
fn a_job_waits_for_jobs_of_its_own_worker() {
    on_each(|runtime| {
        let value = runtime.block_on(runtime.spawn(async {
            let inner = spawn(async {
                yield_now().await;
                20
            });
            inner.wait().unwrap() + block_on(async { spawn(async { 22 }).await.unwrap() })
        }));
        assert_eq!(value.unwrap(), 42);
    });
}

#[test]
fn a_hundred_jobs_wait_at_once_on_one_worker() {
    let _watch = watch();
    let runtime = runtime(1);
    let (latch, ended) = (Latch::default(), Arc::new(AtomicUsize::new(0)));
    let jobs: Vec<_> = (0..100)
        .map(|_| {
            let (latch, ended) = (latch.clone(), ended.clone());
            runtime.spawn(async move {
                latch.wait();
                ended.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    until(|| latch.waiters() == 100);
    // The only worker still runs other jobs.
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    latch.open();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    assert_eq!(ended.load(Ordering::SeqCst), 100);
}

#[test]
fn more_jobs_wait_at_once_than_there_may_be_spare_threads() {
    let _watch = watch();
    // By default there are at most 512 spare threads. Any waiting job may be the one that all others wait for.
    let (runtime, latch) = (runtime(1), Latch::default());
    let jobs: Vec<_> = (0..600)
        .map(|_| {
            let latch = latch.clone();
            runtime.spawn(async move { latch.wait() })
        })
        .collect();
    until(|| latch.waiters() == 600);
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    latch.open();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

#[test]
fn waits_nest_and_mix_with_awaits() {
    fn nest(depth: u32) -> u32 {
        match depth {
            0 => 0,
            _ => spawn(async move {
                yield_now().await;
                let below = nest(depth - 1);
                yield_now().await;
                below + 1
            })
            .wait()
            .unwrap(),
        }
    }
    on_each(|runtime| {
        assert_eq!(
            runtime.block_on(runtime.spawn(async { nest(20) })).unwrap(),
            20
        );
    });
}

#[test]
fn a_job_resumes_in_the_same_poll_after_a_wait() {
    on_each(|runtime| {
        runtime.block_on(async {
            let job = spawn(async {
                for n in 0..20_u64 {
                    let thread = std::thread::current().id();
                    sleep(Duration::from_millis(n % 2)).wait();
                    assert_eq!(thread, std::thread::current().id());
                    yield_now().await;
                }
            });
            job.await.unwrap();
        });
    });
}

#[test]
fn a_wait_of_more_operations_than_the_budget_ends() {
    on_each(|runtime| {
        let sum = runtime.block_on(runtime.spawn(async {
            let jobs: Vec<_> = (0..1_000_u64).map(|n| spawn(async move { n })).collect();
            let all = async {
                let mut sum = 0;
                for job in jobs {
                    sum += job.await.unwrap();
                }
                sum
            };
            all.wait()
        }));
        assert_eq!(sum.unwrap(), 499_500);
    });
}

/// Waits with the stack, and counts when a cancel unwinds the wait.
fn wait_counting(latch: Latch, unwound: &AtomicUsize) {
    struct CountsUnwinding<'a>(&'a AtomicUsize);
    impl Drop for CountsUnwinding<'_> {
        fn drop(&mut self) {
            assert!(std::thread::panicking());
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let counts = CountsUnwinding(unwound);
    latch.wait();
    std::mem::forget(counts);
}

#[test]
fn cancelling_a_job_in_wait_unwinds_it_once() {
    on_each(|runtime| {
        let (latch, unwound) = (Latch::default(), Arc::new(AtomicUsize::new(0)));
        let drops = Drops::default();
        let (waits, counted, token) = (latch.clone(), unwound.clone(), drops.token());
        let job = runtime.spawn(async move {
            let _token = token;
            wait_counting(waits, &counted);
        });
        until(|| latch.waiters() == 1);
        job.cancel();
        job.cancel();
        let result = runtime.block_on(job);
        assert!(result.unwrap_err().is_cancelled());
        assert_eq!((unwound.load(Ordering::SeqCst), drops.count()), (1, 1));
    });
}

#[test]
fn a_cancel_before_the_wait_unwinds_it_too() {
    let _watch = watch();
    let runtime = runtime(1);
    let unwound = Arc::new(AtomicUsize::new(0));
    let counted = unwound.clone();
    let (running, is_running) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let job = runtime.spawn(async move {
        running.send(()).unwrap();
        may_go.recv().unwrap();
        wait_counting(Latch::default(), &counted);
    });
    is_running.recv().unwrap();
    job.cancel();
    go.send(()).unwrap();
    assert!(runtime.block_on(job).unwrap_err().is_cancelled());
    assert_eq!(unwound.load(Ordering::SeqCst), 1);
}

#[test]
fn a_cancelled_job_gets_nothing_that_is_ready() {
    let _watch = watch();
    let runtime = runtime(1);
    let (running, is_running) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let job = runtime.spawn(async move {
        running.send(()).unwrap();
        may_go.recv().unwrap();
        std::future::ready(()).wait();
    });
    is_running.recv().unwrap();
    job.cancel();
    go.send(()).unwrap();
    assert!(runtime.block_on(job).unwrap_err().is_cancelled());
}

#[test]
fn a_job_that_catches_the_unwinding_may_wait_again() {
    on_each(|runtime| {
        let (first, second) = (Latch::default(), Latch::default());
        let (waits, waits_again) = (first.clone(), second.clone());
        let job = runtime.spawn(async move {
            let caught = catch_unwind(AssertUnwindSafe(|| waits.wait()));
            assert!(caught.is_err());
            waits_again.wait();
            5
        });
        until(|| first.waiters() == 1);
        job.cancel();
        until(|| second.waiters() == 1);
        job.cancel();
        assert!(!job.is_finished());
        second.open();
        assert_eq!(runtime.block_on(job).unwrap(), 5);
    });
}

/// Waits in its destructor until its latch opens, then sets its flag.
struct WaitsAtDrop(Latch, Arc<AtomicBool>);

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        self.0.clone().wait();
        self.1.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_wait_in_a_destructor_during_unwinding_completes() {
    on_each(|runtime| {
        let (latch, at_drop, waited) = (Latch::default(), Latch::default(), Arc::default());
        let waits = WaitsAtDrop(at_drop.clone(), Arc::clone(&waited));
        let inner = latch.clone();
        let job = runtime.spawn(async move {
            let _waits = waits;
            inner.wait();
        });
        until(|| latch.waiters() == 1);
        job.cancel();
        until(|| at_drop.waiters() == 1);
        assert!(!job.is_finished());
        at_drop.open();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        assert!(waited.load(Ordering::SeqCst));
    });
}

#[test]
fn a_wait_in_a_destructor_after_a_panic_completes() {
    on_each(|runtime| {
        let (at_drop, waited) = (Latch::default(), Arc::default());
        let waits = WaitsAtDrop(at_drop.clone(), Arc::clone(&waited));
        let job = runtime.spawn(async move {
            let _waits = waits;
            panic!("on purpose");
        });
        until(|| at_drop.waiters() == 1);
        at_drop.open();
        let result: Result<(), _> = runtime.block_on(job);
        assert!(result.unwrap_err().is_panic());
        assert!(waited.load(Ordering::SeqCst));
    });
}

#[test]
fn a_wait_in_a_destructor_of_a_cancelled_job_completes() {
    on_each(|runtime| {
        let (latch, at_drop, waited) = (Latch::default(), Latch::default(), Arc::default());
        let waits = WaitsAtDrop(at_drop.clone(), Arc::clone(&waited));
        let inner = latch.clone();
        let job = runtime.spawn(async move {
            let _waits = waits;
            inner.await;
        });
        until(|| latch.waiters() == 1);
        job.cancel();
        until(|| at_drop.waiters() == 1 || job.is_finished());
        at_drop.open();
        let error = runtime.block_on(job).unwrap_err();
        assert!(error.is_cancelled(), "{error}");
        assert!(
            waited.load(Ordering::SeqCst),
            "the destructor was abandoned halfway"
        );
    });
}

#[test]
fn cancels_race_with_waits() {
    for_seeds(4, |random| {
        let runtime = runtime(1 + random.below(3));
        let drops = Drops::default();
        let rounds = 100;
        for _ in 0..rounds {
            let (latch, token) = (Latch::default(), drops.token());
            let waits = latch.clone();
            let job = runtime.spawn(async move {
                let _token = token;
                waits.wait();
            });
            let (opens, spins) = (random.below(2) == 0, random.below(20_000));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    if opens {
                        latch.open();
                    }
                });
                for _ in 0..spins {
                    std::hint::spin_loop();
                }
                job.cancel();
            });
            match runtime.block_on(job) {
                Ok(()) => assert!(opens),
                Err(error) => assert!(error.is_cancelled(), "{error}"),
            }
        }
        assert_eq!(drops.count(), rounds);
    });
}

#[test]
fn block_on_nests_on_a_foreign_thread() {
    on_each(|runtime| {
        let value = runtime.block_on(async {
            let inner = block_on(async {
                yield_now().await;
                spawn(async { 1 }).await.unwrap()
            });
            runtime.block_on(async { sleep(Duration::from_millis(1)).wait() });
            inner + 1
        });
        assert_eq!(value, 2);
    });
}

#[test]
fn a_job_waits_for_another_runtime() {
    let _watch = watch();
    let (first, second) = (runtime(1), Arc::new(runtime(1)));
    let other = second.clone();
    let value = first.block_on(first.spawn(async move {
        let job = other.spawn(async {
            yield_now().await;
            4
        });
        let value = other.block_on(job).unwrap();
        drop(other);
        value
    }));
    assert_eq!(value.unwrap(), 4);
    drop((first, second));
}

#[test]
fn other_jobs_of_the_worker_run_while_one_waits() {
    let _watch = watch();
    let runtime = runtime(1);
    let (latch, steps) = (Latch::default(), Arc::new(AtomicUsize::new(0)));
    let waits = latch.clone();
    let waiting = runtime.spawn(async move { waits.wait() });
    until(|| latch.waiters() == 1);
    let counted = steps.clone();
    let stepping = runtime.spawn(async move {
        for _ in 0..1_000 {
            counted.fetch_add(1, Ordering::SeqCst);
            yield_now().await;
        }
    });
    runtime.block_on(async {
        until_yielding(|| steps.load(Ordering::SeqCst) == 1_000).await;
    });
    assert!(!waiting.is_finished());
    latch.open();
    runtime.block_on(async { (waiting.await.unwrap(), stepping.await.unwrap()) });
}

#[test]
fn a_job_that_waits_for_its_own_local_job_continues_as_before() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            for n in 0..50_u32 {
                let local = spawn_local(async move {
                    yield_now().await;
                    spawn(async {}).await.unwrap();
                    n
                });
                assert_eq!(local.unwrap().wait().unwrap(), n);
                // It is still this job that yields, spawns children and is woken.
                yield_now().await;
                spawn_child(yield_now()).await.unwrap();
                sleep(Duration::from_micros(10)).await;
            }
        });
        runtime.block_on(job).unwrap();
    });
}

#[test]
fn a_wait_inside_a_poll_keeps_the_other_wakes_of_the_poll() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            let (receiving, address) = Spawn::new()
                .spawn_with_mailbox(|mut mailbox: Mailbox<u32>| async move {
                    let mut waited = false;
                    std::future::poll_fn(|cx| {
                        // Listens first, then waits with the stack, on which the local job runs nested.
                        let polled = mailbox.poll_receive(cx);
                        if polled.is_pending() && !std::mem::replace(&mut waited, true) {
                            let local = spawn_local(async { yield_now().await });
                            local.unwrap().wait().unwrap();
                        }
                        polled
                    })
                    .await
                })
                .unwrap();
            sleep(Duration::from_millis(5)).await;
            address.post(8).unwrap();
            receiving.await.unwrap()
        });
        assert_eq!(runtime.block_on(job).unwrap(), 8);
    });
}

#[test]
fn a_wait_inside_a_poll_uses_up_no_wake_that_is_meant_for_the_poll() {
    on_each(|runtime| {
        let (outer, inner) = (Latch::default(), Latch::default());
        let waiting = runtime.spawn({
            let (mut outer, inner) = (outer.clone(), inner.clone());
            async move {
                let mut waited = false;
                std::future::poll_fn(|cx| {
                    let polled = Pin::new(&mut outer).poll(cx);
                    if polled.is_pending() && !std::mem::replace(&mut waited, true) {
                        inner.clone().wait();
                    }
                    polled
                })
                .await;
            }
        });
        let opening = runtime.spawn(async move {
            until_yielding(|| inner.waiters() == 1).await;
            // The stack is suspended in the inner wait, so both wakes resume it there.
            outer.open();
            inner.open();
        });
        runtime.block_on(async { (opening.await.unwrap(), waiting.await.unwrap()) });
    });
}
