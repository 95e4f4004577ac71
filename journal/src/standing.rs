//! A clock for tests, which stands still.

use std::task::Waker;
use std::time::{Duration, SystemTime};

use weald_forest::Clock;

/// A clock that stands, so that epochs are the same in each run.
pub(crate) struct Standing;

impl Clock for Standing {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn uptime(&self) -> Duration {
        Duration::ZERO
    }

    fn wake_at(&self, _: Duration, waker: Waker) {
        waker.wake();
    }
}
