//! The phase of a callback and the claims to its block (a reference count), in one word.
//!
//! Phases: `PENDING` → `RUNNING` → `PENDING` (another round) or `ENDED`; or `PENDING` → `TAKEN`, by a cancel.
//! The thread that sets `RUNNING` or `TAKEN` has exclusive access to the closure.
//!
//! Claims: the scheduler has one from the start until the callback is over and in no list; the handle has one; an owner
//! that ends has one for a moment. The thread that gives up the last claim frees the block.

use crate::sys::{AtomicU16, Ordering};

const PENDING: u16 = 0;
const RUNNING: u16 = 1;
const TAKEN: u16 = 2;
const ENDED: u16 = 3;
/// The bits of the word that hold the phase.
const PHASE: u16 = 3;
/// Set during a run that must be the last one.
const STOP: u16 = 4;
/// Set with `TAKEN`, if the thread that takes the callback counts it among the cancelled timers.
const COUNTED: u16 = 8;
const CLAIM: u16 = 16;

/// The word. A new callback is pending, and the scheduler and the handle have a claim each.
pub(crate) struct PhaseWord(AtomicU16);

/// The result of an attempt to take a callback from the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The callback was pending: its closure belongs to the caller.
    Won,
    /// The callback is running, and has no further round.
    Runs,
    /// The callback was already over.
    Over,
}

impl PhaseWord {
    pub(crate) fn new() -> PhaseWord {
        PhaseWord(AtomicU16::new(PENDING | (2 * CLAIM)))
    }

    /// Whether the callback is pending and only the scheduler has a claim. Without an owner, it stays so: no other
    /// thread can get a claim any longer.
    #[inline(always)]
    pub(crate) fn is_unshared(&self) -> bool {
        // Acquire: pairs with `release`.
        self.0.load(Ordering::Acquire) == PENDING | CLAIM
    }

    /// Starts a run. False if the callback was taken.
    #[inline]
    pub(crate) fn begin(&self) -> bool {
        self.step(PENDING, RUNNING).is_ok()
    }

    /// After a run: makes the callback pending again. False if it must stop.
    pub(crate) fn again(&self) -> bool {
        self.step(RUNNING, PENDING).is_ok()
    }

    /// After the last run, when the closure has been dropped: ends the callback, and gives up the scheduler's claim.
    /// True if it was the last: the caller frees the block.
    #[inline]
    #[must_use]
    pub(crate) fn end_and_release(&self) -> bool {
        // AcqRel: as in `release`. From `RUNNING` to `ENDED`, whether it must stop or not.
        self.0
            .fetch_sub(CLAIM - (ENDED - RUNNING), Ordering::AcqRel)
            < 2 * CLAIM
    }

    /// Takes the callback from the scheduler.
    pub(crate) fn take(&self) -> Take {
        self.take_as(TAKEN)
    }

    /// The same, and counts the callback as a cancelled timer: noted in the same step, so that the thread that finds
    /// the callback cancelled knows.
    pub(crate) fn take_counted(&self) -> Take {
        self.take_as(TAKEN | COUNTED)
    }

    fn take_as(&self, as_taken: u16) -> Take {
        let taken = |word: u16| match word & PHASE {
            PENDING => Some(word | as_taken),
            RUNNING => Some(word | STOP),
            _ => None,
        };
        // Acquire: pairs with `again`: the closure is as the last round left it.
        match self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, taken)
        {
            Ok(before) if before & PHASE == PENDING => Take::Won,
            Ok(_) => Take::Runs,
            Err(_) => Take::Over,
        }
    }

    /// Takes a pending callback out of the list of the worker whose lock the caller holds, and gives up the list's
    /// claim in the same step. False if the callback was taken before. The caller has a claim of its own.
    #[inline]
    #[must_use]
    pub(crate) fn take_from_list(&self) -> bool {
        let taken = |word: u16| (word & PHASE == PENDING).then(|| word + TAKEN - CLAIM);
        // AcqRel: as in `step`, and as in `release`.
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, taken)
            .is_ok()
    }

    /// Whether the caller's claim is the only one. Without an owner, it stays so, and the caller may free the block.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        // Acquire: pairs with `release`.
        self.0.load(Ordering::Acquire) < 2 * CLAIM
    }

    /// Adds a claim, unless the last one was given up.
    pub(crate) fn claim(&self) -> bool {
        let more = |word: u16| (word >= CLAIM).then(|| word + CLAIM);
        self.0
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Gives a claim up. True if it was the last: the caller frees the block.
    #[inline]
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        // Release: the free comes after this thread's accesses. Acquire: and after the other threads' accesses.
        self.0.fetch_sub(CLAIM, Ordering::AcqRel) < 2 * CLAIM
    }

    /// Whether the callback was cancelled before it could run.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == TAKEN
    }

    /// Whether the callback was taken as one that counts.
    pub(crate) fn is_counted(&self) -> bool {
        self.0.load(Ordering::Acquire) & COUNTED != 0
    }

    /// Whether there will be no further run.
    pub(crate) fn is_over(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        word & TAKEN != 0 || word & STOP != 0
    }

    /// From one phase to another, unless the callback is in a third, or must stop.
    #[inline]
    fn step(&self, from: u16, to: u16) -> Result<u16, u16> {
        let step = |word: u16| (word & (PHASE | STOP) == from).then(|| word - from + to);
        // AcqRel: the next thread with access to the closure sees what this one did with it, and vice versa.
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_taken_callback_does_not_start_and_a_stopped_one_has_no_further_round() {
        let word = PhaseWord::new();
        assert!(!word.is_unshared());
        assert!(!word.release());
        assert!(word.is_unshared());
        assert!(word.claim());
        assert!(word.begin());
        assert_eq!(word.take_counted(), Take::Runs);
        assert!(!word.is_counted());
        assert!(word.is_over());
        assert!(!word.again());
        assert!(!word.end_and_release());
        assert_eq!(word.take_counted(), Take::Over);
        assert!(!word.is_counted());
        assert!(word.release());
        assert!(!word.claim());

        let word = PhaseWord::new();
        assert_eq!(word.take_counted(), Take::Won);
        assert!(word.is_taken() && word.is_counted());
        assert!(!word.begin());
        assert!(word.claim());
        assert!(!word.release() && !word.release());
        assert!(word.release());

        let word = PhaseWord::new();
        assert!(!word.is_last());
        assert!(word.take_from_list());
        assert!(word.is_taken() && !word.is_counted() && word.is_last());
        assert!(!word.take_from_list());
        assert!(word.release());
    }
}
