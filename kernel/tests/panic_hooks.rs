//! A panic hook that waits: its OS thread is held, so that a panic of another job there does not end the program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    time::Duration,
};

use tools::{runtime, watch};
use weald_kernel::{block_on, sleep, spawn_local};

const CHILD: &str = "WEALD_CHILD";

/// The hook is the program's, so each case runs in a process of its own. Does nothing in an ordinary run.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    // Long enough for a wait to look whether it may let other jobs run, which takes a backtrace.
    let set = || {
        std::panic::set_hook(Box::new(|_| block_on(sleep(Duration::from_millis(250)))));
    };
    let before = what.contains("before").then(set);
    let runtime = runtime(1);
    if before.is_none() {
        set();
    }
    match what.contains("foreign thread") {
        false => {
            // Its stack is suspended on the worker's thread, where the other job panics before it.
            let later = runtime.spawn(async {
                block_on(sleep(Duration::from_millis(5)));
                panic!("later");
            });
            let first = runtime.spawn(async { panic!("first") });
            assert!(runtime.block_on(first).unwrap_err().is_panic());
            assert!(runtime.block_on(later).unwrap_err().is_panic());
        }
        true => {
            let ended = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async {
                    let later = async {
                        sleep(Duration::from_millis(5)).await;
                        panic!("later");
                    };
                    spawn_local(later).unwrap().detach();
                    panic!("first");
                });
            }));
            assert!(ended.is_err());
        }
    }
    println!("survived");
}

fn survives(what: &str) {
    let _watch = watch();
    for _ in 0..3 {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(CHILD, what)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(output.contains("survived"), "{output}\n{errors}");
    }
}

#[test]
fn a_panic_beside_a_hook_that_waits_ends_its_job_only() {
    survives("the hook is set before the runtime starts");
    survives("the hook is set after the runtime has started");
}

#[test]
fn a_panic_of_a_local_job_beside_a_hook_that_waits_ends_its_job_only() {
    survives("on a foreign thread, and the hook is set before");
}
