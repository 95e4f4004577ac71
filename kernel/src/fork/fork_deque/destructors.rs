//! What destructors fork that an ordinary panic runs inside of a root fork. A cancel must not unwind such work: it
//! would be raised in the destructor, which would end the program. The job itself does not tell: it is not unwound for
//! a cancel, and a panic begins, and may be caught, without Weald's knowledge.
//!
//! The thread of the root fork asks whether it unwinds where it is off the fast path of a fork: when it responds to a
//! push, and before it waits for a stolen job. What it finds there is exact. A job that a cancel is about to unwind
//! then looks whether it descends from such work. Nobody knows of a half that was pushed without a response, as long as
//! its owner runs the first half.

use crate::{
    fork::{
        deque::Search,
        fork_deque::{Ancestry, ForkDeque},
        fork_deques,
        stolen_job::StolenJob,
    },
    sys::{AtomicU64, AtomicUsize, Ordering, yield_now},
};

/// The number that no steal has.
const NO_STEAL: u64 = u64::MAX;

/// What the thread of a root fork has noted. Relaxed: a job that a cancel reaches later sees it, because the cancel
/// comes after it; and one that is cancelled already looks only after it has begun.
pub(in crate::fork) struct Destructors {
    /// From this place on, destructors have pushed what is in the deque; `usize::MAX` if none is known to have.
    from: AtomicUsize,
    /// The number of the stolen job for which a destructor waits; [`NO_STEAL`] if none does.
    awaits: AtomicU64,
}

impl Destructors {
    pub(super) fn new() -> Destructors {
        Destructors {
            from: AtomicUsize::new(usize::MAX),
            awaits: AtomicU64::new(NO_STEAL),
        }
    }

    /// A root fork begins.
    pub(super) fn begin(&self) {
        self.from.store(usize::MAX, Ordering::Relaxed);
    }

    /// The thread responds to its push at `place`. If it is `unwinding`, it responds to the next one, too, so that it
    /// learns when it no longer is.
    pub(in crate::fork) fn note_push(&self, unwinding: bool, place: usize) {
        let from = match unwinding {
            true => place.min(self.from.load(Ordering::Relaxed)),
            false => usize::MAX,
        };
        self.from.store(from, Ordering::Relaxed);
    }

    /// The thread begins to wait for the stolen job with this number, which was pushed at `place`.
    pub(in crate::fork) fn begin_wait(&self, unwinding: bool, place: usize, number: u64) {
        if unwinding || place >= self.from.load(Ordering::Relaxed) {
            self.awaits.store(number, Ordering::Relaxed);
        }
    }

    /// It has waited, and has given the place up.
    pub(in crate::fork) fn end_wait(&self) {
        self.awaits.store(NO_STEAL, Ordering::Relaxed);
    }
}

/// Whether a destructor has forked `part`, or something from which that descends.
pub(super) fn have_forked(part: &ForkDeque) -> bool {
    let others = || fork_deques::of(part.shared()).iter();
    let is_of_destructor = |steals: Ancestry| others().any(|other| have_forked_in(other, &steals));
    part.ancestry().is_some_and(is_of_destructor)
}

fn have_forked_in(fork_deque: &ForkDeque, steals: &[u64]) -> bool {
    let Destructors { from, awaits } = &fork_deque.destructors;
    let is_one = |stolen: &StolenJob| steals.contains(&stolen.number());
    loop {
        let (awaited, from) = (awaits.load(Ordering::Relaxed), from.load(Ordering::Relaxed));
        if steals.contains(&awaited) || from == usize::MAX {
            return steals.contains(&awaited);
        }
        let left = fork_deque.deque.find_stolen_from(from, is_one);
        if left != Search::Judged || awaited != NO_STEAL {
            return left == Search::Found;
        }
        // The owner is about to say for what it waits.
        yield_now();
    }
}
