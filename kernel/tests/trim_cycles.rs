//! `Runtime::trim`, again and again: of timers that were started and cancelled nothing is left, however often, wherever
//! they were started, and whoever waited for them. The program's blocks are counted, and so is what the system holds.
//!
//! A program of its own, because its allocator counts, and a test beside this one would allocate, too.

#![allow(
    unsafe_code,
    reason = "an allocator can be defined in no other way; it counts, and passes each call on"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use tools::{runtime, until, watch};
use weald_kernel::{Runtime, Sleep, sleep, yield_now};

/// How many blocks the program has.
static BLOCKS: AtomicIsize = AtomicIsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's promise; every block is the system's.
        unsafe { System.dealloc(block, layout) };
    }
}

/// How many sleeps are started in a cycle, and how many cycles there are of each kind.
const SLEEPS: usize = 50_000;
const CYCLES: usize = 7;

/// How many bytes more there may be after the last cycle than after the second: about what one cycle has in use.
const MORE: usize = 8 << 20;

/// A waker of another executor, which does nothing. A timer keeps a reference to it while it is in a wheel.
struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

/// Starts sleeps of an hour and more, in every slot of the wheel.
fn start(waker: &Waker) -> Vec<Pin<Box<Sleep>>> {
    let hour = Duration::from_secs(3600);
    let start = |n| {
        let mut sleep = Box::pin(sleep(hour + Duration::from_millis(n * 977)));
        let mut cx = Context::from_waker(waker);
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        sleep
    };
    (0..SLEEPS as u64).map(start).collect()
}

/// Starts and cancels sleeps, and trims.
type Cycle = fn(&Runtime, Waker);

/// On a plain thread, with the wakers of its `block_on`.
fn on_a_thread(runtime: &Runtime, _: Waker) {
    runtime.block_on(poll_fn(|cx| {
        drop(start(cx.waker()));
        Poll::Ready(())
    }));
}

/// On a plain thread, with foreign wakers.
fn on_a_thread_with_foreign_wakers(runtime: &Runtime, waker: Waker) {
    runtime.block_on(async { drop(start(&waker)) });
}

/// In a job, with its wakers.
fn in_a_job(runtime: &Runtime, _: Waker) {
    let starts = poll_fn(|cx| {
        drop(start(cx.waker()));
        Poll::Ready(())
    });
    runtime.block_on(runtime.spawn(starts)).unwrap();
}

/// In a job, with foreign wakers, which the runtime keeps with the job's name.
fn in_a_job_with_foreign_wakers(runtime: &Runtime, waker: Waker) {
    let starts = runtime.spawn(async move { drop(start(&waker)) });
    runtime.block_on(starts).unwrap();
}

/// The program's own memory that the system holds, in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let anonymous = lines.find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = anonymous.unwrap().trim_end_matches(" kB").trim();
    kilobytes.parse::<usize>().unwrap() * 1024
}

/// What is in use after a trim, once the jobs that drop foreign wakers have ended: blocks, and bytes of the system.
fn after(cycle: Cycle, runtime: &Runtime) -> (isize, usize) {
    let nothing = Arc::new(Nothing);
    cycle(runtime, Waker::from(nothing.clone()));
    assert_eq!(runtime.metrics().timers, 0);
    runtime.trim();
    until(|| Arc::strong_count(&nothing) == 1);
    // Each worker gives back its caches, too.
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    until(|| runtime.metrics().sleeping == 2);
    runtime.trim();
    (BLOCKS.load(Ordering::Relaxed), resident())
}

#[test]
fn cycles_of_cancelled_timers_and_trims_leave_nothing() {
    let _watch = watch();
    // Its jobs compute for longer than the bound, so that many threads allocate and free.
    let runtime = runtime(2);
    let cycles: [(&str, Cycle); 4] = [
        ("on a thread", on_a_thread),
        (
            "on a thread, foreign wakers",
            on_a_thread_with_foreign_wakers,
        ),
        ("in a job", in_a_job),
        ("in a job, foreign wakers", in_a_job_with_foreign_wakers),
    ];
    for (kind, cycle) in cycles {
        // The threads of the first one have allocated nothing before.
        let _first = after(cycle, &runtime);
        let (first_blocks, first_bytes) = after(cycle, &runtime);
        let (mut blocks, mut bytes) = (0, 0);
        for _ in 0..CYCLES {
            (blocks, bytes) = after(cycle, &runtime);
        }
        println!("{kind}: {first_blocks} blocks, {first_bytes} bytes; {blocks}, {bytes}");
        // Far fewer than one for each timer of one cycle. Jobs that have dropped wakers may not have ended yet: on a
        // busy machine under a sanitizer, where each is a block of its own, there were 16,000 more.
        let some = isize::try_from(SLEEPS / 4).unwrap();
        until(|| BLOCKS.load(Ordering::Relaxed) < first_blocks + some);
        // The allocators of other C libraries, and of sanitizers, keep what they like.
        if cfg!(all(target_env = "gnu", not(weald_plain_alloc))) {
            assert!(bytes < first_bytes + MORE);
        }
    }
}
