//! Owners and ends: a cancel and an owner's end drop the closure at once, a panic is reported to the owner, and a
//! callback that blocks or waits stops no other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    time::Duration,
};

use tools::{each_seed, on_each, runtime, until, watch};
use weald_kernel::{Runtime, Wait, now, sleep};
use weald_process::{
    self as process, Inbox,
    callback::{self, Owner, pause},
};

const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

#[test]
fn a_cancel_drops_the_closure_at_once_and_only_once() {
    on_each(|runtime| {
        runtime.block_on(async {
            let held = Arc::new(());
            let kept = held.clone();
            let pending = callback::after(HOUR, move || drop(kept));
            assert!(!pending.is_over());
            assert!(pending.cancel());
            assert_eq!(Arc::strong_count(&held), 1);
            assert!(pending.is_over());
            assert!(!pending.cancel());
        });
    });
}

#[test]
fn a_cancel_from_another_thread_drops_the_closure_at_once() {
    let _watch = watch();
    let runtime = runtime(2);
    let held = Arc::new(());
    let pending: Vec<_> = runtime.block_on(async {
        let kept = held.clone();
        let start = async move {
            let held = || kept.clone();
            let one = |_| {
                let held = held();
                callback::at(now() + HOUR, move || drop(held))
            };
            // The runtime owns these, because this job ends.
            let detached = |_| {
                let held = held();
                let when = weald_kernel::callback::When::At(now() + HOUR);
                weald_kernel::callback::once(Owner::runtime(), when, move || drop(held))
            };
            let lost: Vec<_> = (0..100).map(one).collect();
            drop(lost);
            (0..1_000).map(detached).collect::<Vec<_>>()
        };
        weald_kernel::spawn(start).await.unwrap()
    });
    for handle in &pending {
        assert!(handle.cancel());
    }
    until(|| Arc::strong_count(&held) == 1);
    // The wheels free what was cancelled from outside sooner or later.
    drop(pending);
}

#[test]
fn the_end_of_its_owner_drops_the_closure_at_once() {
    on_each(|runtime| {
        runtime.block_on(async {
            let held = Arc::new(());
            let kept = held.clone();
            let owner = process::spawn(async move |mut inbox: Inbox<()>| {
                for _ in 0..100 {
                    let held = kept.clone();
                    callback::after(HOUR, move || drop(held)).detach();
                    let held = kept.clone();
                    callback::every(HOUR, move || drop(held.clone())).detach();
                }
                drop(kept);
                inbox.receive().await;
            })
            .unwrap();
            while Arc::strong_count(&held) < 201 {
                weald_kernel::yield_now().await;
            }
            owner.pid().send(());
            owner.await.unwrap();
            // The exit hooks of a process run before its join returns.
            assert_eq!(Arc::strong_count(&held), 1);
        });
    });
}

#[test]
fn a_killed_owner_ends_its_callbacks_and_those_that_they_started() {
    on_each(|runtime| {
        runtime.block_on(async {
            let held = Arc::new(());
            let kept = held.clone();
            let owner = process::spawn(async move |mut inbox: Inbox<()>| {
                callback::spawn(move || {
                    callback::after(HOUR, move || drop(kept)).detach();
                })
                .detach();
                inbox.receive().await;
            })
            .unwrap();
            sleep(2 * MS).await;
            assert_eq!(Arc::strong_count(&held), 2);
            owner.kill();
            assert!(owner.await.is_err());
            assert_eq!(Arc::strong_count(&held), 1);
        });
    });
}

#[test]
fn a_callback_that_runs_when_its_owner_ends_finishes_its_round_and_has_no_further_one() {
    on_each(|runtime| {
        let held = Arc::new(());
        let (entered, begun) = mpsc::channel();
        let (go_on, waits) = mpsc::channel::<()>();
        let kept = held.clone();
        let owner = runtime.spawn(async move {
            callback::every(MS, move || {
                let _kept = &kept;
                entered.send(()).unwrap();
                let _gone = waits.recv();
            })
            .detach();
            std::future::pending::<()>().await;
        });
        begun.recv().unwrap();
        owner.cancel();
        assert!(runtime.block_on(owner).is_err());
        // The running round still has its closure.
        assert_eq!(Arc::strong_count(&held), 2);
        drop(go_on);
        until(|| Arc::strong_count(&held) == 1 || begun.try_recv().is_ok());
        assert_eq!(Arc::strong_count(&held), 1, "there was a further round");
    });
}

#[test]
fn a_callback_started_after_its_owners_end_by_another_callback_is_dropped() {
    on_each(|runtime| {
        let held = Arc::new(());
        let (entered, begun) = mpsc::channel();
        let (go_on, waits) = mpsc::channel::<()>();
        let kept = held.clone();
        let owner = runtime.spawn(async move {
            callback::spawn(move || {
                entered.send(()).unwrap();
                waits.recv().unwrap();
                let late = callback::spawn(move || drop(kept));
                assert!(late.is_over());
            })
            .detach();
            std::future::pending::<()>().await;
        });
        begun.recv().unwrap();
        owner.cancel();
        assert!(runtime.block_on(owner).is_err());
        go_on.send(()).unwrap();
        until(|| Arc::strong_count(&held) == 1);
    });
}

#[test]
fn a_callback_forks_and_joins() {
    on_each(|runtime| {
        let (sender, sums) = mpsc::channel();
        runtime.block_on(async {
            for n in 0..50_u64 {
                let sender = sender.clone();
                callback::after(MS, move || {
                    let (a, b) = weald_kernel::fork::join(|| sum(0..=n), || sum(0..=n));
                    sender.send((n, a + b)).unwrap();
                })
                .detach();
            }
        });
        for (n, both) in sums.iter().take(50) {
            assert_eq!(both, n * (n + 1));
        }
    });
}

fn sum(numbers: std::ops::RangeInclusive<u64>) -> u64 {
    numbers.sum()
}

#[test]
fn a_callback_started_for_an_owner_that_has_ended_is_dropped() {
    on_each(|runtime| {
        runtime.block_on(async {
            let owner = weald_kernel::spawn(async { Owner::current() })
                .await
                .unwrap();
            let held = Arc::new(());
            let kept = held.clone();
            let when = weald_kernel::callback::When::Ready;
            let refused = weald_kernel::callback::once(owner, when, move || drop(kept));
            assert!(refused.is_over());
            assert!(!refused.cancel());
            assert_eq!(Arc::strong_count(&held), 1);
        });
    });
}

#[test]
fn a_callback_cannot_link_or_end_the_job_that_happens_to_run_it() {
    each_seed(20, async || {
        let other = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await).unwrap();
        let pid = other.pid().clone();
        let (sender, receiver) = mpsc::channel();
        callback::spawn(move || {
            let linked = catch_unwind(AssertUnwindSafe(|| process::link(&pid)));
            let exited = catch_unwind(|| process::exit(process::ExitReason::Killed));
            sender.send((linked.is_err(), exited.is_err())).unwrap();
        })
        .detach();
        weald_kernel::sleep(Duration::from_millis(1)).await;
        assert_eq!(receiver.try_recv(), Ok((true, true)));
        assert!(!other.is_finished());
    });
}

#[test]
fn a_panic_is_reported_to_the_owner_and_ends_its_callback_alone() {
    on_each(|runtime| {
        runtime.block_on(async {
            let owner = process::spawn(async |_: Inbox<()>| {
                let mut reported = Vec::new();
                let (sender, panics) = mpsc::channel();
                Owner::current().on_panic(move |panic| sender.send(panic).unwrap());
                callback::after(MS, || panic!("this one fails")).detach();
                let (sender, runs) = mpsc::channel();
                callback::after(MS, move || sender.send(7).unwrap()).detach();
                let mut rounds = 0;
                let fails_later = callback::every(MS, move || {
                    rounds += 1;
                    assert!(rounds < 3, "the third round fails");
                });
                while reported.len() < 2 {
                    reported.extend(panics.try_iter());
                    sleep(MS).await;
                }
                assert!(fails_later.is_over());
                assert_eq!(runs.try_recv(), Ok(7));
                reported
            })
            .unwrap();
            // On several workers they come in either order.
            let mut panics = owner.await.unwrap();
            panics.sort_by_key(|panic| panic.message.len());
            assert_eq!(panics[0].message, "this one fails");
            assert_eq!(panics[1].message, "the third round fails");
            assert!(panics[0].callback.contains("callbacks_owner"), "{panics:?}");
            assert!(panics[0].to_string().ends_with("panicked: this one fails"));
        });
    });
}

#[test]
fn a_callback_that_blocks_stops_no_other_and_is_named() {
    let _watch = watch();
    let runtime = runtime(1);
    let (release, blocked) = mpsc::channel::<()>();
    let (sender, ran) = mpsc::channel();
    runtime.block_on(async {
        callback::spawn(move || blocked.recv().unwrap()).detach();
        for n in 0..100 {
            let [now, later] = [sender.clone(), sender.clone()];
            callback::spawn(move || now.send(n).unwrap()).detach();
            callback::after(MS, move || later.send(n).unwrap()).detach();
        }
    });
    assert_eq!(ran.iter().take(200).count(), 200);
    assert_eq!(runtime.metrics().detached, 1);
    let report = runtime.shutdown(Duration::ZERO);
    let named = report.not_stopped[0].name.clone().unwrap();
    assert!(named.starts_with("callback callbacks_owner"), "{named}");
    release.send(()).unwrap();
}

#[test]
fn a_callback_that_waits_stops_no_other() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (sender, ran) = mpsc::channel();
            for n in 0..200 {
                let sender = sender.clone();
                callback::spawn(move || {
                    sleep(10 * MS).wait();
                    sender.send((n, now())).unwrap();
                })
                .detach();
            }
            let start = now();
            let mut ends = Vec::new();
            while ends.len() < 200 {
                ends.extend(ran.try_iter());
                sleep(MS).await;
            }
            // One after the other they would take two seconds.
            let last = ends.iter().map(|(_, end)| *end).max().unwrap();
            assert!(last - start < Duration::from_secs(1), "{:?}", last - start);
        });
    });
}

#[test]
fn a_runtime_that_shuts_down_drops_pending_callbacks() {
    let _watch = watch();
    let held = Arc::new(());
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let kept = held.clone();
        runtime.block_on(async move {
            let [a, b] = [kept.clone(), kept.clone()];
            callback::after(HOUR, move || drop(a)).detach();
            callback::repeat(move || {
                let _kept = &b;
                pause(HOUR)
            })
            .start()
            .detach();
        });
        runtime.shutdown(Duration::ZERO);
        assert_eq!(Arc::strong_count(&held), 1);
    }
    Runtime::test(1).block_on(async {
        let kept = held.clone();
        callback::after(HOUR, move || drop(kept)).detach();
    });
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Starts a callback in a half that another thread runs, and waits until it has been started.
fn start_in_a_stolen_half(delay: Duration, run: impl FnOnce() + Send + 'static) {
    let (sender, started) = mpsc::channel();
    weald_kernel::fork::join(
        move || started.recv().unwrap(),
        move || {
            callback::after(delay, run).detach();
            sender.send(()).unwrap();
        },
    );
}

#[test]
fn a_callback_that_a_stolen_half_starts_belongs_to_the_forker() {
    let _watch = watch();
    let runtime = runtime(2);
    runtime.block_on(async {
        let (sender, ran) = mpsc::channel();
        let held = Arc::new(());
        let kept = held.clone();
        let owner = process::spawn(async move |mut inbox: Inbox<()>| {
            for _ in 0..10 {
                let sender = sender.clone();
                start_in_a_stolen_half(MS, move || sender.send(()).unwrap());
            }
            start_in_a_stolen_half(HOUR, move || drop(kept));
            inbox.receive().await;
        });
        for _ in 0..10 {
            ran.recv().unwrap();
        }
        assert_eq!(Arc::strong_count(&held), 2);
        let owner = owner.unwrap();
        owner.pid().send(());
        owner.await.unwrap();
        until(|| Arc::strong_count(&held) == 1);
    });
}

#[test]
fn a_callback_that_a_half_of_a_callback_starts_belongs_to_the_same_owner() {
    let _watch = watch();
    let runtime = runtime(2);
    runtime.block_on(async {
        let (sender, ran) = mpsc::channel();
        let when = weald_kernel::callback::When::Ready;
        let first = move || start_in_a_stolen_half(MS, move || sender.send(()).unwrap());
        weald_kernel::callback::once(Owner::runtime(), when, first).detach();
        ran.recv().unwrap();
    });
}
