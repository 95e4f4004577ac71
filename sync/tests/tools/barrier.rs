//! The barrier: leaders, rounds, and arrivals that are withdrawn.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use weald_sync::{Barrier, Wait};

use crate::hand::{hand, waiting};

#[test]
fn the_last_arrival_leads_and_ends_the_round() {
    let barrier = Barrier::new(3);
    for _round in 0..3 {
        let (one, other) = (waiting(barrier.wait()), waiting(barrier.wait()));
        assert!(hand(barrier.wait()).now().is_leader());
        assert!(!one.woken().is_leader());
        assert!(!other.woken().is_leader());
    }
}

#[test]
fn a_barrier_for_one_or_none_never_waits() {
    for size in [0, 1] {
        let barrier = Barrier::new(size);
        assert!(hand(barrier.wait()).now().is_leader());
        assert!(hand(barrier.wait()).now().is_leader());
    }
}

#[test]
fn a_wait_that_is_dropped_withdraws_its_arrival() {
    let barrier = Barrier::new(2);
    drop(waiting(barrier.wait()));
    let one = waiting(barrier.wait());
    assert!(hand(barrier.wait()).now().is_leader());
    assert!(!one.woken().is_leader());
}

#[test]
fn a_wait_that_is_dropped_after_the_round_makes_no_difference() {
    let barrier = Barrier::new(2);
    let one = waiting(barrier.wait());
    assert!(hand(barrier.wait()).now().is_leader());
    assert_eq!(one.wakes(), 1);
    drop(one);
    waiting(barrier.wait()).still_waits();
}

#[test]
fn a_deadline_withdraws_the_arrival() {
    let barrier = Barrier::new(2);
    assert!(barrier.wait().within(Duration::ZERO).wait().is_err());
    assert!(
        barrier
            .wait()
            .within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    waiting(barrier.wait()).still_waits();
    let one = waiting(barrier.wait());
    assert!(
        barrier
            .wait()
            .within(Duration::ZERO)
            .wait()
            .unwrap()
            .is_leader()
    );
    one.woken();
}

#[test]
fn each_round_of_threads_has_one_leader() {
    const THREADS: usize = 5;
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 1000 };
    let barrier = Barrier::new(5);
    let (leaders, arrivals) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    arrivals.fetch_add(1, Ordering::SeqCst);
                    if barrier.wait().wait().is_leader() {
                        leaders.fetch_add(1, Ordering::SeqCst);
                    }
                    // No wait ends before all have arrived.
                    assert!(arrivals.load(Ordering::SeqCst) >= round * THREADS);
                }
            });
        }
    });
    assert_eq!(leaders.into_inner(), ROUNDS);
}

/// Pairs whose waits have deadlines: both meet or neither does, because a round takes exactly two.
#[test]
fn a_deadline_and_a_round_never_both_happen() {
    const ROUNDS: u64 = if cfg!(miri) { 20 } else { 3000 };
    let barrier = Barrier::new(2);
    let (met, led) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (barrier, met, led) = (&barrier, &met, &led);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let limit = Duration::from_micros((round * (thread + 1)) % 7);
                    if let Ok(result) = barrier.wait().within(limit).wait() {
                        met.fetch_add(1, Ordering::SeqCst);
                        led.fetch_add(usize::from(result.is_leader()), Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let (met, led) = (met.into_inner(), led.into_inner());
    assert_eq!(met, 2 * led);
}

#[test]
fn another_executor_can_wait() {
    let barrier = Barrier::new(100);
    let results = join_all((0..100).map(|_| barrier.wait())).wait();
    assert_eq!(
        results.iter().filter(|result| result.is_leader()).count(),
        1
    );
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<Barrier>(), 24);
}
