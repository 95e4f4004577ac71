//! `callbacks` and `timers`: tasks that sleep, which is tokio's means for code that runs later.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{
    Captured, HOUR, Lateness99, SETTLE, Sleeper, Sleeping, per, print_line, print_metrics,
    rss_bytes,
};
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep, sleep_until};

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
                Sleeper::Once => drop(tokio::spawn(once(index))),
                Sleeper::Loop => drop(tokio::spawn(rounds(index))),
            }
        }
        started = size;
        sleep(SETTLE).await;
        points.push((size as f64, rss_bytes() as f64));
    }
    print_line(&points);
}

async fn once(index: usize) {
    let captured = Captured::new(index);
    sleep(HOUR).await;
    captured.run();
}

async fn rounds(index: usize) {
    loop {
        std::hint::black_box(index);
        sleep(HOUR).await;
    }
}

/// Counts the registered and the dropped.
#[derive(Default)]
struct Counts {
    registered: AtomicUsize,
    dropped: AtomicUsize,
}

/// Counts when its task is gone.
struct Counted(Arc<Counts>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Release);
    }
}

async fn timers(pending: usize, workers: usize) {
    let start = tokio::time::Instant::now() + HOUR;
    let spread = move |index: usize| start + Duration::from_micros(index as u64 % 2_000_000);
    // The first round touches the memory; the last one counts.
    let (mut insert, mut after, mut stop) = (0.0, 0.0, 0.0);
    for _ in 0..3 {
        (insert, _) = started_and_stopped(pending, move |index| sleep_until(spread(index))).await;
        (after, stop) = started_and_stopped(pending, |_| sleep(HOUR)).await;
    }
    print_metrics(&[
        ("ns_per_insert", insert),
        ("ns_per_after", after),
        ("ns_per_stop", stop),
        ("lateness_p99_us", lateness(pending, workers).await),
    ]);
}

/// The time to start each of this many until its timer is registered, and to abort each until it is gone.
async fn started_and_stopped(
    pending: usize,
    sleep: impl Fn(usize) -> Sleep + Copy + Send + 'static,
) -> (f64, f64) {
    let counts = Arc::new(Counts::default());
    let mut handles: Vec<JoinHandle<()>> = Vec::with_capacity(pending);
    let clock = Instant::now();
    for index in 0..pending {
        let counted = Counted(counts.clone());
        handles.push(tokio::spawn(async move {
            let captured = Captured::new(index);
            let mut sleep = std::pin::pin!(sleep(index));
            std::future::poll_fn(|cx| {
                let polled = sleep.as_mut().poll(cx);
                counted.0.registered.fetch_add(1, Ordering::Release);
                polled
            })
            .await;
            captured.run();
        }));
    }
    until(&counts.registered, pending).await;
    let started = per(clock.elapsed(), pending as f64);
    let clock = Instant::now();
    for handle in handles {
        handle.abort();
    }
    until(&counts.dropped, pending).await;
    (started, per(clock.elapsed(), pending as f64))
}

async fn until(count: &AtomicUsize, wanted: usize) {
    while count.load(Ordering::Acquire) < wanted {
        tokio::task::yield_now().await;
    }
}

async fn lateness(pending: usize, workers: usize) -> f64 {
    let late = Lateness99::leak(pending);
    for index in 0..pending {
        let due = late.deadline(index);
        tokio::spawn(async move {
            sleep_until(due.into()).await;
            late.count(due);
        });
    }
    if workers > 1 {
        tokio::spawn(async {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    while !late.is_complete() {
        sleep(Duration::from_millis(50)).await;
    }
    late.microseconds()
}
