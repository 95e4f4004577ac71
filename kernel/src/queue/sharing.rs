//! Sharing: whether thieves may take from a worker's ring, and whether its owner wakes a sleeper for what it puts
//! there.
//!
//! Jobs that wake each other often belong on one worker: their cache lines would otherwise travel. So a ring is private
//! at first, and the owner shares it while its jobs are worth the journey
//! ([`coarseness`](crate::scheduler::workers::search::coarseness)). The monitor opens a private ring whose jobs have
//! waited for too long. If the owner is in one long run, the monitor shares the ring; at its next look the owner makes
//! it private again, unless its work is coarse. If only the queue is long, the monitor lends the ring for one steal. A
//! job that calls [`prefer_stealing`](crate::prefer_stealing) takes from a ring in any mode.
//!
//! The mode is a hint: a thief that has seen an open ring may take from it a moment after the owner withdrew it. A
//! thread that opens a ring then wakes a sleeper, if the ring is not empty. What an owner puts into a private ring
//! wakes nobody, and a sleeper's last check ignores it: the owner takes it, or else the monitor finds it in one of its
//! rounds.

pub(crate) mod lazy_jobs;
pub(crate) mod lazy_watch;
pub(crate) mod refused_lazy_jobs;

use crate::sys::{AtomicU8, Ordering};

/// Only the owner takes.
const PRIVATE: u8 = 0;
/// One thief may take, once.
const LENT: u8 = 1;
/// Thieves take, and the owner wakes them.
const SHARED: u8 = 2;

/// The mode of one ring.
pub(crate) struct Sharing(AtomicU8);

impl Sharing {
    pub(crate) fn new() -> Sharing {
        Sharing(AtomicU8::new(PRIVATE))
    }

    /// Whether what the owner puts into the ring must wake a sleeper.
    #[inline(always)]
    pub(crate) fn is_shared(&self) -> bool {
        // Relaxed, as all accesses: the fences of `Sleepers` order them.
        self.0.load(Ordering::Relaxed) == SHARED
    }

    /// Whether a thief may take. Any thread.
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) != PRIVATE
    }

    /// Opens the ring until the owner withdraws it. The caller then calls
    /// [`Sleepers::take_one`](crate::queue::sleepers::Sleepers::take_one) if the ring is not empty. Any thread.
    pub(crate) fn share(&self) {
        self.0.store(SHARED, Ordering::Relaxed);
    }

    /// Opens the ring for one steal, unless it is shared. The caller then wakes a sleeper as after
    /// [`share`](Sharing::share). Any thread.
    pub(crate) fn lend(&self) {
        self.change(PRIVATE, LENT);
    }

    /// Ends the sharing, if the ring is shared; a loan continues. Called by the owner.
    pub(crate) fn withdraw(&self) {
        if self.is_shared() {
            self.change(SHARED, PRIVATE);
        }
    }

    /// Whether the calling thief may steal now. Uses up what was lent.
    #[must_use]
    pub(crate) fn begin_steal(&self) -> bool {
        match self.0.load(Ordering::Relaxed) {
            PRIVATE => false,
            LENT => self.change(LENT, PRIVATE),
            _ => true,
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        let relaxed = Ordering::Relaxed;
        self.0.compare_exchange(from, to, relaxed, relaxed).is_ok()
    }
}
