//! Turns: how pinned jobs and ready callbacks alternate with the jobs of the other queues.

use super::{Pick, WorkerCore};
use crate::{
    job::{Header, runnable::Runnable},
    queue::injector::Injector,
    scheduler::stackful::pinned::PinnedQueue,
};

/// Whether a look that is due comes before another turn of callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueLook {
    First,
    MayWait,
}

/// The most jobs in one turn of pinned jobs, or of the others.
const TURN_MAX: usize = 64;

impl WorkerCore {
    /// Callbacks are ready: they and the jobs take turns.
    #[inline(never)]
    pub(super) fn take_beside_callbacks(
        &mut self,
        pinned: &PinnedQueue,
        streak_limit: u32,
        injector: &Injector<Header>,
    ) -> Pick {
        self.callbacks_turn = !self.callbacks_turn;
        if !self.callbacks_turn {
            match self.take_job(pinned, streak_limit, injector) {
                Pick::Empty => {}
                next => return next,
            }
        }
        self.until_look = self.until_look.saturating_sub(1);
        Pick::Callbacks
    }

    /// Whether a runner whose turn is over has the next turn too, because there is no job that could have it. The
    /// runner then goes on, which is cheaper than another one. The next look comes as if there had been another; a test
    /// runtime looks before each job, and it may come later there.
    pub(crate) fn give_callbacks_another_turn(
        &mut self,
        pinned: &PinnedQueue,
        due: DueLook,
    ) -> bool {
        self.end_row();
        let is_alone = self.next.is_none() && self.ring.len() == 0 && !pinned.has_own();
        if !is_alone || self.callbacks.is_empty() {
            return false;
        }
        if self.until_look > 0 {
            // It counts for the look, but is no poll.
            self.until_look -= 1;
            self.allowed -= 1;
        } else if due == DueLook::First {
            return false;
        }
        self.callbacks_turn = true;
        true
    }

    /// Takes the first job of the next slot, or else of the ring, as the next two takes of a loop would, if `fits`
    /// returns something for it. A job that does not fit is in the next slot then, where the loop takes it. If the
    /// running job wakes another before that, this one goes behind all others, although it was the first of the ring.
    #[inline(always)]
    pub(crate) fn take_fitting_in_row<F>(
        &mut self,
        pinned: &PinnedQueue,
        streak_limit: u32,
        fits: impl FnOnce(&Runnable) -> Option<F>,
    ) -> Option<(Runnable, F)> {
        if !self.callbacks.is_empty() || pinned.has_own() || !self.has_row(streak_limit) {
            return None;
        }
        let (job, is_next) = match self.next.take() {
            Some(job) => (job, true),
            None => (self.pop_ring()?, false),
        };
        // SAFETY: the slot or the ring held the job's right to run.
        let job = unsafe { Runnable::new(job) };
        let Some(fitting) = fits(&job) else {
            self.next = Some(job.into_ptr());
            return None;
        };
        self.in_row -= 1;
        if !is_next {
            // As in `take_behind_in_row`.
            self.streak_left = streak_limit - self.in_row;
        }
        Some((job, fitting))
    }

    /// Whether the next job may come in a row. One that is used up goes on until the next look, if no job of the ring
    /// waits behind a streak. Only while no callbacks are ready.
    #[inline(always)]
    fn has_row(&mut self, streak_limit: u32) -> bool {
        self.in_row > 0 || self.renew_row(streak_limit)
    }

    #[cold]
    #[inline(never)]
    fn renew_row(&mut self, streak_limit: u32) -> bool {
        if self.until_look == 0 {
            return false;
        }
        if self.next.is_none() {
            self.streak_left = streak_limit;
        } else if self.streak_left == 0 {
            if self.ring.len() > 0 {
                return false;
            }
            // The one that is taken now counts for none, as in `take_after_streak`.
            self.streak_left = streak_limit + 1;
        }
        self.begin_row();
        self.in_row > 0
    }

    /// As [`take_behind_in_row`](WorkerCore::take_behind_in_row), if the first job of the pinned queue has the turn.
    #[inline(always)]
    pub(crate) fn take_pinned_in_row(
        &mut self,
        pinned: &PinnedQueue,
        streak_limit: u32,
    ) -> Option<Runnable> {
        match pinned.has_own() && self.count_pinned_in_row(pinned, streak_limit) {
            true => pinned.pop_own(),
            false => None,
        }
    }

    /// Whether [`take_pinned_in_row`](WorkerCore::take_pinned_in_row) takes a job out of a pinned queue that has one.
    /// If so, it counts as taken.
    #[inline(always)]
    pub(crate) fn count_pinned_in_row(&mut self, pinned: &PinnedQueue, streak_limit: u32) -> bool {
        if !self.callbacks.is_empty() || self.next.is_some() {
            return false;
        }
        if self.ring.len() == 0 {
            if !self.has_row(streak_limit) {
                return false;
            }
            self.in_row -= 1;
            // As behind the ring.
            self.streak_left = streak_limit - self.in_row;
            self.count_pinned_alone(pinned);
            return true;
        }
        // Not in a new row: these count for no streak.
        if self.in_row == 0 || !self.pinned_turn || self.turn_left == 0 {
            return false;
        }
        self.turn_left -= 1;
        self.in_row -= 1;
        // It counts for the look and not for the streak.
        self.streak_left += 1;
        true
    }

    /// A turn runs as many jobs as were queued when it began, but at most [`TURN_MAX`]. A turn of the jobs that are not
    /// pinned runs one more, for the next slot. So a job waits for no more jobs of the other kind than were ahead of it
    /// at the start of a turn.
    #[inline(never)]
    pub(super) fn take_in_turn(
        &mut self,
        pinned: &PinnedQueue,
        streak_limit: u32,
        injector: &Injector<Header>,
    ) -> Pick {
        if self.next.is_none() && self.ring.len() == 0 {
            self.until_look -= 1;
            self.streak_left = streak_limit;
            self.count_pinned_alone(pinned);
            return pinned.pop_own().map_or(Pick::Empty, Pick::Job);
        }
        if self.turn_left == 0 {
            self.pinned_turn = !self.pinned_turn;
            self.turn_left = match self.pinned_turn {
                true => pinned.own_len().min(TURN_MAX),
                // One more for the next slot.
                false => self.ring.len().min(TURN_MAX) + 1,
            };
        }
        self.turn_left = self.turn_left.saturating_sub(1);
        if !self.pinned_turn {
            match self.take_unpinned(streak_limit, injector) {
                Pick::Empty => self.turn_left = 0,
                next => return next,
            }
        }
        let job = pinned.pop_own();
        self.until_look -= 1;
        job.map_or(Pick::Empty, Pick::Job)
    }

    /// A pinned job is taken while there is no other job in the ring or in the next slot: a turn of those ends. The job
    /// is still in its queue.
    #[inline(always)]
    fn count_pinned_alone(&mut self, pinned: &PinnedQueue) {
        if !self.pinned_turn || self.turn_left == 0 {
            self.pinned_turn = true;
            self.turn_left = pinned.own_len().min(TURN_MAX);
        }
        self.turn_left = self.turn_left.saturating_sub(1);
    }
}
