//! The phase of a callback and the claims to its block, in one word.
//!
//! Phases: `PENDING` → `RUNNING` → `PENDING` (another round) or `ENDED`; or `PENDING` → `TAKEN`, by a cancel.
//! Whoever makes `RUNNING` or `TAKEN` has the closure to itself.
//!
//! Claims: one of the scheduler, from the start until the callback is over and in no list; one of the
//! handle; one of an owner that ends, for a moment. Whoever gives up the last one frees the block.

use crate::sys::{AtomicU16, Ordering};

const PENDING: u16 = 0;
const RUNNING: u16 = 1;
const TAKEN: u16 = 2;
const ENDED: u16 = 3;
/// The bits of the phase.
const PHASE: u16 = 3;
/// Set while it runs: there shall be no further round.
const STOP: u16 = 4;
const CLAIM: u16 = 8;

/// The word. That of a new callback is pending, with claims of the scheduler and of the handle.
pub(crate) struct PhaseWord(AtomicU16);

/// What became of an attempt to take a callback away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// It was pending: the closure belongs to the caller.
    Won,
    /// It runs, and there will be no further round.
    Runs,
    /// It was over already.
    Over,
}

impl PhaseWord {
    pub(crate) fn new() -> PhaseWord {
        PhaseWord(AtomicU16::new(PENDING | (2 * CLAIM)))
    }

    /// Whether nobody but the scheduler has a claim to a pending callback: nobody can get one any more, if
    /// it has no owner.
    #[inline(always)]
    pub(crate) fn is_unshared(&self) -> bool {
        // Acquire: pairs with `release`.
        self.0.load(Ordering::Acquire) == PENDING | CLAIM
    }

    /// Begins a run. False if the callback was taken.
    #[inline]
    pub(crate) fn begin(&self) -> bool {
        self.step(PENDING, RUNNING).is_ok()
    }

    /// After a run: the callback is pending again. False if it shall stop.
    pub(crate) fn again(&self) -> bool {
        self.step(RUNNING, PENDING).is_ok()
    }

    /// After the last run, when the closure is gone.
    pub(crate) fn end(&self) {
        self.0.fetch_or(ENDED, Ordering::Release);
    }

    /// Takes the callback away from the scheduler.
    pub(crate) fn take(&self) -> Take {
        let taken = |word: u16| match word & PHASE {
            PENDING => Some(word | TAKEN),
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

    /// One more claim, unless the last one was given up.
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
        // Release: the free comes after this thread's accesses. Acquire: and after those of the others.
        self.0.fetch_sub(CLAIM, Ordering::AcqRel) < 2 * CLAIM
    }

    /// Whether a cancel came first.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == TAKEN
    }

    /// Whether there will be no further run.
    pub(crate) fn is_over(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        word & TAKEN != 0 || word & STOP != 0
    }

    /// From one phase to another, unless it is in a third, or shall stop.
    #[inline]
    fn step(&self, from: u16, to: u16) -> Result<u16, u16> {
        let step = |word: u16| (word & (PHASE | STOP) == from).then(|| word - from + to);
        // Both: whoever has the closure next sees what this thread did with it, and the other way round.
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_taken_callback_does_not_begin_and_a_stopped_one_has_no_further_round() {
        let word = PhaseWord::new();
        assert!(!word.is_unshared());
        assert!(!word.release());
        assert!(word.is_unshared());
        assert!(word.begin());
        assert_eq!(word.take(), Take::Runs);
        assert!(word.is_over());
        assert!(!word.again());
        word.end();
        assert_eq!(word.take(), Take::Over);
        assert!(word.release());
        assert!(!word.claim());

        let word = PhaseWord::new();
        assert_eq!(word.take(), Take::Won);
        assert!(word.is_taken());
        assert!(!word.begin());
        assert!(word.claim());
        assert!(!word.release() && !word.release());
        assert!(word.release());
    }
}
