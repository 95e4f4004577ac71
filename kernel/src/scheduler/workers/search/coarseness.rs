//! How coarse the work of a worker is: the time that passes from one operation to the next.
//!
//! A run of a job is an operation, and so is each message, lock or value that it passes on; a step that receives,
//! computes and sends is some three of them. Work that passes something on every few dozen nanoseconds gains nothing
//! from a second worker: each step would wait for cache lines of the other core, which costs some hundred nanoseconds
//! itself. Coarse work gains. An owner shares its ring while its last samples were coarse and its runs are short. While
//! its work is coarse its runs are kept short (`budget`), because the jobs that a run wakes wait where no other worker
//! takes them, and because a long run passes many messages on at once.

use std::{cell::Cell, time::Duration};

use weald_sync::unit::{self, Unit};

/// From this on, work is coarse.
const COARSE: Duration = Duration::from_nanos(300);
/// How many operations a run of coarse work completes at most.
const RUN: u32 = 32;
/// A sample of this length counts as two, because a wait for a core does not explain it.
const VERY_COARSE: Duration = Duration::from_micros(100);
/// A worker shares its ring at this balance of samples.
const SHARES: u32 = 2;
/// The balance never exceeds this, so that two samples of fine work end the sharing.
const MAX: u32 = 3;

/// The samples of one thread.
#[derive(Default)]
pub(crate) struct Coarseness {
    /// Rises with each coarse sample, and falls with each fine one.
    balance: Cell<u32>,
    /// How many operations the thread had completed at the last sample; it wraps.
    operations: Cell<u32>,
}

impl Coarseness {
    /// Takes a sample, at a look. `took` is the time since the last sample, `runs` how many jobs the thread has run in
    /// its life.
    pub(crate) fn sample(&self, took: Duration, runs: u64) {
        #[expect(clippy::cast_possible_truncation, reason = "only differences count")]
        let now = unit::with(Unit::operations).wrapping_add(runs as u32);
        self.note(took, now.wrapping_sub(self.operations.replace(now)));
    }

    /// `operations` were completed in the time `took`.
    fn note(&self, took: Duration, operations: u32) {
        let each = took.checked_div(operations);
        let balance = match each {
            // Nothing was done, so nothing is known.
            None => return,
            Some(each) if each < COARSE => self.balance.get().saturating_sub(1),
            Some(each) if each < VERY_COARSE => self.balance.get() + 1,
            Some(_) => self.balance.get() + 2,
        };
        self.balance.set(balance.min(MAX));
    }

    /// How many operations a run that begins now may complete; `usual`: how many it may with fine
    /// work.
    pub(crate) fn budget(&self, usual: u32) -> u32 {
        match self.is_coarse() {
            true => usual.min(RUN),
            false => usual,
        }
    }

    /// Whether other workers may take a part of the work.
    pub(crate) fn is_coarse(&self) -> bool {
        self.balance.get() >= SHARES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: Duration = Duration::from_nanos(50);

    #[test]
    fn fine_work_is_not_shared_even_if_its_thread_lost_its_core_once() {
        let coarseness = Coarseness::default();
        assert!(!coarseness.is_coarse());
        for _ in 0..100 {
            coarseness.note(64 * FINE, 64);
            assert!(!coarseness.is_coarse());
            assert_eq!(coarseness.budget(128), 128);
            coarseness.note(Duration::from_millis(5), 64);
            assert!(!coarseness.is_coarse());
        }
    }

    #[test]
    fn coarse_work_is_shared_after_two_samples_and_fine_work_ends_it_after_two() {
        let coarseness = Coarseness::default();
        coarseness.note(COARSE, 1);
        assert!(!coarseness.is_coarse());
        for _ in 0..100 {
            coarseness.note(64 * COARSE, 64);
            assert!(coarseness.is_coarse());
            assert_eq!((coarseness.budget(128), coarseness.budget(4)), (RUN, 4));
        }
        coarseness.note(FINE, 1);
        assert!(coarseness.is_coarse());
        coarseness.note(FINE, 1);
        assert!(!coarseness.is_coarse());
    }

    #[test]
    fn one_very_long_run_is_enough() {
        let coarseness = Coarseness::default();
        coarseness.note(VERY_COARSE, 1);
        assert!(coarseness.is_coarse());
    }

    #[test]
    fn a_sample_without_work_says_nothing() {
        let coarseness = Coarseness::default();
        coarseness.note(Duration::from_secs(1), 0);
        assert!(!coarseness.is_coarse());
    }
}
