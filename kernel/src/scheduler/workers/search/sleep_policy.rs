//! How an idle worker learns of forked jobs: a push wakes it, but after several useless wake-ups it polls instead.
//!
//! A forking thread can only report that it has pushed a job, not that the job is worth a steal. A worker that was
//! woken several times and stole nothing asks for no wake-up for a while, and looks every millisecond instead.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use crate::scheduler::workers::shared::Shared;

/// After this many sleeps without a steal, while some thread forks, the worker polls.
const MAX_WAKE_REQUESTS: u32 = 4;
/// How long a worker that polls sleeps.
const PAUSE: Duration = Duration::from_millis(1);

/// How often a worker asked to be woken since its last steal.
pub(crate) struct SleepPolicy {
    sleeps: Cell<u32>,
}

/// How a sleeping worker learns of forked jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForkWatch {
    /// The next push of any fork wakes it.
    Woken,
    /// It looks again at this time.
    PollAt(Instant),
}

impl SleepPolicy {
    pub(crate) fn new() -> SleepPolicy {
        SleepPolicy {
            sleeps: Cell::new(0),
        }
    }

    /// There was something to steal.
    pub(crate) fn reset(&self) {
        self.sleeps.set(0);
    }

    /// Chooses how the worker learns of forked jobs. Called by a worker that has prepared its sleep.
    pub(crate) fn watch_forks(&self, shared: &Shared) -> ForkWatch {
        if !shared.forks.wants_helpers(shared) {
            self.reset();
        }
        if self.sleeps.get() == MAX_WAKE_REQUESTS {
            return ForkWatch::PollAt(shared.clock.now() + PAUSE);
        }
        self.sleeps.set(self.sleeps.get() + 1);
        shared.forks.alert_all();
        ForkWatch::Woken
    }
}

impl ForkWatch {
    /// The end of a sleep that would otherwise end at `other`.
    pub(crate) fn deadline(self, other: Option<Instant>) -> Option<Instant> {
        match self {
            ForkWatch::Woken => other,
            ForkWatch::PollAt(look) => Some(other.map_or(look, |other| other.min(look))),
        }
    }

    /// Whether the worker must not sleep, because a job was pushed before it asked to be woken.
    pub(crate) fn sees_work(self, shared: &Shared) -> bool {
        self == ForkWatch::Woken && shared.forks.sees_work(shared)
    }
}
