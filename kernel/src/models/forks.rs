//! Models of the fork deque: each stack job is run once, by its owner or a thief, and no worker sleeps while one waits.

#![allow(unsafe_code)]

use std::sync::Arc;

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{sync::Notify, thread};

use crate::models::made_up::{Job, Jobs};
use crate::{
    fork::deque::{Deque, Verdict},
    queue::sleepers::{Before, Sleepers},
    sys::{AtomicBool, Ordering, barrier},
};

/// A deque of made-up jobs, in which thieves leave the numbers of what they stole, and the sleepers.
struct Shared {
    deque: Deque<Job, usize>,
    sleepers: Sleepers<Arc<Notify>>,
    jobs: Jobs,
}

impl Shared {
    /// With a deque whose owner has responded, so that its limit is the last slot.
    fn new(workers: usize, jobs: usize) -> Arc<Shared> {
        let shared = Shared {
            deque: Deque::new(),
            sleepers: Sleepers::new(workers),
            jobs: Jobs::new(jobs),
        };
        // SAFETY: there is no other thread yet.
        unsafe { shared.deque.reset_limit() };
        Arc::new(shared)
    }

    /// As `join::join_on` begins, with `join::respond`. Returns the place of the stack job.
    fn push(&self, number: usize) -> usize {
        // SAFETY: one thread of each model owns the deque.
        let (place, must_respond) = unsafe { self.deque.push(self.jobs.queue(number)) };
        if must_respond {
            // SAFETY: as above.
            unsafe { self.deque.reset_limit() };
            if self.sleepers.sleeping() > 0 {
                self.deque.alert();
                if let Some(sleeper) = self.sleepers.take_one() {
                    sleeper.notify();
                }
            }
        }
        place
    }

    /// As `join::join_on` ends, with `join::settle` if needed. Whether the owner has the stack job back.
    fn pop(&self, number: usize, place: usize) -> bool {
        // SAFETY: one thread of each model owns the deque, and pops its latest entry first.
        if !unsafe { self.deque.pop(place) } {
            // SAFETY: as above.
            match unsafe { self.deque.judge(place) } {
                Verdict::Kept => {}
                Verdict::Stolen(stolen) => {
                    assert_eq!(stolen, number);
                    // SAFETY: as above.
                    unsafe { self.deque.give_up(place) };
                    return false;
                }
            }
        }
        self.jobs.take(self.jobs.address(number));
        true
    }

    /// As `thief::steal_from`.
    fn steal(&self) -> Option<usize> {
        self.deque.steal(
            || true,
            |job| {
                let number = self.jobs.take(job);
                (number, number)
            },
        )
    }

    /// As `WorkerLoop::find`, for a worker that finds nothing but forks.
    fn find(&self, index: usize) -> usize {
        let parking = Arc::new(Notify::new());
        let mut searching = false;
        loop {
            searching = searching || self.sleepers.start_search();
            if let Some(number) = self.steal() {
                return number;
            }
            let before = match searching {
                true => Before::Searching,
                false => Before::Running,
            };
            // As `sleep::sleep`, `SleepPolicy::watch_forks` and `ForkDeques::alert_all`.
            self.sleepers.prepare(index, parking.clone(), before);
            self.deque.alert();
            barrier::heavy();
            if !self.deque.has_entries() {
                while self.sleepers.is_asleep(index) {
                    parking.wait();
                }
            }
            self.sleepers.retract(index);
            searching = true;
        }
    }
}

/// The owner withdraws a stack job, as `cancel::begin_unwinding` does, and pushes another on top, while a thief tries
/// to steal: the thief gets the withdrawn one only if it was faster.
#[test]
fn a_withdrawn_stack_job_below_a_new_one_against_a_thief() {
    loom::model(|| {
        let shared = Shared::new(2, 2);
        let first = shared.push(0);
        let withdrawn = Arc::new(AtomicBool::new(false));
        let thief = {
            let (shared, withdrawn) = (shared.clone(), withdrawn.clone());
            thread::spawn(move || {
                // Acquire: pairs with the owner's store.
                let before = withdrawn.load(Ordering::Acquire);
                let stolen = shared.steal();
                assert!(!before || stolen != Some(0));
            })
        };
        // SAFETY: this thread owns the deque.
        unsafe { shared.deque.withdraw() };
        withdrawn.store(true, Ordering::Release);
        let second = shared.push(1);
        shared.pop(1, second);
        shared.pop(0, first);
        thief.join().unwrap();
        shared.jobs.assert_all_taken();
        assert!(!shared.deque.has_entries());
    });
}

/// The owner pops its only stack job while a thief tries to steal it.
#[test]
fn the_owner_and_a_thief_race_for_one_stack_job() {
    loom::model(|| {
        let shared = Shared::new(2, 1);
        let thief = {
            let shared = shared.clone();
            thread::spawn(move || shared.steal())
        };
        let place = shared.push(0);
        shared.pop(0, place);
        thief.join().unwrap();
        shared.jobs.assert_all_taken();
    });
}

/// The owner pops a stack job and pushes another to the same place while a thief tries to steal.
#[test]
fn two_stack_jobs_in_one_place_against_a_thief() {
    loom::model(|| {
        let shared = Shared::new(2, 2);
        let place = shared.push(0);
        let thief = {
            let shared = shared.clone();
            thread::spawn(move || shared.steal())
        };
        shared.pop(0, place);
        let place = shared.push(1);
        shared.pop(1, place);
        thief.join().unwrap();
        shared.jobs.assert_all_taken();
    });
}

/// As above, but the first stack job is shared, and the second in its place is not.
#[test]
fn a_shared_stack_job_and_one_that_is_not_shared_in_one_place_against_a_thief() {
    loom::model(|| {
        let shared = Shared::new(2, 2);
        shared.deque.alert();
        let place = shared.push(0);
        let thief = {
            let shared = shared.clone();
            thread::spawn(move || shared.steal())
        };
        shared.pop(0, place);
        let place = shared.push(1);
        shared.pop(1, place);
        thief.join().unwrap();
        shared.jobs.assert_all_taken();
    });
}

/// A thief takes a shared stack job while the owner nests another, which is not shared, and gets both back if it can.
#[test]
fn a_shared_stack_job_below_one_that_is_not_shared() {
    loom::model(|| {
        let shared = Shared::new(2, 2);
        shared.deque.alert();
        let first = shared.push(0);
        let thief = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.steal();
                shared.steal()
            })
        };
        let second = shared.push(1);
        shared.pop(1, second);
        shared.pop(0, first);
        thief.join().unwrap();
        shared.jobs.assert_all_taken();
    });
}

/// The owner nests stack jobs until the slots do not suffice, while a thief takes the oldest.
#[test]
fn a_deque_that_grows_against_a_thief() {
    loom::model(|| {
        let shared = Shared::new(2, 3);
        let first = shared.push(0);
        let thief = {
            let shared = shared.clone();
            thread::spawn(move || shared.steal())
        };
        let second = shared.push(1);
        let third = shared.push(2);
        shared.pop(2, third);
        shared.pop(1, second);
        shared.pop(0, first);
        thief.join().unwrap();
        shared.jobs.assert_all_taken();
    });
}

/// Two thieves and the owner race for two stack jobs.
#[test]
fn two_thieves_against_the_owner() {
    loom::model(|| {
        let shared = Shared::new(3, 2);
        let first = shared.push(0);
        let second = shared.push(1);
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || shared.steal())
            })
            .collect();
        shared.pop(1, second);
        shared.pop(0, first);
        for thief in thieves {
            thief.join().unwrap();
        }
        shared.jobs.assert_all_taken();
    });
}

/// A stack job is pushed while the other worker falls asleep, and its owner never pops it: the other worker gets
/// it.
#[test]
fn a_push_against_falling_asleep() {
    loom::model(|| {
        let shared = Shared::new(2, 1);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(1))
        };
        shared.push(0);
        assert_eq!(worker.join().unwrap(), 0);
    });
}

/// As above, after a stack job that was pushed and popped.
#[test]
fn a_push_after_a_pop_against_falling_asleep() {
    loom::model(|| {
        let shared = Shared::new(2, 2);
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.find(1))
        };
        let place = shared.push(0);
        if shared.pop(0, place) {
            shared.push(1);
        }
        worker.join().unwrap();
    });
}
