//! Models of forked halves: each is run once, by its owner or a thief, and nobody sleeps beside one.

#![allow(unsafe_code)]

use std::sync::Arc;

use loom::{sync::Notify, thread};

use crate::models::made_up::{Job, Jobs};
use crate::{
    fork::deque::{Deque, Verdict},
    queue::sleepers::{Before, Sleepers},
    sys::barrier,
};

/// A deque of made-up jobs, where thieves leave the numbers of what they stole, and a book of sleepers.
struct Shared {
    deque: Deque<Job, usize>,
    idle: Sleepers<Arc<Notify>>,
    jobs: Jobs,
}

impl Shared {
    /// Of a deque whose owner has looked around, so that its limit is the last slot.
    fn new(workers: usize, jobs: usize) -> Arc<Shared> {
        let shared = Shared {
            deque: Deque::new(),
            idle: Sleepers::new(workers),
            jobs: Jobs::new(jobs),
        };
        // SAFETY: there is no other thread yet.
        unsafe { shared.deque.reset_limit() };
        Arc::new(shared)
    }

    /// As `join::join_on` begins and `join::look_around` goes on. The place of the half.
    fn push(&self, number: usize) -> usize {
        // SAFETY: one thread of each model owns the deque.
        let (place, look) = unsafe { self.deque.push(self.jobs.queue(number)) };
        if look {
            // SAFETY: as above.
            unsafe { self.deque.reset_limit() };
            if self.idle.sleeping() > 0 {
                self.deque.ring();
                if let Some(sleeper) = self.idle.notify() {
                    sleeper.notify();
                }
            }
        }
        place
    }

    /// As `join::join_on` ends, and `join::settle` if it has to. Whether the half is the owner's.
    fn pop(&self, number: usize, place: usize) -> bool {
        // SAFETY: one thread of each model owns the deque, and pops what it pushed last.
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

    /// As `stolen_job::steal_from`.
    fn steal(&self) -> Option<usize> {
        self.deque.thief().steal(
            || true,
            |job| {
                let number = self.jobs.take(job);
                (number, number)
            },
        )
    }

    /// As `Tenure::find` leads a worker that has nothing but forks to look for.
    fn find(&self, index: usize) -> usize {
        let parking = Arc::new(Notify::new());
        let mut searching = false;
        loop {
            searching = searching || self.idle.start_search();
            if let Some(number) = self.steal() {
                return number;
            }
            let before = match searching {
                true => Before::Searching,
                false => Before::Running,
            };
            // As `search::sleep`, `Patience::look` and `Lanes::ring_all`.
            self.idle.announce(index, parking.clone(), before);
            self.deque.ring();
            barrier::heavy();
            if !self.deque.has_entries() {
                while self.idle.is_asleep(index) {
                    parking.wait();
                }
            }
            self.idle.retract(index);
            searching = true;
        }
    }
}

/// The owner pops its only half while a thief is at it.
#[test]
fn one_half_between_owner_and_thief() {
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

/// The owner pops a half and pushes another one to the same place while a thief is at it.
#[test]
fn two_halves_in_one_place_against_a_thief() {
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

/// The owner nests halves until the slots do not suffice, while a thief takes the oldest.
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

/// Two thieves and the owner at two halves.
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

/// A half is pushed while the other worker falls asleep, and its owner goes on for ever with the first half:
/// the other worker gets it.
#[test]
fn a_half_against_falling_asleep() {
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

/// As above, after a half that came and went.
#[test]
fn a_half_after_another_against_falling_asleep() {
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
