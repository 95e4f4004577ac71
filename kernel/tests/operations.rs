//! Operations on files and names that do not return: they stop no others, are named, and beyond a bound are errors.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    io::{self, ErrorKind},
    path::Path,
    sync::{Arc, mpsc},
};

use reports::{collect_reports, reports};
use tools::{until, watch};
use weald_kernel::{JoinHandle, NoFreeThread, OperationName, Runtime, Spawn, offload_operation};

fn file(path: &str) -> OperationName {
    OperationName::file("reading", Arc::from(Path::new(path)))
}

#[track_caller]
fn lookup(host: &str) -> OperationName {
    OperationName::lookup(Arc::from(host))
}

/// A runtime with few threads: one for lookups, as for files.
fn small(threads: usize, held: usize) -> Runtime {
    let runtime = Runtime::builder().workers(1).blocking_threads(threads);
    runtime.held_operations(held).build().unwrap()
}

/// A job whose operation does not return before the sender is dropped.
fn stuck(
    runtime: &Runtime,
    name: &str,
    operation: OperationName,
) -> (mpsc::Sender<()>, JoinHandle<io::Result<()>>) {
    let (go, may_go) = mpsc::channel::<()>();
    let job = Spawn::new().name(name.to_owned());
    let work = move || {
        let _dropped = may_go.recv();
        Ok(())
    };
    let job = runtime.block_on(async move { job.spawn(offload_operation(operation, work)) });
    (go, job)
}

fn ends(runtime: &Runtime, operation: OperationName) {
    let job = runtime.spawn(offload_operation(operation, || Ok(7)));
    assert_eq!(runtime.block_on(job).unwrap().unwrap(), 7);
}

#[test]
fn operations_that_do_not_return_leave_their_threads_to_others() {
    let _watch = watch();
    let runtime = small(4, 64);
    let all: Vec<_> = (0..64)
        .map(|_| stuck(&runtime, "reader", file("/a/fifo")))
        .collect();
    ends(&runtime, file("/etc/hostname"));
    ends(&runtime, lookup("localhost"));
    for (go, job) in all {
        drop(go);
        runtime.block_on(job).unwrap().unwrap();
    }
    until(|| runtime.metrics().blocking == 0);
    ends(&runtime, file("/etc/hostname"));
}

#[test]
fn lookups_files_and_closures_do_not_wait_for_each_other() {
    let _watch = watch();
    let runtime = small(1, 1);
    for (one, other) in [
        (lookup("dead.example"), file("/b")),
        (file("/b"), lookup("localhost")),
    ] {
        let all: Vec<_> = (0..2)
            .map(|_| stuck(&runtime, "holder", one.clone()))
            .collect();
        until(|| runtime.metrics().blocking == 2);
        ends(&runtime, other);
        let closure = runtime.spawn(weald_kernel::offload(|| 8));
        assert_eq!(runtime.block_on(closure).unwrap().unwrap(), 8);
        for (go, job) in all {
            drop(go);
            runtime.block_on(job).unwrap().unwrap();
        }
        until(|| runtime.metrics().blocking == 0);
    }
}

#[test]
fn beyond_the_bound_an_operation_is_an_error_that_a_report_explains() {
    let _watch = watch();
    collect_reports();
    let runtime = small(1, 1);
    let all: Vec<_> = (0..2)
        .map(|_| stuck(&runtime, "asks a dead server", lookup("dead.example")))
        .collect();
    until(|| runtime.metrics().blocking == 2);
    let refused = runtime.spawn(offload_operation(lookup("other.example"), || Ok(())));
    let error = runtime.block_on(refused).unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    assert!(error.get_ref().unwrap().is::<NoFreeThread>());
    let text = "looking up dead.example for asks a dead server` spawned at";
    until(|| !reports("weald::blocking", text).is_empty());
    for (go, job) in all {
        drop(go);
        runtime.block_on(job).unwrap().unwrap();
    }
    ends(&runtime, lookup("other.example"));
}

#[test]
fn an_operation_that_lasts_is_named_with_the_job_that_asked() {
    let _watch = watch();
    collect_reports();
    let runtime = small(8, 1);
    let (go, job) = stuck(&runtime, "reads a fifo", file("/no/writer"));
    let is_named = || {
        let found = reports(
            "weald::blocking",
            "reading /no/writer has not returned for ",
        );
        found.iter().any(|report| {
            report.level == tracing::Level::WARN
                && report
                    .text
                    .contains("`reads a fifo` spawned at kernel/tests/operations.rs")
        })
    };
    until(is_named);
    drop(go);
    runtime.block_on(job).unwrap().unwrap();
}

#[test]
fn an_operation_that_lasts_is_named_although_nobody_waits_for_it_any_longer() {
    let _watch = watch();
    collect_reports();
    let runtime = small(8, 1);
    let (go, job) = stuck(&runtime, "gives up", lookup("abandoned.example"));
    until(|| runtime.metrics().blocking == 1);
    job.cancel();
    assert!(runtime.block_on(job).unwrap_err().is_cancelled());
    let is_named = || {
        let found = reports(
            "weald::blocking",
            "looking up abandoned.example has not returned for ",
        );
        let by = "`gives up` spawned at kernel/tests/operations.rs";
        let ending = "asked for it, and nobody waits for it any longer";
        let is_it = |text: &str| text.contains(by) && text.contains(ending);
        found.iter().any(|report| is_it(&report.text))
    };
    until(is_named);
    drop(go);
    until(|| runtime.metrics().blocking == 0);
}

#[test]
fn an_operation_that_no_job_asked_for_is_named_with_the_line_that_did() {
    let _watch = watch();
    collect_reports();
    let runtime = small(8, 1);
    let (go, may_go) = mpsc::channel::<()>();
    let work = move || {
        let _dropped = may_go.recv();
        Ok(())
    };
    let (name, line) = (lookup("nobody.example"), line!());
    std::thread::scope(|scope| {
        scope.spawn(|| runtime.block_on(offload_operation(name, work)).unwrap());
        let text = "looking up nobody.example has not returned for ";
        let by = "a thread outside of any job, at kernel/tests/operations.rs:";
        let by = format!("{by}{line}:");
        let is_named = |report: &reports::Report| report.text.contains(&by);
        until(|| reports("weald::blocking", text).iter().any(is_named));
        drop(go);
    });
}
