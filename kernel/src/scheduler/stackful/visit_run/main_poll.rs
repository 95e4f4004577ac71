//! The poll of the future of `block_on` on a foreign thread: one word that the monitor reads.
//!
//! While the thread polls that future, it runs none of the jobs that are pinned to it. The word says whether it does,
//! and tells one poll from the next. It also says whether jobs may be pinned there, because otherwise there is nothing
//! to watch. [`visits`](crate::scheduler::threads::visits) says what for.
//!
//! Only the thread changes the word. An inner `block_on` and a `wait()` of the future run the pinned jobs meanwhile: no
//! poll goes on then, and what follows counts as another one.

use std::{
    panic::Location,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The future is polled.
const POLLS: usize = 1;
/// Jobs may be pinned to the thread.
const HAS_PINNED: usize = 2;
/// One poll.
const ONE: usize = 4;

/// The future of `block_on`, for reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MainFuture {
    /// Where `block_on` was called.
    pub(crate) site: &'static Location<'static>,
    pub(crate) type_name: &'static str,
}

/// See the head of this file.
pub(crate) struct MainPoll {
    pub(crate) future: MainFuture,
    word: AtomicUsize,
}

/// What the thread did at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenPoll(usize);

impl SeenPoll {
    pub(crate) const NONE: SeenPoll = SeenPoll(0);

    /// Whether a poll goes on while jobs are pinned to the thread.
    pub(crate) fn may_hold_up(self) -> bool {
        self.0 & (POLLS | HAS_PINNED) == POLLS | HAS_PINNED
    }

    /// Whether both are of one poll, or of one time without a poll.
    pub(crate) fn is_same(self, other: SeenPoll) -> bool {
        self.0 & !HAS_PINNED == other.0 & !HAS_PINNED
    }
}

impl MainPoll {
    pub(crate) fn new(future: MainFuture) -> MainPoll {
        MainPoll {
            future,
            word: AtomicUsize::new(0),
        }
    }

    /// From now on the thread polls the future, or not. Returns whether it did before. The thread only.
    #[inline]
    pub(crate) fn set(&self, polls: bool, has_pinned: bool) -> bool {
        // Relaxed, as in `pinned`: the caller has a fence before it looks whether the monitor sleeps.
        let before = self.word.load(Ordering::Relaxed);
        let did_poll = before & POLLS != 0;
        if did_poll != polls {
            let next = (before & !(POLLS | HAS_PINNED)).wrapping_add(ONE);
            let flags = usize::from(polls) * POLLS + usize::from(has_pinned) * HAS_PINNED;
            self.word.store(next | flags, Ordering::Relaxed);
        }
        did_poll
    }

    /// A job is pinned to the thread from now on. The thread only.
    pub(crate) fn pinned(&self) {
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word | HAS_PINNED, Ordering::Relaxed);
    }

    /// What the thread does. Relaxed: the monitor only compares what it sees, and before its sleep it has a fence.
    pub(crate) fn seen(&self) -> SeenPoll {
        SeenPoll(self.word.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_poll_that_was_interrupted_is_another_one_and_a_job_that_is_pinned_leaves_it_as_it_is() {
        let future = MainFuture {
            site: Location::caller(),
            type_name: "",
        };
        let poll = MainPoll::new(future);
        assert!(poll.seen().is_same(SeenPoll::NONE) && !poll.set(true, false));
        let first = poll.seen();
        assert!(!first.may_hold_up(), "there is no job");
        poll.pinned();
        assert!(poll.seen().may_hold_up() && poll.seen().is_same(first));
        assert!(poll.set(false, true));
        let interrupted = poll.seen();
        assert!(!interrupted.may_hold_up() && !interrupted.is_same(first));
        assert!(!poll.set(false, true) && poll.seen().is_same(interrupted));
        assert!(!poll.set(true, true));
        assert!(poll.seen().may_hold_up() && !poll.seen().is_same(first));
    }
}
