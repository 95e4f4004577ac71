//! The semaphore: order, memory, closing, and waits that are dropped.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use weald_sync::{
    Semaphore, Wait,
    semaphore::{Closed, TryAcquireError},
};

use crate::hand::{hand, waiting};

#[test]
fn permits_are_remembered() {
    let semaphore = Semaphore::new(0);
    semaphore.release(2);
    hand(semaphore.acquire()).now().unwrap().forget();
    hand(semaphore.acquire()).now().unwrap().forget();
    assert_eq!(
        semaphore.try_acquire().err(),
        Some(TryAcquireError::NoPermits)
    );
}

#[test]
fn permits_come_back_with_their_guard() {
    let semaphore = Semaphore::new(3);
    let two = semaphore.try_acquire_many(2).unwrap();
    assert_eq!((two.count(), semaphore.available()), (2, 1));
    drop(two);
    assert_eq!(semaphore.available(), 3);
}

#[test]
fn waiters_are_served_in_order() {
    let semaphore = Semaphore::new(0);
    let mut waits: Vec<_> = (0..3).map(|_| waiting(semaphore.acquire())).collect();
    for served in 0..3 {
        semaphore.release(1);
        let wakes: Vec<_> = waits.iter().map(|wait| wait.wakes()).collect();
        assert_eq!(wakes, [[1, 0, 0], [1, 1, 0], [1, 1, 1]][served]);
    }
    for wait in &mut waits {
        wait.now().unwrap().forget();
    }
}

#[test]
fn a_waiter_that_wants_many_is_not_passed() {
    let semaphore = Semaphore::new(1);
    let many = waiting(semaphore.acquire_many(3));
    let mut one = waiting(semaphore.acquire());
    assert!(semaphore.try_acquire().is_err(), "a waiter is before it");
    semaphore.release(1);
    one.still_waits();
    semaphore.release(1);
    let many = many.woken().unwrap();
    one.still_waits();
    drop(many);
    drop(one.woken());
    assert_eq!(semaphore.available(), 3);
}

#[test]
fn a_dropped_wait_lets_those_behind_it_proceed() {
    let semaphore = Semaphore::new(2);
    let many = waiting(semaphore.acquire_many(3));
    let one = waiting(semaphore.acquire());
    let other = waiting(semaphore.acquire());
    drop(many);
    let permits = (one.woken().unwrap(), other.woken().unwrap());
    assert_eq!(semaphore.available(), 0);
    drop(permits);
    assert_eq!(semaphore.available(), 2);
}

#[test]
fn the_permit_of_a_dropped_wait_goes_to_the_next() {
    let semaphore = Semaphore::new(0);
    let first = waiting(semaphore.acquire());
    let second = waiting(semaphore.acquire());
    semaphore.release(1);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    drop(second.woken());
    assert_eq!(semaphore.available(), 1);
    // If there is no next waiter, the permit stays.
    let only = waiting(semaphore.acquire_many(2));
    semaphore.release(1);
    drop(only);
    assert_eq!(semaphore.available(), 2);
}

#[test]
fn closing_ends_all_waits() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.try_acquire().unwrap();
    // More than one batch of wakes.
    let waits: Vec<_> = (0..100).map(|_| waiting(semaphore.acquire())).collect();
    semaphore.close();
    for wait in waits {
        assert_eq!(wait.woken().err(), Some(Closed));
    }
    assert!(semaphore.is_closed());
    assert_eq!(hand(semaphore.acquire()).now().err(), Some(Closed));
    assert_eq!(semaphore.try_acquire().err(), Some(TryAcquireError::Closed));
    drop(permit);
    assert!(Closed.to_string().contains("semaphore is closed"));
}

#[test]
fn many_are_served_by_one_release() {
    let semaphore = Semaphore::new(0);
    let waits: Vec<_> = (0..100).map(|_| waiting(semaphore.acquire())).collect();
    semaphore.release(100);
    for wait in waits {
        wait.woken().unwrap().forget();
    }
    assert_eq!(semaphore.available(), 0);
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let semaphore = Semaphore::new(0);
    let late = semaphore.acquire().within(Duration::ZERO).wait();
    assert!(late.is_err());
    let late = semaphore.acquire_many(2).within(Duration::from_millis(1));
    assert!(late.wait().is_err());
    semaphore.release(1);
    assert_eq!(semaphore.available(), 1);
    let in_time = semaphore.acquire().within(Duration::ZERO).wait();
    assert!(in_time.unwrap().is_ok());
}

#[test]
fn no_more_than_its_permits_are_inside() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2000 };
    let semaphore = Semaphore::new(3);
    let inside = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let count = 1 + round % 2;
                    let permit = semaphore.acquire_many(count).wait().unwrap();
                    let now = inside.fetch_add(count, Ordering::SeqCst) + count;
                    assert!(now <= 3, "{now} permits are out");
                    inside.fetch_sub(count, Ordering::SeqCst);
                    drop(permit);
                }
            });
        }
    });
    assert_eq!(semaphore.available(), 3);
}

/// Waits with deadlines, dropped at any moment, race with releases: no permit is lost or invented.
#[test]
fn dropped_waits_and_grants_race() {
    const ROUNDS: u64 = if cfg!(miri) { 20 } else { 1000 };
    let semaphore = Semaphore::new(1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for micros in 0..ROUNDS {
                    let limit = Duration::from_micros(micros % 20);
                    drop(semaphore.acquire().within(limit).wait());
                }
            });
        }
    });
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn another_executor_can_wait() {
    let semaphore = Semaphore::new(1);
    let work = join_all((0..10).map(|_| async {
        let _permit = semaphore.acquire().await.unwrap();
        give_way().await;
    }));
    work.wait();
    assert_eq!(semaphore.available(), 1);
}

/// Lets the other futures of the same task run once.
async fn give_way() {
    let mut is_first = true;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut is_first, false) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<Semaphore>(), 24);
}
