//! `stall` and `handoff`: what happens to the others when one unit does not yield.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_channel::{Sender, unbounded};
use common::{
    CALM, Lateness, Offender, REST, Stall, TICK, TickLog, bad_usage, compute_for, per,
    print_metrics,
};
use smol::Timer;
use smol::future::yield_now;

use crate::EXECUTOR;

const HANDOFF_WORK: Duration = Duration::from_millis(50);

/// The number of messages that one pair has exchanged; a cache line of its own, so that pairs do not share
/// one.
#[repr(align(64))]
#[derive(Default)]
struct Exchanged(AtomicU64);

pub(crate) async fn run(stall: Stall) {
    let pairs: &'static [Exchanged] = (0..stall.pingers / 2)
        .map(|_| Exchanged::default())
        .collect::<Vec<_>>()
        .leak();
    for exchanged in pairs {
        start_pair(exchanged);
    }
    let offend = || {
        for _ in 0..stall.offenders {
            EXECUTOR.spawn(offend(stall)).detach();
        }
    };
    let (ticker, begin) = if stall.is_burst {
        let ticker = EXECUTOR.spawn(tick(stall.length(), pairs));
        Timer::after(CALM).await;
        stall.end_in_time();
        (ticker, Instant::now())
    } else {
        let begin = Instant::now();
        offend();
        (EXECUTOR.spawn(tick(stall.length(), pairs)), begin)
    };
    if stall.is_burst {
        offend();
    }
    let (ticks, exchanged, running) = ticker.await;
    let mut metrics = ticks.metrics(begin, stall.is_burst);
    if exchanged > 0 {
        metrics.push(("ns_per_hop", per(running, exchanged as f64)));
    }
    print_metrics(&metrics);
}

async fn tick(length: Duration, pairs: &'static [Exchanged]) -> (TickLog, u64, Duration) {
    let total = || {
        pairs
            .iter()
            .map(|pair| pair.0.load(Ordering::Relaxed))
            .sum::<u64>()
    };
    let (clock, before) = (Instant::now(), total());
    let mut ticks = TickLog::default();
    while clock.elapsed() < length {
        let due = Instant::now() + TICK;
        Timer::after(TICK).await;
        ticks.add(due);
    }
    (ticks, total() - before, clock.elapsed())
}

fn start_pair(exchanged: &'static Exchanged) {
    let (ping, ping_mailbox) = unbounded::<u64>();
    let (pong, pong_mailbox) = unbounded::<u64>();
    let start = ping.clone();
    EXECUTOR
        .spawn(async move {
            while let Ok(number) = pong_mailbox.recv().await {
                ping.try_send(number).expect("ping lives as long as pong");
            }
        })
        .detach();
    EXECUTOR
        .spawn(async move {
            while let Ok(number) = ping_mailbox.recv().await {
                exchanged.0.store(number, Ordering::Relaxed);
                pong.try_send(number + 2)
                    .expect("pong lives as long as ping");
            }
        })
        .detach();
    start.try_send(0).expect("ping waits for the start");
}

async fn offend(stall: Stall) {
    if stall.is_burst {
        return stall.offender.burst();
    }
    loop {
        match stall.offender {
            Offender::None => return,
            Offender::JustBelow => {
                Offender::JustBelow.offend();
                yield_now().await;
            }
            Offender::Waker | Offender::Destructor | Offender::Sends | Offender::File => {
                bad_usage("The rival smol has no program for this offender: leave it out.")
            }
            other => {
                Timer::after(REST).await;
                other.offend();
            }
        }
    }
}

pub(crate) async fn handoff(rounds: u64) {
    let (woken, woken_mailbox) = unbounded::<Instant>();
    let (waker, waker_mailbox) = unbounded::<Duration>();
    EXECUTOR
        .spawn(async move {
            while let Ok(sent) = woken_mailbox.recv().await {
                waker
                    .try_send(sent.elapsed())
                    .expect("the waking process waits for this");
            }
        })
        .detach();
    let measured = EXECUTOR.spawn(async move {
        let mut lateness = Lateness::default();
        for _ in 0..rounds {
            // Waits for a timer first, so that the waking process starts each round from the
            // runtime.
            Timer::after(TICK).await;
            wake_and_compute(&woken);
            lateness.add(
                waker_mailbox
                    .recv()
                    .await
                    .expect("the woken process answers"),
            );
        }
        lateness
    });
    let mut lateness = measured.await;
    print_metrics(&[
        ("lateness_worst_ms", lateness.milliseconds(1.0)),
        ("lateness_p50_ms", lateness.milliseconds(0.5)),
    ]);
}

fn wake_and_compute(woken: &Sender<Instant>) {
    woken
        .try_send(Instant::now())
        .expect("the woken process waits for this");
    compute_for(HANDOFF_WORK);
}
