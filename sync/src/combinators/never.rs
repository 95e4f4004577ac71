//! The event that is never ready: a choice of none.

use std::{
    fmt,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Event, Won, awaitable},
    queue::ticket::Ticket,
    runtime::reason::{Kind, Reason},
};

/// The event that is never ready: a unit that syncs it waits until it is cancelled.
///
/// ```
/// use weald::sync::{Wait, always, choose, never};
///
/// assert_eq!(choose((never(), always(1))).wait(), 1);
/// ```
#[inline]
pub fn never<T>() -> Never<T> {
    Never(PhantomData)
}

/// See [`never()`].
#[must_use = "an event does nothing unless it is synced"]
pub struct Never<T>(PhantomData<fn() -> T>);

const NO_BASE: &str = "a branch without base events takes no step";

impl<T> Event for Never<T> {
    type Output = T;
    type Branch = Never<T>;

    #[inline]
    fn open(self) -> Never<T> {
        self
    }

    #[inline]
    fn conclude(outcome: T) -> T {
        outcome
    }
}

impl<T> Branch for Never<T> {
    type Output = T;

    #[inline]
    fn bases(&self) -> u32 {
        0
    }

    #[inline]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<T> {
        unreachable!("{NO_BASE}")
    }

    #[inline]
    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        _ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<T> {
        unreachable!("{NO_BASE}")
    }

    #[inline]
    fn collect(self: Pin<&mut Self>, _won: Won) -> T {
        unreachable!("{NO_BASE}")
    }

    #[inline]
    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    #[inline]
    fn settle(self: Pin<&mut Self>, _won: Option<u32>) {}

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    #[inline(always)]
    fn drops_early(&self) -> bool {
        false
    }

    #[inline]
    fn reason(&self) -> Reason {
        Reason::new(Kind::Select, self)
    }
}

awaitable!([T] Never<T>);

impl<T> Clone for Never<T> {
    #[inline]
    fn clone(&self) -> Never<T> {
        *self
    }
}

impl<T> Copy for Never<T> {}

impl<T> fmt::Debug for Never<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Never")
    }
}
