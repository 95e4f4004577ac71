//! Jobs that block their thread: others run on, the report names the blocked jobs, and spare threads are bounded
//! and reused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Sender},
    },
    time::Duration,
};

use reports::{collect_reports, flushed, reports};
use tools::{Latch, on_each, runtime, until, watch};
use weald_kernel::{
    Builder, Describe, JoinHandle, Runtime, Spawn, Wait, block_in_place, spawn, yield_now,
};

/// A job that blocks its thread until the sender is used or dropped.
fn blocker(runtime: &Runtime, name: &'static str) -> (JoinHandle<()>, Sender<()>) {
    let (begins, has_begun) = mpsc::channel();
    let blocker = named_blocker(runtime, name, begins);
    has_begun.recv().unwrap();
    blocker
}

/// The same, for a job that need not have begun.
fn unstarted_blocker(runtime: &Runtime, name: &'static str) -> (JoinHandle<()>, Sender<()>) {
    named_blocker(runtime, name, mpsc::channel().0)
}

fn named_blocker(
    runtime: &Runtime,
    name: &'static str,
    begins: Sender<()>,
) -> (JoinHandle<()>, Sender<()>) {
    let (go, may_go) = mpsc::channel();
    let job = runtime.block_on(async {
        Spawn::new().name(name).spawn(async move {
            let _ = begins.send(());
            let _ = may_go.recv();
        })
    });
    (job, go)
}

fn still_serves(runtime: &Runtime) {
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
}

#[test]
fn a_job_that_blocks_stops_no_other_and_is_reported_once() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (job, go) = blocker(&runtime, "a blocker that is alone");
    still_serves(&runtime);
    assert_eq!(runtime.metrics().detached, 1);
    for _ in 0..100 {
        still_serves(&runtime);
    }
    until(|| !reports("weald::monitor", "`a blocker that is alone`").is_empty());
    flushed();
    let found = reports("weald::monitor", "`a blocker that is alone`");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].level, tracing::Level::WARN);
    assert!(
        found[0].text.contains("blocked_jobs.rs"),
        "{}",
        found[0].text
    );
    go.send(()).unwrap();
    runtime.block_on(job).unwrap();
    assert_eq!(runtime.metrics().detached, 1);
}

#[test]
fn jobs_queued_behind_a_blocker_run() {
    let _watch = watch();
    let runtime = runtime(1);
    let (go, may_go) = mpsc::channel();
    let latch = Latch::default();
    let woken = runtime.spawn(latch.clone());
    until(|| latch.waiters() == 1);
    // Leaves jobs in the ring, one in the next slot, and a timer in the wheel; then blocks.
    let job = runtime.spawn(async move {
        let queued: Vec<_> = (0..300_u32).map(|n| spawn(async move { n })).collect();
        let sleeper = spawn(weald_kernel::sleep(Duration::from_millis(1)));
        yield_now().await;
        let late = spawn(async {});
        latch.open();
        may_go.recv().unwrap();
        (queued, sleeper, late)
    });
    runtime.block_on(woken).unwrap();
    go.send(()).unwrap();
    runtime.block_on(async {
        let (queued, sleeper, late) = job.await.unwrap();
        for (n, job) in queued.into_iter().enumerate() {
            assert_eq!(job.await.unwrap() as usize, n);
        }
        sleeper.await.unwrap();
        late.await.unwrap();
    });
}

#[test]
fn the_thread_of_a_computing_job_is_detached_too() {
    let _watch = watch();
    let runtime = runtime(1);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let (begins, has_begun) = mpsc::channel();
    let job = runtime.spawn(async move {
        begins.send(()).unwrap();
        while !stopped.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    });
    has_begun.recv().unwrap();
    still_serves(&runtime);
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(job).unwrap();
}

#[test]
fn an_announced_block_hands_the_worker_off_at_once_and_is_not_reported() {
    let _watch = watch();
    collect_reports();
    let hour = Duration::from_secs(3600);
    // The monitor would take an hour.
    let runtime = Runtime::builder()
        .workers(1)
        .stuck_after(hour)
        .build()
        .unwrap();
    let (go, may_go) = mpsc::channel();
    let job = runtime.block_on(async {
        Spawn::new()
            .name("announced")
            .spawn(async move { block_in_place(|| may_go.recv().unwrap()) })
    });
    until(|| runtime.metrics().announced == 1);
    still_serves(&runtime);
    go.send(7).unwrap();
    assert_eq!(runtime.block_on(job).unwrap(), 7);
    assert_eq!(runtime.metrics().detached, 0);
    flushed();
    assert!(reports("weald::monitor", "`announced`").is_empty());
}

#[test]
fn a_job_on_a_detached_thread_continues_as_before() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            for n in 0..20_u32 {
                assert_eq!(block_in_place(|| n), n);
                // Wakes, spawns, sleeps and waits on a detached thread.
                let other = spawn(async move { n });
                weald_kernel::sleep(Duration::from_micros(100)).wait();
                assert_eq!(other.await.unwrap(), n);
                let latch = Latch::default();
                let waits = spawn(latch.clone());
                block_in_place(|| latch.open());
                waits.await.unwrap();
                yield_now().await;
            }
        });
        runtime.block_on(job).unwrap();
    });
}

#[test]
fn a_panic_after_a_block_is_caught_like_any_other() {
    on_each(|runtime| {
        let job: JoinHandle<()> = runtime.spawn(async {
            block_in_place(|| ());
            std::panic::resume_unwind(Box::new("after"));
        });
        assert!(runtime.block_on(job).unwrap_err().is_panic());
        still_serves(runtime);
    });
}

#[test]
fn at_the_bound_of_spare_threads_the_runtime_reports_it_and_recovers() {
    let _watch = watch();
    collect_reports();
    let stuck_after = Duration::from_millis(2);
    let builder = Runtime::builder()
        .workers(1)
        .spare_threads(3)
        .stuck_after(stuck_after);
    let runtime = builder.build().unwrap();
    let names = ["bound one", "bound two"];
    let mut blockers: Vec<_> = names.iter().map(|name| blocker(&runtime, name)).collect();
    // Jobs of the same kind wait, because the last spare thread is left for a worker. All others run on.
    let (third, go_third) = unstarted_blocker(&runtime, "bound three");
    let reported = || {
        let mut found = reports("weald::monitor", "all 2 spare threads that may run jobs");
        found.retain(|report| report.text.contains("`bound one`"));
        found
    };
    until(|| !reported().is_empty());
    assert_eq!(runtime.block_on(runtime.spawn(async { 4 })).unwrap(), 4);
    assert!(runtime.metrics().threads <= 4, "{:?}", runtime.metrics());
    let report = reported().remove(0);
    assert!(report.text.contains("`bound two`"), "{}", report.text);
    let (first, go) = blockers.remove(0);
    go.send(()).unwrap();
    runtime.block_on(first).unwrap();
    blockers.push((third, go_third));
    for (job, go) in blockers {
        go.send(()).unwrap();
        runtime.block_on(job).unwrap();
    }
    still_serves(&runtime);
}

#[test]
fn at_the_bound_of_spare_threads_the_runtime_reports_it_once() {
    let _watch = watch();
    collect_reports();
    for (round, workers) in [1, 2].into_iter().enumerate() {
        let builder = Runtime::builder().workers(workers).spare_threads(0);
        let runtime = builder.build().unwrap();
        let refused: Vec<_> = (0..4)
            .map(|_| {
                runtime.spawn(async {
                    for _ in 0..50 {
                        block_in_place(|| ());
                        yield_now().await;
                    }
                })
            })
            .collect();
        for job in refused {
            runtime.block_on(job).unwrap();
        }
        assert_eq!(runtime.metrics().announced, 0);
        until(|| reports("weald::monitor", "all 0 spare threads").len() > round);
        flushed();
        let reported = reports("weald::monitor", "all 0 spare threads");
        assert_eq!(reported.len(), round + 1, "{reported:?}");
    }
}

#[test]
fn at_the_bound_of_waits_the_worker_resumes_when_one_returns() {
    let _watch = watch();
    let stuck_after = Duration::from_millis(2);
    let builder = Runtime::builder()
        .workers(1)
        .spare_threads(1)
        .stuck_after(stuck_after);
    let runtime = builder.build().unwrap();
    let latches: Vec<_> = (0..2).map(|_| Latch::default()).collect();
    let waiting: Vec<_> = latches
        .iter()
        .map(|latch| {
            let waits = latch.clone();
            let job = runtime.spawn(async move { waits.wait() });
            until(|| latch.waiters() == 1);
            job
        })
        .collect();
    let third = runtime.spawn(async { 3 });
    latches[0].open();
    assert_eq!(runtime.block_on(third).unwrap(), 3);
    latches[1].open();
    waiting
        .into_iter()
        .for_each(|job| runtime.block_on(job).unwrap());
}

#[test]
fn spare_threads_are_reused() {
    let _watch = watch();
    let runtime = runtime(2);
    for _ in 0..100 {
        let (go, may_go) = mpsc::channel();
        let job = runtime.spawn(async move { block_in_place(|| may_go.recv().unwrap()) });
        go.send(()).unwrap();
        runtime.block_on(job).unwrap();
        still_serves(&runtime);
    }
    assert_eq!(runtime.metrics().announced, 100);
    assert!(
        runtime.metrics().threads <= 2 + 8,
        "{:?}",
        runtime.metrics()
    );
}

#[test]
fn spare_threads_retire() {
    let _watch = watch();
    let builder = Runtime::builder()
        .workers(1)
        .retire_after(Duration::from_millis(5));
    let runtime = builder.build().unwrap();
    // Twenty at once, so that twenty spare threads exist afterwards.
    let barrier = Arc::new(Barrier::new(21));
    let jobs: Vec<_> = (0..20)
        .map(|_| {
            let barrier = barrier.clone();
            runtime.spawn(async move {
                block_in_place(|| barrier.wait());
            })
        })
        .collect();
    barrier.wait();
    jobs.into_iter()
        .for_each(|job| runtime.block_on(job).unwrap());
    assert!(runtime.metrics().announced == 20);
    until(|| runtime.metrics().threads == 1);
    still_serves(&runtime);
}

#[test]
fn blocks_in_every_order_keep_every_worker_served() {
    fn churn(builder: Builder) {
        let runtime = builder.build().unwrap();
        let jobs: Vec<_> = (0..200_u64)
            .map(|n| {
                runtime.spawn(async move {
                    let (send, receive) = mpsc::channel();
                    let sender = spawn(async move {
                        yield_now().await;
                        send.send(n).unwrap();
                    });
                    let value = match n % 3 {
                        0 => block_in_place(|| receive.recv().unwrap()),
                        1 => receive.recv().unwrap(),
                        _ => {
                            sender.wait().unwrap();
                            return n;
                        }
                    };
                    sender.await.unwrap();
                    value
                })
            })
            .collect();
        let sum: u64 = jobs
            .into_iter()
            .map(|job| runtime.block_on(job).unwrap())
            .sum();
        assert_eq!(sum, 19_900);
    }
    let _watch = watch();
    for workers in [1, 2, 4] {
        churn(
            Runtime::builder()
                .workers(workers)
                .stuck_after(Duration::from_millis(1)),
        );
    }
}

const LEAVES: &str = "leaves a destructor that blocks";

/// Blocks when it is dropped, until it is told to go on.
#[derive(Debug)]
struct BlocksAtDrop(Mutex<mpsc::Receiver<()>>);

impl Describe for BlocksAtDrop {
    fn name(&self) -> String {
        LEAVES.to_owned()
    }
}

impl Drop for BlocksAtDrop {
    fn drop(&mut self) {
        _ = self.0.lock().unwrap().recv();
    }
}

#[test]
fn what_a_job_leaves_on_a_thread_without_a_worker_is_dropped_as_the_jobs() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let times_named = || reports("weald::monitor", LEAVES).len();
    // The monitor has the last reference now and then: then a job of its own drops what this one leaves.
    for round in 0..3 {
        let (_drop_ends, ends) = mpsc::channel();
        let description = Arc::new(BlocksAtDrop(Mutex::new(ends)));
        let references = Arc::downgrade(&description);
        let (go, may_go) = mpsc::channel::<()>();
        let leaves = Spawn::new().name(LEAVES).described_by(description);
        runtime
            .block_on(async move { leaves.spawn(async move { may_go.recv().unwrap() }) })
            .detach();
        until(|| times_named() > 2 * round);
        // Reports ask the description, and drop it where they ask.
        until(|| references.strong_count() == 1);
        go.send(()).unwrap();
        until(|| times_named() > 2 * round + 1);
    }
}
