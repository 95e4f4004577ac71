//! The read-write lock: exclusion, fairness, and waits that are dropped.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use weald_sync::{RwLock, RwLockWriteGuard, Wait};

use crate::hand::{hand, waiting};

#[test]
fn readers_share_and_a_writer_is_alone() {
    let lock = RwLock::new(1);
    let one = hand(lock.read()).now();
    let other = lock.try_read().unwrap();
    assert_eq!(*one + *other, 2);
    assert!(lock.try_write().is_none());
    drop(one);
    let writer = waiting(lock.write());
    drop(other);
    let mut guard = writer.woken();
    *guard += 1;
    assert!(lock.try_read().is_none());
    assert!(lock.try_write().is_none());
    drop(guard);
    assert_eq!(lock.into_inner(), 2);
}

#[test]
fn readers_do_not_pass_a_waiting_writer() {
    let lock = RwLock::new(());
    let reader = lock.try_read().unwrap();
    let writer = waiting(lock.write());
    assert!(lock.try_read().is_none(), "a writer waits");
    let mut late = waiting(lock.read());
    drop(reader);
    let guard = writer.woken();
    late.still_waits();
    drop(guard);
    drop(late.woken());
}

#[test]
fn writers_do_not_pass_waiting_readers_which_enter_together() {
    let lock = RwLock::new(());
    let writer = lock.try_write().unwrap();
    let readers: Vec<_> = (0..50).map(|_| waiting(lock.read())).collect();
    let mut next = waiting(lock.write());
    let mut last = waiting(lock.read());
    drop(writer);
    let inside: Vec<_> = readers.into_iter().map(|reader| reader.woken()).collect();
    next.still_waits();
    last.still_waits();
    drop(inside);
    let guard = next.woken();
    last.still_waits();
    drop(guard);
    drop(last.woken());
}

#[test]
fn a_writer_that_gives_up_lets_readers_in() {
    let lock = RwLock::new(());
    let reader = lock.try_read().unwrap();
    let writer = waiting(lock.write());
    let late = waiting(lock.read());
    drop(writer);
    drop(late.woken());
    drop(reader);
    assert!(lock.try_write().is_some());
}

#[test]
fn the_turn_of_a_dropped_wait_goes_to_the_next() {
    let lock = RwLock::new(());
    let guard = lock.try_write().unwrap();
    let first = waiting(lock.write());
    let second = waiting(lock.read());
    let third = waiting(lock.write());
    drop(guard);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    drop(second);
    drop(third.woken());
    assert!(lock.try_write().is_some());
}

#[test]
fn a_writer_becomes_a_reader_with_no_writer_in_between() {
    let lock = RwLock::new(1);
    let writer = lock.try_write().unwrap();
    let reader = waiting(lock.read());
    let mut other = waiting(lock.write());
    let kept = RwLockWriteGuard::downgrade(writer);
    assert_eq!(*reader.woken() + *kept, 2);
    other.still_waits();
    drop(kept);
    drop(other.woken());
}

#[test]
fn a_panic_releases_and_poisons_nothing() {
    let lock = RwLock::new(1);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = lock.try_write().unwrap();
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(outcome.is_err());
    assert_eq!(*lock.try_read().unwrap(), 1);
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let lock = RwLock::new(());
    let reader = lock.try_read().unwrap();
    assert!(lock.write().within(Duration::ZERO).wait().is_err());
    assert!(
        lock.write()
            .within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    assert!(lock.try_read().is_some(), "no writer waits");
    drop(reader);
    assert!(lock.write().within(Duration::ZERO).wait().is_ok());
}

#[test]
fn threads_exclude_each_other() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2000 };
    let lock = RwLock::new((0_u64, 0_u64));
    let writes = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (lock, writes) = (&lock, &writes);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    if (round + thread) % 3 == 0 {
                        let mut guard = lock.write().wait();
                        assert!(!writes.swap(true, Ordering::SeqCst));
                        guard.0 += 1;
                        guard.1 += 1;
                        writes.store(false, Ordering::SeqCst);
                    } else {
                        let guard = lock.read().wait();
                        assert!(!writes.load(Ordering::SeqCst));
                        assert_eq!(guard.0, guard.1);
                    }
                }
            });
        }
    });
    assert_eq!(lock.into_inner().0, 4000);
}

#[test]
fn dropped_waits_and_releases_race() {
    const ROUNDS: u64 = if cfg!(miri) { 20 } else { 1000 };
    let lock = RwLock::new(());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let lock = &lock;
            scope.spawn(move || {
                for micros in 0..ROUNDS {
                    let limit = Duration::from_micros(micros % 20);
                    match (thread + micros) % 2 {
                        0 => drop(lock.write().within(limit).wait()),
                        _ => drop(lock.read().within(limit).wait()),
                    }
                }
            });
        }
    });
    assert!(lock.try_write().is_some());
}

#[test]
fn another_executor_can_wait() {
    let lock = RwLock::new(0);
    join_all((0..10).map(|_| async { *lock.write().await += 1 })).wait();
    assert_eq!(*lock.read().wait(), 10);
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<RwLock<()>>(), 32);
    assert_eq!(size_of::<RwLock<u64>>(), 40);
}
