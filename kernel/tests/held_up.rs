//! Jobs that are held up, because another job holds the OS thread to which they are pinned, are named and counted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use reports::{collect_reports, reports};
use tools::{Latch, runtime, until, watch};
use weald_kernel::{DEFAULT_STACK, JoinHandle, Runtime, Spawn, Wait, block_in_place, sleep};

fn thread(
    runtime: &Runtime,
    name: &'static str,
    code: impl FnOnce() + Send + 'static,
) -> JoinHandle<()> {
    let spawn = Spawn::new().name(name);
    let spawned = runtime.block_on(async { spawn.spawn_fiber(DEFAULT_STACK, code) });
    spawned.unwrap()
}

/// Threads that are started on the only worker's OS thread, and wait for the latch.
fn sleepers(runtime: &Runtime, latch: &Latch, names: &[&'static str]) -> Vec<JoinHandle<()>> {
    let before = latch.waiters();
    let start = |name: &&'static str| {
        let latch = latch.clone();
        thread(runtime, name, move || latch.wait())
    };
    let threads = names.iter().map(start).collect();
    until(|| latch.waiters() == before + names.len());
    threads
}

/// How a thread blocks.
type Block = fn(Receiver<()>);

fn without_a_word(may_go: Receiver<()>) {
    may_go.recv().unwrap();
}

fn announced(may_go: Receiver<()>) {
    block_in_place(|| may_go.recv().unwrap());
}

/// A thread that blocks the OS thread; it has begun.
fn offender(
    runtime: &Runtime,
    name: &'static str,
    block: Block,
) -> (JoinHandle<()>, mpsc::Sender<()>) {
    let (go, may_go) = mpsc::channel();
    let (begins, has_begun) = mpsc::channel();
    let job = thread(runtime, name, move || {
        // Pinned to the OS thread of the others.
        sleep(Duration::from_micros(1)).wait();
        begins.send(()).unwrap();
        block(may_go);
    });
    has_begun.recv().unwrap();
    (job, go)
}

fn end(runtime: &Runtime, go: &mpsc::Sender<()>, jobs: impl IntoIterator<Item = JoinHandle<()>>) {
    go.send(()).unwrap();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    assert_eq!(runtime.metrics().held_up, 0);
    assert_eq!(runtime.waits().held_up, []);
}

/// The threads become runnable after the offender's worker went to another thread.
fn those_that_come_later(name: &'static str, block: Block) {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let latch = Latch::default();
    let threads = sleepers(&runtime, &latch, &["ash", "beech", "cedar", "dogwood"]);
    let (job, go) = offender(&runtime, name, block);
    let holds = format!("`{name}`");
    until(|| {
        let metrics = runtime.metrics();
        metrics.announced > 0 || !reports("weald::monitor", &holds).is_empty()
    });
    assert_eq!(runtime.metrics().held_up, 0);
    latch.open();
    until(|| runtime.metrics().held_up == 4);
    let report = || {
        let found = reports("weald::monitor", &holds);
        found
            .into_iter()
            .find(|report| report.text.contains("for it: `ash` spawned at"))
    };
    until(|| report().is_some());
    let text = report().unwrap().text;
    assert!(text.contains("has held its OS thread for"), "{text}");
    assert!(text.contains("held_up.rs"), "{text}");
    let waits = runtime.waits();
    assert_eq!(waits.held_up.len(), 4);
    for held_up in &waits.held_up {
        assert_eq!(held_up.by.name.as_deref(), Some(name));
    }
    assert!(waits.to_string().contains("is held up by"), "{waits}");
    end(&runtime, &go, threads.into_iter().chain([job]));
    let found = reports("weald::monitor", &holds);
    let named = found.iter().filter(|report| report.text.contains("for it"));
    assert_eq!(named.count(), 1, "{found:?}");
}

#[test]
fn threads_that_become_runnable_behind_a_blocked_one_are_named() {
    those_that_come_later("a thread that blocks", without_a_word);
}

#[test]
fn threads_that_become_runnable_behind_an_announced_block_are_named() {
    those_that_come_later("a thread that blocks in place", announced);
}

/// The threads are runnable before the offender begins, so the report about it names them.
#[test]
fn a_report_of_a_stuck_thread_names_those_that_wait_for_it() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let latch = Latch::default();
    let threads = sleepers(&runtime, &latch, &["elm", "fir", "gum", "hazel", "ivy"]);
    let (go, may_go) = mpsc::channel::<()>();
    let job = thread(
        &runtime,
        "a thread that wakes others and blocks",
        move || {
            sleep(Duration::from_micros(1)).wait();
            // Into the thread's own part of the queue.
            latch.open();
            may_go.recv().unwrap();
        },
    );
    let stuck = "has blocked or computed";
    let report = || {
        let found = reports("weald::monitor", "`a thread that wakes others and blocks`");
        found.into_iter().find(|report| report.text.contains(stuck))
    };
    until(|| report().is_some());
    let text = report().unwrap().text;
    assert!(
        text.contains("5 units of its OS thread wait for it: `elm`"),
        "{text}"
    );
    assert!(
        text.contains("; `gum`") && text.contains("; and 2 more."),
        "{text}"
    );
    assert_eq!(report().unwrap().level, tracing::Level::WARN);
    until(|| runtime.metrics().held_up == 5);
    end(&runtime, &go, threads.into_iter().chain([job]));
}
