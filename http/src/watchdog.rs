//! One timer for each connection, which finds out what has lasted too long.
//!
//! A phase that is over quickly costs no clock and no timer: the timer that is armed stays, and when it
//! fires for a phase that is past, it is armed for the present one. So a quiet connection is found after
//! one to two times its limit. It is armed anew at once for a shorter limit, and for a phase in which a
//! peer holds something up, which is timed exactly.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::Sleep;

use crate::activity::{Mark, Phase};

#[derive(Default)]
pub(crate) struct Watchdog {
    timer: Option<Sleep>,
    /// What the timer was armed for, and for how long.
    armed: Option<(Lasting, Duration)>,
    /// What it had been armed for when it fired in this poll.
    fired: Option<Lasting>,
}

/// A phase, told from others of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lasting {
    pub(crate) phase: Phase,
    pub(crate) mark: Mark,
}

impl Watchdog {
    /// A poll begins: notes whether the timer has fired, which is gone then.
    pub(crate) fn look(&mut self, cx: &mut Context<'_>) {
        let fired = |timer: &mut Sleep| Pin::new(timer).poll(cx).is_ready();
        self.fired = match self.timer.as_mut().is_some_and(fired) {
            true => {
                self.timer = None;
                self.armed.take().map(|(lasting, _)| lasting)
            }
            false => None,
        };
    }

    /// The connection has changed its stage: what was armed concerned the former one.
    pub(crate) fn reset(&mut self) {
        *self = Watchdog::default();
    }

    /// The connection is in a phase that may last for `limit`; none: for ever. Ready if it has.
    pub(crate) fn watch(
        &mut self,
        present: Lasting,
        limit: Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(limit) = limit else {
            return Poll::Pending;
        };
        if self.fired == Some(present) {
            return Poll::Ready(());
        }
        let is_exact = matches!(present.phase, Phase::Head | Phase::Blocked);
        let has_to_be_armed = match self.armed {
            None => true,
            Some((armed, _)) if is_exact => armed != present,
            Some((_, for_so_long)) => limit < for_so_long,
        };
        if has_to_be_armed {
            self.arm(present, limit, cx);
        }
        Poll::Pending
    }

    /// Looks again after `limit` at the latest, whatever the phase is then.
    pub(crate) fn look_within(&mut self, present: Lasting, limit: Duration, cx: &mut Context<'_>) {
        if self
            .armed
            .is_none_or(|(_, for_so_long)| limit < for_so_long)
        {
            self.arm(present, limit, cx);
        }
    }

    /// Arms the timer anew.
    fn arm(&mut self, present: Lasting, limit: Duration, cx: &mut Context<'_>) {
        let mut timer = weald_kernel::sleep(limit);
        if Pin::new(&mut timer).poll(cx).is_ready() {
            // A limit of nothing: at the next poll.
            cx.waker().wake_by_ref();
        }
        self.timer = Some(timer);
        self.armed = Some((present, limit));
    }
}
