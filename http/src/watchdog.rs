//! One timer for each connection, which finds phases that have lasted too long.
//!
//! A short phase costs neither a look at the clock nor a timer: an armed timer stays armed, and when it fires
//! for a phase that is over, it is armed for the current one. So a quiet connection is noticed after one to two
//! times its limit. The timer is armed again at once for a shorter limit, and for the two phases that are
//! timed exactly: the head of a request, and a blocked write.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::Sleep;

use crate::activity::{Generation, Phase};

/// The timer of one connection.
#[derive(Default)]
pub(crate) struct Watchdog {
    timer: Option<Sleep>,
    /// The phase for which the timer is armed, and its limit.
    armed: Option<(PhaseId, Duration)>,
    /// The phase for which the timer fired in this poll.
    fired: Option<PhaseId>,
}

/// A phase, distinct from earlier ones of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseId {
    pub(crate) phase: Phase,
    pub(crate) generation: Generation,
}

impl Watchdog {
    /// Called at the start of each poll: records whether the timer has fired, and if so disarms it.
    pub(crate) fn look(&mut self, cx: &mut Context<'_>) {
        let fired = |timer: &mut Sleep| Pin::new(timer).poll(cx).is_ready();
        self.fired = match self.timer.as_mut().is_some_and(fired) {
            true => {
                self.timer = None;
                self.armed.take().map(|(phase, _)| phase)
            }
            false => None,
        };
    }

    /// Disarms the timer, because the connection has changed its stage.
    pub(crate) fn reset(&mut self) {
        *self = Watchdog::default();
    }

    /// Ready if the phase `current` has lasted for `limit`. Without a limit it may last forever.
    pub(crate) fn watch(
        &mut self,
        current: PhaseId,
        limit: Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(limit) = limit else {
            return Poll::Pending;
        };
        if self.fired == Some(current) {
            return Poll::Ready(());
        }
        let is_exact = matches!(current.phase, Phase::Head | Phase::Blocked);
        let must_arm = match self.armed {
            None => true,
            Some((armed, _)) if is_exact => armed != current,
            Some((_, armed_limit)) => limit < armed_limit,
        };
        if must_arm {
            self.arm(current, limit, cx);
        }
        Poll::Pending
    }

    /// Wakes the connection after `limit` at the latest, whatever its phase is by then.
    pub(crate) fn look_within(&mut self, current: PhaseId, limit: Duration, cx: &mut Context<'_>) {
        if self
            .armed
            .is_none_or(|(_, armed_limit)| limit < armed_limit)
        {
            self.arm(current, limit, cx);
        }
    }

    /// Arms the timer for `current`, in place of any other phase.
    fn arm(&mut self, current: PhaseId, limit: Duration, cx: &mut Context<'_>) {
        let mut timer = weald_kernel::sleep(limit);
        if Pin::new(&mut timer).poll(cx).is_ready() {
            // The limit is zero: the next poll finds the timer fired.
            cx.waker().wake_by_ref();
        }
        self.timer = Some(timer);
        self.armed = Some((current, limit));
    }
}
