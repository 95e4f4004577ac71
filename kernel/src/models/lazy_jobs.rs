//! Models of lazy jobs: each is made a job of, or taken back by its joiner, once; and none waits for a worker that
//! sleeps.
//!
//! The links of a lazy job are cells of `std`, so loom does not see whether their accesses overlap. The stage of each
//! is in a cell that it watches.

#![allow(unsafe_code)]

use std::{ptr, sync::Arc, time::Instant};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, sync::Notify, thread};

use crate::{
    biased_lock::{BiasedLock, Lease},
    queue::{
        sharing::{
            Sharing,
            lazy_jobs::{LazyJob, LazyJobs, TakenLazyJobs},
            refused_lazy_jobs::RefusedLazyJobs,
        },
        sleepers::{Before, Sleepers},
    },
    sys::{AtomicUsize, Ordering},
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// In a list, or in the hands of whoever has taken it out. So many tries are refused.
    Refuses(usize),
    Made,
    TakenBack,
}

#[repr(C)]
struct Record {
    lazy: LazyJob,
    stage: Cell<Stage>,
}

/// # Safety
/// `lazy` is that of a record, which stays valid during the call.
unsafe fn make(lazy: *const LazyJob) -> bool {
    // SAFETY: the lazy job is the first field of a record.
    let stage = &unsafe { &*lazy.cast::<Record>() }.stage;
    match stage.get() {
        Stage::Refuses(0) => stage.set(Stage::Made),
        Stage::Refuses(more) => stage.set(Stage::Refuses(more - 1)),
        other => panic!("{other:?} before"),
    }
    stage.get() == Stage::Made
}

/// A worker with lazy jobs, and what it shares.
struct Shared {
    list: BiasedLock<LazyJobs>,
    /// As `Worker::lazy_counts`.
    count: AtomicUsize,
    sharing: Sharing,
    refused: RefusedLazyJobs,
    sleepers: Sleepers<Arc<Notify>>,
    records: [Record; 2],
}

// SAFETY: the records are used as the functions of the subject allow.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    /// The only worker has the number 0.
    fn new(stages: [Stage; 2]) -> (Arc<Shared>, Lease) {
        let (list, lease) = BiasedLock::new(LazyJobs::new());
        let record = |stage| Record {
            lazy: LazyJob::new(),
            stage: Cell::new(stage),
        };
        let shared = Shared {
            list,
            count: AtomicUsize::new(0),
            sharing: Sharing::new(),
            refused: RefusedLazyJobs::new(),
            sleepers: Sleepers::new(2),
            records: stages.map(record),
        };
        (Arc::new(shared), lease)
    }

    /// As `push_lazy`.
    fn push(&self, lease: Lease, number: usize) {
        // SAFETY: *owner*: the caller has the lease.
        let mut list = unsafe { self.list.enter(lease) }.unwrap();
        // SAFETY: it stays, and is in no list.
        unsafe { list.push(&self.records[number].lazy, make, 0) };
        self.add_to_count(1);
    }

    fn add_to_count(&self, by: isize) {
        let count = self.count.load(Ordering::Relaxed);
        self.count
            .store(count.wrapping_add_signed(by), Ordering::Relaxed);
    }

    /// As `worker::lazy::make`. The number of those that were made.
    fn make(&self, taken: TakenLazyJobs) -> usize {
        // SAFETY: they were taken out.
        let (made, rest) = unsafe { taken.make() };
        if !rest.is_empty() {
            self.refuse(rest);
        }
        made
    }

    /// As `worker::lazy::refuse`.
    fn refuse(&self, rest: TakenLazyJobs) {
        // SAFETY: as in `make`.
        if unsafe { self.refused.add(rest) } {
            self.wake_one();
        }
    }

    fn wake_one(&self) {
        if let Some(sleeper) = self.sleepers.take_one() {
            sleeper.notify();
        }
    }

    /// As `Worker::make_all_lazy`.
    fn make_all(&self, lease: Lease) {
        // SAFETY: *owner*: the caller has the lease.
        let mut list = unsafe { self.list.enter(lease) }.unwrap();
        let (taken, count) = list.take_oldest(usize::MAX);
        self.add_to_count(-count.cast_signed());
        drop(list);
        self.make(taken);
    }

    /// As `Worker::steal_one_lazy`.
    fn steal_one(&self) -> bool {
        let mut list = self.list.enter_foreign();
        let (taken, count) = list.take_oldest(1);
        self.add_to_count(-count.cast_signed());
        drop(list);
        self.make(taken) > 0
    }

    /// As `take_lazy`, on another worker's thread.
    fn take_back(&self, number: usize) -> bool {
        let lazy = &self.records[number].lazy;
        let is_taken = match lazy.place() {
            None => return false,
            Some(0) => {
                let mut list = self.list.enter_foreign();
                let is_here = lazy.place() == Some(0);
                if is_here {
                    // SAFETY: it is here.
                    unsafe { list.remove(lazy) };
                    self.add_to_count(-1);
                }
                is_here
            }
            Some(_) => self.refused.remove(lazy),
        };
        if is_taken {
            let before = self.records[number].stage.replace(Stage::TakenBack);
            assert!(matches!(before, Stage::Refuses(_)), "{before:?} before");
        }
        is_taken
    }

    /// As a look. The pause is over by then.
    fn retry(&self) {
        if let Some(due) = self.refused.next_try(Instant::now()) {
            // SAFETY: `make` may be called.
            unsafe { self.refused.retry(due) };
        }
    }

    /// As `Worker::has_open_jobs`, which the last check of a sleeper asks if there are 16 lazy jobs.
    fn sees_work(&self) -> bool {
        self.sharing.is_open() && self.count.load(Ordering::Relaxed) > 0
    }

    /// As `search::sleep::sleep` of another worker, which has found nothing. A sleep with a limit ends at once.
    fn sleep(&self, parking: &Arc<Notify>) {
        self.sleepers.prepare(1, parking.clone(), Before::Running);
        if !self.sees_work() && self.refused.next_try(Instant::now()).is_none() {
            while self.sleepers.is_asleep(1) {
                parking.wait();
            }
        }
        self.sleepers.retract(1);
    }

    fn stage(&self, number: usize) -> Stage {
        self.records[number].stage.get()
    }
}

/// Two lazy jobs are refused once, while a joiner on another worker takes the newer one back.
#[test]
fn one_that_is_refused_is_taken_back_or_made_once() {
    loom::model(|| {
        let (shared, lease) = Shared::new([Stage::Refuses(1), Stage::Refuses(0)]);
        shared.push(lease, 0);
        shared.push(lease, 1);
        let joiner = {
            let shared = shared.clone();
            thread::spawn(move || shared.take_back(1))
        };
        shared.make_all(lease);
        shared.retry();
        let is_taken = joiner.join().unwrap();
        assert!(!shared.refused.is_any());
        assert_eq!(shared.stage(0), Stage::Made);
        let newer = match is_taken {
            true => Stage::TakenBack,
            false => Stage::Made,
        };
        assert_eq!(shared.stage(1), newer);
    });
}

/// Two workers try again what was refused, and none is lost between them.
#[test]
fn two_workers_try_again() {
    loom::model(|| {
        let (shared, lease) = Shared::new([Stage::Refuses(2), Stage::Refuses(0)]);
        shared.push(lease, 0);
        shared.push(lease, 1);
        shared.make_all(lease);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.retry())
        };
        shared.retry();
        other.join().unwrap();
        shared.retry();
        assert!(!shared.refused.is_any());
        assert_eq!([0, 1].map(|it| shared.stage(it)), [Stage::Made; 2]);
    });
}

/// A thief takes the oldest, while its joiner takes it back, and the owner is about to wait.
#[test]
fn a_thief_a_joiner_and_the_owner_take_each_once() {
    loom::model(|| {
        let (shared, lease) = Shared::new([Stage::Refuses(0); 2]);
        shared.push(lease, 0);
        shared.push(lease, 1);
        let thief = {
            let shared = shared.clone();
            thread::spawn(move || shared.steal_one())
        };
        let joiner = {
            let shared = shared.clone();
            thread::spawn(move || shared.take_back(0))
        };
        shared.make_all(lease);
        thief.join().unwrap();
        let oldest = match joiner.join().unwrap() {
            true => Stage::TakenBack,
            false => Stage::Made,
        };
        assert_eq!(shared.stage(0), oldest);
        assert_eq!(shared.stage(1), Stage::Made);
        assert_eq!(shared.count.load(Ordering::Relaxed), 0);
    });
}

/// A thread that has lost its worker could make no job, while the only worker that is left falls asleep: that one is
/// woken, or sleeps with a limit.
#[test]
fn a_refused_one_against_falling_asleep() {
    loom::model(|| {
        let (shared, _lease) = Shared::new([Stage::Refuses(0), Stage::TakenBack]);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || {
                let parking = Arc::new(Notify::new());
                while shared.stage(0) != Stage::Made {
                    shared.sleep(&parking);
                    shared.retry();
                }
            })
        };
        let lazy = ptr::from_ref(&shared.records[0].lazy);
        // SAFETY: it stays.
        let lazy = unsafe { &*lazy };
        lazy.set_make(make);
        // SAFETY: it is in no list.
        shared.refuse(unsafe { TakenLazyJobs::one(lazy) });
        worker.join().unwrap();
    });
}

/// A worker that computes shares its ring, since it has lazy jobs, while another one falls asleep: that one takes them.
#[test]
fn shared_ones_against_falling_asleep() {
    loom::model(|| {
        let (shared, lease) = Shared::new([Stage::Refuses(0), Stage::TakenBack]);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || {
                let parking = Arc::new(Notify::new());
                while !shared.sees_work() {
                    shared.sleep(&parking);
                }
                assert!(shared.steal_one());
            })
        };
        shared.push(lease, 0);
        // As `share_lazy`.
        shared.sharing.share();
        shared.wake_one();
        worker.join().unwrap();
        assert_eq!(shared.stage(0), Stage::Made);
    });
}
