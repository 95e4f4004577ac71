//! How coarse the work of a worker is: the time that passes from one operation to the next.
//!
//! A run of a job is an operation, and so is each message, lock or value that it passes on; a step that receives,
//! computes and sends is some three of them. Work that passes something on every few dozen nanoseconds gains nothing
//! from a second worker: each step would wait for cache lines of the other core, which costs some hundred nanoseconds
//! itself. Coarse work gains. An owner shares its ring while its last samples were coarse and its runs are short. It
//! takes a sample at each look, and while another worker sleeps also after every so many operations. While its work is
//! coarse its runs are kept short (`budget`), because the jobs that a run wakes wait where no other worker takes them,
//! and because a long run passes many messages on at once.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

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

/// So many operations after the last sample another one is due, even if no look is: a look may be 64 runs away, each of
/// which completes up to 128 operations. With fewer, fine work would pay for the clock: 0.6 ns an operation with 64.
const OPERATIONS: u32 = 256;
/// The same after a coarse sample.
const OPERATIONS_OF_COARSE: u32 = 32;

/// The samples of one thread.
pub(crate) struct Coarseness {
    /// Rises with each coarse sample, and falls with each fine one.
    balance: Cell<u32>,
    /// How many operations the thread had completed at the last sample; it wraps.
    operations: Cell<u32>,
    /// When that was, or when a sleep ended since.
    since: Cell<Instant>,
    /// How many operations the thread will have completed when a sample is due.
    due: Cell<u32>,
}

impl Coarseness {
    /// Without a sample; the thread begins `now`.
    pub(crate) fn new(now: Instant) -> Coarseness {
        Coarseness {
            balance: Cell::new(0),
            operations: Cell::new(0),
            since: Cell::new(now),
            due: Cell::new(0),
        }
    }

    /// The time until now is not a part of the work that follows.
    pub(crate) fn restart(&self, now: Instant) {
        self.since.set(now);
    }

    /// Takes a sample `now`. `runs` is how many jobs the thread has run in its life.
    pub(crate) fn sample(&self, now: Instant, runs: u64) {
        let completed = completed(runs);
        let took = now.saturating_duration_since(self.since.replace(now));
        self.note(
            took,
            completed.wrapping_sub(self.operations.replace(completed)),
        );
        let after = match self.balance.get() {
            0 => OPERATIONS,
            _ => OPERATIONS_OF_COARSE,
        };
        self.due.set(completed.wrapping_add(after));
    }

    /// Whether a sample is due. True once; then so many operations later, if none is taken meanwhile.
    #[inline(always)]
    pub(crate) fn is_due(&self, runs: u64) -> bool {
        let completed = completed(runs);
        let is_due = completed.wrapping_sub(self.due.get()).cast_signed() >= 0;
        if is_due {
            self.due.set(completed.wrapping_add(OPERATIONS));
        }
        is_due
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

/// How many operations the calling thread has completed, with its `runs`; the number wraps.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "only differences count")]
fn completed(runs: u64) -> u32 {
    unit::with(Unit::operations).wrapping_add(runs as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: Duration = Duration::from_nanos(50);

    #[test]
    fn fine_work_is_not_shared_even_if_its_thread_lost_its_core_once() {
        let coarseness = Coarseness::new(Instant::now());
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
        let coarseness = Coarseness::new(Instant::now());
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
    fn a_sample_is_due_after_so_many_operations_and_sooner_after_a_coarse_one() {
        let begin = Instant::now();
        let coarseness = Coarseness::new(begin);
        let zero = u64::from(completed(0).wrapping_neg());
        let first_due = |from: u64| (from..).find(|runs| coarseness.is_due(zero + runs));
        coarseness.sample(begin, zero);
        assert_eq!(first_due(0), Some(256));
        assert_eq!(first_due(257), Some(512));
        coarseness.sample(begin + 1000 * COARSE, zero + 600);
        assert_eq!(first_due(601), Some(632));
        assert_eq!(first_due(633), Some(632 + 256));
    }

    #[test]
    fn a_sample_begins_where_the_last_one_or_a_sleep_has_ended() {
        let begin = Instant::now();
        let coarseness = Coarseness::new(begin);
        let after = |operations: u32| begin + COARSE * operations;
        let mut runs = u64::from(completed(0).wrapping_neg());
        let mut sample = |at, operations: u64| {
            runs += operations;
            coarseness.sample(at, runs);
            coarseness.balance.get()
        };
        assert_eq!(sample(after(64), 64), 1);
        assert_eq!(sample(after(64 + 63), 64), 0);
        coarseness.restart(after(10_000));
        assert_eq!(sample(after(10_000 + 63), 64), 0);
        assert_eq!(sample(after(10_000 + 63 + 64), 64), 1);
    }

    #[test]
    fn one_very_long_run_is_enough() {
        let coarseness = Coarseness::new(Instant::now());
        coarseness.note(VERY_COARSE, 1);
        assert!(coarseness.is_coarse());
    }

    #[test]
    fn a_sample_without_work_says_nothing() {
        let coarseness = Coarseness::new(Instant::now());
        coarseness.note(Duration::from_secs(1), 0);
        assert!(!coarseness.is_coarse());
    }
}
