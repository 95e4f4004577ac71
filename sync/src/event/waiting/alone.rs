//! A wait for one event alone whose tool keeps what is waited for, and the waker.
//!
//! A claim decides between partners, and between events. A oneshot has one partner, whose value stays until it is
//! received. So a wait for it alone leaves neither a claim nor an offer: it leaves its waker, and each poll attempts
//! the event again, as the first one does.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use super::{Stage, Waiting};
use crate::{event::Branch, runtime::hooks::hooks};

impl<B: Branch> Waiting<B> {
    /// Whether the wait has left its waker.
    #[inline(always)]
    pub(super) fn waits_alone(&self) -> bool {
        self.branch.keeps_waker() && self.stage == Stage::Waits
    }

    /// Leaves the waker, in place of one that was left before.
    #[inline(always)]
    pub(super) fn wait_alone(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        *self.as_mut().parts().stage = Stage::Waits;
        match self.as_mut().branch().wait_alone(cx) {
            Poll::Ready(output) => {
                *self.parts().stage = Stage::EndedEarly;
                Poll::Ready(output)
            }
            Poll::Pending => {
                let reason = self.branch.reason().at(self.site);
                hooks().note(reason, cx.waker());
                Poll::Pending
            }
        }
    }
}
