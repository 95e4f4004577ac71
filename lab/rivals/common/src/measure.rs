//! What the rivals measure with: resident memory, a shared counter, and work without waiting.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::report::{fail, print_metrics};

/// The resident memory of this OS process in bytes: `RssAnon` and `RssShmem` of
/// `/proc/self/status`.
pub fn rss_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        fail("/proc/self/status cannot be read: run this on Linux with /proc mounted.");
    };
    ["RssAnon:", "RssShmem:"]
        .iter()
        .map(|field| kilobytes(&status, field) * 1024)
        .sum()
}

fn kilobytes(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line
        .and_then(|line| line.split_whitespace().next())
        .and_then(|n| n.parse().ok());
    number.unwrap_or_else(|| fail("/proc/self/status has no RssAnon or RssShmem: use Linux 4.5."))
}

/// Binds this thread, and all that it will start, to the first `most` of the processors that it may use.
pub fn bind_to_processors(most: usize) {
    let Ok(allowed) = sched_getaffinity(None) else {
        fail("The processors of this program cannot be read: run this on Linux.")
    };
    let mut chosen = CpuSet::new();
    let usable = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    usable.take(most).for_each(|cpu| chosen.set(cpu));
    if sched_setaffinity(None, &chosen).is_err() {
        fail("The processors of this program cannot be chosen: run this on Linux.");
    }
}

/// Creates `n` things, prints how much memory each took, and ends the program.
pub fn print_footprint<T>(n: usize, mut make: impl FnMut() -> T) -> ! {
    let mut things = Vec::with_capacity(n);
    let before = rss_bytes();
    for _ in 0..n {
        // Hidden from the compiler, or it would take zeroed pages that nothing has touched.
        things.push(black_box(make()));
    }
    let grown = rss_bytes().saturating_sub(before);
    black_box(&things);
    print_metrics(&[("bytes_per_object", grown as f64 / n as f64)])
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
