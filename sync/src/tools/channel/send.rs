//! The wait of a sender.

#![allow(unsafe_code)]

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    error::SendError,
    state::{Channel, Sent, wake},
};
use crate::{
    event::{Branch, Enrolled, Won},
    queue::{
        offer::{Met, OfferNode},
        ticket::Ticket,
    },
    runtime::reason::{Kind, Reason},
};

/// The event of [`Sender::send`](super::Sender::send).
pub struct Send<'a, T> {
    channel: &'a Channel<T>,
    /// Its slot holds the value until it is sent.
    node: OfferNode<Option<T>>,
}

const HAS_VALUE: &str = "a send has its value until it ends";

impl<'a, T> Send<'a, T> {
    #[inline(always)]
    pub(super) fn new(channel: &'a Channel<T>, value: T) -> Send<'a, T> {
        Send {
            channel,
            node: OfferNode::with_slot(Some(value)),
        }
    }

    #[inline(always)]
    fn node(self: Pin<&mut Self>) -> (&'a Channel<T>, Pin<&mut OfferNode<Option<T>>>) {
        crate::queue::list::project(self, |this| (this.channel, &mut this.node))
    }

    /// Takes the offer back, if no partner has taken it out.
    // Out of line, so that the end of a wait that has left no offer stays small.
    #[inline(never)]
    fn retract(self: Pin<&mut Self>) {
        let (channel, node) = self.node();
        channel.lock().senders.remove(node);
    }
}

impl<T> Branch for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline(always)]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (channel, node) = self.node();
        let slot = &mut node.own_value().slot;
        let value = slot.take().expect(HAS_VALUE);
        match channel.send(value) {
            Sent::Done(waker) => {
                wake(waker);
                Poll::Ready(Ok(()))
            }
            Sent::Closed(value) => Poll::Ready(Err(SendError(value))),
            Sent::Full(value) => {
                *slot = Some(value);
                Poll::Pending
            }
        }
    }

    #[inline]
    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let (channel, mut node) = self.node();
        let mut state = channel.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if state.is_closed() {
            ticket.win(own);
            let value = node.own_value().slot.take().expect(HAS_VALUE);
            return Enrolled::Ready(Err(SendError(value)));
        }
        let value = &mut node.as_mut().own_value().slot;
        let met = state
            .receivers
            .meet(own, ticket, |slot| *slot = value.take());
        match met {
            Met::Lost => Enrolled::Lost,
            Met::Partner((), waker) => {
                drop(state);
                wake(waker);
                Enrolled::Ready(Ok(()))
            }
            // Any receiver left in the list belongs to an ended wait, or to this wait.
            Met::Nobody(own) if channel.has_room(&mut state) => {
                ticket.win(own);
                state.put(value.take().expect(HAS_VALUE));
                Enrolled::Ready(Ok(()))
            }
            Met::Nobody(own) => {
                state.senders.leave(node, ticket);
                drop(own);
                Enrolled::Waits
            }
        }
    }

    #[inline]
    fn collect(self: Pin<&mut Self>, won: Won) -> Self::Output {
        let (_, node) = self.node();
        // A value that is still in the slot was refused: the channel was closed.
        // SAFETY: `won` is *routed*: a partner has won the claim for this node.
        let refused = unsafe { node.left_value(won) }.slot.take();
        refused.map_or(Ok(()), |value| Err(SendError(value)))
    }

    /// The value was sent, or it was refused and is dropped with the wait.
    #[inline]
    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    #[inline(always)]
    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        if won.is_none() && self.node.is_bound() {
            self.retract();
        }
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    #[inline(always)]
    fn drops_early(&self) -> bool {
        mem::needs_drop::<T>()
    }

    #[inline]
    fn reason(&self) -> Reason {
        Reason::new(Kind::Send, self.channel).named(self.channel.name())
    }
}
