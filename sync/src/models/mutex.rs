//! Models of the mutex: one thread inside, its writes are visible to the next, and no wake is lost.

use std::sync::Arc;

use loom::{cell::Cell, thread};

use super::made_up::{started, wait};
use crate::Mutex;

/// Two threads; the cell's accesses must not overlap.
#[test]
fn one_is_inside_and_the_next_sees_what_it_wrote() {
    loom::model(|| {
        let mutex = Arc::new(Mutex::new(Cell::new(0)));
        let threads = [(); 2].map(|()| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || {
                let count = wait(mutex.lock());
                count.set(count.get() + 1);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(wait(mutex.lock()).get(), 2);
    });
}

/// A waiter gives up, perhaps after it was woken: the other waiter still gets the mutex.
#[test]
fn a_wait_that_gives_up_passes_its_wake_on() {
    loom::model(|| {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.try_lock().unwrap();
        let hasty = started(mutex.lock());
        let patient = Arc::clone(&mutex);
        let patient = thread::spawn(move || drop(wait(patient.lock())));
        drop(guard);
        drop(hasty);
        patient.join().unwrap();
        assert!(!mutex.is_locked());
    });
}

/// A waiter that was passed over gets the mutex, while others try for it, too; in a model one pass is enough.
#[test]
fn a_waiter_that_was_passed_over_gets_the_mutex() {
    loom::model(|| {
        let mutex = Arc::new(Mutex::new(Cell::new(0)));
        let guard = mutex.try_lock().unwrap();
        let waiter = Arc::clone(&mutex);
        let waiter = thread::spawn(move || {
            let count = wait(waiter.lock());
            count.set(count.get() + 1);
        });
        guard.set(1);
        drop(guard);
        let mut expected = 2;
        for _ in 0..2 {
            if let Some(count) = mutex.try_lock() {
                count.set(count.get() + 1);
                expected += 1;
            }
        }
        waiter.join().unwrap();
        assert_eq!(mutex.try_lock().unwrap().get(), expected);
    });
}
