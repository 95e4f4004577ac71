//! What a joiner takes that runs a fiber in the middle of its own run ([`crate::scheduler::stackful::nested`]), and how
//! such runs count.

use std::time::{Duration, Instant};

use crate::{job::JobPtr, scheduler::workers::worker_core::WorkerCore};

/// How long nested runs put looks off. The jobs in which they are nested then yield, and each of them continues by
/// itself, which costs as much as a dozen nested runs for each. Timers may be late by so much, or by [`RUNS`].
const PUT_OFF: Duration = Duration::from_micros(500);

/// After so many runs the clock is asked again: each may take long.
const RUNS: u32 = 8;

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

    /// A look is due in the middle of nested runs, each of which a look would end. Puts it off by [`RUNS`]. False if it
    /// has been put off for [`PUT_OFF`].
    pub(crate) fn put_off(&mut self, now: Instant) -> bool {
        let since = *self.put_off.get_or_insert(now);
        if self.allowed == 0 || now.saturating_duration_since(since) >= PUT_OFF {
            return false;
        }
        self.set_until_look(RUNS);
        self.put_off = Some(since);
        true
    }
}
