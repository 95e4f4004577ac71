//! The exchanger: pairs, and waits that are dropped.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use weald_sync::{Exchanger, Wait, exchanger::Alone};

use crate::hand::{hand, waiting};

#[test]
fn two_swap_their_values() {
    let exchanger = Exchanger::new();
    let first = waiting(exchanger.exchange("tea"));
    assert_eq!(hand(exchanger.exchange("coffee")).now(), "tea");
    assert_eq!(first.woken(), "coffee");
    assert_eq!(exchanger.try_exchange("milk"), Err(Alone("milk")));
}

#[test]
fn pairs_form_in_order() {
    let exchanger = Exchanger::new();
    // The second finds the first, so two never wait.
    let first = waiting(exchanger.exchange(1));
    assert_eq!(exchanger.try_exchange(2), Ok(1));
    let third = waiting(exchanger.exchange(3));
    assert_eq!(first.woken(), 2);
    assert_eq!(exchanger.try_exchange(4), Ok(3));
    assert_eq!(third.woken(), 4);
}

#[test]
fn a_wait_that_is_dropped_keeps_its_value() {
    let exchanger = Exchanger::new();
    drop(waiting(exchanger.exchange(1)));
    let second = waiting(exchanger.exchange(2));
    assert_eq!(exchanger.try_exchange(3), Ok(2));
    drop(second);
    assert_eq!(exchanger.try_exchange(4), Err(Alone(4)));
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let exchanger = Exchanger::new();
    assert!(exchanger.exchange(1).within(Duration::ZERO).wait().is_err());
    assert!(
        exchanger
            .exchange(1)
            .within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    assert_eq!(exchanger.try_exchange(2), Err(Alone(2)));
}

/// Exactly one other thread gets each value, even if some do not wait long.
#[test]
fn threads_swap_all_values() {
    const ROUNDS: u64 = if cfg!(miri) { 20 } else { 2000 };
    let exchanger = Exchanger::new();
    let (given, got) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (exchanger, given, got) = (&exchanger, &given, &got);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let value = thread * 10_000 + round;
                    let limit = Duration::from_micros(round % 7);
                    if let Ok(theirs) = exchanger.exchange(value).within(limit).wait() {
                        assert_ne!(theirs / 10_000, thread);
                        given.fetch_add(value, Ordering::Relaxed);
                        got.fetch_add(theirs, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(given.into_inner(), got.into_inner());
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<Exchanger<u64>>(), 24);
}
