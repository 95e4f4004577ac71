//! The limit of a hold: for how long a thread that waits for forked work holds out, although jobs that are pinned to
//! it are runnable. They may want a lock of `std` that the thread's own code holds.

use std::{cell::Cell, time::Instant};

use crate::scheduler::stackful::wait::block::RECHECK;

/// One for all waits for one piece of work, however often the thread begins to wait for it anew.
#[derive(Default)]
pub(crate) struct HoldLimit {
    /// When the thread first found the work waiting, though it holds a thread.
    since: Cell<Option<Instant>>,
}

impl HoldLimit {
    /// Whether the jobs may run, at the moment `now`. Work that waits with its stack suspended may wait for one of
    /// them. Work that holds a thread itself, because it unwinds or joins other work, mostly goes on soon, so they may
    /// run only once it was found waiting for [`RECHECK`]. If it waits again and again, most checks find that it does.
    pub(super) fn is_over(&self, waits: bool, is_suspended: bool, now: Instant) -> bool {
        if !waits || is_suspended {
            self.since.set(None);
            return waits;
        }
        let since = self.since.get().unwrap_or(now);
        self.since.set(Some(since));
        now.saturating_duration_since(since) >= RECHECK
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Whether it is over after so many quarters of the time that it lasts.
    fn answers<const N: usize>(checks: [(u32, bool, bool); N]) -> [bool; N] {
        let (hold_limit, begin) = (HoldLimit::default(), Instant::now());
        checks.map(|(quarters, waits, is_suspended)| {
            hold_limit.is_over(waits, is_suspended, begin + quarters * RECHECK / 4)
        })
    }

    #[test]
    fn work_that_is_suspended_is_given_way_to_at_once() {
        assert_eq!(answers([(0, true, true), (0, false, false)]), [true, false]);
    }

    #[test]
    fn work_that_holds_a_thread_is_given_way_to_after_a_while() {
        let checks = [
            (1, true, false),
            (2, true, false),
            (4, true, false),
            (5, true, false),
        ];
        assert_eq!(answers(checks), [false, false, false, true]);
    }

    #[test]
    fn it_begins_anew_once_the_work_was_found_computing() {
        let checks = [
            (0, true, false),
            (3, false, false),
            (4, true, false),
            (7, true, false),
        ];
        assert_eq!(answers(checks), [false; 4]);
        let goes_on = [
            (0, true, false),
            (3, true, true),
            (4, true, false),
            (8, true, false),
        ];
        assert_eq!(answers(goes_on), [false, true, false, true]);
    }
}
