//! Jobs that are pinned to a thread in `block_on` are watched: one that blocks is named, with those that stand still.
//! So is the future of `block_on` itself, if they stand still because of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    cell::Cell,
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use reports::{collect_reports, flushed, reports};
use tools::{runtime, until, watch};
use weald_kernel::{Describe, Runtime, Spawn, Wait, block_in_place, sleep, yield_now};

#[test]
fn a_local_job_that_blocks_in_block_on_is_named_with_those_that_stand_still() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let named = || reports("weald::monitor", "`a local job that blocks`");
    for times in 1..=2 {
        let (go, may_go) = mpsc::channel();
        thread::scope(|threads| {
            threads.spawn(move || {
                until(|| named().len() >= times);
                go.send(()).unwrap();
            });
            runtime.block_on(async {
                let local = |name: &'static str| Spawn::new().name(name);
                let blocks = async move { may_go.recv().unwrap() };
                let blocks = local("a local job that blocks")
                    .spawn_local(blocks)
                    .unwrap();
                let waits = local("a local job behind it")
                    .spawn_local(async {})
                    .unwrap();
                blocks.await.unwrap();
                waits.await.unwrap();
            });
        });
    }
    for report in named() {
        assert!(
            report.text.contains("its thread is in block_on"),
            "{report:?}"
        );
        assert!(
            report.text.contains("`a local job behind it`"),
            "{report:?}"
        );
    }
}

#[test]
fn the_future_of_block_on_is_named_when_it_holds_up_a_local_job() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (go, may_go) = mpsc::channel();
    let named = || reports("weald::monitor", "`behind the future`");
    let main = thread::scope(|threads| {
        let runtime = &runtime;
        let watcher = threads.spawn(move || {
            until(|| !named().is_empty());
            assert_eq!(runtime.metrics().held_up, 1);
            let waits = runtime.waits();
            go.send(()).unwrap();
            let [held_up] = &waits.held_up[..] else {
                panic!("{waits}");
            };
            assert_eq!(held_up.job.name.as_deref(), Some("behind the future"));
            held_up.by.clone()
        });
        let before = line!();
        runtime.block_on(async {
            let local = Spawn::new().name("behind the future");
            let local = local.spawn_local(async {}).unwrap();
            may_go.recv().unwrap();
            local.await.unwrap();
        });
        let main = watcher.join().unwrap();
        assert_eq!(main.site.line(), before + 1);
        main.to_string()
    });
    assert!(
        main.starts_with("the future of block_on at kernel/tests/local_jobs_watched.rs:"),
        "{main}"
    );
    assert_eq!(runtime.metrics().held_up, 0);
    flushed();
    let [report] = &named()[..] else {
        panic!("{:?}", named());
    };
    for part in [&main[..], "1 unit of its OS thread waits", "weald::offload"] {
        assert!(report.text.contains(part), "{report:?}");
    }
}

/// Waits until the monitor of the runtime with this name sleeps until something wakes it: its thread waits for a futex,
/// without a time limit.
fn until_monitor_sleeps(runtime: &str) {
    let comm = format!("{runtime}-monitor\n");
    let is_monitor =
        |thread: &PathBuf| fs::read_to_string(thread.join("comm")).is_ok_and(|name| name == comm);
    // It names itself once it has started.
    let find = || {
        let threads = fs::read_dir("/proc/self/task").unwrap();
        let mut threads = threads.map(|thread| thread.unwrap().path());
        threads.find(is_monitor)
    };
    until(|| find().is_some());
    let monitor = find().unwrap();
    until(|| {
        let call = fs::read_to_string(monitor.join("syscall")).unwrap();
        let words: Vec<_> = call.split_whitespace().collect();
        // The number of the call, and its arguments; the fourth is the time limit.
        words[0] == libc::SYS_futex.to_string() && words[4] == "0x0"
    });
}

/// When the poll begins, there is nothing to watch, and the monitor falls asleep.
#[test]
fn a_local_job_that_is_spawned_late_in_a_long_poll_is_held_up_too() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder().workers(1).name("late");
    let runtime = runtime.build().unwrap();
    let (go, may_go) = mpsc::channel();
    let named = || reports("weald::monitor", "`spawned late`");
    thread::scope(|threads| {
        threads.spawn(move || {
            until(|| !named().is_empty());
            go.send(()).unwrap();
        });
        runtime.block_on(async {
            until_monitor_sleeps("late");
            let late = Spawn::new().name("spawned late").spawn_local(async {});
            may_go.recv().unwrap();
            late.unwrap().await.unwrap();
        });
    });
}

/// While a `wait()` of the future waits, and in an inner `block_on`, local jobs run, so nothing is held up.
#[test]
fn a_future_of_block_on_that_waits_holds_nothing_up() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let long = Duration::from_millis(100);
    let is_over: &'static Cell<bool> = Box::leak(Box::default());
    runtime.block_on(async {
        // One of them is always in the queue.
        let busy = ["busy one", "busy two"].map(|name| {
            let yields = async {
                while !is_over.get() {
                    yield_now().await;
                }
            };
            Spawn::new().name(name).spawn_local(yields).unwrap()
        });
        sleep(long).wait();
        runtime.block_on(sleep(long));
        is_over.set(true);
        for busy in busy {
            busy.await.unwrap();
        }
    });
    flushed();
    // On a machine with more threads than cores, one of the jobs may be named for holding up the other.
    let mut found = reports("weald::monitor", "`busy ");
    found.retain(|report| report.text.contains("the future of block_on"));
    assert!(found.is_empty(), "{found:?}");
}

/// By the time that another is named, which runs on such a thread too and began later, this one would be.
#[test]
fn a_local_job_that_announces_a_block_in_block_on_is_named_only_when_it_goes_on() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let local = |name: &'static str| Spawn::new().name(name);
    let named = |name: &str| !reports("weald::monitor", name).is_empty();
    let (ours, others) = ("`announces in block_on`", "`announces nothing there`");
    let (begins, begun) = mpsc::channel();
    thread::scope(|threads| {
        let runtime = &runtime;
        threads.spawn(move || {
            begun.recv().unwrap();
            runtime.block_on(async {
                let blocks = async move { until(|| named(others)) };
                let blocks = local("announces nothing there").spawn_local(blocks);
                blocks.unwrap().await.unwrap();
            });
        });
        runtime.block_on(async {
            let announces = local("announces in block_on").spawn_local(async move {
                block_in_place(|| {
                    begins.send(()).unwrap();
                    until(|| named(others));
                    flushed();
                });
                let was_named = named(ours);
                until(|| named(ours));
                was_named
            });
            assert!(!announces.unwrap().await.unwrap());
        });
    });
}

/// Blocks when it is dropped, until it is told to go on.
#[derive(Debug)]
struct BlocksAtDrop(Mutex<mpsc::Receiver<()>>, Arc<AtomicBool>);

impl Describe for BlocksAtDrop {
    fn name(&self) -> String {
        "a local job that leaves a destructor".to_owned()
    }
}

impl Drop for BlocksAtDrop {
    fn drop(&mut self) {
        _ = self.0.lock().unwrap().recv();
        self.1.store(true, Ordering::SeqCst);
    }
}

/// It ends at once, so nobody watched it before.
#[test]
fn what_a_local_job_leaves_in_block_on_is_dropped_as_the_jobs() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (drop_ends, ends) = mpsc::channel();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let described = BlocksAtDrop(Mutex::new(ends), is_dropped.clone());
    let named = || reports("weald::monitor", "a local job that leaves a destructor");
    thread::scope(|threads| {
        threads.spawn(move || {
            until(|| !named().is_empty());
            drop_ends.send(()).unwrap();
        });
        runtime.block_on(async {
            let leaves = Spawn::new().name("a local job that leaves a destructor");
            let leaves = leaves.described_by(Arc::new(described));
            leaves.spawn_local(async {}).unwrap().detach();
            while !is_dropped.load(Ordering::SeqCst) {
                yield_now().await;
            }
        });
    });
}
