//! `lock` and `condvar`: threads that exclude each other, and two that take turns.

use std::sync::Arc;
use std::thread::yield_now;

use common::{Inside, fail, per, print_metrics, total_messages};

use crate::team::Team;

const NO_PANIC: &str = "no holder panics";

/// A counter behind a mutex.
pub(crate) trait Counter: Send + Sync + 'static {
    /// Locks, does what the key `inside` says, counts, unlocks; returns the count before.
    fn count(&self, inside: Inside) -> u64;
}

/// Behind std's mutex.
#[derive(Default)]
pub(crate) struct OfStd(std::sync::Mutex<u64>);

/// Behind parking_lot's mutex.
#[derive(Default)]
pub(crate) struct OfParkingLot(parking_lot::Mutex<u64>);

fn add(count: &mut u64, inside: Inside) -> u64 {
    if inside == Inside::Yield {
        yield_now();
    }
    *count += 1;
    *count - 1
}

impl Counter for OfStd {
    fn count(&self, inside: Inside) -> u64 {
        add(&mut self.0.lock().expect(NO_PANIC), inside)
    }
}

impl Counter for OfParkingLot {
    fn count(&self, inside: Inside) -> u64 {
        add(&mut self.0.lock(), inside)
    }
}

/// `work` is the number of units and the number of times that each of them locks.
pub(crate) fn run<C: Counter>(counter: C, work: (usize, usize), inside: Inside) -> ! {
    let (units, rounds) = work;
    let counter = Arc::new(counter);
    let mut team = Team::of(units);
    for _ in 0..units {
        let counter = Arc::clone(&counter);
        team.add(move || {
            for _ in 0..rounds {
                counter.count(inside);
            }
        });
    }
    let elapsed = team.run();
    if counter.count(Inside::Nothing) != (units * rounds) as u64 {
        fail("The lock let two in at once: the count is wrong.");
    }
    print_metrics(&[("ns", per(elapsed, total_messages(units, rounds)))])
}

pub(crate) fn std_condvar(rounds: usize) -> ! {
    let turn = Arc::new((std::sync::Mutex::new(0), std::sync::Condvar::new()));
    two(rounds, move |me| {
        let (of, changed) = &*turn;
        let mut of = of.lock().expect(NO_PANIC);
        for _ in 0..rounds {
            while *of != me {
                of = changed.wait(of).expect(NO_PANIC);
            }
            *of = 1 - me;
            changed.notify_one();
        }
    })
}

pub(crate) fn parking_lot_condvar(rounds: usize) -> ! {
    let turn = Arc::new((parking_lot::Mutex::new(0), parking_lot::Condvar::new()));
    two(rounds, move |me| {
        let (of, changed) = &*turn;
        let mut of = of.lock();
        for _ in 0..rounds {
            while *of != me {
                changed.wait(&mut of);
            }
            *of = 1 - me;
            changed.notify_one();
        }
    })
}

/// Starts the two that take turns; each is given its number.
fn two(rounds: usize, take_turns: impl Fn(usize) + Clone + Send + 'static) -> ! {
    let mut team = Team::of(2);
    for me in 0..2 {
        let take_turns = take_turns.clone();
        team.add(move || take_turns(me));
    }
    let elapsed = team.run();
    print_metrics(&[("ns", per(elapsed, rounds as f64))])
}
