//! The poller lock: it picks the sleeping worker that waits in the poller, so that an event wakes that worker only.
//!
//! One poller serves all workers. The other sleepers park, which is cheaper to end, and if all waited in the poller,
//! one event could end the sleep of several.
//!
//! Protocol, together with the sleepers ([`crate::queue::sleepers`]): *a poller that has sources, and in which no
//! worker waits, is work that every worker sees.*
//! - sleeper: try to take the lock; prepare the sleep; fence (heavy, or full for the last one awake); check for visible
//!   work (for a worker without the poller lock, a free lock counts as work); then wait in the poller or park.
//!   Afterwards: release the lock, then count as awake again.
//! - the thread that registers the first source: count the source; full fence; wake a sleeper, as for a job.
//!
//! Why one sleeper always waits in the poller: a worker that fails to take the lock parks only if it sees, after it has
//! prepared its sleep, that another worker holds the lock. The holder is awake when it releases the lock, and tries to
//! take it again before it sleeps. So when the last worker falls asleep, the lock is held, by that worker or by one
//! that sleeps already.
//!
//! Why no wake-up is lost: waking the sleeper with the lock makes the poller's notice readable, until that sleeper
//! reads it. A worker that only polls leaves the notice alone.
//!
//! Not guaranteed: a worker that released the lock to run jobs wakes no other worker to take it. It looks at the
//! poller itself each tick, and if one run lasts longer than that, the monitor does.

use crate::sys::{AtomicBool, Ordering};

/// Held by the sleeper that waits in the poller.
pub(crate) struct PollerLock {
    taken: AtomicBool,
}

/// The right to wait in the poller. Releases the lock when dropped.
pub(crate) struct PollerGuard<'a>(&'a PollerLock);

impl PollerLock {
    pub(crate) fn new() -> PollerLock {
        PollerLock {
            taken: AtomicBool::new(false),
        }
    }

    pub(crate) fn take(&self) -> Option<PollerGuard<'_>> {
        // SeqCst: ordered with `Sleepers::prepare`, and with the release. A failed attempt writes nothing.
        let order = (Ordering::SeqCst, Ordering::SeqCst);
        let free = self.taken.compare_exchange(false, true, order.0, order.1);
        free.ok().map(|_free| PollerGuard(self))
    }

    /// Whether a thread waits in the poller, is about to wait there, or is about to leave.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        // SeqCst: as in `take`.
        self.taken.load(Ordering::SeqCst)
    }
}

impl Drop for PollerGuard<'_> {
    fn drop(&mut self) {
        // SeqCst: as in `take`.
        self.0.taken.store(false, Ordering::SeqCst);
    }
}
