//! A stack overflow ends the program with a message that names the thread, and touches no other memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use weald_fiber::Builder;
use weald_kernel::{Runtime, Spawn, fork};

const CHILD: &str = "WEALD_TEST_OVERFLOW";

fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    match depth {
        u64::MAX => 0,
        _ => recurse(depth + 1) + frame[usize::try_from(depth % 64).unwrap()],
    }
}

/// Run as a program of its own by the tests below, which say in the environment what shall overflow.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let sum = match what.as_str() {
        "thread" => runtime.block_on(async {
            let deep = Builder::new().name("the deep one").spawn(|| recurse(0));
            deep.unwrap().await.unwrap()
        }),
        "half" => {
            static STOLEN: AtomicBool = AtomicBool::new(false);
            let forks = || {
                let first = || {
                    while !STOLEN.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                };
                let second = || {
                    STOLEN.store(true, Ordering::Relaxed);
                    recurse(0)
                };
                fork::join(first, second).1
            };
            runtime.block_on(async {
                named("a forker")
                    .spawn(async move { forks() })
                    .await
                    .unwrap()
            })
        }
        _ => runtime.block_on(async {
            named("a deep job")
                .spawn(async { recurse(0) })
                .await
                .unwrap()
        }),
    };
    println!("{sum}");
}

fn named(name: &'static str) -> Spawn {
    Spawn::new().name(name)
}

fn overflow(what: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, what)
        .output()
        .unwrap();
    assert!(!child.status.success());
    String::from_utf8_lossy(&child.stderr).into_owned()
}

#[test]
fn a_thread_that_overflows_is_named() {
    let told = overflow("thread");
    for part in [
        "the stack of 128 KiB overflowed",
        "`the deep one`",
        "overflow.rs",
        "stack_size",
    ] {
        assert!(told.contains(part), "{part} is not in: {told}");
    }
}

#[test]
fn a_job_that_overflows_is_named() {
    let told = overflow("job");
    for part in ["the stack of 2048 KiB overflowed", "`a deep job`"] {
        assert!(told.contains(part), "{part} is not in: {told}");
    }
}

#[test]
fn a_stolen_half_that_overflows_is_told_by_who_forked_it() {
    let told = overflow("half");
    assert!(told.contains("in what was forked by `a forker`"), "{told}");
}
