//! The semaphore: a number of permits, given out in the order of arrival.
//!
//! - Permits are remembered: a release before an acquire is not lost.
//! - Strictly first in first out: a waiter that wants many permits holds up those behind it, so waiters that
//!   want few cannot starve it. No acquire passes a waiter.
//! - Permits are handed over to the waiter. An acquire that is then dropped gives them to the next.
//!
//! Each operation takes O(1), and O(1) for each waiter that it wakes.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        list,
        offer::{OfferNode, Offers},
        serve::{Served, serve},
        spin_lock::{SpinGuard, SpinLock},
        ticket::Ticket,
    },
    runtime::reason::{Kind, Name, Reason},
};

/// A number of permits.
///
/// ```
/// use weald::sync::{Semaphore, Wait};
///
/// let at_most_two = Semaphore::new(2);
/// std::thread::scope(|scope| {
///     for _ in 0..8 {
///         scope.spawn(|| {
///             let permit = at_most_two.acquire().wait()?;
///             // No more than two threads are here at the same time.
///             drop(permit);
///             Ok::<(), weald::sync::semaphore::Closed>(())
///         });
///     }
/// });
/// assert_eq!(at_most_two.available(), 2);
/// ```
///
/// There is no poisoning: a unit that panics releases its permits. An idle semaphore has 24 bytes.
pub struct Semaphore {
    state: SpinLock<SemaphoreState>,
}

struct SemaphoreState {
    permits: u32,
    name: Name,
    closed: bool,
    waiters: Offers<SemaphoreWaiter>,
}

/// A waiter: how many permits it wants, and whether it got them.
struct SemaphoreWaiter {
    count: u32,
    granted: bool,
}

impl Semaphore {
    /// A semaphore with `permits` permits.
    pub fn new(permits: u32) -> Semaphore {
        Semaphore::with_name(Name::NONE, permits)
    }

    /// The same, with a name for reports of what units wait for.
    pub fn named(name: &str, permits: u32) -> Semaphore {
        Semaphore::with_name(Name::new(name), permits)
    }

    fn with_name(name: Name, permits: u32) -> Semaphore {
        let state = SpinLock::new(SemaphoreState {
            permits,
            name,
            closed: false,
            waiters: Offers::new(),
        });
        Semaphore { state }
    }

    /// Waits for a permit. An event. Cancel-safe: a permit that was granted to a wait that is dropped goes to
    /// the next waiter. A wait that is dropped and started anew has lost its place.
    ///
    /// # Errors
    /// [`Closed`] if the semaphore is closed, before or during the wait.
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> Waiting<Acquire<'_>> {
        self.acquire_many(1)
    }

    /// Waits for `count` permits at once. As [`Semaphore::acquire`].
    ///
    /// # Errors
    /// [`Closed`] if the semaphore is closed, before or during the wait.
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, count: u32) -> Waiting<Acquire<'_>> {
        let want = SemaphoreWaiter {
            count,
            granted: false,
        };
        Waiting::here(Acquire {
            semaphore: self,
            count,
            node: OfferNode::with_slot(want),
        })
    }

    /// Takes a permit if there is one now, and nothing waits for it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_acquire(&self) -> Result<Permit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `count` permits if they are available now, and nothing waits for them.
    ///
    /// # Errors
    /// Why there are none.
    pub fn try_acquire_many(&self, count: u32) -> Result<Permit<'_>, TryAcquireError> {
        match self.state.lock().take(count) {
            Some(Ok(())) => Ok(self.permit(count)),
            Some(Err(Closed)) => Err(TryAcquireError::Closed),
            None => Err(TryAcquireError::NoPermits),
        }
    }

    /// Adds permits: those of a [`Permit::forget`], or new ones.
    ///
    /// # Panics
    /// If that made more than 2^32 - 1.
    pub fn release(&self, count: u32) {
        let mut state = self.state.lock();
        let permits = state.permits.checked_add(count);
        state.permits = permits.expect("a semaphore has at most 2^32 - 1 permits");
        serve(state, SemaphoreState::grant);
    }

    /// Ends all waits, and every later one, with [`Closed`]. Permits that were given out stay valid.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        serve(state, SemaphoreState::refuse);
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// How many permits there are now.
    pub fn available(&self) -> u32 {
        self.state.lock().permits
    }

    fn permit(&self, count: u32) -> Permit<'_> {
        Permit {
            semaphore: self,
            count,
        }
    }
}

impl SemaphoreState {
    /// Takes permits, unless there are too few or another waiter came before. None: wait.
    fn take(&mut self, count: u32) -> Option<Result<(), Closed>> {
        if self.closed {
            return Some(Err(Closed));
        }
        let is_free = self.permits >= count && self.waiters.first().is_none();
        is_free.then(|| {
            self.permits -= count;
            Ok(())
        })
    }

    /// The rule: the first waiter gets the permits it wants, if there are enough.
    fn grant(&mut self) -> Served {
        let permits = self.permits;
        let mut accepted = self.waiters.accept_if(|want| want.count <= permits)?;
        let want = accepted.slot();
        want.granted = true;
        self.permits -= want.count;
        Some(accepted.win())
    }

    /// The rule of a closed semaphore: every wait ends without permits.
    fn refuse(&mut self) -> Served {
        Some(self.waiters.accept()?.win())
    }
}

/// The event of [`Semaphore::acquire`].
pub struct Acquire<'a> {
    semaphore: &'a Semaphore,
    count: u32,
    node: OfferNode<SemaphoreWaiter>,
}

impl<'a> Acquire<'a> {
    fn node(self: Pin<&mut Self>) -> (&'a Semaphore, Pin<&mut OfferNode<SemaphoreWaiter>>) {
        list::project(self, |this| (this.semaphore, &mut this.node))
    }

    /// Whether the partner that ended the wait granted the permits.
    fn granted(self: Pin<&mut Self>) -> (&'a Semaphore, bool) {
        let (semaphore, node) = self.node();
        let granted = semaphore.state.lock().waiters.value(node).slot.granted;
        (semaphore, granted)
    }
}

impl<'a> Branch for Acquire<'a> {
    type Output = Result<Permit<'a>, Closed>;

    #[inline]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (semaphore, count) = (self.semaphore, self.count);
        let taken = semaphore.state.lock().take(count);
        match taken {
            Some(taken) => Poll::Ready(taken.map(|()| semaphore.permit(count))),
            None => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let count = self.count;
        let (semaphore, node) = self.node();
        let mut state: SpinGuard<'_, SemaphoreState> = semaphore.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if let Some(taken) = state.take(count) {
            ticket.win(own);
            drop(state);
            return Enrolled::Ready(taken.map(|()| semaphore.permit(count)));
        }
        state.waiters.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, _won: Won) -> Self::Output {
        let count = self.count;
        match self.granted() {
            (semaphore, true) => Ok(semaphore.permit(count)),
            (_, false) => Err(Closed),
        }
    }

    fn give_back(self: Pin<&mut Self>, won: Won) {
        drop(self.collect(won));
    }

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (semaphore, node) = self.node();
        if won.is_none() && node.is_bound() {
            let mut state = semaphore.state.lock();
            state.waiters.remove(node);
            // Waiters behind one that wanted many may want fewer.
            serve(state, SemaphoreState::grant);
        }
    }

    fn reason(&self) -> Reason {
        let name = self.semaphore.state.lock().name;
        Reason::new(Kind::Semaphore, self.semaphore).named(name)
    }
}

/// Permits. Dropping it releases them, on whatever thread that happens.
#[must_use = "a permit that is dropped at once permits nothing"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    count: u32,
}

impl Permit<'_> {
    /// How many permits.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Keeps the permits out of the semaphore, until [`Semaphore::release`] adds them.
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.semaphore.release(self.count);
    }
}

/// The semaphore is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the semaphore is closed: it grants no more permits")]
pub struct Closed;

/// Why no permit was taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryAcquireError {
    /// There are too few now, or a waiter is before this one.
    #[error("the semaphore has no permit to spare: wait with acquire, or try later")]
    NoPermits,
    /// The semaphore is closed.
    #[error("the semaphore is closed: it grants no more permits")]
    Closed,
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available", &self.available())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
