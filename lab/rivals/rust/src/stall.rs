//! `stall` and `handoff`: what happens to the others when one unit does not yield.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::programs::quantile::milliseconds;
use common::programs::ticks::{CALM, TICK, TickLog};
use common::{Call, Offender, REST, Stall, compute_for, fail, per, print_metrics};

use crate::system::{Arrival, Mailbox, Outbox, Tasks};

const HANDOFF_WORK: Duration = Duration::from_millis(50);

/// The offences that need a runtime's own means.
pub(crate) trait Offences: Tasks {
    /// Prepares the offender, or ends the program with a sentence if there is no such program.
    fn prepare(offender: Offender);
    /// Offends once, for `Waker`, `Destructor`, `Sends` and `File`.
    fn offend(offender: Offender) -> impl Future<Output = ()> + Send;
    /// What each tick does besides, within this time, if the offender is `File`.
    fn use_file(left: Duration) -> impl Future<Output = ()> + Send;
    /// Removes what was prepared.
    fn clean_up();
}

/// The number of messages that one pair has exchanged; a cache line of its own, so that pairs do not share one.
#[repr(align(64))]
#[derive(Default)]
struct Exchanged(AtomicU64);

type Pairs = &'static [Exchanged];

/// Runs the workload if it is one of these.
pub(crate) async fn run<S: Offences>(call: &Call) {
    match call.workload.as_str() {
        "stall" => stall::<S>(Stall::of(call)).await,
        "sleep-loop" => stall::<S>(Stall::of_sleep_loop(call)).await,
        "handoff" => handoff::<S>(call.number("rounds", 1)).await,
        _ => {}
    }
}

async fn stall<S: Offences>(stall: Stall) {
    S::prepare(stall.offender);
    let pairs = (0..stall.pingers / 2).map(|_| Exchanged::default());
    let pairs: Pairs = pairs.collect::<Vec<_>>().leak();
    pairs.iter().for_each(start_pair::<S>);
    let offend = || {
        for _ in 0..stall.offenders {
            S::start(offend::<S>(stall));
        }
    };
    let (tell, told) = S::once();
    let ticker = async move {
        let ticks = tick::<S>(stall.length(), pairs, stall.offender).await;
        assert!(S::tell(tell, ticks), "the main unit waits for the ticks");
    };
    let begin = if stall.is_burst {
        S::start(ticker);
        S::pause(CALM).await;
        stall.end_in_time();
        let begin = Instant::now();
        offend();
        begin
    } else {
        let begin = Instant::now();
        offend();
        S::start(ticker);
        begin
    };
    let (ticks, exchanged, running): (TickLog, u64, Duration) =
        S::told(told).await.expect("the ticker does not panic");
    let figures = ticks.figures(begin, stall.is_burst);
    let mut metrics = figures.unwrap_or_else(|| fail("The ticker never ticked."));
    if exchanged > 0 {
        metrics.push(("ns_per_hop", per(running, exchanged as f64)));
    }
    S::clean_up();
    print_metrics(&metrics);
}

/// Ticks for `length`; a tick that a file holds up ends with the run.
async fn tick<S: Offences>(
    length: Duration,
    pairs: Pairs,
    offender: Offender,
) -> (TickLog, u64, Duration) {
    let exchanged = |pair: &Exchanged| pair.0.load(Ordering::Relaxed);
    let total = || pairs.iter().map(exchanged).sum::<u64>();
    let (clock, before) = (Instant::now(), total());
    let mut ticks = TickLog::default();
    while clock.elapsed() < length {
        let due = Instant::now() + TICK;
        S::pause(TICK).await;
        if offender == Offender::File {
            S::use_file(length.saturating_sub(clock.elapsed())).await;
        }
        ticks.add(due);
    }
    (ticks, total() - before, clock.elapsed())
}

fn start_pair<S: Tasks>(exchanged: &'static Exchanged) {
    let (ping, mut ping_mailbox) = S::mailbox::<u64>();
    let (pong, mut pong_mailbox) = S::mailbox::<u64>();
    let start = ping.clone();
    S::start(async move {
        while let Some(number) = pong_mailbox.receive().await.message() {
            assert!(ping.send(number), "ping lives as long as pong");
        }
    });
    S::start(async move {
        while let Some(number) = ping_mailbox.receive().await.message() {
            exchanged.0.store(number, Ordering::Relaxed);
            assert!(pong.send(number + 2), "pong lives as long as ping");
        }
    });
    assert!(start.send(0), "ping waits for the start");
}

async fn offend<S: Offences>(stall: Stall) {
    if stall.is_burst {
        return stall.offender.burst();
    }
    loop {
        match stall.offender {
            Offender::None => return,
            Offender::JustBelow => {
                Offender::JustBelow.offend();
                S::give_way().await;
            }
            Offender::Waker | Offender::Destructor | Offender::Sends | Offender::File => {
                S::offend(stall.offender).await;
            }
            other => {
                S::pause(REST).await;
                other.offend();
            }
        }
    }
}

/// A unit wakes another one and then computes.
async fn handoff<S: Tasks>(rounds: u64) {
    let (woken, mut woken_mailbox) = S::mailbox::<Instant>();
    let (waker, mut waker_mailbox) = S::mailbox::<Duration>();
    S::start(async move {
        while let Some(sent) = woken_mailbox.receive().await.message() {
            assert!(waker.send(sent.elapsed()), "the waking process waits");
        }
    });
    let (tell, told) = S::once();
    S::start(async move {
        let mut lateness = Vec::new();
        for _ in 0..rounds {
            // Waits for a timer first, so that the waking process starts each round from the runtime.
            S::pause(TICK).await;
            assert!(woken.send(Instant::now()), "the woken process waits");
            compute_for(HANDOFF_WORK);
            let late = waker_mailbox.receive().await.message();
            lateness.push(late.expect("the woken process answers"));
        }
        assert!(S::tell(tell, lateness), "the main unit waits");
    });
    let lateness = S::told(told).await;
    let mut lateness: Vec<Duration> = lateness.expect("the waking process does not panic");
    lateness.sort_unstable();
    print_metrics(&[
        ("lateness_worst_ms", milliseconds(&lateness, 1.0)),
        ("lateness_p50_ms", milliseconds(&lateness, 0.5)),
    ]);
}
