//! The seat in the poller: which of the sleeping workers waits there, so that a report wakes it.
//!
//! One poller serves all workers. The others that sleep park, which is cheaper to end, and if all waited
//! in the poller a report could end the sleep of several.
//!
//! Protocol, with the book of sleepers ([`crate::queue::sleepers`]): *a poller with sources in which nobody waits is
//! work that everybody sees.*
//! - sleeper: try to take the seat; announce the sleep; heavy fence; look for visible work, which a free
//!   seat is for one that has none; then wait in the poller or park. Afterwards: leave the seat, then
//!   count as awake again.
//! - who registers the first source: count it; light fence; wake a sleeper, as for a job.
//!
//! Why of all workers that sleep one sits: who fails to take the seat parks only if it sees another one
//! on it after its announcement. That one is awake when it leaves the seat, and tries again before it
//! sleeps. So of the last one to fall asleep either it sits itself, or somebody does who sleeps.
//!
//! Why no wake is lost: who wakes a sleeper on the seat makes the poller's notice readable, which lasts
//! until the one on the seat takes it. A worker that only looks leaves the notice alone.
//!
//! What it does not give: a worker that left the seat for work wakes no other to sit down. It looks itself
//! each tick, and if it cannot, because one run lasts longer, the monitor does.

use crate::sys::{AtomicBool, Ordering};

/// The seat.
pub(crate) struct PollerLock {
    taken: AtomicBool,
}

/// The right to wait in the poller; leaves the seat when dropped.
pub(crate) struct PollerGuard<'a>(&'a PollerLock);

impl PollerLock {
    pub(crate) fn new() -> PollerLock {
        PollerLock {
            taken: AtomicBool::new(false),
        }
    }

    pub(crate) fn take(&self) -> Option<PollerGuard<'_>> {
        // SeqCst: ordered with the announcement of the sleep, and with the release. An attempt that fails
        // writes nothing.
        let order = (Ordering::SeqCst, Ordering::SeqCst);
        let free = self.taken.compare_exchange(false, true, order.0, order.1);
        free.ok().map(|_free| PollerGuard(self))
    }

    /// Whether somebody sits there, or is about to, or about to leave.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::SeqCst)
    }
}

impl Drop for PollerGuard<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::SeqCst);
    }
}
