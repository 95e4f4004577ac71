//! The event that is ready at once.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Event, Won, awaitable},
    queue::{claim::Lost, ticket::Ticket},
    runtime::reason::{Kind, Reason},
};

/// The event that is ready at once, with `value`.
///
/// In a choice it is one of the ready events, without precedence over the others.
pub fn always<T>(value: T) -> Always<T> {
    Always(value)
}

/// See [`always`].
#[derive(Clone, Copy, Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct Always<T>(T);

/// The wait of [`Always`]: the value until it is chosen.
pub struct Present<T>(Option<T>);

// The value is never pinned.
impl<T> Unpin for Present<T> {}

impl<T> Event for Always<T> {
    type Output = T;
    type Branch = Present<T>;

    fn open(self) -> Present<T> {
        Present(Some(self.0))
    }

    fn conclude(outcome: T) -> T {
        outcome
    }
}

impl<T> Present<T> {
    fn take(self: Pin<&mut Self>) -> T {
        let value = self.get_mut().0.take();
        value.expect("an event is chosen once")
    }
}

impl<T> Branch for Present<T> {
    type Output = T;

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(self.take())
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<T> {
        match ticket.hold() {
            Err(Lost) => Enrolled::Lost,
            Ok(own) => {
                ticket.win(own);
                Enrolled::Ready(self.take())
            }
        }
    }

    fn collect(self: Pin<&mut Self>, _won: Won) -> T {
        unreachable!("no partner ends the wait of an event that is always ready")
    }

    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, _won: Option<u32>) {}

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    fn reason(&self) -> Reason {
        Reason::new(Kind::Select, self)
    }
}

awaitable!([T] Always<T>);
