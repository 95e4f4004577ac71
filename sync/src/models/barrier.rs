//! Models of the barrier: one leader, and a round that all waits join or none.

use std::sync::Arc;

use loom::{cell::Cell, thread};

use super::made_up::{Chosen, either, once, started, wait};
use crate::{Barrier, channel};

/// Two rounds of two: one leader each, and each thread sees after a round what the other did before.
#[test]
fn each_round_has_one_leader() {
    loom::model(|| {
        let shared = Arc::new((Barrier::new(2), Cell::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.set(1);
            let first = wait(other.0.wait()).is_leader();
            (first, wait(other.0.wait()).is_leader())
        });
        let first = wait(shared.0.wait()).is_leader();
        assert_eq!(shared.1.get(), 1);
        let second = wait(shared.0.wait()).is_leader();
        let (their_first, their_second) = thread.join().unwrap();
        assert!(first != their_first && second != their_second);
    });
}

/// A choice waits for a barrier or a value, and both come at the same time: it takes one of them.
#[test]
fn a_choice_that_went_elsewhere_is_in_no_round() {
    loom::model(|| {
        let barrier = Barrier::new(2);
        let (sender, receiver) = channel::rendezvous();
        let choice = started(either(barrier.wait(), receiver.receive()));
        let send = thread::spawn(move || sender.try_send(()).is_ok());
        let met = once(barrier.wait()).is_some();
        assert_eq!(send.join().unwrap(), !met);
        match wait(choice) {
            Chosen::First(result) => assert!(met && !result.is_leader()),
            Chosen::Second(received) => assert!(!met && received.is_ok()),
        }
    });
}

/// Two choices of two barriers, in opposite order: they meet at one of them.
#[test]
fn two_choices_meet_at_one_barrier() {
    loom::model(|| {
        let barriers = Arc::new((Barrier::new(2), Barrier::new(2)));
        let theirs = Arc::clone(&barriers);
        let thread = thread::spawn(
            move || match wait(either(theirs.1.wait(), theirs.0.wait())) {
                Chosen::First(result) => (1, result.is_leader()),
                Chosen::Second(result) => (0, result.is_leader()),
            },
        );
        let mine = match wait(either(barriers.0.wait(), barriers.1.wait())) {
            Chosen::First(result) => (0, result.is_leader()),
            Chosen::Second(result) => (1, result.is_leader()),
        };
        let theirs = thread.join().unwrap();
        assert!(
            mine.0 == theirs.0 && mine.1 != theirs.1,
            "{mine:?} and {theirs:?}"
        );
    });
}
