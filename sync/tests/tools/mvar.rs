//! The mvar: full and empty, order, copies, and waits that are dropped.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join;
use weald_sync::{MVar, Wait, mvar::Full};

use crate::hand::{hand, waiting};

#[test]
fn a_put_waits_while_it_is_full() {
    let place = MVar::new(1);
    assert_eq!(place.try_put(9), Err(Full(9)));
    let put = waiting(place.put(2));
    assert_eq!(hand(place.take()).now(), 1);
    put.woken();
    assert_eq!(place.try_take(), Some(2));
    assert!(place.is_empty());
}

#[test]
fn a_take_waits_while_it_is_empty() {
    let place = MVar::empty();
    assert_eq!(place.try_take(), None);
    let take = waiting(place.take());
    hand(place.put(1)).now();
    assert_eq!(take.woken(), 1);
    assert!(place.is_empty());
}

#[test]
fn both_sides_are_served_in_order() {
    let place = MVar::empty();
    let takes: Vec<_> = (0..3).map(|_| waiting(place.take())).collect();
    (0..3).for_each(|n| place.try_put(n).unwrap());
    let taken: Vec<_> = takes.into_iter().map(|take| take.woken()).collect();
    assert_eq!(taken, [0, 1, 2]);

    place.try_put(0).unwrap();
    let puts: Vec<_> = (1..4).map(|n| waiting(place.put(n))).collect();
    let taken: Vec<_> = (0..4).map(|_| place.try_take().unwrap()).collect();
    assert_eq!(taken, [0, 1, 2, 3]);
    puts.into_iter().for_each(|put| put.woken());
}

#[test]
fn a_read_leaves_the_value() {
    let place = MVar::empty();
    assert_eq!(place.try_read(), None);
    let first = waiting(place.read());
    let second = waiting(place.read());
    let take = waiting(place.take());
    let mut last = waiting(place.read());
    place.try_put("value".to_owned()).unwrap();
    assert_eq!(first.woken(), "value");
    assert_eq!(second.woken(), "value");
    assert_eq!(take.woken(), "value");
    last.still_waits();
    place.try_put("other".to_owned()).unwrap();
    assert_eq!(last.woken(), "other");
    assert_eq!(place.try_read().as_deref(), Some("other"));
    assert_eq!(place.into_inner().as_deref(), Some("other"));
}

#[test]
fn no_unit_comes_between_the_halves_of_a_swap() {
    let place = MVar::new(1);
    let put = waiting(place.put(3));
    assert_eq!(hand(place.swap(2)).now(), 1);
    assert_eq!(place.try_take(), Some(2));
    put.woken();
    assert_eq!(place.try_take(), Some(3));
    let swap = waiting(place.swap(5));
    let take = waiting(place.take());
    place.try_put(4).unwrap();
    assert_eq!(swap.woken(), 4);
    assert_eq!(take.woken(), 5);
}

#[test]
fn a_wait_that_is_dropped_leaves_nothing_behind() {
    let place = MVar::empty();
    drop(waiting(place.take()));
    drop(waiting(place.read()));
    drop(waiting(place.swap(9)));
    place.try_put(1).unwrap();
    drop(waiting(place.put(9)));
    assert_eq!(place.try_take(), Some(1));
    assert_eq!(place.try_take(), None);
}

#[test]
fn the_value_of_a_dropped_wait_goes_to_the_next_or_back() {
    let place = MVar::empty();
    let (first, second) = (waiting(place.take()), waiting(place.take()));
    place.try_put(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.woken(), 1);

    let take = waiting(place.take());
    place.try_put(2).unwrap();
    drop(take);
    assert_eq!(place.try_take(), Some(2));
}

#[test]
fn a_value_that_comes_back_to_a_full_mvar_is_first() {
    let place = MVar::empty();
    let take = waiting(place.take());
    place.try_put(1).unwrap();
    place.try_put(2).unwrap();
    let put = waiting(place.put(3));
    drop(take);
    let taken: Vec<_> = (0..3).map(|_| place.try_take().unwrap()).collect();
    assert_eq!(taken, [1, 2, 3]);
    put.woken();
}

#[test]
fn a_loan_to_a_read_that_is_dropped_ends() {
    let place = MVar::empty();
    let (read, take) = (waiting(place.read()), waiting(place.take()));
    place.try_put(1).unwrap();
    assert_eq!((read.wakes(), take.wakes()), (1, 0));
    assert!(!place.is_empty(), "the value is lent, not gone");
    assert_eq!(place.try_put(2), Err(Full(2)));
    drop(read);
    assert_eq!(take.woken(), 1);
}

#[test]
fn what_a_dropped_swap_took_out_stays_there() {
    let place = MVar::empty();
    let swap = waiting(place.swap(2));
    place.try_put(1).unwrap();
    drop(swap);
    assert_eq!([place.try_take(), place.try_take()], [Some(2), Some(1)]);
    assert_eq!(place.try_take(), None);
}

/// A value whose copying panics.
struct Bomb(u32);

impl Clone for Bomb {
    fn clone(&self) -> Bomb {
        resume_unwind(Box::new("on purpose"))
    }
}

#[test]
fn a_copy_that_panics_gives_the_value_back() {
    let place = MVar::new(Bomb(7));
    assert!(catch_unwind(AssertUnwindSafe(|| place.read().wait())).is_err());
    assert_eq!(place.try_take().map(|bomb| bomb.0), Some(7));
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let place = MVar::empty();
    assert!(place.take().within(Duration::ZERO).wait().is_err());
    assert!(
        place
            .take()
            .within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    place.try_put(1).unwrap();
    assert!(
        place
            .put(2)
            .within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    assert_eq!(place.try_take(), Some(1));
    assert_eq!(place.try_take(), None);
}

#[test]
fn threads_lose_and_duplicate_nothing() {
    const EACH: u64 = if cfg!(miri) { 20 } else { 3000 };
    let place = MVar::empty();
    let sum = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (place, sum) = (&place, &sum);
            scope.spawn(move || (0..EACH).for_each(|n| place.put(thread * EACH + n).wait()));
            scope.spawn(move || {
                for _ in 0..EACH {
                    sum.fetch_add(place.take().wait(), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), (0..3 * EACH).sum());
    assert!(place.is_empty());
}

/// Takes with deadlines, reads and swaps race; each value that is put is taken exactly once.
#[test]
fn dropped_waits_lose_nothing() {
    const VALUES: usize = if cfg!(miri) { 20 } else { 2000 };
    let place = MVar::empty();
    let token = Arc::new(());
    std::thread::scope(|scope| {
        scope.spawn(|| (0..VALUES).for_each(|_| place.put(Arc::clone(&token)).wait()));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut taken = 0;
                    while taken < VALUES / 2 {
                        drop(place.read().within(Duration::from_micros(2)).wait());
                        let limit = Duration::from_micros(taken as u64 % 5);
                        taken += usize::from(place.take().within(limit).wait().is_ok());
                    }
                })
            })
            .collect();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
    });
    assert!(place.is_empty());
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn another_executor_can_wait() {
    let place = MVar::empty();
    let puts = async {
        for n in 0..100 {
            place.put(n).await;
        }
    };
    let takes = async {
        let mut taken = Vec::new();
        while taken.len() < 100 {
            taken.push(place.take().await);
        }
        taken
    };
    let ((), taken) = join(puts, takes).wait();
    assert_eq!(taken, Vec::from_iter(0..100));
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<MVar<u64>>(), 72);
}
