//! Initialisation once: by one unit at a time, and by the next if that unit does not finish.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use weald_sync::{Once, OnceLock, TimedOut, Wait};

use crate::hand::{hand, waiting};

#[test]
fn the_first_initialiser_is_the_only_one() {
    let once = OnceLock::new();
    assert_eq!(once.get(), None);
    assert_eq!(once.get_or_init(async || 1).wait(), &1);
    assert_eq!(
        once.get_or_init(async || panic!("the value exists")).wait(),
        &1
    );
    assert_eq!(once.set(2), Err(2));
    assert_eq!(once.into_inner(), Some(1));
}

#[test]
fn a_later_unit_waits_for_the_value() {
    let (once, event) = (OnceLock::new(), weald_sync::IVar::new());
    let mut first = waiting(once.get_or_init(async || *event.get().await));
    let others: Vec<_> = (0..50)
        .map(|_| waiting(once.get_or_init(async || panic!("another unit creates it"))))
        .collect();
    let watches = waiting(once.wait());
    event.put(7).unwrap();
    assert_eq!(first.now(), &7);
    assert_eq!(watches.woken(), &7);
    for other in others {
        assert_eq!(other.woken(), &7);
    }
}

#[test]
fn an_initialiser_that_is_dropped_lets_the_next_one_try() {
    let once = OnceLock::new();
    let first = waiting(once.get_or_init(async || pending().await));
    let second = waiting(once.get_or_init(async || 2));
    let mut third = waiting(once.get_or_init(async || 3));
    drop(first);
    third.still_waits();
    assert_eq!(second.woken(), &2);
    assert_eq!(third.woken(), &2);
}

#[test]
fn the_turn_of_a_dropped_wait_goes_to_the_next() {
    let once = OnceLock::new();
    let first = waiting(once.get_or_init(async || pending().await));
    let second = waiting(once.get_or_init(async || 2));
    let third = waiting(once.get_or_init(async || 3));
    drop(first);
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    drop(second);
    assert_eq!(third.woken(), &3);
}

#[test]
fn an_initialiser_that_fails_or_panics_lets_the_next_one_try() {
    let once = OnceLock::new();
    let failed = once
        .get_or_try_init(async || Err::<u32, _>("on purpose"))
        .wait();
    assert_eq!(failed, Err("on purpose"));
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let init = async || resume_unwind(Box::new("on purpose"));
        once.get_or_init(init).wait();
    }));
    assert!(panics.is_err());
    assert_eq!(once.get_or_init(async || 3).wait(), &3);
}

#[test]
fn a_value_that_is_set_ends_all_waits() {
    let once = OnceLock::new();
    let first = waiting(once.get_or_init(async || pending().await));
    let second = waiting(once.get_or_init(async || 2));
    once.set(1).unwrap();
    assert_eq!(second.woken(), &1);
    drop(first);
    assert_eq!(once.get(), Some(&1));
}

#[test]
fn a_deadline_limits_the_wait_for_another_initialiser() {
    let once = OnceLock::new();
    let first = waiting(once.get_or_init(async || pending().await));
    let late = once.get_or_init_within(Duration::from_millis(1), async || 2);
    assert_eq!(late.wait(), Err(TimedOut));
    assert!(once.wait().within(Duration::ZERO).wait().is_err());
    drop(first);
    let own = once.get_or_init_within(Duration::ZERO, async || 3);
    assert_eq!(own.wait(), Ok(&3));
}

#[test]
fn threads_initialise_once() {
    const ROUNDS: u32 = if cfg!(miri) { 5 } else { 200 };
    for _ in 0..ROUNDS {
        let (once, runs) = (Once::new(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let act = async || {
                        runs.fetch_add(1, Ordering::SeqCst);
                    };
                    once.call_once(act).wait();
                    assert!(once.is_completed());
                    assert_eq!(runs.load(Ordering::SeqCst), 1);
                });
            }
        });
    }
}

#[test]
fn a_wait_for_once_ends_when_it_is_done() {
    let once = Once::new();
    let wait = waiting(once.wait());
    hand(once.call_once(async || ())).now();
    wait.woken();
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<OnceLock<u64>>(), 48 + 8 + 8);
}
