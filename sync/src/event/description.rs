//! The description of a wait, and the future that performs it from its beginning to its conclusion.

#![allow(unsafe_code)]

use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use super::{branch::Branch, waiting::Waiting};
use crate::combinators::{boxed::Boxed, wrap::Wrap};

/// A description of a wait: it may be synced, or be one of several in [`choose`](crate::choose).
///
/// An event is performed once, because it may own what it sends. To perform an event repeatedly, create it
/// anew each time: by a function, or by [`guard`](crate::guard), which is `Clone` if its function is. Such a
/// function returns `impl Event<Output = T, Branch: Send>`, so that jobs that sync the event are `Send`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "not an event",
    note = "a handle of a job, thread or process, or a monitor, is an event by reference: `&mut handle`",
    note = "a future becomes an event by `weald::sync::of_future(future)`: it is dropped if another one is chosen",
    note = "for a limit of time on a future there is `weald::timeout(time, future)`"
)]
pub trait Event {
    /// What the wait yields.
    type Output;
    /// The wait as it is performed.
    type Branch: Branch;

    /// Opens the event for one wait: guards run, and durations begin.
    fn open(self) -> Self::Branch;

    /// What the wait yields, computed from what its branch yielded. Called once, after the choice, when no
    /// offer is left: a user's function may run as long as it wants, and may panic.
    fn conclude(outcome: <Self::Branch as Branch>::Output) -> Self::Output;

    /// Performs the event.
    #[track_caller]
    #[inline]
    fn sync(self) -> Syncing<Self>
    where
        Self: Sized,
    {
        Syncing {
            waiting: Waiting::here(self.open()),
        }
    }

    /// Performs the event if it is ready now. If it is not, nothing has happened, except that guards ran and
    /// nacks are enabled.
    ///
    /// ```
    /// use weald::sync::{Event, channel, choose};
    ///
    /// let (a, from_a) = channel::unbounded();
    /// let (_b, from_b) = channel::unbounded();
    /// assert_eq!(choose((from_a.receive(), from_b.receive())).try_sync(), None);
    /// a.try_send(1).unwrap();
    /// assert_eq!(choose((from_a.receive(), from_b.receive())).try_sync(), Some(Ok(1)));
    /// ```
    fn try_sync(self) -> Option<Self::Output>
    where
        Self: Sized,
    {
        let mut waiting = pin!(Waiting::new(self.open()));
        let mut cx = Context::from_waker(Waker::noop());
        match waiting.as_mut().attempt(&mut cx) {
            Poll::Ready(outcome) => Some(Self::conclude(outcome)),
            Poll::Pending => None,
        }
    }

    /// The event whose output passes through `f` after the choice: in the unit that syncs, after all other
    /// events were given up, and outside any lock. If `f` panics, the choice remains made. If `f` returns a
    /// future, the sync yields that future: `event.wrap(f).await.await`. A handler of
    /// [`select!`](crate::select!) may also wait.
    ///
    /// ```
    /// use weald::sync::{Event, Wait, always};
    ///
    /// assert_eq!(always(20).wrap(|n| n + 1).wrap(|n| n * 2).wait(), 42);
    /// ```
    #[inline]
    fn wrap<U, F: FnOnce(Self::Output) -> U>(self, f: F) -> Wrap<Self, F>
    where
        Self: Sized,
    {
        Wrap::new(self, f)
    }

    /// The event as a value whose type shows only its output, so that events of different kinds fit into one
    /// `Vec`. It costs one allocation, and another one if the event is chosen.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weald::sync::{Event, Wait, after, always, choose};
    ///
    /// let events = vec![
    ///     always("at once").boxed(),
    ///     after(Duration::from_secs(60)).wrap(|()| "late").boxed(),
    /// ];
    /// assert_eq!(choose(events).wait(), "at once");
    /// ```
    fn boxed<'a>(self) -> Boxed<'a, Self::Output>
    where
        Self: Sized + Send + 'a,
        Self::Branch: Send,
    {
        Boxed::new(self)
    }
}

/// The future of [`Event::sync`]: cancel-safe if the event is, as every event of this crate is. Dropping it
/// before it is ready enables the nacks of the event.
///
/// # Safety
/// *Pinned*: the wait is not moved out once this is pinned.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct Syncing<E: Event> {
    waiting: Waiting<E::Branch>,
}

impl<E: Event> Future for Syncing<E> {
    type Output = E::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<E::Output> {
        // SAFETY: *pinned*.
        let waiting = unsafe { self.map_unchecked_mut(|this| &mut this.waiting) };
        waiting.poll(cx).map(E::conclude)
    }
}

/// A wait that was not polled yet may still become part of another event.
impl<B: Branch> Event for Waiting<B> {
    type Output = B::Output;
    type Branch = B;

    #[inline]
    fn open(self) -> B {
        self.into_branch()
    }

    #[inline(always)]
    fn conclude(outcome: B::Output) -> B::Output {
        outcome
    }
}

/// Lets events of a type be awaited: `event.await` is `event.sync().await`.
macro_rules! awaitable {
    ([$($generics:tt)*] $event:ty) => {
        impl<$($generics)*> IntoFuture for $event
        where
            $event: crate::event::Event,
        {
            type Output = <$event as crate::event::Event>::Output;
            type IntoFuture = crate::event::Syncing<$event>;

            #[inline]
            fn into_future(self) -> Self::IntoFuture {
                crate::event::Event::sync(self)
            }
        }
    };
}
pub(crate) use awaitable;
