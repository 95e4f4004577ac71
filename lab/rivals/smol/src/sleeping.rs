//! `callbacks` and `timers`: tasks that sleep, which is smol's means for code that runs later.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{
    Captured, HOUR, Lateness99, SETTLE, Sleeper, Sleeping, per, print_line, print_metrics,
    rss_bytes,
};
use smol::{Task, Timer};

use crate::EXECUTOR;

pub(crate) async fn run(sleeping: Sleeping, workers: usize) {
    match sleeping {
        Sleeping::Callbacks { n, kind } => callbacks(n, kind).await,
        Sleeping::Timers { pending } => timers(pending, workers).await,
    }
}

async fn callbacks(n: usize, kind: Sleeper) {
    let mut points = Vec::new();
    let mut started = 0;
    for size in common::programs::slope::sizes(n) {
        for index in started..size {
            match kind {
                Sleeper::Once => EXECUTOR.spawn(once(index)).detach(),
                Sleeper::Loop => EXECUTOR.spawn(rounds(index)).detach(),
            }
        }
        started = size;
        Timer::after(SETTLE).await;
        points.push((size as f64, rss_bytes() as f64));
    }
    print_line(&points);
}

async fn once(index: usize) {
    let captured = Captured::new(index);
    Timer::after(HOUR).await;
    captured.run();
}

async fn rounds(index: usize) {
    loop {
        std::hint::black_box(index);
        Timer::after(HOUR).await;
    }
}

async fn timers(pending: usize, workers: usize) {
    let start = Instant::now() + HOUR;
    let spread = move |index: usize| start + Duration::from_micros(index as u64 % 2_000_000);
    // The first round touches the memory; the last one counts.
    let (mut insert, mut after, mut stop) = (0.0, 0.0, 0.0);
    for _ in 0..3 {
        (insert, _) = started_and_stopped(pending, move |index| Timer::at(spread(index))).await;
        (after, stop) = started_and_stopped(pending, |_| Timer::after(HOUR)).await;
    }
    print_metrics(&[
        ("ns_per_insert", insert),
        ("ns_per_after", after),
        ("ns_per_stop", stop),
        ("lateness_p99_us", lateness(pending, workers).await),
    ]);
}

/// The time to start each of this many until its timer is registered, and to cancel each until it is gone.
async fn started_and_stopped(
    pending: usize,
    timer: impl Fn(usize) -> Timer + Copy + Send + 'static,
) -> (f64, f64) {
    let registered = Arc::new(AtomicUsize::new(0));
    let mut tasks: Vec<Task<()>> = Vec::with_capacity(pending);
    let clock = Instant::now();
    for index in 0..pending {
        let registered = registered.clone();
        tasks.push(EXECUTOR.spawn(async move {
            let captured = Captured::new(index);
            let mut timer = timer(index);
            std::future::poll_fn(|cx| {
                let polled = std::pin::Pin::new(&mut timer).poll(cx);
                registered.fetch_add(1, Ordering::Release);
                polled
            })
            .await;
            captured.run();
        }));
    }
    while registered.load(Ordering::Acquire) < pending {
        smol::future::yield_now().await;
    }
    let started = per(clock.elapsed(), pending as f64);
    let clock = Instant::now();
    drop(tasks);
    // A dropped task holds its clone until its future is gone.
    while Arc::strong_count(&registered) > 1 {
        smol::future::yield_now().await;
    }
    (started, per(clock.elapsed(), pending as f64))
}

async fn lateness(pending: usize, workers: usize) -> f64 {
    let late = Lateness99::leak(pending);
    for index in 0..pending {
        let due = late.deadline(index);
        let task = EXECUTOR.spawn(async move {
            Timer::at(due).await;
            late.count(due);
        });
        task.detach();
    }
    if workers > 1 {
        let compute = EXECUTOR.spawn(async {
            loop {
                std::hint::spin_loop();
            }
        });
        compute.detach();
    }
    while !late.is_complete() {
        Timer::after(Duration::from_millis(50)).await;
    }
    late.microseconds()
}
