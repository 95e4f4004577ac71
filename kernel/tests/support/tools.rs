//! Shared by the behaviour tests of the kernel and of the crates above it: drop counters, a latch, seeds,
//! and a guard against hangs.
//!
//! Only the guard waits for the clock: it names a test that hangs, and aborts the program.

#![allow(dead_code, reason = "each test file uses only some of it")]

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use weald_kernel::{Runtime, Seeds};

/// Counts how many of its tokens were dropped.
#[derive(Clone, Default)]
pub(crate) struct Drops(Arc<Counts>);

#[derive(Default)]
struct Counts {
    made: AtomicUsize,
    dropped: AtomicUsize,
}

impl Drops {
    pub(crate) fn count(&self) -> usize {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// How many tokens were ever created.
    pub(crate) fn made(&self) -> usize {
        self.0.made.load(Ordering::SeqCst)
    }

    pub(crate) fn token(&self) -> Token {
        self.0.made.fetch_add(1, Ordering::SeqCst);
        Token(self.clone())
    }
}

/// Counts its drop.
pub(crate) struct Token(Drops);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future that any thread can complete, for any number of waiters. Independent of the kernel.
#[derive(Clone, Default)]
pub(crate) struct Latch(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Latch {
    pub(crate) fn open(&self) {
        let wakers = {
            let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            inner.0 = true;
            std::mem::take(&mut inner.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How many wakers are registered.
    pub(crate) fn waiters(&self) -> usize {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .len()
    }
}

impl Future for Latch {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.0 {
            return Poll::Ready(());
        }
        if !inner.1.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.1.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Yields the OS thread until `condition` is true.
#[track_caller]
pub(crate) fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// As [`until`], inside a job.
pub(crate) async fn until_yielding(condition: impl Fn() -> bool) {
    while !condition() {
        weald_kernel::yield_now().await;
    }
}

/// Aborts the program if the test that holds this guard hangs.
pub(crate) struct Watch {
    ended: Sender<()>,
}

/// A guard for the calling test. It allows minutes, because a computing job may get a fiftieth of a loaded
/// machine.
pub(crate) fn watch() -> Watch {
    let (ended, receiver) = mpsc::channel();
    let test = thread::current().name().unwrap_or("a test").to_owned();
    thread::spawn(move || {
        let mut news = Ok(());
        while news.is_ok() {
            news = receiver.recv_timeout(Duration::from_secs(240));
        }
        if news == Err(RecvTimeoutError::Timeout) {
            // Not `eprintln`: the test harness withholds its output until the test ends.
            let _unheard = writeln!(std::io::stderr(), "{test} hangs");
            std::process::abort();
        }
    });
    Watch { ended }
}

impl Watch {
    /// The test has come further, and gets its time anew: for one that has many runs.
    pub(crate) fn again(&self) {
        let heard = self.ended.send(());
        heard.expect("the guard waits until it is dropped");
    }
}

/// A runtime with `workers` workers. Its drop waits for longer than a job takes to stop on the busiest machine.
pub(crate) fn runtime(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder
        .shutdown_deadline(Duration::from_secs(3600))
        .build()
        .unwrap()
}

/// Runs `test` on runtimes of 1, 2 and 4 workers.
pub(crate) fn on_each(test: impl Fn(&Runtime)) {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(&runtime))) {
            eprintln!("with {workers} workers:");
            resume_unwind(panic);
        }
    }
}

/// A random sequence (splitmix64; Steele, Lea and Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// Runs `test` with each seed, as [`Seeds`] says, which also prints a seed that fails.
pub(crate) fn for_seeds(count: u64, test: impl Fn(&mut Random)) {
    Seeds::new(count).each(|seed| {
        let _watch = watch();
        test(&mut Random(seed));
    });
}

/// Runs `test` on the test runtime with each seed, as [`Seeds`] says, which also prints a seed that fails.
pub(crate) fn each_seed(count: u64, test: impl AsyncFn()) {
    Seeds::new(count).each(|seed| {
        let _watch = watch();
        Runtime::test(seed).block_on(test());
    });
}

fn with_seed(seed: u64, test: &impl Fn(&mut Random)) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(&mut Random(seed)))) {
        eprintln!("failed with WEALD_SEED={seed}");
        resume_unwind(panic);
    }
}

/// Runs `round` with one seed after another for `WEALD_SOAK` seconds, by default for 50 ms; at least once.
pub(crate) fn soak(round: impl Fn(&mut Random)) {
    let seconds = std::env::var("WEALD_SOAK")
        .ok()
        .and_then(|text| text.parse().ok());
    let time = seconds.map_or(Duration::from_millis(50), Duration::from_secs);
    let first = std::env::var("WEALD_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let end = Instant::now() + time;
    for seed in first.. {
        let _watch = watch();
        with_seed(seed, &round);
        if Instant::now() >= end {
            return;
        }
    }
}
