//! Deadlines: the events of time, and a time limit for any wait.

#![allow(unsafe_code)]

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use crate::{
    event::{Branch, Enrolled, Event, Syncing, Waiting, Won},
    queue::{claim::Lost, ticket::Ticket},
    runtime::{
        hooks::{Alarm, hooks},
        reason::{Kind, Reason},
    },
};

/// An event that happens `duration` after it is synced.
///
/// ```
/// use std::time::Duration;
/// use weald::sync::{after, channel, select};
///
/// weald::block_on(async {
///     let (_sender, receiver) = channel::unbounded::<u32>();
///     let received = select! {
///         number = receiver.receive() => number.ok(),
///         () = after(Duration::from_millis(10)) => None,
///     };
///     assert_eq!(received, None);
/// });
/// ```
pub fn after(duration: Duration) -> After {
    After(duration)
}

/// An event that happens at `deadline`.
pub fn at(deadline: Instant) -> Waiting<At> {
    Waiting::new(At::new(deadline))
}

/// See [`after`].
#[derive(Clone, Copy, Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct After(Duration);

/// The wait of [`at`]. It creates its alarm only when it must wait.
pub struct At {
    /// None: never.
    deadline: Option<Instant>,
    alarm: Option<Alarm>,
}

impl Event for After {
    type Output = ();
    type Branch = At;

    fn open(self) -> At {
        let deadline = hooks().now().checked_add(self.0);
        At {
            deadline,
            alarm: None,
        }
    }

    fn conclude((): ()) {}
}

impl IntoFuture for After {
    type Output = ();
    type IntoFuture = Syncing<After>;

    fn into_future(self) -> Syncing<After> {
        self.sync()
    }
}

impl At {
    fn new(deadline: Instant) -> At {
        At {
            deadline: Some(deadline),
            alarm: None,
        }
    }

    /// Looks at the clock, and arranges to be woken.
    fn look(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let Some(deadline) = this.deadline else {
            return Poll::Pending;
        };
        let alarm = this.alarm.get_or_insert_with(|| hooks().alarm(deadline));
        alarm.as_mut().poll(cx)
    }
}

impl Branch for At {
    type Output = ();

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<()> {
        match self.deadline {
            Some(deadline) if deadline <= hooks().now() => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<()> {
        if self.look(cx).is_pending() {
            return Enrolled::Waits;
        }
        match ticket.hold() {
            Err(Lost) => Enrolled::Lost,
            Ok(own) => {
                ticket.win(own);
                Enrolled::Ready(())
            }
        }
    }

    fn again(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<()> {
        self.enrol(base, ticket, cx)
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn collect(self: Pin<&mut Self>, _won: Won) {
        unreachable!("no partner ends a wait for time");
    }

    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, _won: Option<u32>) {
        self.get_mut().alarm = None;
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::Time)
    }
}

/// The wait did not end in time, and has left nothing behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deadline passed before the wait ended")]
pub struct TimedOut;

/// A wait with a deadline: yields [`TimedOut`] if nothing happened before. An event that is ready at once wins,
/// so a duration of zero tries without waiting.
pub type Timed<B> = Waiting<Limited<B>>;

/// The event of [`Timed`].
///
/// # Safety
/// *Pinned*: the branch is not moved out once this is pinned; the other fields are not pinned.
pub struct Limited<B> {
    branch: B,
    duration: Option<Duration>,
    at: At,
}

impl<B: Branch> Waiting<B> {
    /// The same wait, limited to `duration` from its first poll.
    pub fn within(self, duration: Duration) -> Timed<B> {
        let site = self.site();
        let limited = Limited {
            branch: self.open(),
            duration: Some(duration),
            at: At {
                deadline: None,
                alarm: None,
            },
        };
        Waiting::at(limited, site)
    }

    /// The same wait, limited by `deadline`.
    pub fn until(self, deadline: Instant) -> Timed<B> {
        let site = self.site();
        let limited = Limited {
            branch: self.open(),
            duration: None,
            at: At::new(deadline),
        };
        Waiting::at(limited, site)
    }
}

impl<B: Branch> Limited<B> {
    fn branch(self: Pin<&mut Self>) -> Pin<&mut B> {
        // SAFETY: *pinned*.
        unsafe { self.map_unchecked_mut(|this| &mut this.branch) }
    }

    fn at(self: Pin<&mut Self>) -> Pin<&mut At> {
        // SAFETY: the deadline is `Unpin`, so it does not count as pinned.
        Pin::new(&mut unsafe { self.get_unchecked_mut() }.at)
    }

    /// The number of the deadline's base event, which follows those of the branch.
    fn limit(&self) -> u32 {
        self.branch.bases()
    }
}

impl<B: Branch> Branch for Limited<B> {
    type Output = Result<B::Output, TimedOut>;

    fn bases(&self) -> u32 {
        self.limit() + 1
    }

    fn attempt(self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The deadline is looked at only later, in `enrol`, so that an event that is ready wins.
        match base < self.limit() {
            true => self.branch().attempt(base, cx).map(Ok),
            false => Poll::Pending,
        }
    }

    fn enrol(
        mut self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        if base < self.limit() {
            return self.branch().enrol(base, ticket, cx).map(Ok);
        }
        if let Some(duration) = self.duration {
            self.as_mut().at().deadline = hooks().now().checked_add(duration);
        }
        self.at().enrol(0, ticket, cx).map(|()| Err(TimedOut))
    }

    fn again(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        match base < self.limit() {
            true => self.branch().again(base, ticket, cx).map(Ok),
            false => self.at().again(0, ticket, cx).map(|()| Err(TimedOut)),
        }
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn collect(self: Pin<&mut Self>, won: Won) -> Self::Output {
        Ok(self.branch().collect(won))
    }

    fn give_back(self: Pin<&mut Self>, won: Won) {
        self.branch().give_back(won);
    }

    fn settle(mut self: Pin<&mut Self>, won: Option<u32>) {
        let won = won.filter(|base| *base < self.limit());
        self.as_mut().branch().settle(won);
        self.at().settle(None);
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        self.branch.settles_early()
    }

    fn reason(&self) -> Reason {
        self.branch.reason()
    }
}
