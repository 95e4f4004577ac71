//! The condition variable: waits for a notification with a mutex released.
//!
//! - No wake-up is lost: a wait is enrolled before its mutex is released.
//! - [`Condvar::notify_one`] wakes the longest waiter. If that wait is dropped before it ended, the next
//!   waiter gets the notification.
//! - [`Condvar::notify_all`] wakes all units that wait at that time.
//!
//! A wait is two waits in a row: for the notification, which is an [event](Condvar::notified), and then for
//! the mutex. So the whole is a future, not an event, and its deadline limits only the first of the two.
//!
//! A wait may end although the condition does not hold: test it again, or use the `_while` forms.

#![allow(unsafe_code)]

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        list,
        offer::{OfferNode, Offers},
        serve::{Served, serve},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
    runtime::{
        hooks::hooks,
        reason::{Kind, Name, Reason},
    },
    time::TimedOut,
    tools::mutex::MutexGuard,
};

/// A condition variable. It may be used with any number of mutexes.
///
/// ```
/// use weald::sync::{Condvar, Mutex, Wait};
///
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *ready.lock().wait() = true;
///         changed.notify_one();
///     });
///     let guard = ready.lock().wait();
///     let guard = changed.wait_while(guard, |ready| !*ready).wait();
///     assert!(*guard);
/// });
/// ```
///
/// Cancel-safe: a wait that is dropped leaves nothing behind, its mutex is free, and a notification that it
/// got goes to the next waiter. There is no poisoning. An idle condition variable has 24 bytes.
pub struct Condvar {
    /// With the name as its tag.
    state: SpinLock<CondvarState>,
}

struct CondvarState {
    /// Counts the calls of `notify_all`, so that each wakes only the waiters that came before it.
    round: u32,
    waiters: Offers<CondvarWaiter>,
}

struct CondvarWaiter {
    round: u32,
    notice: Notice,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// [`Condvar::notify_one`]: no other waiter was notified.
    One,
    /// [`Condvar::notify_all`]: all waiters were notified.
    All,
}

/// Whether a wait timed out, as in `std`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait timed out.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition variable without waiters.
    pub fn new() -> Condvar {
        Condvar::with_name(Name::NONE)
    }

    /// The same, with a name for reports of what units wait for.
    pub fn named(name: &str) -> Condvar {
        Condvar::with_name(Name::new(name))
    }

    fn with_name(name: Name) -> Condvar {
        let state = SpinLock::new(CondvarState {
            round: 0,
            waiters: Offers::new(),
        });
        state.set_tag(name.number());
        Condvar { state }
    }

    /// Releases the mutex, waits for a notification, and locks the mutex again. Cancel-safe: a wait that is dropped
    /// leaves the mutex to others, and a notification that it had got goes to the next waiter. The same holds for the
    /// other waits here.
    pub async fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let mutex = guard.mutex();
        let notice = self.notified(guard).without_site().await;
        let relay = Relay::new(self, notice);
        let guard = mutex.lock().without_site().await;
        relay.has_arrived();
        guard
    }

    /// Waits as long as `condition` is true. Cancel-safe, as [`Condvar::wait`].
    pub async fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard).await;
        }
        guard
    }

    /// As [`Condvar::wait`], but waits at most `duration` for a notification, from the first poll on. Cancel-safe,
    /// too.
    pub async fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let mutex = guard.mutex();
        let noticed = self.notified(guard).without_site().within(duration).await;
        self.lock_again(mutex.lock().without_site(), noticed).await
    }

    /// As [`Condvar::wait`], but waits for a notification at most until `deadline`. Cancel-safe, too.
    pub async fn wait_until<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Instant,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let mutex = guard.mutex();
        let noticed = self.notified(guard).without_site().until(deadline).await;
        self.lock_again(mutex.lock().without_site(), noticed).await
    }

    /// Waits as long as `condition` is true, at most for `duration`. If the wait timed out, the condition was
    /// still true afterwards. Cancel-safe, as [`Condvar::wait`].
    pub async fn wait_timeout_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let deadline = hooks().now().checked_add(duration);
        let mut timed_out = false;
        while condition(&mut guard) {
            if timed_out {
                return (guard, WaitTimeoutResult(true));
            }
            match deadline {
                None => guard = self.wait(guard).await,
                Some(deadline) => {
                    let (locked, result) = self.wait_until(guard, deadline).await;
                    guard = locked;
                    timed_out = result.timed_out();
                }
            }
        }
        (guard, WaitTimeoutResult(false))
    }

    async fn lock_again<G>(
        &self,
        lock: impl Future<Output = G>,
        noticed: Result<Notice, TimedOut>,
    ) -> (G, WaitTimeoutResult) {
        let relay = noticed.map(|notice| Relay::new(self, notice));
        let guard = lock.await;
        let timed_out = relay.map(Relay::has_arrived).is_err();
        (guard, WaitTimeoutResult(timed_out))
    }

    /// Releases the mutex when the wait begins, and waits for a notification; does not lock the mutex again. An event:
    /// a choice that another event ends also drops the guard, if it did not do so before. Cancel-safe: a notification
    /// that a dropped wait had got goes to the next waiter.
    #[track_caller]
    pub fn notified<'a, T: ?Sized>(&'a self, guard: MutexGuard<'a, T>) -> Waiting<Notified<'a, T>> {
        let waiter = CondvarWaiter {
            round: 0,
            notice: Notice::All,
        };
        Waiting::here(Notified {
            condvar: self,
            guard: Some(guard),
            node: OfferNode::with_slot(waiter),
        })
    }

    /// Wakes the longest waiter, if there is one.
    pub fn notify_one(&self) {
        let waker = self.state.lock().notify(Notice::One);
        if let Some(Some(waker)) = waker {
            crate::queue::wake::wake(waker);
        }
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        let mut state = self.state.lock();
        state.round = state.round.wrapping_add(1);
        let round = state.round;
        serve(state, |state| {
            let first = state.waiters.first()?;
            // Later rounds are ahead by less than half of all numbers.
            let came_before = first.round.wrapping_sub(round) > u32::MAX / 2;
            came_before.then(|| state.notify(Notice::All)).flatten()
        });
    }
}

impl CondvarState {
    fn notify(&mut self, notice: Notice) -> Served {
        let mut accepted = self.waiters.accept()?;
        accepted.slot().notice = notice;
        Some(accepted.win())
    }
}

/// A notification on its way: if the wait is dropped before it has the mutex again, the notification goes to
/// the next waiter.
struct Relay<'a> {
    condvar: &'a Condvar,
    notice: Notice,
}

impl<'a> Relay<'a> {
    fn new(condvar: &'a Condvar, notice: Notice) -> Relay<'a> {
        Relay { condvar, notice }
    }

    fn has_arrived(self) {
        std::mem::forget(self);
    }
}

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        if self.notice == Notice::One {
            self.condvar.notify_one();
        }
    }
}

/// The event of [`Condvar::notified`].
pub struct Notified<'a, T: ?Sized> {
    condvar: &'a Condvar,
    /// Some until the wait is enrolled.
    guard: Option<MutexGuard<'a, T>>,
    node: OfferNode<CondvarWaiter>,
}

impl<'a, T: ?Sized> Notified<'a, T> {
    fn node(self: Pin<&mut Self>) -> (&'a Condvar, Pin<&mut OfferNode<CondvarWaiter>>) {
        list::project(self, |this| (this.condvar, &mut this.node))
    }

    fn guard(self: Pin<&mut Self>) -> Option<MutexGuard<'a, T>> {
        list::project(self, |this| (this.guard.take(), &mut this.node)).0
    }
}

impl<T: ?Sized> Branch for Notified<'_, T> {
    type Output = Notice;

    /// Never ready: a notification is not remembered.
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Notice> {
        Poll::Pending
    }

    fn enrols_at_once(&self) -> bool {
        true
    }

    fn enrol(
        mut self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Notice> {
        let guard = self.as_mut().guard();
        let (condvar, mut node) = self.node();
        let mut state = condvar.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        node.as_mut().own_value().slot.round = state.round;
        state.waiters.leave(node, ticket);
        drop(own);
        drop(state);
        // After the enrolment: the next owner of the mutex finds the offer.
        drop(guard);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, won: Won) -> Notice {
        let (_, node) = self.node();
        // SAFETY: `won` is *routed*: a partner has won the claim for this node.
        unsafe { node.left_value(won) }.slot.notice
    }

    fn give_back(self: Pin<&mut Self>, won: Won) {
        let condvar = self.condvar;
        let notice = self.collect(won);
        drop(Relay::new(condvar, notice));
    }

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (condvar, node) = self.node();
        if won.is_none() && node.is_bound() {
            condvar.state.lock().waiters.remove(node);
        }
    }

    fn reason(&self) -> Reason {
        let name = Name::of_number(self.condvar.state.tag());
        Reason::new(Kind::Condvar, self.condvar).named(name)
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
