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
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use weald::Runtime;
use weald::process::Inbox;
use weald::process::callback::{self, Handle, Owner, When};

use super::host::alone;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::lateness::{Lateness99, SPREAD_NS};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const SPREAD: Duration = Duration::from_nanos(SPREAD_NS);
/// A job that runs longer than the monitor's limit loses its worker, so it yields after this many.
const GIVE_WAY_EVERY: usize = 4096;
/// The first round touches the memory; the last one counts.
pub(crate) const ROUNDS: usize = 3;
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
    let late = Lateness99::leak(pending);
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    for index in 0..pending {
        let due = late.deadline(index);
        callback::at(due, move || late.count(due)).detach();
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
    while !late.is_complete() {
        weald::sleep(Duration::from_millis(50)).await;
    }
    stop.store(true, Ordering::Relaxed);
    late.microseconds()
}
