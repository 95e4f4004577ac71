//! A mailbox as one of several events.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use weald_sync::{
    Source,
    reason::{Kind, Reason},
};

use crate::api::mailbox::{Mailbox, register};
use crate::scheduler::workers::context;

/// The next message, as one of several events: `of_source(&mut mailbox)`. A mailbox that is not chosen keeps its
/// messages.
impl<M> Source for Mailbox<M> {
    type Output = M;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.chain.links.is_empty() {
                self.refill();
            }
            if !self.chain.links.is_empty() {
                return Poll::Ready(());
            }
            if register(context::here(), &self.job, cx) {
                return Poll::Pending;
            }
        }
    }

    fn take(mut self: Pin<&mut Self>) -> M {
        self.chain
            .pop()
            .expect("`take` follows a `poll_ready` that found a message")
    }

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::Message)
    }
}

// Messages are moved, never pinned.
impl<M> Unpin for Mailbox<M> {}
