//! The system gives no thread: a worker that has none keeps its timers and descriptors, and the next thread that is
//! free serves it.
//!
//! A program of its own, because its allocator refuses what the runtime tries to get before it starts a thread.

#![allow(
    unsafe_code,
    reason = "an allocator can be defined in no other way; it passes each call on, or refuses it"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/tools.rs"]
mod tools;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::{Read, Write},
    os::unix::net::UnixStream,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use blocker::Blocker;
use tools::{Latch, until, watch};
use weald_kernel::{
    Done, Interest, IoSource, JoinHandle, LazyJob, Runtime, Wait, push_lazy, sleep,
};

/// Whether no thread starts.
static ARE_REFUSED: AtomicBool = AtomicBool::new(false);
static REFUSALS: AtomicUsize = AtomicUsize::new(0);
/// What the runtime tries to get before it starts a thread.
const FOR_THREAD: usize = (8 << 10) + 24;

struct Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

// SAFETY: the system's allocator keeps the contract, and an allocator may refuse.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() == FOR_THREAD && ARE_REFUSED.load(Ordering::SeqCst) {
            REFUSALS.fetch_add(1, Ordering::SeqCst);
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; every block is the system's.
        unsafe { System.dealloc(block, layout) };
    }
}

/// While it lives, no other test refuses threads, and this one may.
struct NoThreads(#[allow(dead_code, reason = "a guard")] MutexGuard<'static, ()>);

impl NoThreads {
    /// The turn of a test. Threads are refused from [`begin`](NoThreads::begin) on.
    fn turn() -> NoThreads {
        static TURN: Mutex<()> = Mutex::new(());
        NoThreads(TURN.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(&self) {
        ARE_REFUSED.store(true, Ordering::SeqCst);
    }

    fn end(&self) {
        ARE_REFUSED.store(false, Ordering::SeqCst);
    }
}

impl Drop for NoThreads {
    fn drop(&mut self) {
        self.end();
    }
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Waits in a job that holds its thread meanwhile, because it unwinds.
fn spawn_wait(runtime: &Runtime, wait: impl FnMut() + Send + 'static) -> JoinHandle<()> {
    runtime.spawn(async move {
        let unwinds = AssertUnwindSafe(|| {
            let _waits = OnDrop(wait);
            resume_unwind(Box::new("on purpose"));
        });
        catch_unwind(unwinds).unwrap_err();
    })
}

#[test]
fn a_wait_on_every_thread_ends_with_its_timer() {
    let _watch = watch();
    let turn = NoThreads::turn();
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        turn.begin();
        let wait = || sleep(Duration::from_millis(5)).wait();
        let waits: Vec<_> = (0..4).map(|_| spawn_wait(&runtime, wait)).collect();
        for wait in waits {
            runtime.block_on(wait).unwrap();
        }
        turn.end();
    }
    assert!(REFUSALS.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_wait_on_every_thread_ends_with_its_descriptor() {
    let _watch = watch();
    let turn = NoThreads::turn();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let source = runtime.block_on(async { IoSource::new(theirs).unwrap() });
    turn.begin();
    let refusals = REFUSALS.load(Ordering::SeqCst);
    let waits = spawn_wait(&runtime, move || {
        let read = |mut io: &UnixStream| io.read(&mut [0; 8]).map(Done::Maybe);
        assert_eq!(source.operate(Interest::Read, read).wait().unwrap(), 1);
    });
    until(|| REFUSALS.load(Ordering::SeqCst) > refusals);
    ours.write_all(b"x").unwrap();
    runtime.block_on(waits).unwrap();
}

/// Nobody runs jobs while every thread is held in a wait: they run as soon as the system gives a thread.
#[test]
fn a_wait_for_a_job_on_every_thread_ends_once_there_is_a_thread() {
    let _watch = watch();
    let turn = NoThreads::turn();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    turn.begin();
    let refusals = REFUSALS.load(Ordering::SeqCst);
    let latch = Latch::default();
    let wanted = latch.clone();
    let waits = spawn_wait(&runtime, move || wanted.clone().wait());
    let opens = runtime.spawn(async move { latch.open() });
    until(|| REFUSALS.load(Ordering::SeqCst) > refusals);
    assert!(!waits.is_finished() && !opens.is_finished());
    turn.end();
    runtime.block_on(opens).unwrap();
    runtime.block_on(waits).unwrap();
}

/// A worker that has no thread has lazy jobs, while the other one sleeps.
#[test]
fn a_sleeper_makes_jobs_of_the_lazy_ones_of_a_worker_without_a_thread() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    fn make(_: *const LazyJob) -> bool {
        MADE.fetch_add(1, Ordering::SeqCst);
        true
    }
    let _watch = watch();
    let turn = NoThreads::turn();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let latch = Latch::default();
    let wanted = latch.clone();
    until(|| runtime.metrics().sleeping == 2);
    turn.begin();
    let waits = spawn_wait(&runtime, move || {
        for _ in 0..2 {
            let lazy: &LazyJob = Box::leak(Box::default());
            // SAFETY: it stays where it is; `make` may be called.
            assert!(unsafe { push_lazy(lazy, make) });
        }
        wanted.clone().wait();
    });
    until(|| MADE.load(Ordering::SeqCst) == 2);
    latch.open();
    runtime.block_on(waits).unwrap();
}

/// As long as its queue has jobs, a thread of the quarantine takes one after the other.
#[test]
fn a_thread_of_the_quarantine_serves_a_worker_without_a_thread() {
    let _watch = watch();
    let turn = NoThreads::turn();
    let runtime = Runtime::builder().workers(1).spare_threads(3);
    let runtime = runtime.build().unwrap();
    let blockers: Vec<Blocker> = (0..6).map(|_| Blocker::default()).collect();
    let spawn_blocker = |n: usize| {
        let blocker = blockers[n].clone();
        runtime.spawn(async move { blocker.block() })
    };
    let mut jobs = Vec::new();
    // The first is retaken, and the second of its kind runs in quarantine. Then there is no room for a third.
    for (n, blocker) in blockers.iter().enumerate().take(2) {
        jobs.push(spawn_blocker(n));
        until(|| blocker.begun() == 1);
        until(|| runtime.metrics().detached == n as u64 + 1);
    }
    jobs.extend((2..6).map(spawn_blocker));
    turn.begin();
    let refusals = REFUSALS.load(Ordering::SeqCst);
    // Of another kind, so its worker is retaken.
    let blocker = Blocker::default();
    let blocks = blocker.clone();
    jobs.push(runtime.spawn(async move { blocks.block() }));
    // At the second refusal the worker is known to have no thread.
    until(|| REFUSALS.load(Ordering::SeqCst) >= refusals + 2);
    blockers[1].open();
    runtime.block_on(runtime.spawn(async {})).unwrap();
    drop(turn);
    blockers.iter().for_each(Blocker::open);
    blocker.open();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}
