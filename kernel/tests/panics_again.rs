//! A job that panics and catches that again and again, without a wait, is stuck like any other job.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use reports::{collect_reports, reports};
use tools::{runtime, until, watch};
use weald_kernel::{Spawn, yield_now};

/// How long the hook takes: no time, and long enough for a hook that is none of the job's time.
const HOOKS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(4)];

#[test]
fn a_job_that_panics_again_and_again_holds_up_nobody_and_is_named() {
    let _watch = watch();
    collect_reports();
    let took = Arc::new(std::sync::Mutex::new(Duration::ZERO));
    let takes = took.clone();
    // Before the first runtime, which wraps it.
    panic::set_hook(Box::new(move |_| {
        let (begin, takes) = (Instant::now(), *takes.lock().unwrap());
        until(|| begin.elapsed() >= takes);
    }));
    for (n, hook) in HOOKS.into_iter().enumerate() {
        *took.lock().unwrap() = hook;
        let (runtime, stop) = (runtime(1), Arc::new(AtomicBool::new(false)));
        let (begun, stops) = (Arc::new(AtomicBool::new(false)), stop.clone());
        let begins = begun.clone();
        let (panics,) = runtime.block_on(async {
            let panics = async move {
                while !stops.load(Ordering::SeqCst) {
                    let _caught = panic::catch_unwind(|| panic!("on purpose"));
                    begins.store(true, Ordering::SeqCst);
                }
            };
            (Spawn::new().name(format!("panics {n}")).spawn(panics),)
        });
        until(|| begun.load(Ordering::SeqCst));
        runtime.block_on(runtime.spawn(yield_now())).unwrap();
        // Where the hooks take some time, the monitor may find one of them each time.
        let is_found = |text: &str| !hook.is_zero() || text.contains("has blocked or computed");
        until(|| {
            let reports = reports("weald::monitor", &format!("`panics {n}`"));
            reports.iter().any(|report| is_found(&report.text))
        });
        stop.store(true, Ordering::SeqCst);
        runtime.block_on(panics).unwrap();
    }
    drop(panic::take_hook());
}
