//! A runtime that is shut down or dropped drops what its jobs hold, once: futures, messages, wakers and callbacks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    task::{Poll, Wake, Waker},
    time::Duration,
};

use tools::{Drops, Latch, runtime, until, watch};
use weald_kernel::{
    JoinHandle, Mailbox, Spawn, Wait, block_on,
    callback::{self, Owner, When},
    sleep, spawn, spawn_local, yield_now,
};

#[test]
fn a_callback_that_is_due_once_the_runtime_has_stopped_is_dropped() {
    struct AwaitsDrop(Drops);
    impl Drop for AwaitsDrop {
        fn drop(&mut self) {
            until(|| self.0.count() == 1);
        }
    }
    let _watch = watch();
    let (runtime, drops, latch) = (runtime(1), Drops::default(), Latch::default());
    let (awaits, waits, token) = (AwaitsDrop(drops.clone()), latch.clone(), drops.token());
    let job = async move {
        let _awaits = awaits;
        waits.wait();
    };
    runtime.spawn(job).detach();
    until(|| latch.waiters() == 1);
    let soon = When::At(weald_kernel::now() + Duration::from_millis(20));
    runtime.block_on(async {
        callback::once(Owner::runtime(), soon, move || drop(token)).detach();
    });
    drop(runtime);
    assert_eq!(drops.count(), 1);
}

#[test]
fn dropping_a_runtime_drops_everything_it_holds() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let (runtime, drops) = (runtime(workers), Drops::default());
        let latch = Latch::default();
        let parked = Arc::new(AtomicUsize::new(0));
        for n in 0..6_000_u64 {
            let (token, waits, parked) = (drops.token(), latch.clone(), parked.clone());
            let job = async move {
                let _token = token;
                parked.fetch_add(1, Ordering::SeqCst);
                match n % 3 {
                    0 => std::future::pending::<()>().await,
                    1 => sleep(Duration::from_secs(1000 + n)).await,
                    _ => {
                        let local = spawn_local(std::future::pending::<()>()).unwrap();
                        drop(waits);
                        local.await.unwrap();
                    }
                }
            };
            runtime.spawn(job).detach();
        }
        until(|| parked.load(Ordering::SeqCst) == 6_000);
        // Others are still queued, or spawn while the runtime closes.
        for _ in 0..1_000 {
            let token = drops.token();
            runtime
                .spawn(async move {
                    let _token = token;
                    loop {
                        spawn(async {}).detach();
                        yield_now().await;
                    }
                })
                .detach();
        }
        drop(runtime);
        assert_eq!(drops.count(), 7_000);
    }
}

#[test]
fn messages_in_closed_mailboxes_are_dropped_too() {
    let _watch = watch();
    for workers in [1, 2] {
        let (runtime, drops) = (runtime(workers), Drops::default());
        let (_job, address) = runtime.block_on(async {
            Spawn::new()
                .spawn_with_mailbox(|mailbox: Mailbox<tools::Token>| async move {
                    let _mailbox = mailbox;
                    std::future::pending::<()>().await;
                })
                .unwrap()
        });
        for _ in 0..100 {
            assert!(address.post(drops.token()).is_ok());
        }
        drop(runtime);
        assert_eq!(drops.count(), 100);
        assert!(address.post(drops.token()).is_err());
        assert_eq!(drops.count(), 101);
    }
}

#[test]
fn the_waker_of_a_timer_does_not_outlive_its_runtime() {
    struct Foreign;
    impl Wake for Foreign {
        fn wake(self: Arc<Self>) {}
    }
    let _watch = watch();
    let foreign = Arc::new(Foreign);
    let runtime = runtime(2);
    let mut kept = Box::pin(sleep(Duration::from_secs(3600)));
    runtime.block_on(async {
        let waker = Waker::from(foreign.clone());
        let mut cx = std::task::Context::from_waker(&waker);
        let mut dropped = Box::pin(sleep(Duration::from_secs(3600)));
        assert!(dropped.as_mut().poll(&mut cx).is_pending());
        assert!(kept.as_mut().poll(&mut cx).is_pending());
    });
    drop(runtime);
    drop(kept);
    assert_eq!(Arc::strong_count(&foreign), 1);
}

#[test]
fn destructors_may_wake_and_drop_others_during_the_shutdown() {
    struct Opens(Latch);
    impl Drop for Opens {
        fn drop(&mut self) {
            self.0.open();
        }
    }
    let _watch = watch();
    for workers in [1, 2, 4] {
        let (runtime, drops) = (runtime(workers), Drops::default());
        let latches: Vec<_> = (0..101).map(|_| Latch::default()).collect();
        for pair in latches.windows(2) {
            let (opens, waits, token) = (Opens(pair[1].clone()), pair[0].clone(), drops.token());
            runtime
                .spawn(async move {
                    let _opens = opens;
                    let _token = token;
                    waits.await;
                    std::future::pending::<()>().await;
                })
                .detach();
        }
        until(|| latches[..100].iter().all(|latch| latch.waiters() == 1));
        drop(runtime);
        assert_eq!(drops.count(), 100);
    }
}

#[test]
fn two_hundred_runtimes_come_and_go() {
    let _watch = watch();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    for n in 0..200_u64 {
        let (runtime, drops) = (runtime(1 + (n % 4) as usize), Drops::default());
        let token = drops.token();
        runtime
            .spawn(async move {
                let _token = token;
                std::future::pending::<()>().await;
            })
            .detach();
        assert_eq!(
            runtime.block_on(runtime.spawn(async move { n })).unwrap(),
            n
        );
        drop(runtime);
        assert_eq!(drops.count(), 1);
    }
    // The other tests of this file have threads of their own.
    until(|| threads() <= before + 100);
}

#[test]
fn a_runtime_is_dropped_at_any_moment() {
    tools::for_seeds(8, |random| {
        for _ in 0..10 {
            let (runtime, drops) = (runtime(1 + random.below(4)), Drops::default());
            let jobs = random.below(300);
            for n in 0..jobs {
                let token = drops.token();
                runtime
                    .spawn(async move {
                        let _token = token;
                        match n % 4 {
                            0 => {}
                            1 => yield_now().await,
                            2 => sleep(Duration::from_millis(1)).await,
                            _ => spawn(yield_now()).await.unwrap_or(()),
                        }
                    })
                    .detach();
            }
            for _ in 0..random.below(5_000) {
                std::hint::spin_loop();
            }
            drop(runtime);
            assert_eq!(drops.count(), jobs);
        }
    });
}

#[test]
fn a_job_woken_by_a_thread_during_the_drop_is_dropped_once() {
    let _watch = watch();
    for _ in 0..50 {
        let (runtime, drops) = (runtime(2), Drops::default());
        let (sender, wakers) = mpsc::channel::<Waker>();
        for _ in 0..20 {
            let (token, sender) = (drops.token(), sender.clone());
            runtime
                .spawn(async move {
                    let _token = token;
                    poll_fn(|cx| {
                        let _ = sender.send(cx.waker().clone());
                        Poll::<()>::Pending
                    })
                    .await;
                })
                .detach();
        }
        drop(sender);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let waking = std::thread::spawn(move || {
            let mut kept = Vec::new();
            while !stopped.load(Ordering::SeqCst) {
                kept.extend(wakers.try_recv());
                kept.iter().for_each(Waker::wake_by_ref);
            }
        });
        until(|| runtime.metrics().polls >= 40);
        drop(runtime);
        stop.store(true, Ordering::SeqCst);
        waking.join().unwrap();
        assert_eq!(drops.count(), 20);
    }
}

/// Cancels a job when it is dropped, and waits for it.
struct CancelsAndJoins(Option<JoinHandle<()>>);

impl Drop for CancelsAndJoins {
    fn drop(&mut self) {
        let job = self.0.take().unwrap();
        job.cancel();
        let _cancelled = block_on(job);
    }
}

/// Sleeps when it is dropped.
struct SleepsAtTheEnd;

impl Drop for SleepsAtTheEnd {
    fn drop(&mut self) {
        block_on(sleep(Duration::from_millis(20)));
    }
}

/// The thread that shuts down waits in the first destructor, and fires no timer for the second one.
#[test]
fn a_destructor_that_waits_for_one_that_sleeps_does_not_hang_a_shutdown() {
    let _watch = watch();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let latch = Latch::default();
        let (first, second) = (latch.clone(), latch.clone());
        let sleeps = runtime.spawn(async move {
            let _sleeps = SleepsAtTheEnd;
            block_on(first);
        });
        runtime
            .spawn(async move {
                let _joins = CancelsAndJoins(Some(sleeps));
                second.await;
            })
            .detach();
        until(|| latch.waiters() == 2 && runtime.metrics().sleeping == workers);
        drop(runtime);
    }
}
