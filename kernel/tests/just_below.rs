//! Jobs that stay just below the bound again and again: they are named, and so are kinds of such jobs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/bursts.rs"]
mod bursts;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use bursts::others_run;
use reports::{collect_reports, reports};
use tools::{until, watch};
use weald_kernel::{Runtime, Spawn, yield_now};

/// Computes without a wait, for so much time on a core: on a loaded machine that takes longer by the clock.
fn compute_on_a_core(length: Duration) {
    let ran = || {
        let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(times.split_whitespace().next().unwrap().parse().unwrap())
    };
    let begin = ran();
    while ran() - begin < length {
        std::hint::spin_loop();
    }
}

/// A run that exceeds the bound, because the thread had to wait for a core in the middle of it, is reported as stuck;
/// then its kind is suspect, too.
#[test]
fn a_job_that_stays_just_below_the_bound_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .stuck_after(Duration::from_millis(200))
        .build()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let computes = Arc::new(AtomicBool::new(false));
    let (stopped, seen) = (stop.clone(), computes.clone());
    let job = runtime.block_on(async {
        Spawn::new().name("just below").spawn(async move {
            while !stopped.load(Ordering::SeqCst) {
                computes.store(true, Ordering::SeqCst);
                compute_on_a_core(Duration::from_millis(160));
                computes.store(false, Ordering::SeqCst);
                yield_now().await;
            }
        })
    });
    until(|| !reports("weald::monitor", "`just below`").is_empty());
    let found = reports("weald::monitor", "`just below`");
    assert_eq!(found[0].level, tracing::Level::WARN);
    let says = |words| found[0].text.contains(words);
    assert!(
        says("again and again") || says("has blocked or computed"),
        "{found:?}"
    );
    // The only worker serves others while the job computes, which is in quarantine.
    let other = async move { tools::until_yielding(|| seen.load(Ordering::SeqCst)).await };
    runtime.block_on(runtime.spawn(other)).unwrap();
    others_run(&runtime);
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(job).unwrap();
}

/// The second one stays below the bound in quarantine, because the first has made its kind suspect.
#[test]
fn each_job_that_stays_just_below_the_bound_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .stuck_after(Duration::from_millis(200))
        .build()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let names = ["just below, the first", "just below, the second"];
    let start = |name: &'static str| {
        let stopped = stop.clone();
        runtime.block_on(async {
            Spawn::new().name(name).spawn(async move {
                while !stopped.load(Ordering::SeqCst) {
                    compute_on_a_core(Duration::from_millis(160));
                    yield_now().await;
                }
            })
        })
    };
    let mut jobs = Vec::new();
    for name in names {
        jobs.push(start(name));
        until(|| !reports("weald::monitor", &format!("`{name}`")).is_empty());
    }
    stop.store(true, Ordering::SeqCst);
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

/// No job of the kind stays just below the bound more than once.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the units block their threads, for a short time"
)]
fn a_kind_whose_jobs_stay_just_below_the_bound_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .stuck_after(Duration::from_millis(40))
        .build()
        .unwrap();
    let told = || reports("weald::monitor", "as others that were spawned there do");
    // On a busy machine some exceed the bound, which is another offence.
    while told().is_empty() {
        let jobs: Vec<_> = (0..40)
            .map(|_| runtime.spawn(async { thread::sleep(Duration::from_millis(25)) }))
            .collect();
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    }
    let text = &told()[0].text;
    assert!(text.contains("just_below.rs"), "{text}");
}
