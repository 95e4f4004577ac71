//! Models of a trim: it waits for each sleeper that it woke, and no worker falls asleep without having seen it.

use std::sync::Arc;

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, sync::Notify, thread};

use crate::{
    queue::sleepers::{Before, Sleepers},
    scheduler::workers::trim_requests::TrimRequests,
};

/// What the workers share. A cell stands for a thread's caches: it holds the last trim that emptied them.
struct Shared {
    sleepers: Sleepers<Arc<Notify>>,
    trims: TrimRequests,
    emptied: Vec<Cell<usize>>,
    parking: Vec<Arc<Notify>>,
}

impl Shared {
    fn new(workers: usize) -> Arc<Shared> {
        Arc::new(Shared {
            sleepers: Sleepers::new(workers),
            trims: TrimRequests::new(workers),
            emptied: (0..workers).map(|_| Cell::new(0)).collect(),
            parking: (0..workers).map(|_| Arc::new(Notify::new())).collect(),
        })
    }

    fn prepare(&self, worker: usize) {
        let parking = self.parking[worker].clone();
        self.sleepers.prepare(worker, parking, Before::Running);
    }

    /// As `search::take_part_in_trim`. Returns the last trim that the thread has seen.
    fn look(&self, worker: usize, seen: usize) -> usize {
        let trim = self.trims.last();
        if trim != seen {
            self.emptied[worker].set(trim);
            self.trims.note_seen(worker, trim);
        }
        trim
    }

    /// As `sleep::sleep`, after `prepare`.
    fn park(&self, worker: usize, seen: usize) {
        if self.trims.last() == seen {
            while self.sleepers.is_asleep(worker) {
                self.parking[worker].wait();
            }
        }
        self.sleepers.retract(worker);
    }

    /// As `trim::flush_caches`, without its limit of time. `asleep` are workers that had prepared their sleep before.
    fn flush_caches(&self, asleep: &[usize]) {
        let trim = self
            .trims
            .request(&self.sleepers, |sleeper| sleeper.notify());
        while !self.trims.is_seen(&trim) {
            thread::yield_now();
        }
        for worker in asleep {
            assert!(
                self.emptied[*worker].get() > 0,
                "its caches are as they were"
            );
        }
    }
}

/// A trim wakes a sleeper while another worker is awake and looks around: it waits for the sleeper, whose caches it
/// may then see empty, and not for the other worker instead.
#[test]
fn a_look_of_another_worker_is_not_that_of_a_sleeper() {
    loom::model(|| {
        let shared = Shared::new(2);
        shared.prepare(1);
        let sleeper = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.park(1, 0);
                shared.look(1, 0)
            })
        };
        let awake = {
            let shared = shared.clone();
            thread::spawn(move || shared.look(0, 0))
        };
        shared.flush_caches(&[1]);
        assert_eq!(sleeper.join().unwrap(), 1);
        awake.join().unwrap();
    });
}

/// A trim against a worker that falls asleep: the worker sees the trim, or is woken for it.
#[test]
fn a_trim_against_falling_asleep() {
    loom::model(|| {
        let shared = Shared::new(1);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.prepare(0);
                shared.park(0, 0);
                shared.look(0, 0)
            })
        };
        shared.flush_caches(&[]);
        assert_eq!(worker.join().unwrap(), 1);
    });
}

/// Two trims at once, and one sleeper, which one of them wakes: neither waits for ever, and the sleeper sees a trim.
#[test]
fn two_trims_and_one_sleeper() {
    loom::model(|| {
        let shared = Shared::new(1);
        shared.prepare(0);
        let sleeper = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.park(0, 0);
                shared.look(0, 0)
            })
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.flush_caches(&[]))
        };
        shared.flush_caches(&[]);
        other.join().unwrap();
        assert!(sleeper.join().unwrap() > 0);
    });
}
