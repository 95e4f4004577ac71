//! The ticks of `stall`: the ends of the sleeps of a unit that sleeps again and again, and what they say.

use std::time::{Duration, Instant};

use super::measure::Figure;
use super::quantile::milliseconds;

/// How long the ticker sleeps.
pub const TICK: Duration = Duration::from_millis(5);
/// How long everything runs undisturbed before a burst.
pub const CALM: Duration = Duration::from_millis(500);
/// How much of a burst passes before its ticks count.
const FIRST: Duration = Duration::from_millis(100);

/// When each sleep ended, and how late.
#[derive(Debug, Default)]
pub struct TickLog(Vec<(Instant, Duration)>);

impl TickLog {
    /// The sleep that was due at `due` has ended now, which is returned.
    pub fn add(&mut self, due: Instant) -> Instant {
        let at = Instant::now();
        self.0.push((at, at.saturating_duration_since(due)));
        at
    }

    /// A sleep ended at `at`, and so late; for what is measured in another program.
    pub fn note(&mut self, at: Instant, late: Duration) {
        self.0.push((at, late));
    }

    /// What the ticks say about offenders that began at `begin`; nothing if there are none. Lateness counts from there,
    /// the ticks of a burst 100 ms later. They are a share of those that the clock has room for.
    #[must_use]
    pub fn figures(&self, begin: Instant, is_burst: bool) -> Option<Vec<Figure>> {
        let from = begin + if is_burst { FIRST } else { Duration::ZERO };
        let lateness = self.0.iter().filter(|(at, _)| *at >= begin);
        let mut lateness: Vec<Duration> = lateness.map(|(_, late)| *late).collect();
        lateness.sort_unstable();
        let worst = lateness.last()?.as_secs_f64() * 1e3;
        let ticks = self.0.iter().filter(|(at, _)| *at >= from).count() as f64;
        let length = self.0.last()?.0.saturating_duration_since(from);
        let room = (length.as_secs_f64() / TICK.as_secs_f64()).max(1.0);
        Some(vec![
            ("ticks", ticks),
            ("ticks_percent", (100.0 * ticks / room).min(100.0)),
            ("lateness_p999_ms", milliseconds(&lateness, 0.999)),
            ("lateness_worst_ms", worst),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_a_burst_count_later_than_their_lateness() {
        let begin = Instant::now();
        let tick = |at: u64, late: u64| {
            let at = begin + Duration::from_millis(at);
            (at, Duration::from_millis(late))
        };
        let ticks = TickLog(vec![
            tick(5, 900),
            tick(60, 50),
            tick(120, 2),
            tick(125, 3),
            tick(130, 0),
        ]);
        let figures = ticks.figures(begin + Duration::from_millis(10), true);
        let values: Vec<f64> = figures.unwrap().iter().map(|(_, value)| *value).collect();
        // Four ticks of 5 ms fit into the last 20 ms.
        assert_eq!(values, [3.0, 75.0, 50.0, 50.0]);
        assert_eq!(TickLog::default().figures(begin, false), None);
    }
}
