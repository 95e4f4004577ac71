//! `barrier`: threads that meet again and again.

use std::sync::{Arc, Barrier};

use common::{per, print_metrics};

use crate::team::Team;

pub(crate) fn run(units: usize, rounds: usize) -> ! {
    let barrier = Arc::new(Barrier::new(units));
    let mut team = Team::of(units);
    for _ in 0..units {
        let barrier = Arc::clone(&barrier);
        team.add(move || {
            for _ in 0..rounds {
                barrier.wait();
            }
        });
    }
    let elapsed = team.run();
    print_metrics(&[("ns", per(elapsed, rounds as f64))])
}
