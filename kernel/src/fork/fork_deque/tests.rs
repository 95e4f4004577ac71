//! What the monitor may conclude about the thread of a root fork.

use std::{panic::Location, thread};

use super::*;
use crate::{
    scheduler::workers::{config::Config, context},
    timer::clock::ClockKind,
};

/// Calls `act` with a runtime that has one worker and no threads, and with the fork deque of a root fork on the calling
/// thread.
fn in_root_fork(act: impl FnOnce(&Shared, &ForkDeque)) {
    let config = Config {
        workers: 1,
        ..Config::new()
    };
    let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    let fork_deque = fork_deques::of(&shared).claim(&shared);
    fork_deque.set_thread(context::here());
    fork_deque.begin(None, Location::caller(), None);
    act(&shared, fork_deque);
    fork_deque.end();
    fork_deque.unclaim();
}

/// As a fiber does that migrates.
#[test]
fn a_root_fork_that_goes_on_on_another_thread_is_looked_for_there() {
    in_root_fork(|shared, fork_deque| {
        let before = fork_deque.begin_wait();
        assert_eq!(fork_deque.thread_number(), shared.thread_number());
        let elsewhere = thread::scope(|scope| {
            let goes_on = || {
                fork_deque.end_wait(before);
                shared.thread_number()
            };
            scope.spawn(goes_on).join().unwrap()
        });
        assert_eq!(fork_deque.thread_number(), elsewhere);
    });
}

#[test]
fn the_monitor_takes_a_note_back_when_the_thread_runs_again() {
    in_root_fork(|shared, fork_deque| {
        fork_deque.note_blocked();
        shared.forks.find_blocked(shared, &|_| true);
        assert!(!fork_deque.computes());
        shared.forks.find_blocked(shared, &|_| false);
        assert!(fork_deque.computes());
    });
}
