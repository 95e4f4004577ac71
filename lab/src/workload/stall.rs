//! `stall`: does one unit stop the others? A ticker runs beside pinging pairs and offenders.
//!
//! The ticker sleeps 5 ms again and again and records how late each tick is. The pingers exchange messages
//! in pairs without end. An offender sleeps 20 ms in the runtime and then holds its OS thread for 300 ms,
//! either blocked or computing, without announcing it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weald::process::{self, Inbox, Pid, Process};

use super::host::{alone, crashed, not_spawned};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

const TICK: Duration = Duration::from_millis(5);
const REST: Duration = Duration::from_millis(20);
const OFFENCE: Duration = Duration::from_millis(300);

/// What an offender does with its thread.
#[derive(Clone, Copy)]
enum Offender {
    Blocks,
    Computes,
}

/// One run's size.
#[derive(Clone, Copy)]
struct StallSize {
    pairs: usize,
    offender: Option<Offender>,
    offenders: usize,
    length: Duration,
}

/// A message between the two processes of a pair.
enum PairMessage {
    /// The partner to answer; the process that gets this sends first.
    Partner(Pid<PairMessage>),
    /// A value to send back.
    Value(u32),
    /// The partner has ended.
    Stop,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let offender = match params.text("offender")? {
        "none" => None,
        "blocks" => Some(Offender::Blocks),
        "computes" => Some(Offender::Computes),
        other => {
            let sentence = format!("offender={other} is neither none, blocks nor computes.");
            return Err(Error::Usage(sentence));
        }
    };
    let size = StallSize {
        pairs: params.number("pingers")? / 2,
        offender,
        offenders: params.number("offenders")?,
        length: Duration::from_secs(params.count("seconds")? as u64),
    };
    alone(params, 2 * size.pairs, move |inbox: Inbox<()>| async move {
        drop(inbox);
        measure(size).await
    })
}

async fn measure(size: StallSize) -> Result<Vec<Metric>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let pingers = spawn_pairs(size.pairs, &stop)?;
    let offenders: Vec<_> = size
        .offender
        .into_iter()
        .flat_map(|kind| (0..size.offenders).map(move |_| kind))
        .map(|kind| weald::spawn(offend(kind, Arc::clone(&stop))))
        .collect();
    let ticker = weald::spawn(tick(size.length));

    let lateness = ticker.await.map_err(|error| job_failed(&error))?;
    stop.store(true, Ordering::Relaxed);
    let mut messages = 0;
    for pinger in pingers {
        messages += pinger.await.map_err(|reason| crashed(&reason))?;
    }
    for offender in offenders {
        offender.await.map_err(|error| job_failed(&error))?;
    }
    metrics(lateness, messages, size.length)
}

fn job_failed(error: &weald::JoinError) -> Error {
    Error::workload(format!("A job of the workload failed: {error}."))
}

fn metrics(
    mut lateness: Vec<Duration>,
    messages: u64,
    length: Duration,
) -> Result<Vec<Metric>, Error> {
    lateness.sort_unstable();
    let (Some(p999), Some(worst)) = (quantile(&lateness, 0.999), lateness.last()) else {
        return Err(Error::workload("The ticker never ticked."));
    };
    let mut metrics = vec![
        Metric::new("ticks", lateness.len() as f64),
        Metric::new("lateness_p999_ms", p999.as_secs_f64() * 1e3),
        Metric::new("lateness_worst_ms", worst.as_secs_f64() * 1e3),
    ];
    if messages > 0 {
        metrics.push(Metric::new(
            "ns_per_hop",
            length.as_nanos() as f64 / messages as f64,
        ));
    }
    Ok(metrics)
}

/// The smallest of the sorted values that this share of them does not exceed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a length"
)]
pub(super) fn quantile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Ticks for `length` and returns how late each tick was.
async fn tick(length: Duration) -> Vec<Duration> {
    let mut lateness = Vec::new();
    let end = Instant::now() + length;
    loop {
        let due = Instant::now() + TICK;
        weald::sleep(TICK).await;
        let now = Instant::now();
        lateness.push(now.saturating_duration_since(due));
        if now >= end {
            return lateness;
        }
    }
}

async fn offend(kind: Offender, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        weald::sleep(REST).await;
        match kind {
            #[expect(
                clippy::disallowed_methods,
                reason = "it measures code that blocks a worker"
            )]
            Offender::Blocks => std::thread::sleep(OFFENCE),
            Offender::Computes => compute(OFFENCE),
        }
    }
}

/// Computes for this long without waiting.
pub(super) fn compute(length: Duration) {
    let begin = Instant::now();
    let mut value = 1_u64;
    while begin.elapsed() < length {
        for _ in 0..1000 {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005) + 1);
        }
    }
}

/// Starts the pairs; each process returns how many messages it has received.
fn spawn_pairs(
    pairs: usize,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Process<PairMessage, u64>>, Error> {
    let mut pingers = Vec::with_capacity(2 * pairs);
    for _ in 0..pairs {
        let (stop_here, stop_there) = (Arc::clone(stop), Arc::clone(stop));
        let here = process::spawn(move |inbox| ping(inbox, stop_here));
        let here = here.map_err(|error| not_spawned(&error))?;
        let there = process::spawn(move |inbox| ping(inbox, stop_there));
        let there = there.map_err(|error| not_spawned(&error))?;
        there.pid().send(PairMessage::Partner(here.pid().clone()));
        here.pid().send(PairMessage::Partner(there.pid().clone()));
        here.pid().send(PairMessage::Value(0));
        pingers.extend([here, there]);
    }
    Ok(pingers)
}

/// Sends every value back until the end; returns the number of values received.
async fn ping(mut inbox: Inbox<PairMessage>, stop: Arc<AtomicBool>) -> u64 {
    let PairMessage::Partner(partner) = inbox.receive().await else {
        unreachable!("the partner is named first")
    };
    let mut received = 0;
    while let PairMessage::Value(value) = inbox.receive().await {
        received += 1;
        if stop.load(Ordering::Relaxed) {
            partner.send(PairMessage::Stop);
            break;
        }
        partner.send(PairMessage::Value(value.wrapping_add(1)));
    }
    received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_and_many() {
        let many: Vec<_> = (1..=1000).map(Duration::from_millis).collect();
        assert_eq!(quantile(&many, 0.999), Some(Duration::from_millis(999)));
        assert_eq!(quantile(&many, 0.5), Some(Duration::from_millis(500)));
        let few = [Duration::from_millis(1), Duration::from_millis(7)];
        assert_eq!(quantile(&few, 0.999), Some(few[1]));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
