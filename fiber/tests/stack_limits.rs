//! A thread whose stack cannot be had is refused when it is spawned: its code is dropped, and nothing else is lost.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    time::Duration,
};

use tools::{Drops, Latch, runtime, watch};
use weald_fiber::{Builder, DEFAULT_STACK, JoinHandle, SpawnError, StackError, spawn};
use weald_kernel::{Runtime, Wait};

const CHILD: &str = "WEALD_TEST_STACK_LIMITS";
const LARGE: usize = 64 << 20;

/// Starts a thread that has a token, and that waits for the latch.
fn start(size: usize, drops: &Drops, latch: &Latch) -> Result<JoinHandle<()>, SpawnError> {
    let (token, latch) = (drops.token(), latch.clone());
    let code = move || {
        let _held = token;
        latch.wait();
    };
    Builder::new().stack_size(size).spawn(code)
}

/// Starts threads until one is refused.
fn start_all(size: usize, drops: &Drops, latch: &Latch) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    let refused = loop {
        match start(size, drops, latch) {
            Ok(thread) => threads.push(thread),
            Err(refused) => break refused,
        }
        assert!(threads.len() < 100_000, "the system refuses none");
    };
    let expected = SpawnError::NoStack(StackError::NoAddressSpace { bytes: size });
    assert_eq!(refused, expected);
    assert!(refused.to_string().contains("ask for a smaller one"));
    assert_eq!(drops.made() - drops.count(), threads.len());
    threads
}

/// Starts `count` threads, each as soon as the system allows it.
async fn start_some(
    (count, size): (usize, usize),
    drops: &Drops,
    latch: &Latch,
) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    while threads.len() < count {
        match start(size, drops, latch) {
            Ok(thread) => threads.push(thread),
            // A thread that has just ended may not have given its stack back.
            Err(_) => weald_kernel::yield_now().await,
        }
    }
    threads
}

async fn join_all(threads: Vec<JoinHandle<()>>, drops: &Drops) {
    for thread in threads {
        thread
            .await
            .expect("a thread that was accepted has a stack");
    }
    assert_eq!(drops.count(), drops.made());
}

/// The test below runs this as a program of its own, whose address space is limited.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (_watch, drops) = (watch(), Drops::default());
    // No further OS thread: the C library ends a program whose new thread finds no memory.
    let builder = Runtime::builder().workers(2);
    let runtime = builder.stuck_after(Duration::MAX).build().unwrap();
    // Address space for small stacks, which large ones would otherwise take.
    runtime.block_on(async { spawn(|| ()).await.unwrap() });
    let fill = async {
        let latch = Latch::default();
        let threads = start_all(LARGE, &drops, &latch);
        let count = threads.len();
        latch.open();
        join_all(threads, &drops).await;
        count
    };
    let count = runtime.block_on(fill);
    assert!(count > 1, "{count}");
    // Every stack came back: the same number of threads may live at once, again and again.
    for _ in 0..3 {
        runtime.block_on(async {
            let latch = Latch::default();
            let cancelled = start_some((count, LARGE), &drops, &latch).await;
            cancelled.iter().for_each(JoinHandle::cancel);
            for thread in cancelled {
                assert!(thread.await.is_err());
            }
            let threads = start_some((count, LARGE), &drops, &latch).await;
            latch.open();
            join_all(threads, &drops).await;
        });
    }
    the_plain_spawn_panics(&runtime, &drops);
    println!("the child has ended");
}

fn the_plain_spawn_panics(runtime: &Runtime, drops: &Drops) {
    runtime.block_on(async {
        let latch = Latch::default();
        let threads = start_all(DEFAULT_STACK, drops, &latch);
        let count = threads.len();
        assert!(count > 1, "{count}");
        let token = drops.token();
        let spawned = catch_unwind(AssertUnwindSafe(|| spawn(move || drop(token)).detach()));
        let message = *spawned.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("could not be started"), "{message}");
        assert!(message.contains("start fewer threads"), "{message}");
        assert_eq!(drops.made() - drops.count(), count);
        latch.open();
        join_all(threads, drops).await;
        let threads = start_some((count, DEFAULT_STACK), drops, &latch).await;
        join_all(threads, drops).await;
    });
}

#[test]
// The sanitizer's own memory is beyond any limit.
#[cfg_attr(weald_plain_alloc, ignore)]
fn without_address_space_a_spawn_is_refused_and_nothing_is_lost() {
    let limited = "ulimit -v 3145728 && exec \"$@\"";
    let child = Command::new("sh")
        .args(["-c", limited, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    let ended = child.status.success() && output.contains("the child has ended");
    assert!(
        ended,
        "{output}\n{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

#[test]
fn a_size_that_no_stack_has_is_refused() {
    let (_watch, runtime, drops) = (watch(), runtime(1), Drops::default());
    runtime.block_on(async {
        let latch = Latch::default();
        latch.open();
        for bytes in [usize::MAX, (1 << 30) + 1] {
            let largest = 1 << 30;
            let expected = SpawnError::NoStack(StackError::TooLarge { bytes, largest });
            assert_eq!(start(bytes, &drops, &latch).unwrap_err(), expected);
            assert_eq!(drops.count(), drops.made());
        }
        start(0, &drops, &latch).unwrap().await.unwrap();
        start(1 << 30, &drops, &latch).unwrap().await.unwrap();
    });
}
