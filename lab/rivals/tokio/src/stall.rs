//! `stall` and `handoff`: what happens to the others when one unit does not yield.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{Lateness, Offender, Stall, compute_for, per, print_metrics};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;

const TICK: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(20);
const OFFENCE: Duration = Duration::from_millis(300);
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
    for _ in 0..stall.offenders {
        tokio::spawn(offend(stall.offender));
    }
    let (mut lateness, exchanged, running) = tick(Duration::from_secs(stall.seconds), pairs).await;
    let mut metrics = vec![
        ("ticks", lateness.events() as f64),
        ("lateness_p999_ms", lateness.milliseconds(0.999)),
        ("lateness_worst_ms", lateness.milliseconds(1.0)),
    ];
    if exchanged > 0 {
        metrics.push(("ns_per_hop", per(running, exchanged as f64)));
    }
    print_metrics(&metrics);
}

async fn tick(length: Duration, pairs: &'static [Exchanged]) -> (Lateness, u64, Duration) {
    let ticker = tokio::spawn(async move {
        let total = || {
            pairs
                .iter()
                .map(|pair| pair.0.load(Ordering::Relaxed))
                .sum::<u64>()
        };
        let (clock, before) = (Instant::now(), total());
        let mut lateness = Lateness::default();
        while clock.elapsed() < length {
            let due = Instant::now() + TICK;
            sleep(TICK).await;
            lateness.add(due.elapsed());
        }
        (lateness, total() - before, clock.elapsed())
    });
    ticker.await.expect("the ticker does not panic")
}

fn start_pair(exchanged: &'static Exchanged) {
    let (ping, mut ping_mailbox) = unbounded_channel::<u64>();
    let (pong, mut pong_mailbox) = unbounded_channel::<u64>();
    let start = ping.clone();
    tokio::spawn(async move {
        while let Some(number) = pong_mailbox.recv().await {
            ping.send(number).expect("ping lives as long as pong");
        }
    });
    tokio::spawn(async move {
        while let Some(number) = ping_mailbox.recv().await {
            exchanged.0.store(number, Ordering::Relaxed);
            pong.send(number + 2).expect("pong lives as long as ping");
        }
    });
    start.send(0).expect("ping waits for the start");
}

async fn offend(offender: Offender) {
    loop {
        sleep(PAUSE).await;
        match offender {
            Offender::None => return,
            Offender::Blocks => std::thread::sleep(OFFENCE),
            Offender::Computes => compute_for(OFFENCE),
        }
    }
}

pub(crate) async fn handoff(rounds: u64) {
    let (woken, mut woken_mailbox) = unbounded_channel::<Instant>();
    let (waker, mut waker_mailbox) = unbounded_channel::<Duration>();
    tokio::spawn(async move {
        while let Some(sent) = woken_mailbox.recv().await {
            waker
                .send(sent.elapsed())
                .expect("the waking process waits for this");
        }
    });
    let measured = tokio::spawn(async move {
        let mut lateness = Lateness::default();
        for _ in 0..rounds {
            // Waits for a timer first, so that the waking process starts each round from the
            // runtime.
            sleep(TICK).await;
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
    let mut lateness = measured.await.expect("the waking process does not panic");
    print_metrics(&[
        ("lateness_worst_ms", lateness.milliseconds(1.0)),
        ("lateness_p50_ms", lateness.milliseconds(0.5)),
    ]);
}

fn wake_and_compute(woken: &UnboundedSender<Instant>) {
    woken
        .send(Instant::now())
        .expect("the woken process waits for this");
    compute_for(HANDOFF_WORK);
}
