//! The mutex: exclusion, fairness, and waits that are dropped.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};

use futures_util::future::join_all;
use weald_sync::{Mutex, Wait};

use crate::hand::{hand, waiting};

#[test]
fn one_at_a_time() {
    let mutex = Mutex::new(1);
    let mut guard = hand(mutex.lock()).now();
    *guard += 1;
    assert!(mutex.is_locked());
    assert!(mutex.try_lock().is_none());
    drop(guard);
    assert_eq!(mutex.try_lock().as_deref(), Some(&2));
    assert_eq!(mutex.into_inner(), 2);
}

#[test]
fn a_release_wakes_only_the_first_waiter() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let first = waiting(mutex.lock());
    let mut second = waiting(mutex.lock());
    drop(guard);
    let guard = first.woken();
    second.still_waits();
    drop(guard);
    drop(second.woken());
    assert!(!mutex.is_locked());
}

#[test]
fn a_free_mutex_may_be_taken_before_the_waiters() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let mut first = waiting(mutex.lock());
    drop(guard);
    assert_eq!(first.wakes(), 1);
    let other = mutex.try_lock().unwrap();
    assert!(first.poll().is_pending());
    drop(other);
    assert_eq!(first.wakes(), 2);
    drop(first.now());
}

#[test]
fn a_waiter_passed_over_eight_times_gets_the_mutex_handed_over() {
    for mutex in [Mutex::new(()), Mutex::named("accounts", ())] {
        let mut guard = mutex.try_lock().unwrap();
        let mut first = waiting(mutex.lock());
        let mut passed = 0;
        loop {
            drop(guard);
            let Some(other) = mutex.try_lock() else {
                break;
            };
            guard = other;
            assert!(first.poll().is_pending());
            passed += 1;
            assert!(passed < 100, "it starves");
        }
        assert_eq!(passed, 8);
        drop(first.now());
        assert!(!mutex.is_locked());
        drop(mutex.try_lock().unwrap());
    }
}

#[test]
fn a_waiter_that_is_due_and_gives_up_is_not_waited_for() {
    let mutex = Mutex::new(());
    let mut guard = mutex.try_lock().unwrap();
    let (mut first, second) = (waiting(mutex.lock()), waiting(mutex.lock()));
    for _ in 0..8 {
        drop(guard);
        guard = mutex.try_lock().unwrap();
        assert!(first.poll().is_pending());
    }
    drop(first);
    assert_eq!(second.wakes(), 0);
    drop(guard);
    drop(mutex.try_lock().unwrap());
    drop(second.woken());
    assert!(!mutex.is_locked());
}

#[test]
fn a_wait_that_is_dropped_leaves_its_place_to_the_next() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let (first, second) = (waiting(mutex.lock()), waiting(mutex.lock()));
    drop(first);
    drop(guard);
    drop(second.woken());
    assert!(!mutex.is_locked());
}

#[test]
fn the_wake_of_a_dropped_wait_goes_to_the_next() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let (first, second) = (waiting(mutex.lock()), waiting(mutex.lock()));
    drop(guard);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    drop(second.woken());
    // Also if the mutex was taken meanwhile.
    let guard = mutex.try_lock().unwrap();
    let (first, second) = (waiting(mutex.lock()), waiting(mutex.lock()));
    drop(guard);
    let guard = mutex.try_lock().unwrap();
    drop(first);
    assert_eq!(second.wakes(), 0);
    drop(guard);
    drop(second.woken());
}

#[test]
fn a_mutex_that_was_handed_to_a_dropped_wait_is_released() {
    let mutex = Mutex::new(());
    let mut guard = mutex.try_lock().unwrap();
    let mut first = waiting(mutex.lock());
    let second = waiting(mutex.lock());
    for _ in 0..8 {
        drop(guard);
        guard = mutex.try_lock().unwrap();
        assert!(first.poll().is_pending());
    }
    drop(guard);
    assert!(mutex.try_lock().is_none(), "the mutex was handed over");
    assert_eq!(second.wakes(), 0);
    drop(first);
    drop(second.woken());
    assert!(!mutex.is_locked());
}

#[test]
fn a_panic_releases_and_poisons_nothing() {
    let mutex = Mutex::new(1);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _guard = mutex.lock().wait();
        resume_unwind(Box::new("on purpose"));
    }));
    assert!(outcome.is_err());
    assert_eq!(*mutex.try_lock().unwrap(), 1);
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    assert!(mutex.lock().within(Duration::ZERO).wait().is_err());
    assert!(
        mutex
            .lock()
            .within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    let next = waiting(mutex.lock());
    drop(guard);
    drop(next.woken());
    assert!(mutex.lock().within(Duration::ZERO).wait().is_ok());
}

#[test]
fn threads_exclude_each_other() {
    const LOCKS: u32 = if cfg!(miri) { 50 } else { 20_000 };
    let mutex = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| (0..LOCKS).for_each(|_| *mutex.lock().wait() += 1));
        }
    });
    assert_eq!(mutex.into_inner(), 6 * LOCKS);
}

#[test]
fn dropped_waits_and_releases_race() {
    let mutex = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for micros in 0..2000 {
                    let limit = Duration::from_micros(micros % 9);
                    drop(mutex.lock().within(limit).wait());
                }
            });
            scope.spawn(|| (0..2000).for_each(|_| *mutex.lock().wait() += 1));
        }
    });
    assert_eq!(mutex.into_inner(), 6000);
}

#[test]
fn another_executor_can_wait() {
    let mutex = Mutex::new(0);
    join_all((0..100).map(|_| async { *mutex.lock().await += 1 })).wait();
    assert_eq!(mutex.into_inner(), 100);
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<Mutex<()>>(), 16);
    assert_eq!(size_of::<Mutex<u64>>(), 24);
}
