//! The full/empty lock: who gets it at which mark, and waits that are dropped.

use std::sync::atomic::{AtomicUsize, Ordering};

use weald_sync::{FullEmptyLock, Mark, Wait};

use crate::hand::waiting;

#[test]
fn it_is_taken_at_the_wanted_mark_only() {
    let cell = FullEmptyLock::new(Mark::Empty, 7);
    assert!(cell.try_lock_when(Mark::Full).is_none());
    let guard = cell.try_lock_when(Mark::Empty).unwrap();
    assert!(cell.try_lock_when(Mark::Empty).is_none(), "it is held");
    guard.release_as(Mark::Full);
    let guard = cell.lock_when(Mark::Full).wait();
    assert_eq!((*guard, guard.mark()), (7, Mark::Full));
    drop(guard);
    assert_eq!(cell.lock().wait().mark(), Mark::Full, "the mark stays");
    assert_eq!(cell.into_inner(), 7);
}

#[test]
fn a_release_wakes_a_unit_that_waits_for_its_mark() {
    let cell = FullEmptyLock::new(Mark::Full, ());
    let mut consumer = waiting(cell.lock_when(Mark::Empty));
    cell.lock().wait().release_as(Mark::Full);
    consumer.still_waits();
    cell.lock().wait().release_as(Mark::Empty);
    drop(consumer.woken());
}

#[test]
fn the_notification_of_a_wait_that_is_dropped_goes_to_the_next_one() {
    let cell = FullEmptyLock::new(Mark::Empty, ());
    let first = waiting(cell.lock_when(Mark::Full));
    let second = waiting(cell.lock_when(Mark::Full));
    cell.lock().wait().release_as(Mark::Full);
    drop(first);
    drop(second.woken());
}

#[test]
fn producers_and_consumers_on_threads_lose_and_double_nothing() {
    const EACH: usize = 2_000;
    let cell = FullEmptyLock::new(Mark::Empty, 0);
    let sum = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for producer in 0..3 {
            let cell = &cell;
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut slot = cell.lock_when(Mark::Empty).wait();
                    *slot = producer * EACH + number;
                    slot.release_as(Mark::Full);
                }
            });
        }
        for _ in 0..3 {
            let (cell, sum) = (&cell, &sum);
            scope.spawn(move || {
                for _ in 0..EACH {
                    let slot = cell.lock_when(Mark::Full).wait();
                    sum.fetch_add(*slot, Ordering::Relaxed);
                    slot.release_as(Mark::Empty);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), (0..3 * EACH).sum());
}
