//! Models of sleeping and waking: no wake-up is lost, and none is needless.

use std::sync::Arc;

use loom::{cell::Cell, sync::Notify, thread};

use crate::models::made_up::{Job, Jobs};
use crate::{
    biased_lock::BiasedLock,
    queue::{
        injector::Injector,
        ring::{self, CAPACITY, RingThief},
        sleepers::{Before, Sleepers},
    },
    sys::{AtomicBool, Ordering},
};

/// What workers share. A sleeper is woken through its [`Notify`], which stands for its thread.
struct Shared {
    idle: Sleepers<Arc<Notify>>,
    injector: Injector<Job>,
    /// The end of a ring that all of them may steal from.
    thief: RingThief<Job>,
    jobs: Jobs,
}

impl Shared {
    /// With so many workers and jobs; the ring's other end is the second value.
    fn new(workers: usize, jobs: usize) -> (Arc<Shared>, ring::RingOwner<Job>) {
        let (owner, thief) = ring::new();
        let shared = Shared {
            idle: Sleepers::new(workers),
            injector: Injector::new(),
            thief,
            jobs: Jobs::new(jobs),
        };
        (Arc::new(shared), owner)
    }

    /// As `ready::inject_all` does it.
    fn inject(&self, number: usize) {
        self.injector.push(self.jobs.batch([number]));
        self.notify();
    }

    /// As `ready::last` does it.
    fn push_last(&self, owner: &mut ring::RingOwner<Job>, number: usize) {
        assert_eq!(owner.push(self.jobs.queue(number)), Ok(()));
        self.notify();
    }

    /// As `ready::publish` does it. Whether somebody was woken.
    fn notify(&self) -> bool {
        let sleeper = self.idle.notify();
        if let Some(sleeper) = &sleeper {
            sleeper.notify();
        }
        sleeper.is_some()
    }

    /// As `search::from_injector` does it.
    fn move_from_injector(&self, owner: &mut ring::RingOwner<Job>) {
        let mut batch = self.injector.pop(CAPACITY / 2);
        if batch.len() == 0 {
            return;
        }
        while let Some(job) = batch.pop() {
            assert_eq!(owner.push(job), Ok(()));
        }
        self.notify();
    }

    /// As `search::sees_work`.
    fn sees_work(&self) -> bool {
        self.injector.len() > 0 || self.thief.len() > 0
    }

    /// One job, from the injector or stolen.
    fn take(&self) -> Option<usize> {
        if let Some(job) = self.injector.pop(1).pop() {
            return Some(self.jobs.take(job));
        }
        let mut place = [std::ptr::null_mut(); CAPACITY / 2];
        let count = self.thief.steal(&mut place);
        self.jobs.take_all(&place[..count]).first().copied()
    }

    /// The life of worker `index` until it has a job, as `Tenure::find` leads it.
    fn find(&self, index: usize) -> usize {
        let parking = Arc::new(Notify::new());
        let mut searching = false;
        loop {
            searching = searching || self.idle.start_search();
            if let Some(number) = self.take() {
                if searching {
                    self.found();
                }
                return number;
            }
            self.sleep(index, &parking, searching);
            searching = true;
        }
    }

    /// As `search::sleep` does it.
    fn sleep(&self, index: usize, parking: &Arc<Notify>, searching: bool) {
        let before = match searching {
            true => Before::Searching,
            false => Before::Running,
        };
        self.idle.announce(index, parking.clone(), before);
        if !self.sees_work() {
            while self.idle.is_asleep(index) {
                parking.wait();
            }
        }
        self.idle.retract(index);
    }

    /// As `Tenure::found` does it, for a worker that searched. Whether somebody was woken.
    fn found(&self) -> bool {
        self.idle.end_search() && self.sees_work() && self.notify()
    }
}

/// A job enters the injector while the only worker falls asleep: the worker finds it or is woken.
#[test]
fn a_job_in_the_injector_against_falling_asleep() {
    loom::model(|| {
        let (shared, _owner) = Shared::new(1, 1);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(0))
        };
        shared.inject(0);
        assert_eq!(worker.join().unwrap(), 0);
    });
}

/// A job enters a ring while the only other worker falls asleep: that worker steals it.
#[test]
fn a_job_in_a_ring_against_falling_asleep() {
    loom::model(|| {
        let (shared, mut owner) = Shared::new(2, 1);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(1))
        };
        shared.push_last(&mut owner, 0);
        assert_eq!(worker.join().unwrap(), 0);
    });
}

/// Two jobs are published one after the other while one worker falls asleep and another one sleeps;
/// whoever finds a job runs it for ever. So the second job wakes the sleeper: either its publisher does,
/// or the searcher that the publisher relied on.
#[test]
fn two_jobs_against_one_who_falls_asleep_and_one_who_sleeps() {
    loom::model(|| {
        let (shared, _owner) = Shared::new(2, 2);
        shared
            .idle
            .announce(1, Arc::new(Notify::new()), Before::Running);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(0))
        };
        shared.inject(0);
        shared.inject(1);
        worker.join().unwrap();
        assert_eq!(
            shared.idle.sleeping(),
            0,
            "a job is left, and a worker sleeps"
        );
    });
}

/// A worker that does not search moves two jobs from the injector to its ring, and runs one of them for
/// ever, while another worker falls asleep: that worker gets the other job, although it may have looked
/// while the jobs were in neither place.
#[test]
fn jobs_on_their_way_to_a_ring_against_falling_asleep() {
    loom::model(|| {
        let (shared, mut owner) = Shared::new(2, 2);
        shared.injector.push(shared.jobs.batch([0, 1]));
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(1))
        };
        shared.move_from_injector(&mut owner);
        if let Some(job) = owner.pop() {
            shared.jobs.take(job);
        }
        worker.join().unwrap();
    });
}

/// Two publishers against two sleepers: one sleeper is woken, and the other is left alone, because the
/// first one searches.
#[test]
fn of_two_publishers_one_wakes_one_sleeper() {
    loom::model(|| {
        let (shared, mut owner) = Shared::new(3, 2);
        for index in [1, 2] {
            shared
                .idle
                .announce(index, Arc::new(Notify::new()), Before::Running);
        }
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.injector.push(shared.jobs.batch([1]));
                shared.notify()
            })
        };
        assert_eq!(owner.push(shared.jobs.queue(0)), Ok(()));
        let here = shared.notify();
        let there = other.join().unwrap();
        assert_eq!(usize::from(here) + usize::from(there), 1);
        assert_eq!(shared.idle.sleeping(), 1);
    });
}

/// A job enters a ring while the last searcher finds another one, and a worker sleeps: that worker is
/// woken, by exactly one of the two.
#[test]
fn a_job_in_a_ring_against_the_last_searcher() {
    loom::model(|| {
        let (shared, mut owner) = Shared::new(3, 1);
        shared
            .idle
            .announce(2, Arc::new(Notify::new()), Before::Running);
        assert!(shared.idle.start_search());
        let searcher = {
            let shared = shared.clone();
            thread::spawn(move || shared.found())
        };
        assert_eq!(owner.push(shared.jobs.queue(0)), Ok(()));
        let publisher_woke = shared.notify();
        let searcher_woke = searcher.join().unwrap();
        assert!(publisher_woke || searcher_woke, "the wake-up was lost");
        assert_eq!(shared.idle.sleeping(), 0);
    });
}

/// An foreign inserts a timer into the wheel of a worker that falls asleep: the worker counts it in
/// when it decides how long to sleep, or is woken. The cell stands for the wheel's first deadline.
#[test]
fn a_timer_from_outside_against_falling_asleep() {
    loom::model(|| {
        let (shared, _owner) = Shared::new(1, 0);
        let (gate, lease) = BiasedLock::new(Cell::new(None));
        let gate = Arc::new(gate);
        let foreign = {
            let (shared, gate) = (shared.clone(), gate.clone());
            thread::spawn(move || {
                // As `time::insert` does it.
                gate.enter_foreign().set(Some(1));
                if let Some(sleeper) = shared.idle.notify_worker(0) {
                    sleeper.notify();
                }
            })
        };
        let parking = Arc::new(Notify::new());
        loop {
            shared.idle.announce(0, parking.clone(), Before::Running);
            let deadline = gate.enter(lease).map(|inside| inside.get());
            if deadline == Ok(Some(1)) {
                break shared.idle.retract(0);
            }
            while shared.idle.is_asleep(0) {
                parking.wait();
            }
            assert_eq!(shared.idle.sleeping(), 0);
            assert!(!shared.idle.end_search() || shared.idle.sleeping() == 0);
        }
        foreign.join().unwrap();
    });
}

/// News for all, such as a stop, against a worker that falls asleep: the worker sees the news or is
/// woken.
#[test]
fn news_against_falling_asleep() {
    loom::model(|| {
        let (shared, _owner) = Shared::new(1, 0);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopping = {
            let (shared, is_stopped) = (shared.clone(), is_stopped.clone());
            thread::spawn(move || {
                is_stopped.store(true, Ordering::Release);
                for sleeper in shared.idle.notify_all() {
                    sleeper.notify();
                }
            })
        };
        let parking = Arc::new(Notify::new());
        shared.idle.announce(0, parking.clone(), Before::Running);
        while shared.idle.is_asleep(0) && !is_stopped.load(Ordering::Acquire) {
            parking.wait();
        }
        shared.idle.retract(0);
        assert_eq!(shared.idle.sleeping(), 0);
        stopping.join().unwrap();
    });
}
