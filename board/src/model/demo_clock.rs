//! The clock of a demo: it is days behind until the demo is filled, so that there is a past to look at, and right from
//! then on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use weald::forest::{Clock, SystemClock};

/// The clock for boards that [`fill`](crate::demo::fill) is going to fill: until then it is a week behind. A clone is
/// the same clock.
#[derive(Clone)]
pub struct DemoClock(Arc<Behind>);

struct Behind {
    real: SystemClock,
    /// By how many seconds. Relaxed: whoever reads the time beside a change may get that of before or of after.
    seconds: AtomicU64,
}

impl Default for DemoClock {
    /// It is behind from the start: a forest on disk notes the time of its opening, and no version is older than that.
    fn default() -> Self {
        Self(Arc::new(Behind {
            real: SystemClock::default(),
            seconds: AtomicU64::new(Self::BEGAN.as_secs()),
        }))
    }
}

impl DemoClock {
    /// How long ago the boards of a demo began.
    pub(crate) const BEGAN: Duration = Duration::from_secs(7 * 86_400);

    /// From now on it is behind by this much.
    pub(crate) fn fall_behind(&self, by: Duration) {
        self.0.seconds.store(by.as_secs(), Ordering::Relaxed);
    }
}

impl Clock for DemoClock {
    fn now(&self) -> SystemTime {
        let behind = Duration::from_secs(self.0.seconds.load(Ordering::Relaxed));
        let now = self.0.real.now();
        now.checked_sub(behind).unwrap_or(now)
    }

    fn uptime(&self) -> Duration {
        self.0.real.uptime()
    }

    fn wake_at(&self, deadline: Duration, waker: Waker) {
        self.0.real.wake_at(deadline, waker);
    }
}

impl fmt::Debug for DemoClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DemoClock")
    }
}
