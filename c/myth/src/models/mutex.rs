//! Models of the mutex: one thread inside, its writes are visible to the next, and no wake is lost.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use loom::{cell::Cell, thread};

use super::made_up::Shared;
use crate::mutex::Mutex;

type Guarded = Shared<(Mutex, Cell<u32>)>;

fn guarded() -> Arc<Guarded> {
    let mutex = Mutex::new(0).unwrap();
    Arc::new(Shared((mutex, Cell::new(0))))
}

fn count(guarded: &Guarded) {
    let (mutex, cell) = &guarded.0;
    if !mutex.lock_at_once() {
        mutex.lock(None).unwrap();
    }
    cell.set(cell.get() + 1);
    if !mutex.unlock_at_once() {
        mutex.unlock().unwrap();
    }
}

/// One thread for each number, which locks so often.
fn counted(times: &[u32]) {
    let guarded = guarded();
    let others: Vec<_> = times[1..]
        .iter()
        .map(|&times| {
            let guarded = Arc::clone(&guarded);
            thread::spawn(move || (0..times).for_each(|_| count(&guarded)))
        })
        .collect();
    (0..times[0]).for_each(|_| count(&guarded));
    for other in others {
        other.join().unwrap();
    }
    assert!(!guarded.0.0.is_locked());
    assert_eq!(guarded.0.1.get(), times.iter().sum());
}

/// A waiter may be passed over, and have the mutex handed to it.
#[test]
fn two_threads_lock_twice() {
    loom::model(|| counted(&[2, 2]));
}

/// Two may be in the queue. With fewer preemptions: there are too many interleavings.
#[test]
fn three_threads_lock() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.map(|bound| bound.min(2));
    model.check(|| counted(&[1, 1, 1]));
}

/// A thread that looks before it waits finds the mutex free, or waits; and it finds it locked at first.
#[test]
fn a_look_before_a_wait() {
    // Those of all interleavings, which loom does not watch.
    let [taken, left] = [const { AtomicBool::new(false) }; 2].map(Arc::new);
    let found = [taken.clone(), left.clone()];
    loom::model(move || {
        let guarded = guarded();
        let other = Arc::clone(&guarded);
        let other = thread::spawn(move || count(&other));
        let (mutex, cell) = &guarded.0;
        if !mutex.lock_at_once() {
            let soon = mutex.take_soon(None);
            found[usize::from(!soon)].store(true, Relaxed);
            if !soon {
                mutex.lock(None).unwrap();
            }
        }
        cell.set(cell.get() + 1);
        mutex.unlock().unwrap();
        other.join().unwrap();
        assert!(!mutex.is_locked());
        assert_eq!(cell.get(), 2);
    });
    assert!(taken.load(Relaxed) && left.load(Relaxed));
}

/// Whoever takes the mutex and frees its memory is not disturbed by the one that had it before: the last access of an
/// unlock is the one that frees it. (The cell's write would overlap with a later access of the other thread.)
#[test]
fn the_next_owner_may_end_the_mutex() {
    loom::model(|| {
        let guarded = guarded();
        guarded.0.0.lock(None).unwrap();
        let other = Arc::clone(&guarded);
        let other = thread::spawn(move || {
            other.0.0.lock(None).unwrap();
            assert!(other.0.0.is_locked());
            other.0.0.unlock().unwrap();
        });
        guarded.0.0.unlock().unwrap();
        other.join().unwrap();
        assert!(!guarded.0.0.is_locked());
    });
}
