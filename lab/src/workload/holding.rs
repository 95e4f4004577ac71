//! Code that holds its OS thread: it blocks, or computes.

use std::time::{Duration, Instant};

#[expect(
    clippy::disallowed_methods,
    reason = "it measures code that blocks a worker, and ends what may hold all of them"
)]
pub(super) fn block(length: Duration) {
    std::thread::sleep(length);
}

/// Computes for this long without waiting.
pub(crate) fn compute(length: Duration) {
    compute_while(length, || true);
}

pub(super) fn compute_while(length: Duration, goes_on: impl Fn() -> bool) {
    let begin = Instant::now();
    let mut value = 1_u64;
    while begin.elapsed() < length && goes_on() {
        for _ in 0..1000 {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005) + 1);
        }
    }
}
