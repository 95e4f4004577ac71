//! Order of callbacks: in turn among those that are ready, by deadline among those that wait, never early,
//! never adrift, on a flat stack.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use tools::{runtime, watch};
use weald_kernel::{Runtime, now, sleep};
use weald_process::callback;

/// A place where callbacks leave numbers.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u64>>>);

impl Log {
    fn note(&self, number: u64) {
        self.0.lock().unwrap().push(number);
    }

    fn taken(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn ready_callbacks_run_in_the_order_in_which_they_became_ready() {
    let _watch = watch();
    let (sender, receiver) = mpsc::channel();
    let runtime = runtime(1);
    let job = runtime.spawn(async move {
        for n in 0..10_000_u64 {
            let sender = sender.clone();
            callback::spawn(move || sender.send(n).unwrap()).detach();
        }
        // The owner of those that have not run yet must not end.
        sleep(Duration::from_secs(3600)).await;
    });
    let order: Vec<u64> = receiver.iter().take(10_000).collect();
    assert!(order.is_sorted());
    job.cancel();
}

#[test]
fn callbacks_of_one_deadline_run_in_the_order_of_their_start_and_others_by_deadline() {
    let _watch = watch();
    let log = Log::default();
    for seed in 0..10 {
        Runtime::test(seed).block_on(async {
            let start = now();
            for n in 0..300_u64 {
                let log = log.clone();
                let due = start + MS * (1 + u32::try_from(n % 3).unwrap());
                callback::at(due, move || log.note(n % 3 * 1_000 + n)).detach();
            }
            sleep(10 * MS).await;
        });
        let order = log.taken();
        assert_eq!(order.len(), 300);
        assert!(order.is_sorted(), "{order:?}");
    }
}

#[test]
fn no_callback_runs_early_and_what_repeats_does_not_drift() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let start = now();
        let log = Log::default();
        let kept = log.clone();
        // Not whole ticks, so that each time is rounded up.
        let period = Duration::from_micros(2_500);
        let every = callback::every(period, move || {
            kept.note(u64::try_from((now() - start).as_micros()).unwrap());
        });
        sleep(2_501 * MS).await;
        assert!(every.cancel());
        let times = log.taken();
        assert_eq!(times.len(), 1_000);
        for (time, n) in times.into_iter().zip(1_u64..) {
            let due = n * 2_500;
            assert!(due <= time && time < due + 1_000, "round {n} at {time} µs");
        }
    });
}

#[test]
fn times_that_were_missed_altogether_are_skipped() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let start = now();
        let log = Log::default();
        let kept = log.clone();
        let mut rounds = 0;
        let every = callback::every(10 * MS, move || {
            kept.note(u64::try_from((now() - start).as_millis()).unwrap());
            rounds += 1;
            if rounds == 1 {
                // Three and a half periods, in a wait of the callback's own.
                weald_kernel::block_on(sleep(35 * MS));
            }
        });
        sleep(75 * MS).await;
        every.cancel();
        assert_eq!(log.taken(), [10, 50, 60, 70]);
    });
}

/// Starts the next one until it has counted to `left`.
fn nested(left: u64, count: Arc<AtomicU64>, done: mpsc::Sender<()>) {
    count.fetch_add(1, Ordering::Relaxed);
    if left == 0 {
        return done.send(()).unwrap();
    }
    callback::spawn(move || nested(left - 1, count, done)).detach();
}

#[test]
fn ten_million_nested_dispatches_use_a_flat_stack() {
    let _watch = watch();
    const COUNT: u64 = 10_000_000;
    let runtime = runtime(1);
    let count = Arc::new(AtomicU64::new(0));
    let (sender, done) = mpsc::channel();
    let kept = count.clone();
    runtime.block_on(async move {
        callback::spawn(move || nested(COUNT - 1, kept, sender)).detach();
    });
    done.recv().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), COUNT);
}
