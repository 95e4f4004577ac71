//! `lock`: one exchange to lock and one store to unlock. Units that find it held queue up, on one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::queue::{Linked, NONE, Queue, index};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::workload::lock::Inside;

/// Where a unit is when it runs again.
#[derive(Clone, Copy)]
enum LockStage {
    /// Before the lock.
    Door,
    /// It was given the lock.
    Given,
    /// It has yielded with the lock held.
    Inside,
}

struct LockUnit {
    next: u32,
    at: LockStage,
    left: usize,
}

impl Linked for LockUnit {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

struct Lock {
    units: Vec<LockUnit>,
    runs: Queue,
    waiters: Queue,
    is_held: AtomicBool,
    count: usize,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (units, rounds) = (params.count("units")?, params.count("rounds")?);
    let inside = Inside::read(params)?;
    let unit = |_| LockUnit {
        next: NONE,
        at: LockStage::Door,
        left: rounds,
    };
    let mut lock = Lock {
        units: (0..units).map(unit).collect(),
        runs: Queue::EMPTY,
        waiters: Queue::EMPTY,
        is_held: AtomicBool::new(false),
        count: 0,
    };
    let clock = Instant::now();
    for unit in 0..units {
        lock.runs.push(&mut lock.units, index(unit));
    }
    while let Some(unit) = lock.runs.pop(&mut lock.units) {
        match inside {
            Inside::Nothing => lock.count = counted(&lock.is_held, lock.count, rounds)?,
            Inside::Yield => lock.step(unit),
        }
    }
    let elapsed = clock.elapsed();
    let wanted = units * rounds;
    if lock.count != wanted {
        let sentence = format!("{} counts instead of {wanted}.", lock.count);
        return Err(Error::workload(sentence));
    }
    Ok(vec![Metric::new(
        "ns",
        elapsed.as_nanos() as f64 / wanted as f64,
    )])
}

/// Locks, counts and unlocks, this many times; nobody else does meanwhile.
pub(super) fn counted(
    is_held: &AtomicBool,
    mut count: usize,
    rounds: usize,
) -> Result<usize, Error> {
    for _ in 0..rounds {
        if is_held.swap(true, Ordering::Acquire) {
            return Err(Error::workload("The lock is held, and nobody holds it."));
        }
        count = std::hint::black_box(count + 1);
        is_held.store(false, Ordering::Release);
    }
    Ok(count)
}

impl Lock {
    /// Runs a unit until it waits or yields.
    fn step(&mut self, unit: u32) {
        loop {
            let own = &mut self.units[unit as usize];
            match own.at {
                LockStage::Door if own.left == 0 => return,
                LockStage::Door if self.is_held.swap(true, Ordering::Acquire) => {
                    own.at = LockStage::Given;
                    self.waiters.push(&mut self.units, unit);
                    return;
                }
                LockStage::Door | LockStage::Given => {
                    own.at = LockStage::Inside;
                    self.runs.push(&mut self.units, unit);
                    return;
                }
                LockStage::Inside => {
                    own.at = LockStage::Door;
                    own.left -= 1;
                    self.count += 1;
                    match self.waiters.pop(&mut self.units) {
                        Some(next) => self.runs.push(&mut self.units, next),
                        None => self.is_held.store(false, Ordering::Release),
                    }
                }
            }
        }
    }
}
