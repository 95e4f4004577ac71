//! `timers`: what do starting, firing and cancelling a callback cost, and how late is it?
//!
//! Insert, fire and cancel are measured with the time passed in, on blocks that were used before; firing in
//! virtual time, so that nothing waits. `ns_per_after` is the public call, which reads the clock.
//! Lateness is that of as many callbacks within two seconds, while another worker computes.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use weald::Runtime;
use weald::process::{Inbox, callback};

use super::host::alone;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

const HOUR: Duration = Duration::from_secs(3600);
/// The time over which deadlines are spread, in nanoseconds.
const SPREAD_NS: u64 = 2_000_000_000;
const SPREAD: Duration = Duration::from_nanos(SPREAD_NS);
/// Latenesses are counted by ten microseconds, up to a second.
const PLACES: usize = 100_000;
const PLACE_US: u128 = 10;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let pending = params.count("pending")?.max(1);
    let workers = super::workers(params)?;
    let mut metrics = alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        // Twice: the second time on warm blocks.
        started_and_cancelled(pending);
        Ok(started_and_cancelled(pending))
    })?;
    metrics.push(Metric::new("ns_per_fire", fired(pending)));
    let late = alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        Ok(lateness_p99_us(pending, workers).await)
    })?;
    metrics.push(Metric::new("lateness_p99_us", late));
    Ok(metrics)
}

/// The deadline of the callback with this index: not in the order of time.
fn deadline(start: Instant, index: usize, pending: usize) -> Instant {
    let place = (index as u64).wrapping_mul(7_919) % pending as u64;
    start + Duration::from_nanos(place * SPREAD_NS / pending as u64)
}

fn per(clock: Instant, count: usize) -> f64 {
    clock.elapsed().as_nanos() as f64 / count as f64
}

fn started_and_cancelled(pending: usize) -> Vec<Metric> {
    let start = weald::now() + HOUR;
    let mut handles = Vec::with_capacity(pending);
    let clock = Instant::now();
    for index in 0..pending {
        let captured = [index; 2];
        let due = deadline(start, index, pending);
        handles.push(callback::at(due, move || _ = black_box(captured)));
    }
    let insert = per(clock, pending);
    let clock = Instant::now();
    for handle in handles.drain(..) {
        handle.cancel();
    }
    let cancel = per(clock, pending);
    let clock = Instant::now();
    for index in 0..pending {
        let captured = [index; 2];
        handles.push(callback::after(HOUR, move || _ = black_box(captured)));
    }
    let after = per(clock, pending);
    for handle in handles {
        handle.cancel();
    }
    vec![
        Metric::new("ns_per_insert", insert),
        Metric::new("ns_per_cancel", cancel),
        Metric::new("ns_per_after", after),
    ]
}

/// Time for each callback that fires and runs.
fn fired(pending: usize) -> f64 {
    Runtime::test(1).block_on(async {
        let mut nanoseconds = 0.0;
        for _ in 0..2 {
            let start = weald::now();
            for index in 0..pending {
                let captured = [index; 2];
                let due = deadline(start, index, pending);
                callback::at(due, move || _ = black_box(captured)).detach();
            }
            let clock = Instant::now();
            weald::sleep(SPREAD * 2).await;
            nanoseconds = per(clock, pending);
        }
        nanoseconds
    })
}

async fn lateness_p99_us(pending: usize, workers: usize) -> f64 {
    let counts: &'static [AtomicU64] = (0..PLACES)
        .map(|_| AtomicU64::new(0))
        .collect::<Vec<_>>()
        .leak();
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let start = weald::now() + Duration::from_millis(500);
    for index in 0..pending {
        let due = deadline(start, index, pending);
        let run = move || {
            let late = weald::now().saturating_duration_since(due).as_micros() / PLACE_US;
            counts[usize::try_from(late).map_or(PLACES - 1, |late| late.min(PLACES - 1))]
                .fetch_add(1, Ordering::Relaxed);
        };
        callback::at(due, run).detach();
    }
    if workers > 1 {
        weald::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
        .detach();
    }
    let all = || {
        counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum::<u64>()
    };
    while all() < pending as u64 {
        weald::sleep(Duration::from_millis(50)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut left = pending as u64 / 100;
    for (place, count) in counts.iter().enumerate().rev() {
        let count = count.load(Ordering::Relaxed);
        if count > left {
            return (place as u64 + 1) as f64 * PLACE_US as f64;
        }
        left -= count;
    }
    0.0
}
