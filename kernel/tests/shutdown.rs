//! A shutdown returns, with everything dropped once: jobs that can finish do, waiting jobs are cancelled, and
//! the others are named.

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
    time::{Duration, Instant},
};

use tools::{Drops, Latch, runtime, until, watch};
use weald_kernel::{
    JoinHandle, Mailbox, Runtime, Spawn, SpawnError, Wait, block_in_place, block_on,
    callback::{self, Owner, When},
    scope, sleep, spawn, spawn_local, timeout, yield_now,
};

const LONG: Duration = Duration::from_secs(30);
/// Well below `LONG`, well above what a loaded machine needs.
const PROMPT: Duration = Duration::from_secs(15);

#[test]
fn jobs_that_can_finish_do() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let ended = Arc::new(AtomicUsize::new(0));
        for n in 0..500_u64 {
            let ended = ended.clone();
            runtime
                .spawn(async move {
                    for _ in 0..n % 10 {
                        yield_now().await;
                    }
                    if n % 5 == 0 {
                        sleep(Duration::from_millis(n % 20)).await;
                    }
                    ended.fetch_add(1, Ordering::SeqCst);
                })
                .detach();
        }
        let report = runtime.shutdown(LONG);
        assert_eq!(ended.load(Ordering::SeqCst), 500);
        assert_eq!((report.cancelled, report.not_stopped.len()), (0, 0));
    }
}

#[test]
fn jobs_that_wait_are_cancelled_and_counted() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let (runtime, drops) = (runtime(workers), Drops::default());
        let latch = Latch::default();
        let jobs: Vec<_> = (0..100)
            .map(|_| {
                let (token, waits) = (drops.token(), latch.clone());
                runtime.spawn(async move {
                    let _token = token;
                    waits.await;
                })
            })
            .collect();
        until(|| latch.waiters() == 100);
        let before = Instant::now();
        let report = runtime.shutdown(LONG);
        assert!(before.elapsed() < PROMPT);
        assert_eq!((report.cancelled, report.not_stopped.len()), (100, 0));
        assert_eq!(drops.count(), 100);
        let other = tools::runtime(1);
        for job in jobs {
            assert!(other.block_on(job).unwrap_err().is_cancelled());
        }
        latch.open();
    }
}

#[test]
fn jobs_in_wait_are_unwound() {
    let _watch = watch();
    for drains in [true, false] {
        let (drops, latch) = (Drops::default(), Latch::default());
        let runtime = Runtime::builder()
            .workers(1)
            .shutdown_deadline(LONG)
            .build()
            .unwrap();
        let (token, waits) = (drops.token(), latch.clone());
        let job = runtime.spawn(async move {
            let _token = token;
            waits.wait();
        });
        until(|| latch.waiters() == 1);
        let before = Instant::now();
        match drains {
            true => {
                let report = runtime.shutdown(Duration::from_secs(2));
                assert_eq!((report.cancelled, report.not_stopped.len()), (1, 0));
            }
            false => drop(runtime),
        }
        assert!(before.elapsed() < PROMPT, "it took {:?}", before.elapsed());
        assert_eq!(drops.count(), 1);
        assert!(tools::runtime(1).block_on(job).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_job_that_leaves_its_wait_at_the_deadline_gets_a_moment_to_unwind() {
    /// Its destructor takes some time.
    struct Leaves;
    impl Drop for Leaves {
        fn drop(&mut self) {
            #[expect(clippy::disallowed_methods, reason = "the destructor has to take time")]
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let _watch = watch();
    let leaves = || {
        let (runtime, latch) = (runtime(1), Latch::default());
        let waits = latch.clone();
        let job = async move {
            let _leaves = Leaves;
            waits.wait();
        };
        runtime.spawn(job).detach();
        until(|| latch.waiters() == 1);
        runtime.shutdown(Duration::ZERO).not_stopped.is_empty()
    };
    // On a loaded machine the moment may be too short, but not every time.
    assert!((0..50).any(|_| leaves()));
}

#[test]
fn a_scope_whose_child_blocks_a_thread_does_not_delay_the_shutdown() {
    let _watch = watch();
    let (runtime, drops) = (runtime(2), Drops::default());
    let (go, may_go) = mpsc::channel::<()>();
    let (begins, has_begun) = mpsc::channel();
    let token = drops.token();
    let job = runtime.spawn(scope(async move |scope| {
        let child = async move {
            let _token = token;
            begins.send(()).unwrap();
            may_go.recv().unwrap();
        };
        scope.spawn(child).detach();
        std::future::pending::<()>().await;
    }));
    has_begun.recv().unwrap();
    let report = runtime.shutdown(Duration::from_millis(20));
    assert_eq!((report.cancelled, report.not_stopped.len()), (1, 1));
    assert!(tools::runtime(1).block_on(job).unwrap_err().is_cancelled());
    assert_eq!(drops.count(), 0);
    go.send(()).unwrap();
    until(|| drops.count() == 1);
}

#[test]
fn a_job_that_blocks_beyond_the_deadline_is_named_and_may_return_later() {
    let _watch = watch();
    let runtime = runtime(2);
    let drops = Drops::default();
    let (go, may_go) = mpsc::channel::<()>();
    let (begins, has_begun) = mpsc::channel();
    let token = drops.token();
    let job = runtime.block_on(async {
        Spawn::new().name("the blocker").spawn(async move {
            let _token = token;
            begins.send(()).unwrap();
            may_go.recv().unwrap();
            5
        })
    });
    has_begun.recv().unwrap();
    let report = runtime.shutdown(Duration::from_millis(20));
    let names: Vec<_> = report
        .not_stopped
        .iter()
        .map(|job| job.name.as_deref())
        .collect();
    assert_eq!(names, [Some("the blocker")]);
    assert_eq!(drops.count(), 0);
    go.send(()).unwrap();
    // The deadline cancelled the job, but it finished before its next wait.
    let value = tools::runtime(1).block_on(job);
    assert!(value.is_ok_and(|value| value == 5));
    until(|| drops.count() == 1);
}

#[test]
fn a_job_that_blocked_beyond_the_deadline_is_dropped_at_its_next_wait() {
    let _watch = watch();
    for announced in [false, true] {
        let runtime = runtime(1);
        let drops = Drops::default();
        let (go, may_go) = mpsc::channel::<()>();
        let (begins, has_begun) = mpsc::channel();
        let token = drops.token();
        let job = runtime.spawn(async move {
            let _token = token;
            begins.send(()).unwrap();
            match announced {
                true => block_in_place(|| may_go.recv().unwrap()),
                false => may_go.recv().unwrap(),
            }
            std::future::pending::<()>().await;
        });
        has_begun.recv().unwrap();
        assert_eq!(runtime.shutdown(Duration::ZERO).not_stopped.len(), 1);
        go.send(()).unwrap();
        assert!(tools::runtime(1).block_on(job).unwrap_err().is_cancelled());
        assert_eq!(drops.count(), 1);
    }
}

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
fn a_finished_timeout_does_not_delay_a_shutdown() {
    let _watch = watch();
    let runtime = runtime(1);
    let latch = Latch::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until(|| runtime.metrics().timers == 1);
            latch.open();
        });
        // Armed and dropped on this thread, which owns no worker: the timer's entry stays until
        // a sweep removes it.
        runtime
            .block_on(timeout(Duration::from_secs(3600), latch.clone()))
            .unwrap();
    });
    let before = Instant::now();
    runtime.shutdown(LONG);
    assert!(before.elapsed() < PROMPT, "it took {:?}", before.elapsed());
}

#[test]
fn a_shutdown_waits_for_a_running_sleep_although_others_were_cancelled() {
    let _watch = watch();
    let runtime = runtime(1);
    // Armed and dropped on this thread: stale entries that come due.
    runtime.block_on(async {
        for _ in 0..40 {
            let mut dropped = Box::pin(sleep(Duration::from_millis(1)));
            let cx = &mut std::task::Context::from_waker(Waker::noop());
            let _ = dropped.as_mut().poll(cx);
        }
        sleep(Duration::from_millis(5)).await;
    });
    let ended = Arc::new(AtomicBool::new(false));
    let ends = ended.clone();
    runtime
        .spawn(async move {
            sleep(Duration::from_millis(50)).await;
            ends.store(true, Ordering::SeqCst);
        })
        .detach();
    until(|| runtime.metrics().polls > 0);
    assert_eq!(runtime.shutdown(LONG).cancelled, 0);
    assert!(ended.load(Ordering::SeqCst));
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
fn a_closed_runtime_accepts_nothing_new() {
    let _watch = watch();
    let runtime = runtime(1);
    let (sender, outcome) = mpsc::channel();
    let (begins, has_begun) = mpsc::channel();
    let job = runtime.spawn(async move {
        begins.send(()).unwrap();
        // Spawns until a spawn is refused, which happens once the runtime closes.
        let refused = loop {
            let mailbox = |mailbox: Mailbox<()>| async move { drop(mailbox) };
            match Spawn::new().spawn_with_mailbox(mailbox) {
                Ok(spawned) => drop(spawned),
                Err(error) => break error,
            }
            yield_now().await;
        };
        let plain = spawn(async { 1 })
            .await
            .map_err(|error| error.is_cancelled());
        sender.send((refused, plain)).unwrap();
    });
    has_begun.recv().unwrap();
    let report = runtime.shutdown(LONG);
    assert_eq!(
        outcome.recv().unwrap(),
        (SpawnError::ShuttingDown, Err(true))
    );
    assert_eq!(report.not_stopped, []);
    drop(job);
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
/// The woken job is in no queue of a worker: it waits for its thread, which a wait in a destructor holds.
#[test]
fn a_drain_lets_a_woken_job_end_that_waits_for_its_thread() {
    let _watch = watch();
    struct WaitsAtItsEnd(Latch);
    impl Drop for WaitsAtItsEnd {
        fn drop(&mut self) {
            self.0.clone().wait();
        }
    }
    for _ in 0..5 {
        let runtime = runtime(1);
        let (wake, ended) = (Latch::default(), Latch::default());
        let (latch, end) = (wake.clone(), ended.clone());
        let woken = runtime.spawn(async move {
            latch.wait();
            end.open();
        });
        until(|| wake.waiters() == 1);
        let guard = WaitsAtItsEnd(ended.clone());
        let holder = runtime.spawn(async move {
            let _guard = guard;
            panic!("as the test wants");
        });
        until(|| ended.waiters() == 1);
        wake.open();
        let report = runtime.shutdown(Duration::from_secs(3600));
        assert_eq!((report.cancelled, report.not_stopped), (0, Vec::new()));
        assert!(woken.wait().is_ok(), "it was cancelled on its way");
        assert!(holder.wait().unwrap_err().is_panic());
    }
}

#[test]
fn jobs_that_never_had_their_turn_are_counted() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(1)
        .spare_threads(0)
        .build()
        .unwrap();
    let (running, runs) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let blocker = runtime.spawn(async move {
        running.send(()).unwrap();
        let _hung_up = released.recv();
    });
    runs.recv().unwrap();
    let drops = Drops::default();
    for _ in 0..100 {
        let token = drops.token();
        runtime.spawn(async move { drop(token) }).detach();
    }
    let report = runtime.shutdown(Duration::ZERO);
    assert_eq!(drops.count(), 100);
    assert_eq!((report.cancelled, report.not_stopped.len()), (100, 1));
    drop(release);
    assert!(blocker.wait().is_ok());
}
