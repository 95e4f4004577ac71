//! `barrier`: units that meet again and again.

use std::sync::Arc;

use common::{per, print_metrics};
use tokio::sync::Barrier;

use crate::team::Team;

pub(crate) async fn run(units: usize, rounds: usize) {
    let barrier = Arc::new(Barrier::new(units));
    let mut team = Team::of(units);
    for _ in 0..units {
        let barrier = Arc::clone(&barrier);
        team.add(async move {
            for _ in 0..rounds {
                barrier.wait().await;
            }
        });
    }
    let elapsed = team.run().await;
    print_metrics(&[("ns", per(elapsed, rounds as f64))]);
}
