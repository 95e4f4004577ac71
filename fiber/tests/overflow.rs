//! A stack overflow ends the program with a message that names the thread, and touches no other memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use weald_fiber::Builder;
use weald_kernel::Runtime;

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
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let sum = match what.as_str() {
        "thread" => runtime.block_on(async {
            let deep = Builder::new().name("the deep one").spawn(|| recurse(0));
            deep.unwrap().await.unwrap()
        }),
        _ => runtime
            .block_on(
                weald_kernel::Spawn::new()
                    .name("a deep job")
                    .spawn(async { recurse(0) }),
            )
            .unwrap(),
    };
    println!("{sum}");
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
