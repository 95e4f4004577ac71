//! The message of a panic names the unit, and a panic hook that takes long is no offence.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    panic,
    process::Command,
    sync::{Mutex, mpsc},
    time::Duration,
};

use reports::{collect_reports, reports};
use tools::{runtime, until, watch};
use weald_kernel::{JoinError, Runtime, Spawn, current_name};

const CHILD: &str = "WEALD_TEST_PANIC_HOOK";

/// Prints a panic in a hook of the user's own.
fn set_own_hook() {
    panic::set_hook(Box::new(|info| {
        let name = current_name().map(|name| name.to_string());
        eprintln!("own: {} {info}", name.unwrap_or_default());
    }));
}

/// The tests below run this as a program of its own; an environment variable says whose hook there is.
#[test]
fn child() {
    let Ok(whose) = std::env::var(CHILD) else {
        return;
    };
    if whose == "own before" {
        set_own_hook();
    }
    // The time that a hook takes is none of a job's, but a job that goes on behind a long one is still taken for stuck
    // if the monitor looks between the hook and the job's end. That would be a report here, now and then.
    let long = Duration::from_secs(3600);
    let runtime = Runtime::builder().workers(1).stuck_after(long);
    let runtime = runtime.build().unwrap();
    if whose == "own later" {
        set_own_hook();
    }
    let failed: Result<(), JoinError> = runtime.block_on(async {
        let fails = Spawn::new().name("the one that fails");
        fails.spawn(async { panic!("on purpose") }).await
    });
    let text = failed.unwrap_err().to_string();
    assert!(text.starts_with("`the one that fails` spawned at kernel/tests/panic_hook.rs:"));
    assert!(text.ends_with(" panicked: on purpose"));
    let _outside = panic::catch_unwind(|| panic!("outside"));
}

/// What the program prints.
fn stderr_of(whose: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, whose)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr).into_owned();
    assert!(child.status.success(), "{stderr}");
    stderr
}

const NAME: &str = "`the one that fails` spawned at kernel/tests/panic_hook.rs:";

#[test]
fn the_message_of_a_panic_is_followed_by_the_units_name() {
    let text = stderr_of("the standard library's");
    let (_, after) = text.split_once("on purpose").expect(&text);
    let (_, after) = after.split_once("weald: the panic was in ").expect(&text);
    assert!(after.starts_with(NAME), "{text}");
    // Outside of units nothing is added, and nothing is reported, even if a backtrace takes long.
    assert_eq!(text.matches("weald: ").count(), 1, "{text}");
}

#[test]
fn a_hook_of_the_users_own_is_left_alone_and_can_ask_for_the_name() {
    for whose in ["own before", "own later"] {
        let text = stderr_of(whose);
        assert!(text.contains(&format!("own: {NAME}")), "{text}");
        assert!(text.contains("own:  panicked"), "{text}");
        assert!(!text.contains("weald: "), "{text}");
    }
}

#[test]
fn a_job_in_its_panic_hook_is_no_offender() {
    let _watch = watch();
    collect_reports();
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    // Before the first runtime, which wraps it.
    panic::set_hook(Box::new(move |_| {
        let _released = blocked.lock().unwrap().recv();
    }));
    let runtime = runtime(1);
    let (fails,) = runtime.block_on(async {
        let fails = Spawn::new().name("prints for long");
        (fails.spawn(async { panic!("on purpose") }),)
    });
    let hook_runs = "`prints for long` spawned at kernel/tests/panic_hook.rs";
    until(|| !reports("weald::monitor", hook_runs).is_empty());
    drop(release);
    let failed: Result<(), JoinError> = runtime.block_on(fails);
    assert!(failed.is_err());
    let reports = reports("weald::monitor", hook_runs);
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].level, tracing::Level::INFO);
    assert!(
        reports[0].text.contains("its panic hook has run for"),
        "{reports:?}"
    );
    drop(panic::take_hook());
}
