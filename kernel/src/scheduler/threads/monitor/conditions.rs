//! The conditions of a round of the monitor: whether there is memory, and which worker could run what is overdue.

use crate::scheduler::{
    threads::{monitor::watched::Watched, overdue_watch::OverdueWatch, round_memory::RoundMemory},
    workers::{shared::Shared, worker::Worker},
};

/// What a round depends on.
#[derive(Clone, Copy)]
pub(super) struct Conditions {
    pub(super) memory: RoundMemory,
    pub(super) taker: Taker,
}

/// Which worker could run what is overdue at another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taker {
    /// A worker that sleeps.
    Sleeper,
    /// One that is in another run than a round ago.
    Busy,
    None,
}

pub(super) fn taker_of_round(shared: &Shared, watched: &[(Watched, OverdueWatch)]) -> Taker {
    if shared.sleepers.sleeping() > 0 {
        return Taker::Sleeper;
    }
    let has_moved = |(worker, (watched, _)): (&Worker, &(Watched, _))| {
        let running = worker.running();
        running.job().is_some() && running != watched.running
    };
    match shared.workers.iter().zip(watched).any(has_moved) {
        true => Taker::Busy,
        false => Taker::None,
    }
}
