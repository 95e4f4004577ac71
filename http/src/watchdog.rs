//! One timer for each connection, which finds phases that have lasted too long.
//!
//! A short phase costs neither a look at the clock nor a timer: an armed timer stays armed, and when it fires for a
//! phase that is over, it is armed for the current one. So a quiet connection is noticed after one to two times its
//! limit. The timer is armed again at once for a shorter limit, and for the phases that are timed exactly: the head of
//! a request, a blocked write, and the wait for the client to notice the end. It is polled only when it has fired, when
//! it was just armed, or when the connection's job has another waker.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::Sleep;

use crate::phase::{Generation, Phase};

/// The timer of one connection.
#[derive(Default)]
pub(crate) struct Watchdog {
    timer: Option<Sleep>,
    /// The phase for which the timer is armed, and its limit.
    armed: Option<(PhaseId, Duration)>,
    /// The phase for which the timer fired in this poll, and the limit that has passed.
    fired: Option<(PhaseId, Duration)>,
    /// Whether the timer would wake a waker that is no longer the job's, or may have been over when it was armed: then
    /// it never fires.
    must_poll: bool,
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
        self.fired = None;
        let Some(timer) = &mut self.timer else {
            return;
        };
        if !std::mem::take(&mut self.must_poll) && !timer.has_fired() {
            return;
        }
        if Pin::new(timer).poll(cx).is_ready() {
            self.timer = None;
            self.fired = self.armed.take();
        }
    }

    /// Whether the timer has fired in this poll, for whatever phase.
    pub(crate) fn has_fired(&self) -> bool {
        self.fired.is_some()
    }

    /// The job of the connection has another waker since the last poll.
    pub(crate) fn has_another_waker(&mut self) {
        self.must_poll = true;
    }

    /// The connection has changed its stage, so a phase that was too long for the last stage need not be too long for
    /// this one. The timer stays armed, because most stages are short.
    pub(crate) fn forget(&mut self) {
        self.fired = None;
    }

    /// Ready if the phase `current` has lasted for `limit`.
    pub(crate) fn watch(
        &mut self,
        current: PhaseId,
        limit: Duration,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // The phase of this name may have had a shorter limit, in another stage, when the timer was armed.
        if let Some((fired, passed)) = self.fired
            && fired == current
            && passed >= limit
        {
            return Poll::Ready(());
        }
        let is_exact = matches!(
            current.phase,
            Phase::Head | Phase::Blocked | Phase::Lingering
        );
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

    /// Whether the timer is armed, has not fired in this poll, and will wake the connection within `limit`. Then
    /// [`watch`](Watchdog::watch) would do nothing for a phase that is not timed exactly.
    pub(crate) fn is_armed_within(&self, limit: Duration) -> bool {
        self.fired.is_none()
            && self
                .armed
                .is_some_and(|(_, armed_limit)| armed_limit <= limit)
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
        self.must_poll = true;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn phase(phase: Phase) -> PhaseId {
        PhaseId {
            phase,
            generation: (1, 0),
        }
    }

    /// Waits until `current` has lasted for `limit`. Returns how long that took.
    async fn wait_for(watchdog: &mut Watchdog, current: PhaseId, limit: Duration) -> Duration {
        let begin = weald_kernel::now();
        let over = poll_fn(|cx| {
            watchdog.look(cx);
            watchdog.watch(current, limit, cx)
        });
        let noticed = weald_kernel::timeout(Duration::from_secs(600), over).await;
        noticed.expect("the watchdog notices the limit");
        weald_kernel::now() - begin
    }

    #[test]
    fn a_limit_that_has_passed_is_noticed() {
        weald_kernel::Runtime::test(1).block_on(async {
            let mut watchdog = Watchdog::default();
            wait_for(&mut watchdog, phase(Phase::Body), Duration::ZERO).await;
        });
    }

    #[test]
    fn a_timer_for_a_shorter_limit_does_not_end_the_phase() {
        const LONG: Duration = Duration::from_secs(75);
        weald_kernel::Runtime::test(1).block_on(async {
            let mut watchdog = Watchdog::default();
            let current = phase(Phase::Quiet);
            let armed = poll_fn(|cx| {
                let short = Duration::from_millis(250);
                Poll::Ready(watchdog.watch(current, short, cx).is_pending())
            });
            assert!(armed.await);
            watchdog.forget();
            assert!(wait_for(&mut watchdog, current, LONG).await >= LONG);
        });
    }
}
