//! Jobs that are pinned to a thread in `block_on` are watched: one that blocks is named, with those that stand still.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use reports::{collect_reports, flushed, reports};
use tools::{runtime, until, watch};
use weald_kernel::{Describe, Spawn, block_in_place, yield_now};

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
