//! What a joiner takes that runs a fiber in the middle of its own run ([`crate::scheduler::stackful::nested`]), and how
//! such runs count.

use std::time::{Duration, Instant};

use crate::{
    job::JobPtr,
    scheduler::workers::worker_core::{PutOff, WorkerCore},
};

/// How long nested runs put looks off. The jobs in which they are nested then yield, and each of them continues by
/// itself, which costs as much as a dozen nested runs for each. Timers may be late by so much, or by [`MOST_RUNS`].
const PUT_OFF: Duration = Duration::from_micros(500);

/// The same while only other jobs wait, as they do beside one that computes. Each that runs ends the nesting of the one
/// before, which leaves a dozen more jobs that wait.
const PUT_OFF_FOR_JOBS: Duration = Duration::from_millis(8);

/// After so many runs the clock is asked again: each may take long. While they take less than [`SHORT`] in all, the
/// clock is asked half as often each time, which takes as long as half a run, down to [`MOST_RUNS`].
const RUNS: u32 = 8;
const MOST_RUNS: u32 = 32;
const SHORT: Duration = Duration::from_micros(10);

impl WorkerCore {
    /// Takes `job` out of the next slot, if it is there and no look is due. Returns whether it did.
    #[inline(always)]
    pub(crate) fn take_if_next(&mut self, job: JobPtr) -> bool {
        if self.next != Some(job) || self.is_used_up() {
            return false;
        }
        self.next = None;
        self.count_nested();
        true
    }

    /// Takes `job` from the end of the ring, if it is there and no look is due. Returns how many jobs are before it.
    #[inline(always)]
    pub(crate) fn take_if_last(&mut self, job: JobPtr) -> Option<u64> {
        if self.is_used_up() {
            return None;
        }
        let before = self.ring.pop_last(job.as_raw().as_ptr())?;
        self.count_nested();
        Some(before)
    }

    #[inline(always)]
    pub(crate) fn is_used_up(&self) -> bool {
        self.in_row == 0 && self.until_look == 0
    }

    /// Counts a run that is nested in another one, if no look is due. Returns whether it did.
    #[inline(always)]
    pub(crate) fn count_if_allowed(&mut self) -> bool {
        let is_allowed = !self.is_used_up();
        if is_allowed {
            self.count_nested();
        }
        is_allowed
    }

    /// Counts a run that is nested in another one.
    #[inline(always)]
    fn count_nested(&mut self) {
        if self.in_row > 0 {
            self.in_row -= 1;
            // It counts for the look and not for the streak.
            self.streak_left += 1;
        } else {
            self.until_look -= 1;
        }
    }

    /// A look is due in the middle of nested runs, each of which a look would end. Puts it off by [`RUNS`] or more.
    /// False if it has been put off for [`PUT_OFF`], or for [`PUT_OFF_FOR_JOBS`] if it is not urgent.
    pub(crate) fn put_off(&mut self, now: Instant, is_urgent: impl FnOnce(&Self) -> bool) -> bool {
        let before = self.put_off.unwrap_or(PutOff {
            since: now,
            last: now,
            runs: RUNS / 2,
        });
        let passed = |then: Instant| now.saturating_duration_since(then);
        let so_far = passed(before.since);
        if self.allowed == 0 || so_far >= PUT_OFF && (so_far >= PUT_OFF_FOR_JOBS || is_urgent(self))
        {
            return false;
        }
        let runs = match passed(before.last) < SHORT {
            true => (before.runs * 2).min(MOST_RUNS),
            false => RUNS,
        };
        self.set_until_look(runs);
        self.put_off = Some(PutOff {
            since: before.since,
            last: now,
            runs,
        });
        true
    }
}
