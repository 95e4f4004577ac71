//! The test runtime: the seed decides the order, time is virtual, and a deadlock names its jobs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use tools::{Drops, Latch, watch};
use weald_kernel::{
    JoinSet, Mailbox, Runtime, Spawn, Wait, now, scope, sleep, spawn, spawn_local, timeout,
    yield_now,
};

/// Opens a latch, and waits for another, while its job unwinds.
struct WaitsAtDrop(Latch, Latch);

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        assert!(thread::panicking());
        self.0.open();
        self.1.clone().wait();
    }
}

/// As the documentation of `Runtime::test` says: a lock of `std` is poisoned then, and one of `weald::sync` is not.
#[test]
fn beside_a_destructor_that_waits_while_unwinding_other_jobs_go_on_and_count_as_panicking() {
    let _watch = watch();
    for seed in 0..20 {
        let std_lock = Arc::new(Mutex::new(()));
        let lock = Arc::new(weald_sync::Mutex::new(()));
        let (unwinds, goes_on) = (Latch::default(), Latch::default());
        Runtime::test(seed).block_on(async {
            let (locks, latches) = (
                (std_lock.clone(), lock.clone()),
                (unwinds.clone(), goes_on.clone()),
            );
            let begun = Latch::default();
            let has_begun = begun.clone();
            let other = spawn_local(async move {
                let _guard = locks.1.lock().await;
                let _std_guard = locks.0.lock().unwrap();
                has_begun.open();
                latches.0.wait();
                assert!(thread::panicking());
                latches.1.open();
            });
            begun.await;
            let fails = spawn(async move {
                let _waits = WaitsAtDrop(unwinds, goes_on);
                panic!("on purpose");
            });
            let failed: Result<(), _> = fails.await;
            assert!(failed.unwrap_err().is_panic());
            other.unwrap().await.unwrap();
            drop(lock.lock().await);
        });
        assert!(std_lock.is_poisoned());
    }
}

/// The order in which ten jobs took their steps.
fn order(seed: u64) -> Vec<u32> {
    let order = Arc::new(Mutex::new(Vec::new()));
    let kept = order.clone();
    Runtime::test(seed).block_on(async move {
        let mut set = JoinSet::new();
        for n in 0..10_u32 {
            let order = order.clone();
            set.spawn(async move {
                for step in 0..4 {
                    order.lock().unwrap().push(n);
                    match (n + step) % 3 {
                        0 => yield_now().await,
                        1 => sleep(Duration::from_millis(u64::from(n % 4))).await,
                        _ => spawn(yield_now()).await.unwrap(),
                    }
                }
            });
        }
        while let Some(result) = set.join_next().await {
            result.unwrap();
        }
    });
    Arc::try_unwrap(kept).unwrap().into_inner().unwrap()
}

#[test]
fn one_seed_gives_one_order() {
    let _watch = watch();
    for seed in 0..20 {
        let first = order(seed);
        assert_eq!(first.len(), 40);
        assert!((0..3).all(|_| order(seed) == first), "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_orders() {
    let _watch = watch();
    let orders: HashSet<_> = (0..20).map(order).collect();
    assert!(
        orders.len() >= 10,
        "only {} orders of 20 seeds",
        orders.len()
    );
}

#[test]
fn a_race_that_needs_an_unusual_order_is_found_by_some_seed() {
    let _watch = watch();
    let runs_last_first = |seed| {
        Runtime::test(seed).block_on(async {
            let first = Arc::new(Mutex::new(None));
            let jobs: Vec<_> = (0..4)
                .map(|n| {
                    let first = first.clone();
                    spawn(async move {
                        first.lock().unwrap().get_or_insert(n);
                    })
                })
                .collect();
            for job in jobs {
                job.await.unwrap();
            }
            *first.lock().unwrap() == Some(3)
        })
    };
    let found = (0..100).filter(|seed| runs_last_first(*seed)).count();
    assert!((1..100).contains(&found), "{found}");
}

#[test]
fn time_moves_only_when_nothing_can_run() {
    let _watch = watch();
    Runtime::test(5).block_on(async {
        let start = now();
        let sleeper = spawn(sleep(Duration::from_secs(24 * 3600)));
        for _ in 0..1_000 {
            yield_now().await;
        }
        assert_eq!(now(), start);
        sleeper.await.unwrap();
        assert_eq!(now() - start, Duration::from_secs(24 * 3600));
        assert!(
            timeout(Duration::from_secs(60), std::future::pending::<()>())
                .await
                .is_err()
        );
        assert_eq!(now() - start, Duration::from_secs(24 * 3600 + 60));
    });
}

fn panic_of(body: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(body)).expect_err("expected a panic");
    *payload.downcast::<String>().expect("a formatted message")
}

#[test]
fn a_deadlock_names_the_jobs_that_wait() {
    let _watch = watch();
    let message = panic_of(|| {
        Runtime::test(9).block_on(async {
            let (receiver, address) = Spawn::new()
                .name("the receiver")
                .spawn_with_mailbox(|mut mailbox: Mailbox<u32>| async move {
                    std::future::poll_fn(|cx| mailbox.poll_receive(cx)).await
                })
                .unwrap();
            let joiner = Spawn::new()
                .name("the joiner")
                .spawn(async { receiver.await.unwrap() });
            joiner.await.unwrap();
            drop(address);
        });
    });
    for part in [
        "`the receiver`",
        "a message",
        "`the joiner`",
        "another job's end",
        "test_runtime.rs",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn a_deadlock_of_the_main_future_alone_is_reported() {
    let _watch = watch();
    let message = panic_of(|| Runtime::test(9).block_on(std::future::pending()));
    assert!(message.contains("none but the main future"), "{message}");
}

#[test]
fn waits_end_in_any_order() {
    let _watch = watch();
    for seed in 0..20 {
        Runtime::test(seed).block_on(async {
            let (first, second) = (Latch::default(), Latch::default());
            let (waits, opens) = (first.clone(), second.clone());
            let lower = spawn(async move {
                waits.wait();
                opens.open();
            });
            let waits = second.clone();
            let upper = spawn(async move {
                tools::until_yielding(|| first.waiters() == 1).await;
                first.open();
                waits.wait();
            });
            upper.await.unwrap();
            lower.await.unwrap();
        });
    }
}

#[test]
fn a_test_runtime_works_after_a_deadlock_and_drops_what_waited() {
    let _watch = watch();
    let (runtime, drops) = (Runtime::test(2), Drops::default());
    let token = drops.token();
    let message = panic_of(|| {
        runtime.block_on(async {
            spawn(async move {
                let _token = token;
                std::future::pending::<()>().await;
            })
            .await
            .unwrap();
        });
    });
    assert!(
        message.contains("no job can run, no timer is pending"),
        "{message}"
    );
    assert_eq!(
        runtime.block_on(async { spawn(async { 5 }).await.unwrap() }),
        5
    );
    assert_eq!(drops.count(), 0);
    drop(runtime);
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_job_waits_with_its_stack_while_others_run() {
    let _watch = watch();
    for seed in 0..50 {
        Runtime::test(seed).block_on(async {
            let outer = spawn(async {
                let inner = spawn(async {
                    yield_now().await;
                    sleep(Duration::from_secs(5)).await;
                    spawn(async { 4 }).wait().unwrap()
                });
                inner.wait().unwrap() + spawn(async { 1 }).await.unwrap()
            });
            let other = spawn(async {
                sleep(Duration::from_secs(1)).wait();
                2
            });
            assert_eq!((outer.await.unwrap(), other.await.unwrap()), (5, 2));
        });
    }
}

#[test]
fn the_main_future_waits_with_its_stack() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        assert_eq!(spawn(async { 3 }).wait().unwrap(), 3);
        sleep(Duration::from_secs(3600)).wait();
    });
}

#[test]
fn a_wait_inside_a_poll_keeps_the_other_wakes_of_the_poll() {
    let _watch = watch();
    for seed in 0..50 {
        Runtime::test(seed).block_on(async {
            let (receiving, address) = Spawn::new()
                .spawn_with_mailbox(|mut mailbox: Mailbox<u32>| async move {
                    let mut waited = false;
                    std::future::poll_fn(|cx| {
                        // Listens first, then waits with the stack in the same poll.
                        let polled = mailbox.poll_receive(cx);
                        if polled.is_pending() && !std::mem::replace(&mut waited, true) {
                            sleep(Duration::from_millis(1)).wait();
                            spawn(yield_now()).wait().unwrap();
                        }
                        polled
                    })
                    .await
                })
                .unwrap();
            sleep(Duration::from_secs(1)).await;
            address.post(8).unwrap();
            assert_eq!(receiving.await.unwrap(), 8);
        });
    }
}

#[test]
fn a_cancelled_job_in_wait_unwinds_once() {
    let _watch = watch();
    for seed in 0..20 {
        Runtime::test(seed).block_on(async {
            let (drops, latch) = (Drops::default(), Latch::default());
            let (token, waits) = (drops.token(), latch.clone());
            let job = spawn(async move {
                let _token = token;
                waits.wait();
            });
            // A waiting job's stack is on top of the main future's, so another job cancels it.
            let cancels = spawn(async move {
                tools::until_yielding(|| latch.waiters() == 1).await;
                job.cancel();
                job.await
            });
            assert!(cancels.await.unwrap().unwrap_err().is_cancelled());
            assert_eq!(drops.count(), 1);
        });
    }
}

#[test]
fn the_main_future_may_yield_until_a_job_has_run() {
    let _watch = watch();
    for seed in 0..20 {
        Runtime::test(seed).block_on(async {
            let job = spawn(yield_now());
            tools::until_yielding(|| job.is_finished()).await;
        });
    }
}

#[test]
fn local_jobs_and_scopes_run_in_a_test_runtime() {
    let _watch = watch();
    for seed in 0..20 {
        let runtime = Runtime::test(seed);
        let value = runtime.block_on(async {
            let rc = std::rc::Rc::new(1);
            let own = rc.clone();
            let local = spawn_local(async move {
                yield_now().await;
                *own
            });
            let scoped = scope(async |scope| scope.spawn(async { 2 }).await.unwrap()).await;
            local.unwrap().await.unwrap() + scoped + *rc
        });
        assert_eq!(value, 4);
    }
}

#[test]
fn a_stuck_scope_is_reported_and_its_children_end() {
    let _watch = watch();
    for seed in 0..20 {
        let drops = Drops::default();
        let token = drops.token();
        let stuck = catch_unwind(AssertUnwindSafe(|| {
            Runtime::test(seed).block_on(scope(async |scope| {
                let child = Spawn::new().name("the child").spawn(async move {
                    let _token = token;
                    std::future::pending::<()>().await;
                });
                scope.adopt(&child);
                std::future::pending::<()>().await;
            }));
        }));
        let message = *stuck.unwrap_err().downcast::<String>().unwrap();
        assert!(
            message.contains("no job can run, no timer is pending"),
            "{message}"
        );
        assert!(message.contains("`the child`"), "{message}");
        assert_eq!(drops.count(), 1);
    }
}

#[test]
fn what_is_left_is_dropped_with_the_runtime() {
    let _watch = watch();
    let drops = Drops::default();
    let runtime = Runtime::test(4);
    let tokens: Vec<_> = (0..100).map(|_| drops.token()).collect();
    runtime.block_on(async {
        for (n, token) in tokens.into_iter().enumerate() {
            spawn(async move {
                let _token = token;
                if n % 2 == 0 {
                    sleep(Duration::from_secs(1)).await;
                }
                std::future::pending::<()>().await;
            })
            .detach();
        }
    });
    assert_eq!(drops.count(), 0);
    drop(runtime);
    assert_eq!(drops.count(), 100);
}
