//! `timers`: callbacks in one wheel on one thread, which nothing else may touch.
//!
//! There is no row for lateness, because the sleep is the system's.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::wheel::{Started, TimerCode, Wheel};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::workload::timers::{HOUR, ROUNDS, SPREAD, deadline};

thread_local! {
    /// How many callbacks have run; the sum of their numbers.
    static FIRED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

fn fire([number, same]: [usize; 2]) {
    let (count, sum) = FIRED.get();
    FIRED.set((count + 1, sum.wrapping_add(number & same)));
}

/// The tick of an instant.
fn tick(origin: Instant, at: Instant) -> u64 {
    let since = at.saturating_duration_since(origin);
    since.as_secs() * 1_000 + u64::from(since.subsec_millis())
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let pending = params.count("pending")?;
    let origin = Instant::now();
    let dues: Vec<Instant> = (0..pending)
        .map(|place| deadline(origin + HOUR, place, pending))
        .collect();
    // The code is not known where it is called.
    let code: TimerCode = std::hint::black_box(fire);
    let (mut wheel, mut started) = (Wheel::new(), Vec::with_capacity(pending));
    let (mut given, mut after) = ((0.0, 0.0), (0.0, 0.0));
    for _ in 0..ROUNDS {
        given = started_and_cancelled(pending, &mut wheel, &mut started, |wheel, place| {
            wheel.start(tick(origin, dues[place]), code, [place; 2])
        });
        after = started_and_cancelled(pending, &mut wheel, &mut started, |wheel, place| {
            wheel.start(tick(origin, Instant::now() + HOUR), code, [place; 2])
        });
    }
    let mut per_fire = 0.0;
    for _ in 0..ROUNDS {
        per_fire = fired(pending, &mut wheel, code)?;
    }
    Ok(vec![
        Metric::new("ns_per_insert", given.0),
        Metric::new("ns_per_fire", per_fire),
        Metric::new("ns_per_cancel", given.1),
        Metric::new("ns_per_after", after.0),
        Metric::new("ns_per_stop", after.1),
    ])
}

fn per(clock: Instant, count: usize) -> f64 {
    clock.elapsed().as_nanos() as f64 / count as f64
}

fn started_and_cancelled(
    pending: usize,
    wheel: &mut Wheel,
    started: &mut Vec<Started>,
    start: impl Fn(&mut Wheel, usize) -> Started,
) -> (f64, f64) {
    let clock = Instant::now();
    for place in 0..pending {
        started.push(start(wheel, place));
    }
    let start = per(clock, pending);
    let clock = Instant::now();
    for started in started.drain(..) {
        wheel.cancel(started);
    }
    (start, per(clock, pending))
}

/// The time per callback that fires and runs.
fn fired(pending: usize, wheel: &mut Wheel, code: TimerCode) -> Result<f64, Error> {
    FIRED.set((0, 0));
    let origin = Instant::now();
    let now = wheel.now();
    for place in 0..pending {
        let due = now + tick(origin, deadline(origin, place, pending));
        wheel.start(due, code, [place; 2]);
    }
    let clock = Instant::now();
    wheel.advance(now + tick(origin, origin + SPREAD + Duration::from_millis(1)));
    let per_fire = per(clock, pending);
    let (count, sum) = FIRED.get();
    if count != pending || sum != pending * (pending - 1) / 2 {
        let sentence = format!("{count} of {pending} callbacks ran, or the wrong ones.");
        return Err(Error::workload(sentence));
    }
    Ok(per_fire)
}
