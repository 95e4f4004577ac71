//! `Runtime::trim` during work: memory in use stays, while other memory is returned and reused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/processes.rs"]
mod processes;
#[path = "support/tools.rs"]
mod tools;

use std::sync::atomic::{AtomicBool, Ordering};

use processes::run_processes;
use tools::{runtime, watch};
use weald_kernel::{Mailbox, Runtime, Spawn, spawn, spawn_local};

#[test]
fn a_trim_during_work_loses_nothing() {
    let _watch = watch();
    let (runtime, stop) = (runtime(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                runtime.trim();
            }
        });
        for _ in 0..5 {
            run_processes(&runtime, 10_000);
        }
        stop.store(true, Ordering::SeqCst);
    });
}

/// A message that shows whether its memory was overwritten.
type Pattern = [u32; 24];
const PATTERN: Pattern = [0x5a5a_5a5a; 24];

#[test]
fn a_search_for_live_jobs_during_a_trim_touches_no_message() {
    let _watch = watch();
    let (runtime, stop) = (runtime(1), AtomicBool::new(false));
    // Many old live jobs make the search long; it reaches the newest blocks last.
    for _ in 0..100_000 {
        runtime
            .spawn(async { std::future::pending::<[u8; 60]>().await })
            .detach();
    }
    std::thread::scope(|scope| {
        // A `block_on` with local jobs searches all job blocks when it ends.
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                runtime.block_on(async {
                    spawn_local(std::future::pending::<()>()).unwrap().detach();
                });
            }
        });
        for _ in 0..10 {
            let done = runtime.spawn(async {
                let jobs: Vec<_> = (0..20_000)
                    .map(|_| spawn(async { [7_u8; 60].len() }))
                    .collect();
                for job in jobs {
                    job.await.unwrap();
                }
            });
            runtime.block_on(done).unwrap();
            // The memory of former job blocks becomes messages.
            runtime.trim();
            check_patterns(&runtime);
        }
        stop.store(true, Ordering::SeqCst);
    });
}

fn check_patterns(runtime: &Runtime) {
    let checked = runtime.spawn(async {
        let (job, address) = Spawn::new()
            .spawn_with_mailbox(|mut mailbox: Mailbox<Pattern>| async move {
                for _ in 0..20_000 {
                    let message = std::future::poll_fn(|cx| mailbox.poll_receive(cx)).await;
                    assert_eq!(message, PATTERN);
                }
            })
            .unwrap();
        for _ in 0..20_000 {
            address.post(PATTERN).unwrap();
        }
        job.await
    });
    runtime.block_on(checked).unwrap().unwrap();
}
