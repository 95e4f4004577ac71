//! How far a bench is: how much time it still needs, and whether its time is over.
//!
//! A bench with a time limit keeps it on a machine of any speed: while it is late, each row is measured once
//! instead of several times, and once its time is over, nothing more is started.

use std::time::{Duration, Instant};

/// The time that a bench has and needs.
#[derive(Debug)]
pub struct TimeBudget {
    started: Instant,
    limit: Option<Duration>,
    /// The expected time of all runs, and of those that are done or left out.
    planned: Duration,
    done: Duration,
}

impl TimeBudget {
    /// The budget of a bench that begins now. `planned` is the expected time of all its runs on an idle machine;
    /// `limit` is what it may take.
    #[must_use]
    pub fn begin(planned: Duration, limit: Option<Duration>) -> Self {
        Self {
            started: Instant::now(),
            limit,
            planned,
            done: Duration::ZERO,
        }
    }

    /// What is left until the limit; `None` if there is no limit.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        Some(self.limit?.saturating_sub(self.started.elapsed()))
    }

    /// Whether the time is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Whether the share of the time that is over is larger than that of the runs that are done.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let Some(limit) = self.limit else {
            return false;
        };
        let share = self.done.as_secs_f64() / self.planned.as_secs_f64().max(f64::MIN_POSITIVE);
        self.started.elapsed().as_secs_f64() > share * limit.as_secs_f64()
    }

    /// Notes that a run is done or left out, which was expected to take this long.
    pub fn done(&mut self, expected: Duration) {
        self.done += expected;
    }

    /// How long the rest will take, by the expectations and by how long the runs have taken up to now.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        estimate(self.planned, self.done, self.started.elapsed())
    }
}

/// Until this much of the expected time is done, the expectation itself has as much weight as what was seen.
const TRUSTED: f64 = 5.0;

fn estimate(planned: Duration, done: Duration, elapsed: Duration) -> Duration {
    let pace = (elapsed.as_secs_f64() + TRUSTED) / (done.as_secs_f64() + TRUSTED);
    planned.saturating_sub(done).mul_f64(pace)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_estimate_follows_the_pace() {
        assert_eq!(estimate(seconds(100), seconds(0), seconds(0)), seconds(100));
        assert_eq!(
            estimate(seconds(100), seconds(45), seconds(45)),
            seconds(55)
        );
        assert_eq!(
            estimate(seconds(100), seconds(45), seconds(145)),
            seconds(165)
        );
        assert_eq!(
            estimate(seconds(100), seconds(110), seconds(10)),
            seconds(0)
        );
    }

    #[test]
    fn a_limit_is_kept_and_without_one_nothing_is_over() {
        let free = TimeBudget::begin(seconds(1), None);
        assert!(!free.is_over() && !free.is_behind() && free.left().is_none());
        let late = TimeBudget::begin(seconds(1), Some(Duration::ZERO));
        assert!(late.is_over() && late.is_behind());
        let mut early = TimeBudget::begin(seconds(1), Some(seconds(1_000)));
        early.done(seconds(1));
        assert!(!early.is_over() && !early.is_behind());
    }
}
