//! `timers`: what do starting, firing and cancelling a callback cost, and how late is it?
//!
//! - The wheel: callbacks without an owner, with the time passed in, on blocks that were used before. They fire
//!   in virtual time, so that nothing waits.
//! - The public calls: callbacks of a process, started after a duration, which reads the clock.
//! - Lateness: as many callbacks within two seconds, while another worker computes.
//!
//! Deadlines are spread over two seconds and computed before the clock starts: for the wheel in the order of
//! time, like timeouts of one length; for lateness in another order.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use weald::Runtime;
use weald::process::Inbox;
use weald::process::callback::{self, Handle, Owner, When};

use super::host::alone;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// The time over which deadlines are spread, in nanoseconds.
const SPREAD_NS: u64 = 2_000_000_000;
pub(crate) const SPREAD: Duration = Duration::from_nanos(SPREAD_NS);
/// A job that runs longer than the monitor's limit loses its worker, so it yields after this many.
const GIVE_WAY_EVERY: usize = 4096;
/// The first round touches the memory; the last one counts.
pub(crate) const ROUNDS: usize = 3;
/// The time allowed for the start of one callback.
const STARTING: Duration = Duration::from_micros(2);
/// Latenesses are counted in steps of ten microseconds, up to a second.
const PLACES: usize = 100_000;
const PLACE_US: u128 = 10;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let pending = params.count("pending")?.max(1);
    let workers = super::definition::workers(params)?;
    let mut metrics = alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        let start = weald::now() + HOUR;
        let dues: Vec<Instant> = (0..pending)
            .map(|index| deadline(start, index, pending))
            .collect();
        let (mut wheel, mut public) = ((0.0, 0.0), (0.0, 0.0));
        let mut handles = Vec::with_capacity(pending);
        for _ in 0..ROUNDS {
            wheel = started_and_cancelled(pending, &mut handles, |index| {
                let captured = [index; 2];
                let when = When::At(dues[index]);
                callback::once(Owner::runtime(), when, move || _ = black_box(captured))
            })
            .await;
            public = started_and_cancelled(pending, &mut handles, |index| {
                let captured = [index; 2];
                callback::after(HOUR, move || _ = black_box(captured))
            })
            .await;
        }
        Ok(vec![
            Metric::new("ns_per_insert", wheel.0),
            Metric::new("ns_per_cancel", wheel.1),
            Metric::new("ns_per_after", public.0),
            Metric::new("ns_per_stop", public.1),
        ])
    })?;
    metrics.insert(1, Metric::new("ns_per_fire", fired(pending)));
    let late = alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        Ok(lateness_p99_us(pending, workers).await)
    })?;
    metrics.push(Metric::new("lateness_p99_us", late));
    Ok(metrics)
}

/// The deadline at this position in the order of time.
pub(crate) fn deadline(start: Instant, place: usize, pending: usize) -> Instant {
    start + Duration::from_nanos(place as u64 * SPREAD_NS / pending as u64)
}

/// The position of the callback with this index, where the order is not that of time.
fn scattered(index: usize, pending: usize) -> usize {
    index.wrapping_mul(7_919) % pending
}

fn per(clock: Instant, count: usize) -> f64 {
    clock.elapsed().as_nanos() as f64 / count as f64
}

/// The time to start each of this many callbacks, and to cancel each.
async fn started_and_cancelled(
    pending: usize,
    handles: &mut Vec<Handle>,
    start: impl Fn(usize) -> Handle,
) -> (f64, f64) {
    let clock = Instant::now();
    for index in 0..pending {
        handles.push(start(index));
        give_way(index).await;
    }
    let started = per(clock, pending);
    let clock = Instant::now();
    for (index, handle) in handles.drain(..).enumerate() {
        handle.cancel();
        drop(handle);
        give_way(index).await;
    }
    (started, per(clock, pending))
}

async fn give_way(index: usize) {
    if index % GIVE_WAY_EVERY == GIVE_WAY_EVERY - 1 {
        weald::yield_now().await;
    }
}

/// The time per callback that fires and runs.
fn fired(pending: usize) -> f64 {
    Runtime::test(1).block_on(async {
        let mut nanoseconds = 0.0;
        for _ in 0..ROUNDS {
            let start = weald::now();
            for index in 0..pending {
                let captured = [index; 2];
                let due = When::At(deadline(start, index, pending));
                callback::once(Owner::runtime(), due, move || _ = black_box(captured)).detach();
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
    // The first deadline should come after all have been started; the rivals do the same.
    let lead = Duration::from_millis(500) + STARTING * u32::try_from(pending).unwrap_or(u32::MAX);
    let start = weald::now() + lead;
    for index in 0..pending {
        let due = deadline(start, scattered(index, pending), pending);
        let run = move || {
            let late = weald::now().saturating_duration_since(due).as_micros() / PLACE_US;
            counts[usize::try_from(late).map_or(PLACES - 1, |late| late.min(PLACES - 1))]
                .fetch_add(1, Ordering::Relaxed);
        };
        callback::at(due, run).detach();
        give_way(index).await;
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
