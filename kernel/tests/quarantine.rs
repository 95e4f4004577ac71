//! Quarantine: threads that have not started, and what its reports say.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::resume_unwind,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
};

use blocker::Blocker;
use reports::{collect_reports, flushed, reports};
use tools::{Latch, until, watch};
use weald_kernel::{
    DEFAULT_STACK, JobName, JoinHandle, Runtime, Spawn, Wait, spawn, worker_index, yield_now,
};

fn with_spare_threads(workers: usize, spare: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .spare_threads(spare)
        .build()
        .unwrap()
}

/// Threads of one kind.
fn threads(
    runtime: &Runtime,
    count: usize,
    code: impl Fn() + Clone + Send + 'static,
) -> Vec<JoinHandle<()>> {
    runtime.block_on(async {
        (0..count)
            .map(|_| {
                let code = code.clone();
                let spawned = Spawn::new().spawn_fiber(DEFAULT_STACK, code);
                spawned.unwrap()
            })
            .collect()
    })
}

/// Other jobs and threads run to their ends.
fn others_run(runtime: &Runtime) {
    for _ in 0..500 {
        let job = runtime.spawn(async {
            yield_now().await;
            spawn(async { 1 }).await.unwrap()
        });
        assert_eq!(runtime.block_on(job).unwrap(), 1);
        let thread = threads(runtime, 1, || ()).remove(0);
        runtime.block_on(thread).unwrap();
    }
}

fn join_all(runtime: &Runtime, jobs: Vec<JoinHandle<()>>) {
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

#[test]
fn more_new_threads_that_block_than_spare_threads_stop_nobody_else() {
    for workers in [1, 2] {
        let _watch = watch();
        let runtime = with_spare_threads(workers, 16);
        let blocker = Blocker::default();
        let blocks = blocker.clone();
        let jobs = threads(&runtime, 1_000, move || blocks.block());
        until(|| blocker.begun() >= 14);
        others_run(&runtime);
        until(|| runtime.waits().held_back_jobs.len() + blocker.begun() == 1_000);
        let is_one_of_them = |job: &JobName| job.site.file().ends_with("quarantine.rs");
        let held_back = runtime.waits().held_back_jobs;
        assert!(held_back.iter().all(is_one_of_them));
        assert!(blocker.begun() <= 18, "{} have a thread", blocker.begun());
        blocker.open();
        join_all(&runtime, jobs);
    }
}

#[test]
fn a_job_that_is_stuck_in_quarantine_holds_no_worker() {
    let _watch = watch();
    collect_reports();
    let runtime = with_spare_threads(1, 16);
    let blocker = Blocker::default();
    let blocks = |name: &'static str| {
        let blocker = blocker.clone();
        let job = async move { blocker.block() };
        runtime.block_on(async { Spawn::new().name(name).spawn(job) })
    };
    let mut jobs = vec![blocks("the first")];
    until(|| !reports("weald::monitor", "`the first`").is_empty());
    let first = reports("weald::monitor", "`the first`").remove(0).text;
    assert!(first.contains("another thread now serves its worker"));
    jobs.push(blocks("in quarantine"));
    until(|| !reports("weald::monitor", "`in quarantine`").is_empty());
    let second = reports("weald::monitor", "`in quarantine`").remove(0).text;
    assert!(!second.contains("serves its worker"), "{second}");
    assert!(second.contains("without a worker"), "{second}");
    blocker.open();
    join_all(&runtime, jobs);
}

/// A worker that goes to another thread meanwhile changes nothing: the jobs still wait.
#[test]
fn a_full_quarantine_is_reported_once() {
    let _watch = watch();
    collect_reports();
    let runtime = with_spare_threads(1, 24);
    let blocker = Blocker::default();
    let burst = |count: usize| -> Vec<_> {
        (0..count)
            .map(|_| {
                let blocker = blocker.clone();
                runtime.spawn(async move { blocker.block() })
            })
            .collect()
    };
    let mut jobs = burst(60);
    let full = || reports("weald::monitor", "all 21 spare threads");
    until(|| !full().is_empty());
    // Blocks on a worker, which goes to another thread.
    let own = Blocker::default();
    let before = runtime.metrics().detached;
    let blocks = own.clone();
    jobs.push(runtime.spawn(async move { blocks.block() }));
    until(|| own.begun() == 1 && runtime.metrics().detached > before);
    others_run(&runtime);
    flushed();
    assert_eq!(full().len(), 1, "{:?}", full());
    own.open();
    blocker.open();
    join_all(&runtime, jobs);
}

/// A job of a kind of its own blocks once, and further ones run to their ends, although the quarantine is full: in
/// rounds in which the monitor lets jobs out of it.
fn goes_through_quarantine(runtime: &Runtime, name: &'static str) {
    let own = Blocker::default();
    let of_one_kind = |blocks: Option<Blocker>| {
        let job = async move { blocks.iter().for_each(Blocker::block) };
        runtime.block_on(async { Spawn::new().name(name).spawn(job) })
    };
    let blocked = of_one_kind(Some(own.clone()));
    until(|| !reports("weald::monitor", &format!("`{name}`")).is_empty());
    own.open();
    runtime.block_on(blocked).unwrap();
    for _ in 0..3 {
        runtime.block_on(of_one_kind(None)).unwrap();
    }
}

#[test]
fn jobs_of_a_kind_that_blocked_once_do_not_wait_until_a_full_quarantine_is_empty() {
    let _watch = watch();
    collect_reports();
    let runtime = with_spare_threads(1, 14);
    let blocker = Blocker::default();
    let jobs: Vec<_> = (0..60)
        .map(|_| {
            let blocker = blocker.clone();
            runtime.spawn(async move { blocker.block() })
        })
        .collect();
    until(|| !reports("weald::monitor", "all 12 spare threads").is_empty());
    goes_through_quarantine(&runtime, "blocks once");
    blocker.open();
    join_all(&runtime, jobs);
}

/// Blocks its thread when it is dropped.
struct BlocksAtDrop(Blocker);

impl Drop for BlocksAtDrop {
    fn drop(&mut self) {
        self.0.block();
    }
}

#[test]
fn more_cancelled_jobs_whose_destructors_block_than_spare_threads_stop_no_other_kind() {
    let _watch = watch();
    collect_reports();
    let runtime = with_spare_threads(2, 8);
    let (blocker, begun) = (Blocker::default(), Arc::new(AtomicUsize::new(0)));
    let jobs: Vec<_> = (0..100)
        .map(|_| {
            let (guard, begun) = (BlocksAtDrop(blocker.clone()), begun.clone());
            runtime.spawn(async move {
                let _guard = guard;
                begun.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            })
        })
        .collect();
    until(|| begun.load(Ordering::SeqCst) == 100);
    jobs.iter().for_each(JoinHandle::cancel);
    until(|| blocker.begun() >= 7);
    goes_through_quarantine(&runtime, "goes through");
    others_run(&runtime);
    assert!(blocker.begun() < 10, "{} have a thread", blocker.begun());
    blocker.open();
    for job in jobs {
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
    }
}

/// Waits when it is dropped.
struct WaitsAtDrop(Latch);

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        self.0.clone().wait();
    }
}

/// Each such wait takes its worker a new thread, so a burst of them would hold up what is ready behind it.
#[test]
fn jobs_that_wait_while_they_unwind_beside_others_that_do_hold_up_no_worker() {
    let _watch = watch();
    let (runtime, ends) = (with_spare_threads(1, 8), Latch::default());
    let without_worker = Arc::new(AtomicUsize::new(0));
    let mut jobs = Vec::new();
    for waiting in 1..=20 {
        let (waits, counts) = (ends.clone(), without_worker.clone());
        jobs.push(runtime.spawn(async move {
            let has_none = usize::from(worker_index().is_none());
            counts.fetch_add(has_none, Ordering::SeqCst);
            let _waits = WaitsAtDrop(waits);
            resume_unwind(Box::new(()));
        }));
        until(|| ends.waiters() == waiting);
    }
    assert!(without_worker.load(Ordering::SeqCst) > 0);
    ends.open();
    for job in jobs {
        assert!(runtime.block_on(job).is_err());
    }
}

/// Blocks at the blocker when it is woken.
struct WakeBlocks(Blocker);

impl Wake for WakeBlocks {
    fn wake(self: Arc<WakeBlocks>) {
        self.0.block();
    }
}

/// Another executor waits for jobs of the runtime, outside of any job.
#[test]
fn more_foreign_wakers_that_block_than_spare_threads_stop_no_other_kind() {
    let _watch = watch();
    let (runtime, blocker, latch) = (
        with_spare_threads(2, 8),
        Blocker::default(),
        Latch::default(),
    );
    let waker = Waker::from(Arc::new(WakeBlocks(blocker.clone())));
    let poll_once = |mut job: JoinHandle<()>| {
        let polled = pin!(&mut job).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        job
    };
    let jobs: Vec<_> = (0..100)
        .map(|_| poll_once(runtime.spawn(latch.clone())))
        .collect();
    latch.open();
    until(|| blocker.begun() >= 7);
    others_run(&runtime);
    assert!(blocker.begun() < 10, "{} have a thread", blocker.begun());
    blocker.open();
    join_all(&runtime, jobs);
}
