//! A shutdown returns, with everything dropped once: jobs that can finish do, waiting jobs are cancelled, and
//! the others are named.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    task::Waker,
    time::{Duration, Instant},
};

use tools::{Drops, Latch, runtime, until, watch};
use weald_kernel::{
    Mailbox, Runtime, Spawn, SpawnError, Wait, block_in_place, scope, sleep, spawn, timeout,
    yield_now,
};

/// A shutdown that waited for so long would be ended by the guard of its test.
const LONG: Duration = Duration::from_secs(3600);

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
        let report = runtime.shutdown(LONG);
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
        match drains {
            true => {
                let report = runtime.shutdown(LONG);
                assert_eq!((report.cancelled, report.not_stopped.len()), (1, 0));
            }
            false => drop(runtime),
        }
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

/// It has noted a wait in the same poll, and does not wait.
#[test]
fn a_job_that_blocks_beyond_the_deadline_waits_for_nothing() {
    let _watch = watch();
    let runtime = runtime(2);
    let (go, may_go) = mpsc::channel::<()>();
    let (begins, has_begun) = mpsc::channel();
    let mut other = weald_kernel::sleep(Duration::from_secs(3600));
    let job = runtime.spawn(std::future::poll_fn(move |cx| {
        assert!(std::pin::Pin::new(&mut other).poll(cx).is_pending());
        begins.send(()).unwrap();
        may_go.recv().unwrap();
        std::task::Poll::Ready(())
    }));
    has_begun.recv().unwrap();
    let report = runtime.shutdown(Duration::ZERO);
    let waits: Vec<_> = report.not_stopped.iter().map(|job| job.waits_for).collect();
    assert_eq!(waits, [None]);
    go.send(()).unwrap();
    let _ended = tools::runtime(1).block_on(job);
}

#[test]
fn a_job_that_waits_in_a_destructor_beyond_the_deadline_is_named_with_what_it_waits_for() {
    /// Waits when it is dropped, and says that it does.
    struct WaitsInDrop(Latch, mpsc::Sender<()>);
    impl Drop for WaitsInDrop {
        fn drop(&mut self) {
            let mut latch = std::pin::pin!(timeout(LONG, self.0.clone()));
            let waits = std::future::poll_fn(|cx| {
                let polled = latch.as_mut().poll(cx);
                let _received = self.1.send(());
                polled
            });
            let _opened = waits.wait();
        }
    }
    let _watch = watch();
    let (runtime, latch) = (runtime(2), Latch::default());
    let (begins, has_begun) = mpsc::channel();
    let (waits, has_waited) = mpsc::channel();
    let guard = WaitsInDrop(latch.clone(), waits);
    let job = runtime.spawn(async move {
        let _guard = guard;
        begins.send(()).unwrap();
        // It holds a stack, which the cancel unwinds. Whatever waits meanwhile holds its thread.
        std::future::pending::<()>().wait();
    });
    has_begun.recv().unwrap();
    job.cancel();
    has_waited.recv().unwrap();
    let report = runtime.shutdown(Duration::from_millis(20));
    let waits: Vec<_> = report.not_stopped.iter().map(|job| job.waits_for).collect();
    assert!(matches!(waits[..], [Some(_)]), "{waits:?}");
    latch.open();
    assert!(tools::runtime(1).block_on(job).unwrap_err().is_cancelled());
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
    runtime.shutdown(LONG);
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
fn a_child_of_a_scope_that_drops_its_runtime_waits_for_nobody() {
    let _watch = watch();
    let builder = Runtime::builder().workers(2);
    let runtime = builder.shutdown_deadline(LONG).build().unwrap();
    let (give, given) = mpsc::channel::<Runtime>();
    let (tell, told) = mpsc::channel();
    let parent = runtime.spawn(scope(async move |scope| {
        let child = async move {
            drop(given.recv().unwrap());
            tell.send(()).unwrap();
        };
        scope.spawn(child).detach();
        std::future::pending::<()>().await;
    }));
    give.send(runtime).unwrap();
    told.recv().unwrap();
    assert!(parent.wait().unwrap_err().is_cancelled());
}

/// The parent holds its thread, because it unwinds.
#[test]
fn a_child_that_drops_its_runtime_when_a_scope_ends_by_a_panic_waits_for_nobody() {
    let _watch = watch();
    let builder = Runtime::builder().workers(2);
    let runtime = builder.shutdown_deadline(LONG).build().unwrap();
    let ((give, given), (hold, held)) = (mpsc::channel::<Runtime>(), mpsc::channel());
    let parent = runtime.spawn(scope(async move |scope| {
        let child = async move {
            let _runtime = given.recv().unwrap();
            hold.send(()).unwrap();
            std::future::pending::<()>().await;
        };
        scope.spawn(child).detach();
        held.recv().unwrap();
        panic!("on purpose");
    }));
    give.send(runtime).unwrap();
    let ended: Result<(), _> = parent.wait();
    assert!(ended.unwrap_err().is_panic());
}

/// The only worker is held, so that the shutdown ends the jobs itself, and it has no time for all.
#[test]
fn jobs_that_are_only_very_many_are_counted_and_not_named() {
    const MANY: usize = 3000;
    /// Takes some time to drop.
    struct TakesTime {
        _counts: tools::Token,
    }
    impl Drop for TakesTime {
        fn drop(&mut self) {
            let begin = Instant::now();
            until(|| begin.elapsed() >= Duration::from_micros(100));
        }
    }
    let _watch = watch();
    let builder = Runtime::builder().workers(1).spare_threads(0);
    let runtime = builder.build().unwrap();
    let (running, runs) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let blocker = runtime.spawn(async move {
        running.send(()).unwrap();
        let _hung_up = released.recv();
    });
    runs.recv().unwrap();
    let drops = Drops::default();
    for _ in 0..MANY {
        let value = TakesTime {
            _counts: drops.token(),
        };
        runtime.spawn(async move { drop(value) }).detach();
    }
    let report = runtime.shutdown(Duration::ZERO);
    let named = report.not_stopped.len();
    // Besides the blocker at most the one that is being ended.
    assert!(named == 1 || named == 2, "{named}");
    assert!(report.left > 0);
    assert!(report.cancelled + report.left + named > MANY);
    until(|| drops.count() == MANY);
    drop(release);
    assert!(blocker.wait().is_ok());
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
    let named = report.not_stopped.len();
    // Besides the blocker at most the one that is being ended.
    assert!(named == 1 || named == 2, "{report:?}");
    // On a busy machine some of them end only after the shutdown.
    assert!(report.cancelled + report.left + named > 100, "{report:?}");
    until(|| drops.count() == 100);
    drop(release);
    assert!(blocker.wait().is_ok());
}
