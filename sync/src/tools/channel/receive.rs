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
    queue::{late::LateNode, offer::Met, ticket::Ticket},
    runtime::reason::{Kind, Reason},
};

/// The event of [`Receiver::receive`](super::Receiver::receive).
pub struct Receive<'a, T> {
    /// The channel, and a node whose slot receives the value that a sender hands over.
    node: LateNode<'a, Channel<T>, Option<T>>,
}

const IS_LEFT: &str = "a receive that a sender ended has left an offer";

impl<'a, T> Receive<'a, T> {
    #[inline(always)]
    pub(super) fn new(channel: &'a Channel<T>) -> Receive<'a, T> {
        Receive {
            node: LateNode::new(channel),
        }
    }

    #[inline(always)]
    fn channel(&self) -> &'a Channel<T> {
        self.node.tool()
    }

    #[inline(always)]
    fn node(self: Pin<&mut Self>) -> Pin<&mut LateNode<'a, Channel<T>, Option<T>>> {
        // SAFETY: the node is pinned with the wait, and nothing else gives access to it.
        unsafe { self.map_unchecked_mut(|this| &mut this.node) }
    }

    /// Takes the offer back, if no partner has taken it out.
    // Out of line, so that the end of a wait that has left no offer stays small.
    #[inline(never)]
    fn retract(self: Pin<&mut Self>) {
        let channel = self.channel();
        if let Some(node) = self.node().node() {
            channel.lock().receivers.remove(node);
        }
    }
}

impl<T> Branch for Receive<'_, T> {
    type Output = Result<T, Closed>;

    #[inline(always)]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let received = self.channel().lock().receive();
        match received {
            Received::Value(value, waker) => {
                wake(waker);
                Poll::Ready(Ok(value))
            }
            Received::Closed => Poll::Ready(Err(Closed)),
            Received::Empty => Poll::Pending,
        }
    }

    #[inline]
    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let channel = self.channel();
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
                state.receivers.leave(self.node().write(None), ticket);
                drop(own);
                Enrolled::Waits
            }
        }
    }

    #[inline]
    fn collect(self: Pin<&mut Self>, won: Won) -> Self::Output {
        let node = self.node().node().expect(IS_LEFT);
        // SAFETY: `won` is *routed*: a partner has won the claim for this node.
        let left = unsafe { node.left_value(won) };
        left.slot.take().ok_or(Closed)
    }

    #[inline]
    fn give_back(self: Pin<&mut Self>, _won: Won) {
        let channel = self.channel();
        let node = self.node().node().expect(IS_LEFT);
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
        if won.is_none() && self.node.is_written() {
            self.retract();
        }
    }

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
        Reason::new(Kind::Receive, self.channel()).named(self.channel().name())
    }
}
