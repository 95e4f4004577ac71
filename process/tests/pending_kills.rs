//! A process that never waits is not ended by a kill: the kill is pending, and to be seen.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::sync::mpsc::{self, Receiver, Sender};

use reports::{collect_reports, flushed, reports};
use tools::{runtime, until, watch};
use weald_kernel::{Runtime, block_in_place};
use weald_process::{Builder, ExitReason, Inbox, Pid, Process};

/// A process with this name that calls `begin`, and then blocks its thread until the sender is used.
fn blocked(
    runtime: &Runtime,
    name: &'static str,
    begin: fn(Pid<()>),
    block: fn(&Receiver<()>),
) -> (Process<(), ()>, Sender<()>) {
    let (go, may_go) = mpsc::channel();
    let (begins, has_begun) = mpsc::channel();
    let process = runtime.block_on(async {
        Builder::new()
            .name(name)
            .spawn(async move |mut inbox: Inbox<()>| {
                begin(inbox.pid());
                begins.send(()).unwrap();
                block(&may_go);
                inbox.receive().await
            })
    });
    has_begun.recv().unwrap();
    (process.unwrap(), go)
}

fn without_a_word(may_go: &Receiver<()>) {
    may_go.recv().unwrap();
}

fn report_with(name: &str, part: &str) -> Option<String> {
    let reports = reports("weald::monitor", &format!("`{name}`"));
    let texts = reports.into_iter().map(|report| report.text);
    texts.into_iter().find(|text| text.contains(part))
}

/// The kill of the only process of `runtime` is pending, and listed.
fn is_listed(runtime: &Runtime, name: &str) {
    until(|| runtime.metrics().pending_kills == 1);
    let waits = runtime.waits();
    let [kill] = &waits.pending_kills[..] else {
        panic!("not one pending kill, but {waits}");
    };
    assert_eq!(kill.job.name.as_deref(), Some(name));
    assert!(kill.pending.is_some());
    let text = waits.to_string();
    assert!(text.contains("the kill has been pending for"), "{text}");
}

fn ends(runtime: &Runtime, process: Process<(), ()>, go: &Sender<()>) {
    go.send(()).unwrap();
    assert_eq!(runtime.block_on(process), Err(ExitReason::Killed));
    until(|| runtime.metrics().pending_kills == 0);
    assert!(runtime.waits().pending_kills.is_empty());
}

#[test]
fn a_kill_of_a_process_that_was_reported_as_stuck_is_pending_and_reported() {
    let _watch = watch();
    collect_reports();
    let (runtime, name) = (runtime(1), "stuck before");
    let (process, go) = blocked(&runtime, name, |_| (), without_a_word);
    until(|| report_with(name, "has blocked or computed for").is_some());
    assert_eq!(runtime.metrics().pending_kills, 0);
    assert!(runtime.waits().pending_kills.is_empty());
    process.kill();
    is_listed(&runtime, name);
    let part = "still blocks or computes without a wait; a kill has been pending for";
    until(|| report_with(name, part).is_some());
    ends(&runtime, process, &go);
}

#[test]
fn the_report_of_a_stuck_process_that_was_killed_before_says_that_the_kill_is_pending() {
    let _watch = watch();
    collect_reports();
    let (runtime, name) = (runtime(1), "killed before");
    let (process, go) = blocked(&runtime, name, |own| own.kill(), without_a_word);
    until(|| report_with(name, "has blocked or computed for").is_some());
    let text = report_with(name, "has blocked or computed for").unwrap();
    assert!(text.contains("; a kill has been pending for"), "{text}");
    is_listed(&runtime, name);
    ends(&runtime, process, &go);
    flushed();
    assert_eq!(report_with(name, "still blocks"), None);
}

#[test]
fn the_kill_of_a_process_that_announces_that_it_blocks_is_listed_and_not_reported() {
    let _watch = watch();
    collect_reports();
    let (runtime, name) = (runtime(1), "announced");
    let block = |may_go: &Receiver<()>| block_in_place(|| may_go.recv().unwrap());
    let (process, go) = blocked(&runtime, name, |_| (), block);
    until(|| runtime.metrics().announced > 0);
    process.kill();
    is_listed(&runtime, name);
    ends(&runtime, process, &go);
    flushed();
    assert_eq!(report_with(name, "a kill"), None);
}

#[test]
fn the_kill_of_a_process_that_waits_is_not_pending() {
    let _watch = watch();
    let runtime = runtime(1);
    let process = runtime.block_on(async {
        weald_process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await)
    });
    let process = process.unwrap();
    process.kill();
    assert_eq!(runtime.block_on(process), Err(ExitReason::Killed));
    assert!(runtime.waits().pending_kills.is_empty());
}

/// What holds the thread is a destructor, and the kill has taken effect.
#[test]
fn the_kill_of_a_process_whose_destructor_blocks_is_not_pending() {
    struct BlocksAtDrop(Receiver<()>);
    impl Drop for BlocksAtDrop {
        fn drop(&mut self) {
            self.0.recv().unwrap();
        }
    }
    let _watch = watch();
    collect_reports();
    let (runtime, name) = (runtime(1), "ends for long");
    let (go, may_go) = mpsc::channel();
    let process = runtime.block_on(async {
        let process = Builder::new().name(name);
        process.spawn(async move |mut inbox: Inbox<()>| {
            let _blocks = BlocksAtDrop(may_go);
            inbox.receive().await
        })
    });
    let process = process.unwrap();
    until(|| runtime.waits().jobs.len() == 1);
    process.kill();
    until(|| report_with(name, "has blocked or computed for").is_some());
    let text = report_with(name, "has blocked or computed for").unwrap();
    assert!(!text.contains("a kill has been pending"), "{text}");
    assert_eq!(runtime.metrics().pending_kills, 0);
    assert!(runtime.waits().pending_kills.is_empty());
    ends(&runtime, process, &go);
}
