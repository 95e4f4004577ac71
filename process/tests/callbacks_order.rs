//! The order of callbacks: in turn among the ready ones, by deadline among the waiting ones, never early,
//! without drift, on a flat stack.

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
use weald_process::callback::{self, Then};

/// A list to which callbacks add numbers.
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
    // Not on workers: a callback whose thread stands still there, as on a loaded machine, is overtaken by the next.
    let log = Log::default();
    for seed in 0..10 {
        Runtime::test(seed).block_on(async {
            for n in 0..2_000_u64 {
                let log = log.clone();
                callback::spawn(move || log.note(n)).detach();
            }
            sleep(MS).await;
        });
        let order = log.taken();
        assert_eq!(order.len(), 2_000);
        assert!(order.is_sorted());
    }
}

#[test]
fn callbacks_run_by_deadline_and_those_of_one_deadline_in_the_order_of_their_start() {
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
fn no_callback_runs_early_and_repeated_times_do_not_drift() {
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

const COUNT: u64 = 10_000_000;
const TENTH: u64 = COUNT / 10;

/// A callback that starts the next one, until `left` more have run; sends a message after each tenth of all.
fn nested(left: u64, count: Arc<AtomicU64>, sender: mpsc::Sender<()>) {
    count.fetch_add(1, Ordering::Relaxed);
    if left.is_multiple_of(TENTH) {
        sender.send(()).unwrap();
    }
    if left > 0 {
        callback::spawn(move || nested(left - 1, count, sender)).detach();
    }
}

#[test]
fn ten_million_nested_dispatches_use_a_flat_stack() {
    let runtime = runtime(1);
    let count = Arc::new(AtomicU64::new(0));
    let (sender, tenths) = mpsc::channel();
    let kept = count.clone();
    runtime.block_on(async move {
        callback::spawn(move || nested(COUNT - 1, kept, sender)).detach();
    });
    // Each tenth has a guard of its own, because a busy machine takes long for all of them.
    for _ in 0..10 {
        let _watch = watch();
        tenths.recv().unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), COUNT);
}

#[test]
fn many_sleeps_take_their_time_and_no_more_and_leave_nothing_behind() {
    let _watch = watch();
    const SLEEPS: u64 = 10_000;
    Runtime::test(1).block_on(async {
        let (start, held) = (now(), Arc::new(()));
        let (sender, done) = mpsc::channel();
        let log = Log::default();
        for sleeper in 0..10 {
            let (kept, sender, log) = (held.clone(), sender.clone(), log.clone());
            let mut sleeps = Some(callback::for_each(0..SLEEPS, move |n| {
                let _kept = &kept;
                if n == SLEEPS - 1 {
                    log.note(sleeper);
                }
                callback::pause(3 * MS)
            }));
            let whole = callback::for_each(0..2, move |_| match sleeps.take() {
                Some(sleeps) => Then::from(sleeps),
                None => {
                    sender.send(now()).unwrap();
                    Then::from(())
                }
            });
            whole.start().detach();
        }
        sleep(MS * 3 * u32::try_from(SLEEPS).unwrap() + MS).await;
        let ends: Vec<_> = done.try_iter().collect();
        assert_eq!(ends.len(), 10);
        for end in ends {
            assert_eq!(end - start, MS * 3 * u32::try_from(SLEEPS).unwrap());
        }
        assert_eq!(Arc::strong_count(&held), 1);
        // Sleepers of the same deadline still run in the order of their start.
        assert!(log.taken().is_sorted());
    });
}

#[test]
fn any_time_is_accepted() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let log = Log::default();
        let start = |after: Duration, number| {
            let log = log.clone();
            callback::after(after, move || log.note(number))
        };
        let far = [
            start(Duration::MAX, 1),
            start(Duration::from_secs(u64::MAX), 2),
            callback::every(Duration::MAX, || unreachable!("in a hundred years")),
        ];
        start(Duration::ZERO, 3).detach();
        start(Duration::from_nanos(1), 4).detach();
        let past = now();
        let kept = log.clone();
        sleep(10 * MS).await;
        assert_eq!(log.taken(), [3, 4]);
        callback::at(past, move || kept.note(5)).detach();
        // The latest instant that the clock can represent.
        let farthest = (0..63).fold(now(), |far, power| {
            far.checked_add(Duration::from_secs(1 << power))
                .unwrap_or(far)
        });
        let kept = log.clone();
        let farthest = callback::at(farthest, move || kept.note(6));
        let forever = callback::repeat(|| callback::pause(Duration::MAX)).start();
        sleep(2 * MS).await;
        assert_eq!(log.taken(), [5]);
        for handle in far.into_iter().chain([farthest, forever]) {
            assert!(handle.cancel());
        }
    });
}
