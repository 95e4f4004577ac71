//! How a worker that has nothing to do waits for forked halves: it wants to be woken, but not for nothing.
//!
//! Who forks can only tell that there is a half, and not that it is worth a theft. A worker that was woken
//! often and found nothing looks by itself for a while, every millisecond, rather than ring.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use crate::scheduler::workers::shared::Shared;

/// So many sleeps without a theft while somebody forks, and the worker is patient.
const RINGS: u32 = 4;
/// How long a patient worker sleeps.
const PAUSE: Duration = Duration::from_millis(1);

/// How often a worker slept in vain.
pub(crate) struct SleepPolicy {
    sleeps: Cell<u32>,
}

/// What a worker does about forks before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Those who fork were rung: the next half wakes the worker.
    Rung,
    /// The worker looks again by itself.
    Later(Instant),
}

impl SleepPolicy {
    pub(crate) fn new() -> SleepPolicy {
        SleepPolicy {
            sleeps: Cell::new(0),
        }
    }

    /// There was something to steal.
    pub(crate) fn renew(&self) {
        self.sleeps.set(0);
    }

    /// Called by a worker that has announced its sleep.
    pub(crate) fn look(&self, shared: &Shared) -> Look {
        if !shared.forks.wants_helpers(shared) {
            self.renew();
        }
        if self.sleeps.get() == RINGS {
            return Look::Later(shared.clock.now() + PAUSE);
        }
        self.sleeps.set(self.sleeps.get() + 1);
        shared.forks.ring_all();
        Look::Rung
    }
}

impl Look {
    /// The end of the sleep, if it ends at `other` otherwise.
    pub(crate) fn deadline(self, other: Option<Instant>) -> Option<Instant> {
        match self {
            Look::Rung => other,
            Look::Later(look) => Some(other.map_or(look, |other| other.min(look))),
        }
    }

    /// Whether the worker must not sleep, because a half came before its ring.
    pub(crate) fn sees_work(self, shared: &Shared) -> bool {
        self == Look::Rung && shared.forks.sees_work(shared)
    }
}
