//! The wait of a receiver.

#![allow(unsafe_code)]

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    error::Closed,
    state::{Channel, Received, wake},
};
use crate::{
    event::{Branch, Enrolled, Won},
    queue::{
        offer::{Met, OfferNode},
        ticket::Ticket,
    },
    runtime::reason::{Kind, Reason},
};

/// The event of [`Receiver::receive`](super::Receiver::receive).
pub struct Receive<'a, T> {
    channel: &'a Channel<T>,
    /// Its slot receives the value that a sender hands over.
    node: OfferNode<Option<T>>,
}

impl<'a, T> Receive<'a, T> {
    #[inline(always)]
    pub(super) fn new(channel: &'a Channel<T>) -> Receive<'a, T> {
        Receive {
            channel,
            node: OfferNode::with_slot(None),
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
        channel.lock().receivers.remove(node);
    }
}

impl<T> Branch for Receive<'_, T> {
    type Output = Result<T, Closed>;

    #[inline(always)]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let received = self.channel.lock().receive();
        match received {
            Received::Value(value, waker) => {
                wake(waker);
                Poll::Ready(Ok(value))
            }
            Received::Closed => Poll::Ready(Err(Closed)),
            Received::Empty => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let (channel, node) = self.node();
        let mut state = channel.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if state.can_receive() {
            ticket.win(own);
            let received = state.receive();
            drop(state);
            let Received::Value(value, waker) = received else {
                return Enrolled::Ready(Err(Closed));
            };
            wake(waker);
            return Enrolled::Ready(Ok(value));
        }
        match state.senders.meet(own, ticket, Option::take) {
            Met::Lost => Enrolled::Lost,
            Met::Partner(value, waker) => {
                drop(state);
                wake(waker);
                Enrolled::Ready(value.ok_or(Closed))
            }
            Met::Nobody(own) => {
                state.receivers.leave(node, ticket);
                drop(own);
                Enrolled::Waits
            }
        }
    }

    fn collect(self: Pin<&mut Self>, won: Won) -> Self::Output {
        let (_, node) = self.node();
        // SAFETY: `won` is *routed*: a partner has won the claim for this node.
        let left = unsafe { node.left_value(won) };
        left.slot.take().ok_or(Closed)
    }

    fn give_back(self: Pin<&mut Self>, _won: Won) {
        let (channel, node) = self.node();
        let mut state = channel.lock();
        let Some(value) = state.receivers.value(node).slot.take() else {
            return;
        };
        let waker = state.send_back(value);
        drop(state);
        wake(waker);
    }

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

    fn reason(&self) -> Reason {
        Reason::new(Kind::Receive, self.channel).named(self.channel.name())
    }
}
