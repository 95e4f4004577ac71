//! `barrier`: units in a queue; the last to arrive lets all run again, in one step.

use std::time::Instant;

use super::queue::{Linked, NONE, Queue, index};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// A unit, with the rounds that it has left.
struct Member {
    next: u32,
    left: usize,
}

impl Linked for Member {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (units, rounds) = (params.count("units")?, params.count("rounds")?);
    let unit = |_| Member {
        next: NONE,
        left: rounds,
    };
    let mut members: Vec<Member> = (0..units).map(unit).collect();
    let (mut runs, mut waiters) = (Queue::EMPTY, Queue::EMPTY);
    let (mut arrived, mut led) = (0, 0);
    let clock = Instant::now();
    for unit in 0..units {
        runs.push(&mut members, index(unit));
    }
    while let Some(unit) = runs.pop(&mut members) {
        let own = &mut members[unit as usize];
        if own.left == 0 {
            continue;
        }
        own.left -= 1;
        arrived += 1;
        waiters.push(&mut members, unit);
        // All others wait, so nobody else runs.
        if arrived == units {
            arrived = 0;
            led += 1;
            runs = std::mem::replace(&mut waiters, Queue::EMPTY);
        }
    }
    let elapsed = clock.elapsed();
    if led != rounds {
        return Err(Error::workload(format!(
            "{rounds} rounds had {led} leaders."
        )));
    }
    let ns = elapsed.as_nanos() as f64 / rounds as f64;
    Ok(vec![Metric::new("ns", ns)])
}
