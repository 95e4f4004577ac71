//! Models of sleeping and waking: no wake-up is lost, and no wake-up is needless.

#![allow(unsafe_code)]

use std::sync::Arc;

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, sync::Notify, thread};

use crate::models::made_up::{Job, Jobs};
use crate::{
    biased_lock::BiasedLock,
    queue::{
        injector::Injector,
        ring::{self, BATCH, RingThief},
        sharing::Sharing,
        sleepers::{Before, Sleepers},
    },
    sys::{AtomicBool, Ordering},
};

/// What the workers share. A [`Notify`] stands for the thread of a sleeper.
struct Shared {
    sleepers: Sleepers<Arc<Notify>>,
    injector: Injector<Job>,
    /// The stealing end of the ring.
    thief: RingThief<Job>,
    /// Whether thieves may steal from the ring.
    sharing: Sharing,
    jobs: Jobs,
}

impl Shared {
    /// The shared part, and the owner's end of the ring, which is shared.
    fn new(workers: usize, jobs: usize) -> (Arc<Shared>, ring::RingOwner<Job>) {
        let (shared, owner) = Shared::with_private_ring(workers, jobs);
        shared.sharing.share();
        (shared, owner)
    }

    /// As [`Shared::new`], with a private ring.
    fn with_private_ring(workers: usize, jobs: usize) -> (Arc<Shared>, ring::RingOwner<Job>) {
        let (owner, thief) = ring::new();
        let shared = Shared {
            sleepers: Sleepers::new(workers),
            injector: Injector::new(),
            thief,
            sharing: Sharing::new(),
            jobs: Jobs::new(jobs),
        };
        (Arc::new(shared), owner)
    }

    /// As `ready::inject_all`.
    fn inject(&self, number: usize) {
        self.injector.push(self.jobs.batch([number]));
        self.wake_one();
    }

    /// As `ready::last`.
    fn push_last(&self, owner: &mut ring::RingOwner<Job>, number: usize) {
        assert_eq!(owner.push(self.jobs.queue(number)), Ok(()));
        if self.sharing.is_shared()
            && let Some(sleeper) = self.sleepers.take_for_own_ring()
        {
            sleeper.notify();
        }
    }

    /// As `search::share`, and as the end of `monitor::observe`: opens the ring. Whether a sleeper was woken.
    fn share(&self) -> bool {
        self.sharing.share();
        self.sees_work() && self.wake_one()
    }

    /// As `monitor::lend_long_queue`.
    fn lend(&self) {
        self.sharing.lend();
        self.wake_one();
    }

    /// As `ready::publish`. Whether a sleeper was woken.
    fn wake_one(&self) -> bool {
        let sleeper = self.sleepers.take_one();
        if let Some(sleeper) = &sleeper {
            sleeper.notify();
        }
        sleeper.is_some()
    }

    /// As `search::from_injector`.
    fn move_from_injector(&self, owner: &mut ring::RingOwner<Job>) {
        let mut batch = self.injector.pop(BATCH);
        if batch.len() == 0 {
            return;
        }
        while let Some(job) = batch.pop() {
            assert_eq!(owner.push(job), Ok(()));
        }
        self.wake_one();
    }

    /// As `search::sees_work`.
    fn sees_work(&self) -> bool {
        self.injector.len() > 0 || (self.sharing.is_open() && self.thief.len() > 0)
    }

    /// One job, from the injector or stolen.
    fn take(&self) -> Option<usize> {
        if let Some(job) = self.injector.pop(1).pop() {
            return Some(self.jobs.take(job));
        }
        if self.thief.len() == 0 || !self.sharing.begin_steal() {
            return None;
        }
        let mut place = [std::ptr::null_mut(); BATCH];
        let count = self.thief.steal(&mut place);
        self.jobs.take_all(&place[..count]).first().copied()
    }

    /// What worker `index` does until it has a job, as `WorkerLoop::find`.
    fn find(&self, index: usize) -> usize {
        let parking = Arc::new(Notify::new());
        let mut searching = false;
        loop {
            searching = searching || self.sleepers.start_search();
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

    /// As `search::sleep::sleep`.
    fn sleep(&self, index: usize, parking: &Arc<Notify>, searching: bool) {
        let before = match searching {
            true => Before::Searching,
            false => Before::Running,
        };
        self.sleepers.prepare(index, parking.clone(), before);
        if !self.sees_work() {
            while self.sleepers.is_asleep(index) {
                parking.wait();
            }
        }
        self.sleepers.retract(index);
    }

    /// As `WorkerLoop::found`, for a worker that searched. Whether a sleeper was woken.
    fn found(&self) -> bool {
        self.sleepers.end_search() && self.sees_work() && self.wake_one()
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

/// A worker sleeps, and the other one falls asleep. The first is woken for its timer, puts a job into its ring, and
/// runs another one for ever: the other worker steals the job. If that worker was the last to fall asleep, it takes no
/// heavy fence, and the owner's fence is light.
#[test]
fn a_job_in_a_ring_against_the_last_worker_to_fall_asleep() {
    loom::model(|| {
        let (shared, mut owner) = Shared::new(2, 1);
        shared
            .sleepers
            .prepare(1, Arc::new(Notify::new()), Before::Running);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(0))
        };
        assert!(shared.sleepers.take_sleeper_of(1).is_some());
        shared.found();
        shared.push_last(&mut owner, 0);
        assert_eq!(worker.join().unwrap(), 0);
    });
}

/// The owner shares a private ring that has a job, while the only other worker falls asleep: that worker steals the
/// job.
#[test]
fn sharing_a_ring_against_falling_asleep() {
    loom::model(|| {
        let (shared, mut owner) = Shared::with_private_ring(2, 1);
        shared.push_last(&mut owner, 0);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(1))
        };
        shared.share();
        assert_eq!(worker.join().unwrap(), 0);
    });
}

/// The monitor lends a private ring that has a job, while the only other worker falls asleep: that worker steals the
/// job.
#[test]
fn lending_a_ring_against_falling_asleep() {
    loom::model(|| {
        let (shared, mut owner) = Shared::with_private_ring(2, 1);
        shared.push_last(&mut owner, 0);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(1))
        };
        shared.lend();
        assert_eq!(worker.join().unwrap(), 0);
    });
}

/// The monitor shares a private ring while its owner puts a job there and begins a run that never ends, and while the
/// other worker falls asleep: that worker gets the job, from the push, from this round or from the next.
#[test]
fn the_monitor_against_a_push_into_a_private_ring() {
    loom::model(|| {
        let (shared, mut owner) = Shared::with_private_ring(2, 1);
        shared
            .sleepers
            .prepare(1, Arc::new(Notify::new()), Before::Running);
        let monitor = {
            let shared = shared.clone();
            thread::spawn(move || shared.share())
        };
        shared.push_last(&mut owner, 0);
        monitor.join().unwrap();
        shared.share();
        assert_eq!(
            shared.sleepers.sleeping(),
            0,
            "a job stands, and a worker sleeps"
        );
        assert_eq!(shared.take(), Some(0));
    });
}

/// Two thieves find a ring that is lent, while its owner takes from it: at most one of them steals, and every job is
/// taken once.
#[test]
fn a_lent_ring_is_stolen_from_once() {
    loom::model(|| {
        let (shared, mut owner) = Shared::with_private_ring(3, 3);
        for number in 0..3 {
            shared.push_last(&mut owner, number);
        }
        shared.sharing.lend();
        let thieves = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || shared.take().is_some())
        });
        let first = owner.pop().map(|job| shared.jobs.take(job));
        let steals = thieves.map(|thief| usize::from(thief.join().unwrap()));
        assert!(steals.iter().sum::<usize>() <= 1 && first.is_some());
        assert!(!shared.sharing.is_open());
        while let Some(job) = owner.pop() {
            shared.jobs.take(job);
        }
        shared.jobs.assert_all_taken();
    });
}

/// Two jobs are published one after the other while one worker falls asleep and another one sleeps. A job runs for
/// ever, so the second job must wake the sleeper: its publisher does, or the searcher that the publisher relied on.
#[test]
fn two_jobs_against_a_worker_that_falls_asleep_and_one_that_sleeps() {
    loom::model(|| {
        let (shared, _owner) = Shared::new(2, 2);
        shared
            .sleepers
            .prepare(1, Arc::new(Notify::new()), Before::Running);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(0))
        };
        shared.inject(0);
        shared.inject(1);
        worker.join().unwrap();
        assert_eq!(
            shared.sleepers.sleeping(),
            0,
            "a job is left, and a worker sleeps"
        );
    });
}

/// A worker that does not search moves two jobs from the injector to its ring, and runs one of them for ever, while
/// another worker falls asleep. The other worker gets the second job, even if it looked while the jobs were in neither
/// place.
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

/// Two publishers against two sleepers: one sleeper is woken, and the other is left alone, because the first one
/// searches.
#[test]
fn of_two_publishers_one_wakes_one_sleeper() {
    loom::model(|| {
        let (shared, mut owner) = Shared::new(3, 2);
        for index in [1, 2] {
            shared
                .sleepers
                .prepare(index, Arc::new(Notify::new()), Before::Running);
        }
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.injector.push(shared.jobs.batch([1]));
                shared.wake_one()
            })
        };
        assert_eq!(owner.push(shared.jobs.queue(0)), Ok(()));
        let here = shared.wake_one();
        let there = other.join().unwrap();
        assert_eq!(usize::from(here) + usize::from(there), 1);
        assert_eq!(shared.sleepers.sleeping(), 1);
    });
}

/// A job enters a ring while the last searcher finds another job and a worker sleeps: the sleeper is woken, by the
/// publisher or by the searcher.
#[test]
fn a_job_in_a_ring_against_the_last_searcher() {
    loom::model(|| {
        let (shared, mut owner) = Shared::new(3, 1);
        shared
            .sleepers
            .prepare(2, Arc::new(Notify::new()), Before::Running);
        assert!(shared.sleepers.start_search());
        let searcher = {
            let shared = shared.clone();
            thread::spawn(move || shared.found())
        };
        assert_eq!(owner.push(shared.jobs.queue(0)), Ok(()));
        let publisher_woke = shared.wake_one();
        let searcher_woke = searcher.join().unwrap();
        assert!(publisher_woke || searcher_woke, "the wake-up was lost");
        assert_eq!(shared.sleepers.sleeping(), 0);
    });
}

/// A foreign thread inserts a timer into the wheel of a worker that falls asleep: the worker sees the deadline when it
/// decides how long to sleep, or is woken. The cell stands for the wheel's first deadline.
#[test]
fn a_foreign_timer_against_falling_asleep() {
    loom::model(|| {
        let (shared, _owner) = Shared::new(1, 0);
        let (wheel, lease) = BiasedLock::new(Cell::new(None));
        let wheel = Arc::new(wheel);
        let foreign = {
            let (shared, wheel) = (shared.clone(), wheel.clone());
            thread::spawn(move || {
                // As `time::insert`.
                wheel.enter_foreign().set(Some(1));
                if let Some(sleeper) = shared.sleepers.take_sleeper_of(0) {
                    sleeper.notify();
                }
            })
        };
        let parking = Arc::new(Notify::new());
        loop {
            shared.sleepers.prepare(0, parking.clone(), Before::Running);
            // SAFETY: *owner*: this thread has the lease, or had it.
            let deadline = unsafe { wheel.enter(lease) }.map(|deadline| deadline.get());
            if deadline == Ok(Some(1)) {
                break shared.sleepers.retract(0);
            }
            while shared.sleepers.is_asleep(0) {
                parking.wait();
            }
            assert_eq!(shared.sleepers.sleeping(), 0);
            assert!(!shared.sleepers.end_search() || shared.sleepers.sleeping() == 0);
        }
        foreign.join().unwrap();
    });
}

/// An event for all workers, such as a stop, against a worker that falls asleep: the worker sees the event or is woken.
#[test]
fn a_stop_against_falling_asleep() {
    loom::model(|| {
        let (shared, _owner) = Shared::new(1, 0);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopping = {
            let (shared, is_stopped) = (shared.clone(), is_stopped.clone());
            thread::spawn(move || {
                is_stopped.store(true, Ordering::Release);
                for (_, sleeper) in shared.sleepers.take_all() {
                    sleeper.notify();
                }
            })
        };
        let parking = Arc::new(Notify::new());
        shared.sleepers.prepare(0, parking.clone(), Before::Running);
        while shared.sleepers.is_asleep(0) && !is_stopped.load(Ordering::Acquire) {
            parking.wait();
        }
        shared.sleepers.retract(0);
        assert_eq!(shared.sleepers.sleeping(), 0);
        stopping.join().unwrap();
    });
}
