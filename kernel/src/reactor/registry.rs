//! The reactor: it tracks which descriptors are ready, and wakes their waiters.
//!
//! It knows a descriptor only as a number with readiness. [`slot`](crate::reactor::slot) keeps a descriptor's
//! readiness and waiters, `table` has all slots, [`poller`](crate::reactor::poller) is the interface to the system,
//! and [`poller_lock`](crate::reactor::poller_lock) picks the sleeping worker that waits there. Above, in the API,
//! `io_source` owns a registration and `io_operation` waits for it.
//!
//! Invariants:
//! - Each runtime has one poller, and no descriptor belongs to a worker: a stuck thread takes none with it.
//! - Any thread may poll without waiting. Events only add readiness, so two threads may handle theirs
//!   in any order, late, or for a reused slot; the worst result is a needless attempt.
//! - While workers sleep, one of them waits in the poller; see `poller_lock`.
//!
//! Four kinds of threads poll. A busy worker does so at least once a tick while no other waits in the poller
//! ([`crate::scheduler::workers::search`]). A worker without jobs does so before it searches. The sleeper with the
//! poller lock waits there. The monitor polls when one run occupies a worker from one of its rounds to the next
//! ([`crate::scheduler::threads::monitor`]) while another sleeps and none has the poller lock.

use std::{
    io,
    os::fd::BorrowedFd,
    sync::OnceLock,
    task::Waker,
    time::{Duration, Instant},
};

use crate::reactor::poller::{Poller, ReadyEvent, ReadyEvents};
use crate::reactor::poller_lock::{PollerGuard, PollerLock};
use crate::reactor::slot::{Interest, Readiness};
use crate::reactor::table::{SharedSlot, Table};
use crate::{
    job::foreign_waker,
    sys::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock},
};

/// How long a busy worker leaves the poller alone if no other worker waits in it: a fraction of a tick, and much
/// longer than the third of a microsecond that a poll costs.
const POLL_AGAIN: Duration = Duration::from_micros(200);

/// The reactor of one runtime.
pub(crate) struct Reactor {
    /// Opened with the first source, so that a runtime without sources uses no descriptors.
    poller: OnceLock<Poller>,
    opening: Mutex<()>,
    table: Table,
    /// How many sources are registered.
    sources: AtomicUsize,
    poller_lock: PollerLock,
    start: Instant,
    /// When a worker last polled, in nanoseconds since `start`.
    polled: AtomicU64,
    gone: AtomicBool,
}

/// What one thread took from the poller, in buffers that it reuses.
#[derive(Default)]
pub(crate) struct ReadyBatch {
    events: ReadyEvents,
    wakers: Vec<Waker>,
}

impl ReadyBatch {
    /// Whether nothing was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How many events were taken.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Takes the wakers of the events that were handled.
    pub(crate) fn wakers(&mut self) -> impl Iterator<Item = Waker> + '_ {
        self.wakers.drain(..)
    }
}

/// Why a descriptor could not be registered.
#[derive(Debug, thiserror::Error)]
#[error(
    "the runtime that this descriptor belongs to has shut down; create it again in a running one"
)]
pub(crate) struct RuntimeGone;

impl Reactor {
    pub(crate) fn new() -> Reactor {
        Reactor {
            poller: OnceLock::new(),
            opening: Mutex::new(()),
            table: Table::new(),
            sources: AtomicUsize::new(0),
            poller_lock: PollerLock::new(),
            start: Instant::now(),
            polled: AtomicU64::new(0),
            gone: AtomicBool::new(false),
        }
    }

    /// Whether any descriptor is watched.
    #[inline]
    pub(crate) fn has_sources(&self) -> bool {
        self.sources.load(Ordering::Relaxed) > 0
    }

    /// Whether a descriptor is watched and no thread waits in the poller. Exact in a sleeper's last check; see
    /// [`poller_lock`](crate::reactor::poller_lock).
    pub(crate) fn is_unattended(&self) -> bool {
        self.has_sources() && !self.poller_lock.is_taken()
    }

    /// The right to wait in the poller, for a worker that is about to sleep.
    pub(crate) fn lock_poller(&self) -> Option<PollerGuard<'_>> {
        match self.has_sources() {
            true => self.poller_lock.take(),
            false => None,
        }
    }

    /// Whether a busy worker should poll now: no sleeper waits in the poller, and the last poll is old.
    #[inline]
    pub(crate) fn is_poll_due(&self, now: Instant) -> bool {
        if !self.has_sources() || self.poller_lock.is_taken() {
            return false;
        }
        let since_start = now.saturating_duration_since(self.start).as_nanos();
        let now = u64::try_from(since_start).unwrap_or(u64::MAX);
        // Relaxed: two threads may poll at once.
        let is_due = now.saturating_sub(self.polled.load(Ordering::Relaxed))
            >= u64::try_from(POLL_AGAIN.as_nanos()).unwrap_or(u64::MAX);
        if is_due {
            self.polled.store(now, Ordering::Relaxed);
        }
        is_due
    }

    /// Takes what is reported now. Any thread. True if there is something to [`handle`](Reactor::handle).
    pub(crate) fn poll(&self, batch: &mut ReadyBatch) -> bool {
        let Some(poller) = self.poller.get() else {
            return false;
        };
        poller.poll(&mut batch.events);
        !batch.events.is_empty()
    }

    /// Waits until something is reported, [`notify`](Reactor::notify) is called, or `left` has passed.
    pub(crate) fn wait(
        &self,
        _locked: &PollerGuard<'_>,
        batch: &mut ReadyBatch,
        left: Option<Duration>,
    ) {
        let poller = self.poller.get();
        let poller = poller.expect("the poller lock is taken only when there is a source");
        poller.wait(&mut batch.events, left);
    }

    /// Ends the present wait in the poller, or the next one. Any thread.
    pub(crate) fn notify(&self) {
        if let Some(poller) = self.poller.get() {
            poller.notify();
        }
    }

    /// Whether anything waits for an event. Takes time proportional to the number of slots.
    pub(crate) fn is_waited_for(&self) -> bool {
        (0..self.table.used()).any(|index| self.table.get(index).is_waited_for())
    }

    /// Handles the events that were taken: stores the readiness, and leaves the wakers in the batch. Any thread.
    pub(crate) fn handle(&self, batch: &mut ReadyBatch) {
        for event in batch.events.drain() {
            let ReadyEvent { index, readiness } = event;
            self.table
                .get(index)
                .set_ready(readiness, &mut batch.wakers);
        }
    }

    /// Starts to watch `descriptor`, whose readiness is `known`. Returns its slot, and whether it is the first
    /// source, so that a sleeper must be woken.
    pub(crate) fn add(
        &self,
        descriptor: BorrowedFd<'_>,
        known: Readiness,
    ) -> io::Result<(u32, First)> {
        if self.is_gone() {
            return Err(io::Error::other(RuntimeGone));
        }
        let poller = self.opened()?;
        let index = self.table.take()?;
        self.table.get(index).begin(known);
        if let Err(error) = poller.add(descriptor, index) {
            self.table.give_back(index);
            return Err(error);
        }
        // SeqCst: it becomes visible as work does; see `poller_lock`.
        let first = match self.sources.fetch_add(1, Ordering::SeqCst) {
            0 => First::Yes,
            _ => First::No,
        };
        // After the registration: a `close` that came before it has not seen this slot.
        if self.is_gone() {
            self.set_ready(index, Readiness::GONE);
        }
        Ok((index, first))
    }

    /// Undoes `add`. From now on the slot may be another descriptor's.
    pub(crate) fn remove(&self, descriptor: BorrowedFd<'_>, index: u32) {
        if let Some(poller) = self.poller.get() {
            poller.remove(descriptor);
        }
        let mut unused = Vec::new();
        self.table.get(index).end(&mut unused);
        self.table.give_back(index);
        self.sources.fetch_sub(1, Ordering::Relaxed);
        drop(unused);
    }

    fn opened(&self) -> io::Result<&Poller> {
        if let Some(poller) = self.poller.get() {
            return Ok(poller);
        }
        let _opening = lock(&self.opening);
        if let Some(poller) = self.poller.get() {
            return Ok(poller);
        }
        let poller = Poller::open()?;
        Ok(self.poller.get_or_init(|| poller))
    }

    /// The slot with a number that [`add`](Reactor::add) returned.
    pub(crate) fn slot(&self, index: u32) -> SharedSlot {
        self.table.share(index)
    }

    /// Whether the runtime has stopped, so that no thread polls any longer.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// The runtime has stopped. Returns the wakers of all waiters.
    #[must_use]
    pub(crate) fn close(&self) -> Vec<Waker> {
        self.gone.store(true, Ordering::SeqCst);
        let mut wakers = Vec::new();
        for index in 0..self.table.used() {
            self.table
                .get(index)
                .set_ready(Readiness::GONE, &mut wakers);
        }
        wakers
    }

    /// A direction is ready, as if the system had said so.
    pub(crate) fn set_ready_for(&self, index: u32, interest: Interest) {
        self.set_ready(index, Readiness::to(interest));
    }

    fn set_ready(&self, index: u32, readiness: Readiness) {
        let mut wakers = Vec::new();
        self.table.get(index).set_ready(readiness, &mut wakers);
        wakers.into_iter().for_each(foreign_waker::wake);
    }
}

/// Whether a source is the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    Yes,
    No,
}
