//! What the rivals measure with: resident memory, processors, a shared counter, writers, and work without waiting.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::programs::memory;
use crate::report::fail;

/// The resident memory of this OS process in bytes, without pages of files.
pub fn rss_bytes() -> u64 {
    memory::resident().unwrap_or_else(|sentence| fail(&sentence))
}

/// Binds the program to as many processors as there are workers; called before the first thread starts.
pub fn use_processors(workers: usize) {
    if bind_to_processors(workers) != workers {
        fail("There are fewer processors than workers: give fewer workers.");
    }
}

/// Binds this thread, and all that it will start, to the first `most` of the processors that it may use, and returns
/// how many these are.
pub fn bind_to_processors(most: usize) -> usize {
    let Ok(allowed) = sched_getaffinity(None) else {
        fail("The processors of this program cannot be read: run this on Linux.")
    };
    let mut chosen = CpuSet::new();
    let usable = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    usable.take(most).for_each(|cpu| chosen.set(cpu));
    if sched_setaffinity(None, &chosen).is_err() {
        fail("The processors of this program cannot be chosen: run this on Linux.");
    }
    chosen.count() as usize
}

/// One shared counter that knows when it is full.
#[derive(Debug)]
pub struct Tally {
    count: AtomicU64,
    full: u64,
}

impl Tally {
    /// A counter that is full at `full`.
    pub fn new(full: usize) -> Self {
        Self {
            count: AtomicU64::new(0),
            full: full as u64,
        }
    }

    /// Counts one; true for the one that makes it full.
    pub fn count(&self) -> bool {
        self.count.fetch_add(1, Ordering::AcqRel) + 1 == self.full
    }
}

/// Does arithmetic without waiting until `duration` has passed.
pub fn compute_for(duration: Duration) {
    let start = Instant::now();
    let mut state = 7_u64;
    while start.elapsed() < duration {
        for _ in 0..1000 {
            state = black_box(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1),
            );
        }
    }
}

/// Runs writers of `each` commits at once, and returns how long they took together, and each commit, in order; `writer`
/// makes what commits the next step of the writer with this number, on its thread.
pub fn commit_at_once<C: FnMut(usize)>(
    writers: usize,
    each: usize,
    writer: impl Fn(usize) -> C + Sync,
) -> (Duration, Vec<Duration>) {
    let start = Barrier::new(writers + 1);
    let write = |number: usize| {
        let mut commit = writer(number);
        let mut latencies = Vec::with_capacity(each);
        start.wait();
        let began = Instant::now();
        for step in 0..each {
            let clock = Instant::now();
            commit(step);
            latencies.push(clock.elapsed());
        }
        (began, latencies)
    };
    let (end, written) = thread::scope(|scope| {
        let write = &write;
        let start_one = |number| scope.spawn(move || write(number));
        let threads: Vec<_> = (0..writers).map(start_one).collect();
        start.wait();
        let written = threads.into_iter().map(|thread| thread.join());
        let written = written.collect::<Result<Vec<_>, _>>();
        (Instant::now(), written)
    });
    let Ok(written) = written else {
        fail("A writer panicked: see the message above.")
    };
    let (begins, latencies): (Vec<_>, Vec<_>) = written.into_iter().unzip();
    // On one core the writers may have done everything before this thread runs again, so it cannot tell when they
    // began.
    let began = begins.into_iter().min().unwrap_or(end);
    let elapsed = end.duration_since(began);
    let mut all: Vec<Duration> = latencies.into_iter().flatten().collect();
    all.sort_unstable();
    (elapsed, all)
}
