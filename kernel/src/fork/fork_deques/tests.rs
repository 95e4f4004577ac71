//! From which fork deques workers may steal, while others of the family hold threads.

use std::panic::Location;

use super::*;
use crate::{
    job::testing,
    scheduler::workers::{config::Config, context},
    timer::clock::ClockKind,
};

/// With these spare threads and workers a family may hold two threads.
const MOST: usize = 2;

/// A root fork that `job` runs; none: a foreign thread.
fn begun<'a>(shared: &'a Shared, job: Option<&JobRef>) -> &'a ForkDeque {
    let fork_deque = of(shared).claim(shared);
    fork_deque.set_thread(context::here());
    fork_deque.begin(job.map(JobRef::ptr), Location::caller(), None);
    fork_deque
}

/// As [`begun`], and the root fork holds its thread to wait for a stolen job.
fn holding<'a>(shared: &'a Shared, job: Option<&JobRef>) -> &'a ForkDeque {
    let fork_deque = begun(shared, job);
    fork_deque.begin_wait();
    fork_deque.set_holds_thread(true);
    fork_deque
}

/// Whether a worker may steal from a root fork of `family` that computes, while as many root forks of `holder` as one
/// family may have hold a thread, except `freed`.
fn admits(family: Option<&JobRef>, holder: Option<&JobRef>, freed: usize) -> bool {
    let config = Config {
        workers: 2,
        spare_threads: MOST * SHARE_OF_FAMILY,
        ..Config::new()
    };
    let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    let mut forks: Vec<_> = (0..MOST).map(|_| holding(&shared, holder)).collect();
    for holder in &forks[..freed] {
        holder.set_holds_thread(false);
    }
    let computes = begun(&shared, family);
    forks.push(computes);
    let admits = of(&shared).admits(&shared, computes);
    for fork_deque in forks {
        fork_deque.set_holds_thread(false);
        fork_deque.end();
        fork_deque.unclaim();
    }
    admits
}

#[test]
fn workers_steal_from_a_family_until_it_holds_as_many_threads_as_it_may() {
    let (family, other) = (testing::job(), testing::job());
    assert!(!admits(Some(&family), Some(&family), 0));
    assert!(admits(Some(&family), Some(&family), 1));
    assert!(admits(Some(&family), Some(&other), 0));
}

#[test]
fn foreign_threads_that_hold_themselves_stop_no_steal() {
    assert!(admits(None, None, 0));
}
