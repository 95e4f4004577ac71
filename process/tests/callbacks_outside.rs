//! Callbacks started by threads that hold no worker: they arrive in order, even while the worker sleeps, is
//! stuck, or shuts down.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{Arc, Barrier, mpsc},
    thread,
    time::{Duration, Instant},
};

use tools::{Drops, on_each, runtime, until, watch};
use weald_kernel::now;
use weald_process::callback::{self, Owner, When, once};

const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

#[test]
fn callbacks_of_one_thread_run_in_the_order_of_their_start() {
    on_each(|runtime| {
        let (sender, ran) = mpsc::channel();
        runtime.block_on(async {
            for n in 0..1_000 {
                let sender = sender.clone();
                once(Owner::runtime(), When::Ready, move || {
                    sender.send(n).unwrap();
                })
                .detach();
            }
        });
        // If the worker is slow, a neighbour may take over its queue and then runs beside it.
        let mut order: Vec<i32> = ran.iter().take(1_000).collect();
        if runtime.metrics().workers > 1 {
            order.sort_unstable();
        }
        assert!(order.iter().copied().eq(0..1_000));
    });
}

#[test]
fn a_sleeping_worker_is_woken_for_each_callback_that_arrives_alone() {
    on_each(|runtime| {
        runtime.block_on(async {
            for n in 0..200 {
                let (sender, ran) = mpsc::channel();
                let when = match n % 2 {
                    0 => When::Ready,
                    _ => When::At(now()),
                };
                once(Owner::runtime(), when, move || sender.send(n).unwrap()).detach();
                assert_eq!(ran.recv(), Ok(n));
            }
        });
    });
}

#[test]
fn an_earlier_time_from_outside_shortens_a_sleep() {
    let _watch = watch();
    let runtime = runtime(1);
    runtime.block_on(async {
        callback::after(HOUR, || ()).detach();
        let (sender, ran) = mpsc::channel();
        callback::after(5 * MS, move || sender.send(()).unwrap()).detach();
        ran.recv().unwrap();
    });
}

#[test]
fn a_thread_that_lost_its_worker_can_still_start_callbacks() {
    let _watch = watch();
    let runtime = runtime(1);
    let (sender, ran) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let job = runtime.spawn(async move {
        let send = |n: i32| {
            let sender = sender.clone();
            move || sender.send(n).unwrap()
        };
        callback::spawn(send(0)).detach();
        // Blocks until another thread has taken the worker and runs the first callback.
        held.recv().unwrap();
        let cancelled = callback::after(MS, send(-1));
        assert!(cancelled.cancel());
        callback::after(MS, send(1)).detach();
        callback::spawn(send(2)).detach();
        // This job owns the callbacks, so it must not end before they have run.
        held.recv().unwrap();
    });
    assert_eq!(ran.recv(), Ok(0));
    release.send(()).unwrap();
    let mut rest: Vec<i32> = ran.iter().take(2).collect();
    rest.sort_unstable();
    assert_eq!(rest, [1, 2]);
    assert!(runtime.metrics().detached >= 1);
    release.send(()).unwrap();
    runtime.block_on(job).unwrap();
}

#[test]
fn callbacks_that_arrive_during_a_shutdown_run_or_are_dropped() {
    let _watch = watch();
    for round in 0..50 {
        let drops = Drops::default();
        let runtime = runtime(2);
        let (sender, owner) = mpsc::channel();
        runtime
            .spawn(async move {
                sender.send(Owner::current()).unwrap();
                std::future::pending::<()>().await;
            })
            .detach();
        let owner = owner.recv().unwrap();
        let begin = Arc::new(Barrier::new(3));
        let starters: Vec<_> = (0..2)
            .map(|_| {
                let (owner, drops, begin) = (owner.clone(), drops.clone(), begin.clone());
                thread::spawn(move || start_some(&owner, &drops, &begin))
            })
            .collect();
        begin.wait();
        for _ in 0..round {
            thread::yield_now();
        }
        runtime.shutdown(Duration::ZERO);
        for starter in starters {
            starter.join().unwrap();
        }
        until(|| drops.count() == drops.made());
    }
}

/// Starts callbacks for an owner in a runtime that may be gone.
fn start_some(owner: &Owner, drops: &Drops, begin: &Barrier) {
    begin.wait();
    for n in 0..200 {
        let token = drops.token();
        let when = match n % 3 {
            0 => When::Ready,
            1 => When::At(Instant::now()),
            _ => When::At(Instant::now() + HOUR),
        };
        once(owner.clone(), when, move || drop(token)).detach();
    }
}
