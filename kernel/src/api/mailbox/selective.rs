//! Selective receives: each takes the oldest wanted message, of all messages or of those behind a mark.

#![allow(unsafe_code)]

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use crate::{
    api::mailbox::{Mailbox, backlog, register},
    job::{chain::Scan, marks::Mark},
    scheduler::workers::context,
};

/// The future of [`Mailbox::receive_if`]. It borrows the mailbox, so nothing else is received between two of
/// its polls. Cancel-safe: dropping it loses no message.
// # Safety
// *scan*: `scan` is of the mailbox's chain. The receive has borrowed the mailbox since the scan began, so nothing but
// this scan has removed a message.
#[must_use = "a receive does nothing unless it is awaited"]
pub struct SelectiveReceive<'a, M, F> {
    pub(super) mailbox: &'a mut Mailbox<M>,
    /// How far the chain was searched.
    pub(super) scan: Scan,
    /// When it had passed many messages for the first time.
    pub(super) passed_many: Option<Instant>,
    wanted: F,
}

// The closure is only called, never pinned.
impl<M, F> Unpin for SelectiveReceive<'_, M, F> {}

impl<M, F: FnMut(&M) -> bool> Future for SelectiveReceive<'_, M, F> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        let this = &mut *self;
        if !context::here().spend(cx.waker()) {
            return Poll::Pending;
        }
        loop {
            this.mailbox.refill();
            let chain = &mut this.mailbox.chain;
            // SAFETY: *scan*. If it is polled after it has returned a message: the scan stands before what it took.
            let found = unsafe { chain.take_if(&mut this.scan, &mut this.wanted) };
            if let Some(message) = found {
                return Poll::Ready(message);
            }
            backlog::note_unwanted(this, this.scan.passed());
            if register(context::here(), &this.mailbox.job, cx) {
                return Poll::Pending;
            }
        }
    }
}

/// The future of [`Mailbox::receive_since`]. Cancel-safe: dropping it loses no message, and leaves the mark behind the
/// messages that it refused.
#[must_use = "a receive does nothing unless it is awaited"]
pub struct ReceiveSince<'a, M, F> {
    receive: SelectiveReceive<'a, M, F>,
    mark: &'a mut Mark,
}

impl<M, F: FnMut(&M) -> bool> Future for ReceiveSince<'_, M, F> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.receive).poll(cx);
        // A scan that has passed nothing stands where the mark stands.
        if this.receive.scan.passed() > 0 {
            let links = &mut this.receive.mailbox.chain.links;
            // SAFETY: *scan*.
            unsafe { links.set_mark(this.mark, this.receive.scan) };
        }
        if polled.is_pending() {
            backlog::note_marked(&mut this.receive);
        }
        polled
    }
}

impl<M> Mailbox<M> {
    /// Waits for the oldest message for which `wanted` is true; the others keep their order. The future calls
    /// `wanted` once per message. Cancel-safe: dropping the future loses no message.
    ///
    /// Each receive begins at the oldest message; [`Mailbox::receive_since`] does not.
    ///
    /// # Panics
    /// As [`Mailbox::poll_receive`].
    pub fn receive_if<F: FnMut(&M) -> bool>(&mut self, wanted: F) -> SelectiveReceive<'_, M, F> {
        SelectiveReceive {
            mailbox: self,
            scan: Scan::START,
            passed_many: None,
            wanted,
        }
    }

    /// The oldest message for which `wanted` is true, if there is one now. Never waits.
    pub fn take_if(&mut self, wanted: impl FnMut(&M) -> bool) -> Option<M> {
        self.refill();
        // SAFETY: the scan begins here.
        unsafe { self.chain.take_if(&mut Scan::START.clone(), wanted) }
    }

    /// A mark behind all messages that have come: a receive with it looks only at later ones.
    ///
    /// The call takes the messages that came since the last receive out of the job's word, which the next receive would
    /// do anyway. The first call since the mailbox was empty also counts the messages in it.
    pub fn mark(&mut self) -> Mark {
        self.refill();
        let mut mark = Mark::oldest();
        self.chain.links.mark_newest(&mut mark);
        mark
    }

    /// As [`Mailbox::receive_if`], but looks only at the messages behind `mark`, and moves the mark behind those that
    /// it refuses. So however many receives there are with one mark, they look at each message once. Cancel-safe:
    /// dropping the future loses no message, and the mark stays behind the messages that it refused.
    ///
    /// # Panics
    /// As [`Mailbox::poll_receive`].
    pub fn receive_since<'a, F: FnMut(&M) -> bool>(
        &'a mut self,
        mark: &'a mut Mark,
        wanted: F,
    ) -> ReceiveSince<'a, M, F> {
        let scan = self.chain.links.scan_since(mark);
        let receive = SelectiveReceive {
            mailbox: self,
            scan,
            passed_many: None,
            wanted,
        };
        ReceiveSince { receive, mark }
    }

    /// As [`Mailbox::receive_since`], but never waits: the message, if there is one now.
    pub fn take_since(&mut self, mark: &mut Mark, wanted: impl FnMut(&M) -> bool) -> Option<M> {
        self.refill();
        let mut scan = self.chain.links.scan_since(mark);
        // SAFETY: the scan begins here.
        let found = unsafe { self.chain.take_if(&mut scan, wanted) };
        // SAFETY: only this scan has removed anything since.
        unsafe { self.chain.links.set_mark(mark, scan) };
        found
    }
}

impl<M, F> fmt::Debug for SelectiveReceive<'_, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectiveReceive").finish_non_exhaustive()
    }
}

impl<M, F> fmt::Debug for ReceiveSince<'_, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveSince").finish_non_exhaustive()
    }
}
