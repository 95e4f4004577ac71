//! A stack overflow ends the program with a message that names the thread, and touches no other memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use weald_fiber::{Builder, JoinHandle};
use weald_kernel::{
    Runtime, Spawn,
    callback::{self, Owner, When},
    fork,
};

const CHILD: &str = "WEALD_TEST_OVERFLOW";

fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    match depth {
        u64::MAX => 0,
        _ => recurse(depth + 1) + frame[usize::try_from(depth % 64).unwrap()],
    }
}

/// Recurses until it has used `bytes` of its stack below `from`. Returns how many it has used.
fn dive(from: usize, bytes: usize) -> usize {
    let frame = std::hint::black_box([0_u8; 512]);
    let used = from - (&raw const frame).addr();
    let deepest = match used < bytes {
        true => dive(from, bytes),
        false => used,
    };
    // Used after the call, so that this frame stays on the stack meanwhile.
    deepest + usize::from(std::hint::black_box(&frame)[0])
}

/// A thread with a stack of `size` that uses `bytes` of it.
fn diver(size: usize, bytes: usize) -> JoinHandle<usize> {
    let diver = Builder::new().name("the diver").stack_size(size);
    let dives = move || {
        let here = 0_u8;
        dive((&raw const here).addr(), bytes)
    };
    diver.spawn(dives).unwrap()
}

/// Forks at each level, and then recurses without forks.
fn forks_and_recurses(depth: u32) -> u64 {
    match depth {
        0 => recurse(0),
        _ => fork::join(|| forks_and_recurses(depth - 1), || 0).0,
    }
}

/// Forks, and recurses in the half that another thread takes.
fn second_half_is_stolen() -> u64 {
    static STOLEN: AtomicBool = AtomicBool::new(false);
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
}

/// The tests below run this as a program of its own; an environment variable names what must overflow.
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
        "small" => runtime.block_on(async {
            let used = diver(64 << 10, 800 << 10).await.unwrap();
            u64::try_from(used).unwrap()
        }),
        "further" => runtime.block_on(async {
            let forks = named("a deep forker").spawn(async { forks_and_recurses(20_000) });
            forks.await.unwrap()
        }),
        "half" => runtime.block_on(async {
            let forker = named("a forker").spawn(async { second_half_is_stolen() });
            forker.await.unwrap()
        }),
        "foreign half" => runtime.block_on(async { second_half_is_stolen() }),
        "callback" => runtime.block_on(async {
            let (sender, sum) = std::sync::mpsc::channel();
            let run = move || sender.send(recurse(0)).unwrap();
            callback::once(Owner::runtime(), When::Ready, run).detach();
            sum.recv().unwrap()
        }),
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
    let message = String::from_utf8_lossy(&child.stderr).into_owned();
    // One sentence is enough.
    assert!(!message.contains("the program was aborted"), "{message}");
    message
}

#[test]
fn a_thread_has_a_stack_of_the_requested_size() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let used = runtime.block_on(async { diver(1 << 20, 800 << 10).await.unwrap() });
    assert!(used >= 800 << 10);
    let message = overflow("small");
    for part in [
        "the stack of 64 KiB overflowed",
        "`the diver`",
        "stack_size",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn a_thread_that_overflows_is_named() {
    let message = overflow("thread");
    for part in [
        "the stack of 128 KiB overflowed",
        "`the deep one`",
        "overflow.rs",
        "stack_size",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn a_job_that_overflows_is_named() {
    let message = overflow("job");
    for part in [
        "the stack of 2048 KiB overflowed",
        "`a deep job`",
        "Builder::thread_stack",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

/// Not under ThreadSanitizer: it keeps the calls of a stack in a table with room for 65,536, and beyond that overflows
/// itself, with a lock of its own.
#[cfg(not(weald_thread_sanitizer))]
#[test]
fn an_overflow_below_deep_forks_says_that_no_setting_helps() {
    let message = overflow("further");
    for part in [
        "the stack of 16384 KiB overflowed",
        "`a deep forker`",
        "fixed",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn a_stolen_half_that_overflows_is_reported_with_its_forker() {
    let message = overflow("half");
    for part in [
        "in a part of the fork at fiber/tests/overflow.rs:",
        "forked by `a forker`, spawned at fiber/tests/overflow.rs:",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn a_callback_that_overflows_is_named() {
    let message = overflow("callback");
    for part in [
        "in `callback overflow::child::{{closure}}",
        "spawned at fiber/tests/overflow.rs:",
        "Builder::thread_stack",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn a_stolen_half_of_a_foreign_thread_that_overflows_is_named_by_its_fork() {
    let message = overflow("foreign half");
    assert!(
        message.contains("in a part of the fork at fiber/tests/overflow.rs:"),
        "{message}"
    );
    assert!(!message.contains("kernel/src"), "{message}");
}
