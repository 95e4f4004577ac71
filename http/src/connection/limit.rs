//! How long a phase of a connection may last, and what ends a connection whose client is gone.

use std::{
    ops::ControlFlow,
    task::{Context, Poll},
    time::Duration,
};

use weald_net::Transport;

use super::{Connection, SHED_AFTER};
use crate::{closing::LINGER, crowd, handler::Serve, limits::LOOK, phase::Phase, wire::Departure};

impl<T: Transport, S: Serve> Connection<T, S> {
    /// While the service works, which it may do for ever. Hyper reads nothing meanwhile if it has more than the
    /// request, or if nobody reads the body, and then does not find that the client is gone.
    pub(super) fn poll_in_flight(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<()>> {
        if self.watchdog.has_fired() && !self.wire.is_listening() {
            match self.wire.departure(self.limits.half_closed) {
                Departure::No => self.left = None,
                Departure::Reset => return Poll::Ready(ControlFlow::Break(())),
                // Somebody may still read the body, with pauses. Then it becomes less.
                Departure::Ended { unread } if self.left.replace(unread) != Some(unread) => {}
                Departure::Ended { .. } => {
                    // What is unread is read, or earlier answers would be lost on their way.
                    self.abandon();
                    return Poll::Ready(ControlFlow::Continue(()));
                }
            }
        }
        // Another job may start to wait for the body, and that does not wake this job.
        let limits = &self.limits;
        let has_body = self.activity.has_body();
        let of_body = has_body.then(|| limits.body_rate.first_limit().min(limits.body));
        let of_client = (!self.wire.is_listening()).then_some(LOOK);
        if let Some(within) = of_body.into_iter().chain(of_client).min() {
            let current = self.phase_id(Phase::InFlight);
            self.watchdog.look_within(current, within, cx);
        }
        if crowd::is_crowded() {
            // A stream of events may write nothing for long.
            self.wire.shed();
        }
        Poll::Pending
    }

    /// While hyper serves, in the current phase.
    pub(super) fn serving_limit(&self, phase: Phase) -> Duration {
        let (limits, activity) = (&self.limits, &self.activity);
        match phase {
            Phase::InFlight => unreachable!("it may last for ever"),
            Phase::Head => limits.header,
            Phase::Body => limits.body.min(activity.body_left(limits.body_rate)),
            Phase::Blocked => self.write_limit(),
            Phase::Quiet if activity.is_between_requests() => SHED_AFTER,
            Phase::Quiet => limits.idle,
            Phase::Lingering => unreachable!("hyper serves"),
        }
    }

    /// After hyper, in the current phase.
    pub(super) fn closing_limit(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Lingering => LINGER,
            _ => self.write_limit(),
        }
    }

    fn write_limit(&self) -> Duration {
        let left = self.activity.write_left(self.limits.write_rate);
        self.limits.write.min(left)
    }
}
