//! Deep recursion through `join` continues on further stacks, up to a limit that the panic names.
//!
//! Not under ThreadSanitizer: it keeps the calls of a stack in a table with room for 65,536, and crashes beyond that.

#![cfg(not(weald_thread_sanitizer))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tools::{on_each, watch};
use weald_kernel::{Runtime, fork::join};

const DEEP: u64 = 1_000_000;

fn left(n: u64) -> u64 {
    match n {
        0 => 0,
        _ => join(|| left(n - 1), || 1).0 + 1,
    }
}

fn right(n: u64) -> u64 {
    match n {
        0 => 0,
        _ => join(|| 1, || right(n - 1)).1 + 1,
    }
}

#[test]
fn a_million_forks_in_first_halves() {
    on_each(|runtime| {
        let job = runtime.spawn(async { left(DEEP) });
        assert_eq!(runtime.block_on(job).unwrap(), DEEP);
    });
}

#[test]
fn a_million_forks_in_second_halves() {
    on_each(|runtime| {
        let job = runtime.spawn(async { right(DEEP) });
        assert_eq!(runtime.block_on(job).unwrap(), DEEP);
    });
}

/// Each steal leaves an owner that waits, on a thread of its own.
#[test]
fn a_recursion_in_second_halves_holds_a_bounded_number_of_threads() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .spare_threads(256)
        .build()
        .unwrap();
    let job = runtime.spawn(async { right(DEEP) });
    assert_eq!(runtime.block_on(job).unwrap(), DEEP);
    // More than 66: the system may have found a thread blocked that got memory, and its part was stolen then.
    let threads = runtime.metrics().threads;
    assert!(threads <= 200, "{threads} threads");
}

#[test]
fn a_million_forks_on_a_foreign_thread() {
    let _watch = watch();
    assert_eq!(left(DEEP) + right(DEEP), 2 * DEEP);
}

#[test]
fn a_million_forks_on_a_small_stack_of_a_foreign_thread() {
    let _watch = watch();
    let small = std::thread::Builder::new().stack_size(96 << 10);
    let thread = small.spawn(|| left(DEEP) + right(DEEP)).unwrap();
    assert_eq!(thread.join().unwrap(), 2 * DEEP);
}

#[test]
fn a_panic_comes_back_from_further_stacks() {
    fn down(n: u64) {
        assert_ne!(n, 0, "bottom");
        join(|| down(n - 1), || {});
    }
    on_each(|runtime| {
        let job = runtime.spawn(async {
            let deep = catch_unwind(|| down(100_000)).is_err();
            (deep, left(100_000))
        });
        assert_eq!(runtime.block_on(job).unwrap(), (true, 100_000));
    });
}

#[test]
fn a_recursion_beyond_the_limit_panics_and_names_the_limit() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .fork_stack(64 << 20)
        .build()
        .unwrap();
    let job = runtime.spawn(async {
        let payload = catch_unwind(AssertUnwindSafe(|| left(u64::MAX))).unwrap_err();
        (
            payload.downcast_ref::<String>().unwrap().clone(),
            left(1000),
        )
    });
    let (message, after) = runtime.block_on(job).unwrap();
    assert!(message.contains("67108864 bytes of stack"), "{message}");
    assert!(message.contains("Builder::fork_stack"), "{message}");
    assert_eq!(after, 1000);
}
