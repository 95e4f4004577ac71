//! Models of arrivals: callbacks that foreign threads start are taken once, and no worker sleeps while some have
//! arrived.

#![allow(unsafe_code)]

use crate::{
    biased_lock::{BiasedLock, Lease},
    queue::sleepers::{Before, Sleepers},
    timer::{
        arrivals::{Arrivals, Pushed},
        entry::EntryPtr,
    },
};
use std::{sync::Arc, task::Waker};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{sync::Notify, thread};

/// A worker, and the callbacks that foreign threads start there.
struct ForeignStarts {
    lock: BiasedLock<()>,
    arrivals: Arrivals,
    sleepers: Sleepers<Arc<Notify>>,
}

impl ForeignStarts {
    fn new() -> (Arc<ForeignStarts>, Lease) {
        let (lock, lease) = BiasedLock::new(());
        let worker = ForeignStarts {
            lock,
            arrivals: Arrivals::new(),
            sleepers: Sleepers::new(1),
        };
        (Arc::new(worker), lease)
    }

    /// As `start::arm_remotely`. False if the runtime has ended.
    fn start(&self, callback: EntryPtr) -> bool {
        match self.arrivals.push(callback) {
            Pushed::Arrived => {
                if let Some(sleeper) = self.sleepers.take_sleeper_of(0) {
                    sleeper.notify();
                }
                true
            }
            Pushed::Closed => false,
        }
    }

    /// As `search::fire_due` with `WorkerCore::take_arrivals`.
    fn look(&self, lease: Lease) -> usize {
        // SAFETY: *owner*: this thread has the lease, or had it.
        let _core = unsafe { self.lock.enter(lease) }.unwrap();
        self.arrivals.take().map(free).count()
    }

    /// Looks, and sleeps in between, until it had this many.
    fn look_until(&self, lease: Lease, wanted: usize) -> usize {
        let parking = Arc::new(Notify::new());
        let mut searching = self.sleepers.start_search();
        let mut had = 0;
        while had < wanted {
            assert!(std::mem::replace(&mut searching, true));
            match self.look(lease) {
                0 => self.sleep(&parking),
                more => had += more,
            }
        }
        had
    }

    /// As `sleep::sleep`.
    fn sleep(&self, parking: &Arc<Notify>) {
        self.sleepers.prepare(0, parking.clone(), Before::Searching);
        if self.arrivals.is_empty() {
            while self.sleepers.is_asleep(0) {
                parking.wait();
            }
        }
        self.sleepers.retract(0);
    }
}

fn pending() -> EntryPtr {
    EntryPtr::new(0, 1, Waker::noop().clone())
}

fn free(entry: EntryPtr) {
    // SAFETY: the entry was just taken off, and no other thread knows it.
    unsafe { entry.free() };
}

/// Two foreign threads start callbacks while the worker goes to sleep: it gets both in the end.
#[test]
fn no_worker_sleeps_while_callbacks_have_arrived() {
    loom::model(|| {
        let (worker, lease) = ForeignStarts::new();
        let starters = [(); 2].map(|()| {
            let worker = worker.clone();
            thread::spawn(move || assert!(worker.start(pending())))
        });
        assert_eq!(worker.look_until(lease, 2), 2);
        for starter in starters {
            starter.join().unwrap();
        }
    });
}

/// The system stops a foreign thread between its push and its wake-up: the worker gets that callback, too, with the
/// next that arrives.
#[test]
fn a_callback_arrives_behind_a_thread_that_was_stopped_before_its_wake_up() {
    loom::model(|| {
        let (worker, lease) = ForeignStarts::new();
        let starter = {
            let worker = worker.clone();
            thread::spawn(move || {
                assert_eq!(worker.arrivals.push(pending()), Pushed::Arrived);
                assert!(worker.start(pending()));
            })
        };
        assert_eq!(worker.look_until(lease, 2), 2);
        starter.join().unwrap();
    });
}

/// A callback that arrives while the runtime ends is dropped by the thread that closes the arrivals, or stays with
/// the thread that starts it.
#[test]
fn a_callback_that_arrives_while_the_runtime_ends_is_dropped_once() {
    loom::model(|| {
        let (worker, lease) = ForeignStarts::new();
        let starter = {
            let worker = worker.clone();
            thread::spawn(move || {
                let callback = pending();
                let is_taken = worker.start(callback);
                if !is_taken {
                    free(callback);
                }
                usize::from(is_taken)
            })
        };
        let mut had = worker.look(lease);
        let core = worker.lock.enter_foreign();
        had += worker.arrivals.close().map(free).count();
        drop(core);
        assert_eq!(had, starter.join().unwrap());
        assert!(worker.arrivals.is_closed() && worker.arrivals.is_empty());
    });
}
