//! Time: sleeps are never early and end in order; timeouts; intervals; cancelled timers are swept.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::{Duration, Instant},
};

use tools::{Drops, for_seeds, on_each, runtime, until, watch};
use weald_kernel::{
    Elapsed, Runtime, Sleep, Wait, interval, now, sleep, sleep_until, spawn, timeout, yield_now,
};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_sleep_is_never_early() {
    for_seeds(3, |random| {
        let runtime = runtime(1 + random.below(4));
        let jobs: Vec<_> = (0..300)
            .map(|_| {
                let micros = random.below(30_000) as u64;
                runtime.spawn(async move {
                    let before = Instant::now();
                    sleep(Duration::from_micros(micros)).await;
                    assert!(before.elapsed() >= Duration::from_micros(micros));
                })
            })
            .collect();
        runtime.block_on(async {
            for micros in [0, 1, 999, 1_000, 1_001, 2_500] {
                let before = Instant::now();
                sleep(Duration::from_micros(micros)).await;
                assert!(before.elapsed() >= Duration::from_micros(micros));
            }
            for job in jobs {
                job.await.unwrap();
            }
        });
    });
}

#[test]
fn sleeps_with_one_deadline_end_in_order() {
    let _watch = watch();
    let runtime = runtime(1);
    // On a busy machine some begin to sleep when it is over for others: then the next try has more time.
    for tries in 0..10 {
        let order = Arc::new(Mutex::new(Vec::new()));
        let kept = order.clone();
        let all = runtime.spawn(async move {
            let deadline = now() + Duration::from_millis(20 << tries);
            let jobs: Vec<_> = (0..60)
                .map(|n| {
                    let order = order.clone();
                    spawn(async move {
                        let is_early = now() < deadline;
                        sleep_until(deadline).await;
                        order.lock().unwrap().push(n);
                        is_early
                    })
                })
                .collect();
            let mut are_early = true;
            for job in jobs {
                are_early &= job.await.unwrap();
            }
            are_early
        });
        if runtime.block_on(all).unwrap() {
            assert_eq!(*kept.lock().unwrap(), (0..60).collect::<Vec<_>>());
            return;
        }
    }
    panic!("no try was quick enough");
}

#[test]
fn earlier_deadlines_end_first_in_virtual_time() {
    for_seeds(10, |random| {
        let ends = Arc::new(Mutex::new(Vec::new()));
        let kept = ends.clone();
        let millis: Vec<u64> = (0..100).map(|_| random.next() % 10_000_000).collect();
        Runtime::test(random.next()).block_on(async move {
            let start = now();
            let jobs: Vec<_> = millis
                .into_iter()
                .map(|millis| {
                    let ends = ends.clone();
                    spawn(async move {
                        sleep(Duration::from_millis(millis)).await;
                        assert_eq!(now() - start, Duration::from_millis(millis));
                        ends.lock().unwrap().push(millis);
                    })
                })
                .collect();
            for job in jobs {
                job.await.unwrap();
            }
        });
        assert!(kept.lock().unwrap().is_sorted());
    });
}

#[test]
fn an_endless_sleep_does_not_end_and_does_not_panic() {
    on_each(|runtime| {
        runtime.block_on(async {
            for far in [
                Duration::MAX,
                Duration::from_secs(u64::MAX / 2),
                1_000_000 * HOUR,
            ] {
                let ended = timeout(Duration::from_millis(3), sleep(far)).await;
                assert_eq!(ended, Err(Elapsed));
            }
        });
    });
}

#[test]
fn a_sleep_for_a_century_ends_in_virtual_time() {
    let _watch = watch();
    Runtime::test(3).block_on(async {
        let start = now();
        sleep(Duration::MAX).await;
        assert!(now() - start >= 24 * 365 * 99 * HOUR);
    });
}

#[test]
fn a_timeout_drops_a_slow_future_and_returns_the_value_of_a_fast_one() {
    on_each(|runtime| {
        runtime.block_on(async {
            let drops = Drops::default();
            let token = drops.token();
            let slow = async move {
                let _token = token;
                std::future::pending::<()>().await;
            };
            assert_eq!(timeout(Duration::from_millis(2), slow).await, Err(Elapsed));
            assert_eq!(drops.count(), 1);
            assert_eq!(timeout(HOUR, async { 4 }).await, Ok(4));
            // A future that is ready in the same poll wins, even with no time at all.
            assert_eq!(timeout(Duration::ZERO, async { 5 }).await, Ok(5));
            assert_eq!(timeout(Duration::ZERO, yield_now()).await, Err(Elapsed));
            let inside = spawn(async { timeout(HOUR, spawn(async { 6 })).await.unwrap() });
            assert_eq!(inside.await.unwrap().unwrap(), 6);
        });
    });
}

#[test]
fn an_interval_stays_on_its_grid_in_virtual_time() {
    for_seeds(5, |random| {
        let late: Vec<u64> = (0..100).map(|_| random.below(25) as u64).collect();
        Runtime::test(random.next()).block_on(async {
            let (start, period) = (now(), Duration::from_millis(10));
            let mut ticks = interval(period);
            let mut last = start;
            for late in late {
                let due = ticks.tick().await;
                let grid = (due - start).as_nanos() % period.as_nanos();
                assert_eq!(grid, 0, "the ticks drift");
                assert!(due > last && now() >= due);
                last = due;
                sleep(Duration::from_millis(late)).await;
            }
        });
    });
}

#[test]
fn an_interval_that_is_not_late_misses_no_tick() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let start = now();
        let mut ticks = interval(Duration::from_micros(2_500));
        for n in 1..=1_000_u32 {
            assert_eq!(ticks.tick().await - start, n * Duration::from_micros(2_500));
        }
    });
}

#[test]
fn an_endless_interval_ticks_once_a_century() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let (start, century) = (now(), 100 * 365 * 24 * HOUR);
        let mut ticks = interval(Duration::MAX);
        for n in 1..=3 {
            assert_eq!(ticks.tick().await - start, n * century);
        }
    });
    on_each(|runtime| {
        runtime.block_on(async {
            let mut ticks = interval(Duration::MAX);
            let ended = timeout(Duration::from_millis(3), ticks.tick()).await;
            assert_eq!(ended, Err(Elapsed));
        });
    });
}

#[test]
fn an_interval_of_a_nanosecond_skips_hours_of_missed_ticks_at_once() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let mut ticks = interval(Duration::from_nanos(1));
        ticks.tick().await;
        sleep(10 * HOUR).await;
        let late = now();
        ticks.tick().await;
        assert!(ticks.tick().await > late);
    });
}

#[test]
fn virtual_time_runs_for_thousands_of_years() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let (start, century) = (now(), 100 * 365 * 24 * HOUR);
        // A 64-bit count of nanoseconds ends after 584 years.
        for n in 1..=50 {
            sleep(Duration::MAX).await;
            assert_eq!(now() - start, n * century);
        }
        // A century is the longest wait.
        let before = now();
        sleep_until(before + 20 * century).await;
        assert_eq!(now() - before, century);
    });
}

/// A waker whose clones are counted.
struct Counted;

impl std::task::Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn cancelled_sleeps_leave_their_wheels_whichever_thread_drops_them() {
    on_each(|runtime| {
        // Armed on one foreign thread, dropped on another. An entry keeps its waker.
        let counted = Arc::new(Counted);
        let waker = std::task::Waker::from(counted.clone());
        let sleeps: Vec<_> = runtime.block_on(async {
            let mut cx = std::task::Context::from_waker(&waker);
            let mut armed = || {
                let mut sleep = Box::pin(sleep(HOUR));
                assert!(sleep.as_mut().poll(&mut cx).is_pending());
                sleep
            };
            (0..2_000).map(|_| armed()).collect()
        });
        assert!(runtime.metrics().timers >= 2_000);
        assert!(Arc::strong_count(&counted) >= 2_000);
        std::thread::spawn(move || drop(sleeps)).join().unwrap();
        // Workers sweep in their periodic checks, so every worker must run something.
        let swept = || {
            let jobs: Vec<_> = (0..100).map(|_| runtime.spawn(yield_now())).collect();
            jobs.into_iter()
                .for_each(|job| runtime.block_on(job).unwrap());
            Arc::strong_count(&counted) < 1_000
        };
        until(swept);
        assert!(runtime.metrics().timers < 1_000);
    });
}

#[test]
fn a_sleep_cancelled_on_its_worker_leaves_at_once() {
    let _watch = watch();
    let runtime = runtime(1);
    runtime
        .block_on(runtime.spawn(async {
            for _ in 0..1_000 {
                let _ = timeout(HOUR, yield_now()).await;
            }
        }))
        .unwrap();
    assert_eq!(runtime.metrics().timers, 0);
}

#[test]
fn a_sleep_moves_between_jobs_and_still_ends() {
    on_each(|runtime| {
        runtime.block_on(async {
            let mut sleep = Box::pin(sleep(Duration::from_millis(10)));
            for _ in 0..5 {
                let moved = spawn(async move {
                    let has_ended = futures_util::poll!(&mut sleep).is_ready();
                    (sleep, has_ended)
                });
                let has_ended;
                (sleep, has_ended) = moved.await.unwrap();
                if has_ended || futures_util::poll!(&mut sleep).is_ready() {
                    return;
                }
            }
            sleep.await;
        });
    });
}

#[test]
fn a_sleep_kept_after_its_runtime_harms_no_other_runtime() {
    let _watch = watch();
    for _ in 0..20 {
        let mut kept = Vec::new();
        let first = runtime(2);
        first.block_on(async {
            for _ in 0..20 {
                let mut sleep = Box::pin(sleep(HOUR));
                assert!(futures_util::poll!(&mut sleep).is_pending());
                kept.push(sleep);
            }
        });
        drop(first);
        // The second runtime may reuse the first one's number, and has fewer workers.
        let second = runtime(1);
        let dropped = second.spawn(async move {
            let own: Vec<_> = (0..5)
                .map(|_| spawn(sleep(Duration::from_millis(3))))
                .collect();
            yield_now().await;
            drop(kept);
            for own in own {
                own.await.unwrap();
            }
        });
        second.block_on(dropped).unwrap();
        assert_eq!(second.metrics().timers, 0);
    }
}

#[test]
fn many_timers_fire_under_load() {
    on_each(|runtime| {
        let fired = Arc::new(AtomicUsize::new(0));
        let jobs: Vec<_> = (0..5_000_u64)
            .map(|n| {
                let fired = fired.clone();
                runtime.spawn(async move {
                    sleep(Duration::from_millis(n % 17)).await;
                    fired.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        // A job that never leaves the worker must not stop the timers.
        runtime.block_on(async {
            let counted = fired.clone();
            let busy = spawn(async move {
                while counted.load(Ordering::SeqCst) < 5_000 {
                    yield_now().await;
                }
            });
            busy.await.unwrap();
            for job in jobs {
                job.await.unwrap();
            }
        });
    });
}

#[test]
fn a_sleep_is_waited_for_with_the_stack() {
    on_each(|runtime| {
        let before = Instant::now();
        sleep(Duration::from_millis(3)).wait();
        let job = runtime.spawn(async { sleep(Duration::from_millis(3)).wait() });
        runtime.block_on(job).unwrap();
        assert!(before.elapsed() >= Duration::from_millis(6));
    });
}

#[test]
fn a_sleep_tells_that_its_timer_has_fired() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let mut sleeping = std::pin::pin!(sleep(Duration::from_millis(10)));
        assert!(!sleeping.has_fired(), "it has no timer before a poll");
        let mut cx = Context::from_waker(Waker::noop());
        assert!(sleeping.as_mut().poll(&mut cx).is_pending());
        sleep(Duration::from_millis(5)).await;
        assert!(!sleeping.has_fired());
        sleep(Duration::from_millis(20)).await;
        assert!(sleeping.has_fired());
        assert!(sleeping.as_mut().poll(&mut cx).is_ready());
    });
}

#[test]
fn a_limit_ends_at_its_deadline_and_one_that_has_passed_a_tick_later() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let start = now();
        let reached = |deadline| {
            let mut limit = Sleep::limit(deadline);
            std::future::poll_fn(move |cx| Pin::new(&mut limit).poll_limit(cx))
        };
        reached(start + Duration::from_secs(5)).await;
        assert_eq!(now() - start, Duration::from_secs(5));
        reached(start).await;
        assert_eq!(now() - start, Duration::from_millis(5_001));
    });
}
