//! Models of the semaphore: no permit is lost or invented, and no wait is forgotten.

use std::sync::Arc;

use loom::{cell::Cell, thread};

use super::made_up::{once, wait};
use crate::Semaphore;

/// With one permit it is a mutex.
#[test]
fn one_permit_lets_one_inside() {
    loom::model(|| {
        let shared = Arc::new((Semaphore::new(1), Cell::new(0)));
        let other = Arc::clone(&shared);
        let work = |(semaphore, count): &(Semaphore, Cell<u32>)| {
            let _permit = wait(semaphore.acquire()).unwrap();
            count.set(count.get() + 1);
        };
        let thread = thread::spawn(move || work(&other));
        work(&shared);
        thread.join().unwrap();
        let _permit = shared.0.try_acquire().unwrap();
        assert_eq!(shared.1.get(), 2);
    });
}

/// A waiter that wants two permits gives up; one that comes meanwhile and wants one gets it.
#[test]
fn a_wait_that_gives_up_blocks_no_other() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let patient = Arc::clone(&semaphore);
        let patient = thread::spawn(move || wait(patient.acquire()).unwrap().forget());
        assert!(once(semaphore.acquire_many(2)).is_none());
        patient.join().unwrap();
        assert_eq!(semaphore.available(), 0);
    });
}

/// A permit is granted to a wait that gives up: the permit is available again.
#[test]
fn a_permit_that_was_granted_to_a_dropped_wait_comes_back() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let hasty = Arc::clone(&semaphore);
        let hasty = thread::spawn(move || drop(once(hasty.acquire())));
        semaphore.release(1);
        hasty.join().unwrap();
        assert_eq!(semaphore.available(), 1);
    });
}
