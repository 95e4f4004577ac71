//! The message of a panic names the unit, and a panic hook that takes long is no offence; nor is what follows it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    panic,
    process::Command,
    sync::{Mutex, mpsc},
    time::Instant,
};

use reports::{collect_reports, reports};
use tools::{runtime, until, watch};
use weald_kernel::{JoinError, Spawn, blocking, current_name, offload};

const CHILD: &str = "WEALD_TEST_PANIC_HOOK";
const MANY: &str = "many panics on blocking threads";

/// Prints a panic in a user's own hook.
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
    if whose == MANY {
        return panic_on_blocking_threads();
    }
    if whose == "own before" {
        set_own_hook();
    }
    let runtime = runtime(1);
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

/// Each of two lines of code panics so many times.
const PANICS: usize = 500;

fn panic_on_blocking_threads() {
    let runtime = runtime(1);
    for _ in 0..PANICS {
        runtime.block_on(async {
            let blocks: Result<(), JoinError> = runtime
                .spawn(async { blocking(|| panic!("in blocking")) })
                .await;
            assert!(blocks.is_err());
            let offloaded = async { offload(|| panic!("in offload")).await };
            let offloaded: Result<Result<(), _>, JoinError> = runtime.spawn(offloaded).await;
            assert!(offloaded.is_err());
        });
    }
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
    // Outside of units nothing is added, and nothing is reported, even if a backtrace takes long. Under a sanitizer
    // that of the unit may take so long that there is a warning.
    let is_warning = |line: &&str| line.contains("its panic hook has held a thread for");
    let ours = text.lines().filter(|line| line.contains("weald: "));
    assert_eq!(ours.filter(|line| !is_warning(line)).count(), 1, "{text}");
}

#[test]
fn of_panics_on_blocking_threads_as_many_are_printed_as_of_those_in_jobs() {
    let begun = Instant::now();
    let text = stderr_of(MANY);
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    for message in ["in blocking", "in offload"] {
        let message = format!("\n{message}\n");
        let printed = text.matches(&message).count();
        assert!(
            (10..=10 * (seconds + 1)).contains(&printed),
            "{printed} in {seconds} s"
        );
    }
    assert!(text.contains("left out: messages of panics"), "{text}");
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
fn a_job_in_its_panic_hook_is_no_offender_and_is_watched_anew_behind_it() {
    let _watch = watch();
    collect_reports();
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    // Before the first runtime, which wraps it.
    panic::set_hook(Box::new(move |_| blocked.lock().unwrap().recv().unwrap()));
    let runtime = runtime(1);
    let (fails,) = runtime.block_on(async {
        let fails = Spawn::new().name("prints for long");
        (fails.spawn(async { panic!("on purpose") }),)
    });
    let hook_runs = "`prints for long` spawned at kernel/tests/panic_hook.rs";
    until(|| reports("weald::monitor", hook_runs).len() >= 2);
    release.send(()).unwrap();
    let failed: Result<(), JoinError> = runtime.block_on(fails);
    assert!(failed.is_err());
    let of_hook = reports("weald::monitor", hook_runs);
    assert_eq!(of_hook.len(), 2, "{of_hook:?}");
    assert_is_of_hook(&of_hook[0]);
    // When it can be no backtrace any longer. A warning goes to stderr if there is no subscriber.
    assert_eq!(of_hook[1].level, tracing::Level::WARN);
    let is_warned = of_hook[1]
        .text
        .contains("its panic hook has held a thread for");
    assert!(is_warned, "{of_hook:?}");

    let (end, ended) = mpsc::channel::<()>();
    let goes_on = async move {
        let _caught = panic::catch_unwind(|| panic!("on purpose"));
        ended.recv().unwrap();
    };
    let (goes_on,) =
        runtime.block_on(async { (Spawn::new().name("goes on for long").spawn(goes_on),) });
    let named = "`goes on for long` spawned at kernel/tests/panic_hook.rs";
    until(|| !reports("weald::monitor", named).is_empty());
    release.send(()).unwrap();
    let stuck = || reports("weald::monitor", "has blocked or computed");
    let is_named = |report: &reports::Report| report.text.contains(named);
    until(|| stuck().iter().any(is_named));
    end.send(()).unwrap();
    runtime.block_on(goes_on).unwrap();
    assert_is_of_hook(&reports("weald::monitor", named)[0]);
    drop(panic::take_hook());
}

#[track_caller]
fn assert_is_of_hook(report: &reports::Report) {
    assert_eq!(report.level, tracing::Level::INFO);
    let is_of_hook = report.text.contains("its panic hook runs;");
    assert!(is_of_hook, "{report:?}");
}
