//! `callbacks` and `timers`: tasks that sleep, which is a runtime's means for code that runs later.

use std::hint::{black_box, spin_loop};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::programs::lateness::Lateness99;
use common::programs::slope::sizes;
use common::{Call, Captured, HOUR, per, print_line, print_metrics, rss_bytes};

use crate::system::Tasks;

/// How long everything that has just been started gets to begin its sleep.
const SETTLE: Duration = Duration::from_millis(20);

/// Runs the workload if it is one of these.
pub(crate) async fn run<S: Tasks>(call: &Call) {
    match call.workload.as_str() {
        "callbacks" => {
            let is_once = call.word("kind", &[("once", true), ("loop", false)]);
            callbacks::<S>(call.count("n"), is_once).await;
        }
        "timers" => timers::<S>(call.count("pending"), call.workers).await,
        _ => {}
    }
}

async fn callbacks<S: Tasks>(n: usize, is_once: bool) {
    let mut points = Vec::new();
    let mut started = 0;
    for size in sizes(n) {
        for index in started..size {
            if is_once {
                S::start(once::<S>(index));
            } else {
                S::start(rounds::<S>(index));
            }
        }
        started = size;
        S::pause(SETTLE).await;
        points.push((size as f64, rss_bytes() as f64));
    }
    print_line(&points);
}

async fn once<S: Tasks>(index: usize) {
    let captured = Captured::new(index);
    S::sleep(HOUR).await;
    captured.run();
}

async fn rounds<S: Tasks>(index: usize) {
    loop {
        black_box(index);
        S::sleep(HOUR).await;
    }
}

async fn timers<S: Tasks>(pending: usize, workers: usize) {
    let start = Instant::now() + HOUR;
    let spread = move |index: usize| start + Duration::from_micros(index as u64 % 2_000_000);
    // The first round touches the memory; the last one counts.
    let (mut insert, mut after, mut stop) = (0.0, 0.0, 0.0);
    for _ in 0..3 {
        let sleep = move |index| S::sleep_until(spread(index));
        (insert, _) = started_and_stopped::<S>(pending, sleep).await;
        (after, stop) = started_and_stopped::<S>(pending, |_| S::sleep(HOUR)).await;
    }
    print_metrics(&[
        ("ns_per_insert", insert),
        ("ns_per_after", after),
        ("ns_per_stop", stop),
        ("lateness_p99_us", lateness::<S>(pending, workers).await),
    ]);
}

/// The time to start each of this many until its timer is registered, and to cancel each until it is gone.
async fn started_and_stopped<S: Tasks>(
    pending: usize,
    sleep: impl Fn(usize) -> S::Sleep + Copy + Send + 'static,
) -> (f64, f64) {
    let registered = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::with_capacity(pending);
    let clock = Instant::now();
    for index in 0..pending {
        let registered = Arc::clone(&registered);
        tasks.push(S::task(async move {
            let captured = Captured::new(index);
            let mut sleep = pin!(sleep(index));
            std::future::poll_fn(|cx| {
                let polled = sleep.as_mut().poll(cx);
                registered.fetch_add(1, Ordering::Release);
                polled
            })
            .await;
            captured.run();
        }));
    }
    while registered.load(Ordering::Acquire) < pending {
        S::give_way().await;
    }
    let started = per(clock.elapsed(), pending as f64);
    let clock = Instant::now();
    tasks.into_iter().for_each(S::cancel);
    // A cancelled task holds its clone until its future is gone.
    while Arc::strong_count(&registered) > 1 {
        S::give_way().await;
    }
    (started, per(clock.elapsed(), pending as f64))
}

async fn lateness<S: Tasks>(pending: usize, workers: usize) -> f64 {
    let late = Lateness99::leak(pending);
    for index in 0..pending {
        let due = late.deadline(index);
        S::start(async move {
            S::sleep_until(due).await;
            late.count(due);
        });
    }
    if workers > 1 {
        S::start(async {
            loop {
                spin_loop();
            }
        });
    }
    while !late.is_complete() {
        S::pause(Duration::from_millis(50)).await;
    }
    late.microseconds()
}
