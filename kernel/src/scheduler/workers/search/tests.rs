//! The time in which a worker spins does not count as work, and a worker that wakes takes part in a trim first.

use std::time::Duration;

use super::*;
use crate::{
    scheduler::{
        stackful::pinned::PinnedQueue,
        workers::{config::Config, context},
    },
    timer::clock::ClockKind,
};

/// Lets a worker look around, then search in vain for this many rounds, then find something. Whether the time of
/// the last look has changed.
fn search_counts_as_work(in_vain: usize) -> bool {
    let config = Config {
        workers: 1,
        ..Config::new()
    };
    let (shared, mut handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    let handoff = handoffs.pop().unwrap();
    let pinned = PinnedQueue::new();
    context::with(|cx| {
        let worker_loop = WorkerLoop::new(cx, &shared, &pinned);
        worker_loop.begin(&shared.workers[handoff.worker], handoff.lease);
        let looked = worker_loop.last_look.get() - Duration::from_secs(1);
        worker_loop.last_look.set(looked);
        let mut left = in_vain;
        let found = search_for(&worker_loop, in_vain + 1, || match left {
            0 => Ok(Found::Queued),
            _ => {
                left -= 1;
                Ok(Found::Nothing)
            }
        });
        assert!(matches!(found, Ok(Found::Queued)));
        worker_loop.end();
        worker_loop.last_look.get() == looked
    })
}

#[test]
fn time_in_which_a_worker_spun_is_not_taken_for_work() {
    assert!(!search_counts_as_work(3));
    // Without spinning there is nothing to leave out, and the clock is not read.
    assert!(search_counts_as_work(0));
}

/// The trim is there before the worker falls asleep, so it does not park.
#[test]
fn a_worker_has_given_back_its_caches_when_its_sleep_ends() {
    let config = Config {
        workers: 1,
        ..Config::new()
    };
    let (shared, mut handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    let handoff = handoffs.pop().unwrap();
    let pinned = PinnedQueue::new();
    context::with(|cx| {
        let worker_loop = WorkerLoop::new(cx, &shared, &pinned);
        worker_loop.begin(&shared.workers[handoff.worker], handoff.lease);
        let _nobody_sleeps = shared.trims.request(&shared.sleepers, |_| ());
        assert_eq!(sleep::sleep(&worker_loop), Ok(()));
        assert_eq!(worker_loop.trims_seen.get(), shared.trims.last());
        worker_loop.end();
    });
}
