//! While the monitor finds no memory, it goes on: it retakes stuck workers for idle threads, and reports later.
//!
//! A program of its own, because its allocator refuses the monitor.

#![allow(
    unsafe_code,
    reason = "an allocator can be defined in no other way; it passes each call on, or refuses it"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fs, ptr,
    sync::{
        atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use tools::watch;
use weald_kernel::Runtime;

/// The system's number of the thread that gets no memory; zero for none.
static REFUSED: AtomicI32 = AtomicI32::new(0);
/// Whether it has begun a round since then. A round that finds memory may rely on it to its end.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// What the monitor tries to get when it begins a round.
const FOR_ROUND: usize = 64 << 10;
/// How often it was refused.
static REFUSALS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: Cell<i32> = const { Cell::new(0) };
}

struct Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

fn is_refused(bytes: usize) -> bool {
    let refused = REFUSED.load(Ordering::Relaxed);
    if refused == 0 {
        return false;
    }
    if NUMBER.get() == 0 {
        NUMBER.set(rustix::thread::gettid().as_raw_nonzero().get());
    }
    if NUMBER.get() != refused {
        return false;
    }
    HAS_BEGUN.fetch_or(bytes == FOR_ROUND, Ordering::Relaxed) || bytes == FOR_ROUND
}

// SAFETY: the system's allocator keeps the contract, and an allocator may refuse.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            REFUSALS.fetch_add(1, Ordering::Relaxed);
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

/// The number of the monitor's thread.
fn monitor() -> i32 {
    let mut threads = fs::read_dir("/proc/self/task").unwrap().map(Result::unwrap);
    let is_monitor = |thread: &fs::DirEntry| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name == "own-monitor\n")
    };
    let monitor = threads.find(is_monitor).unwrap();
    monitor.file_name().to_str().unwrap().parse().unwrap()
}

/// A job of a kind of its own blocks on the only worker until another one has run there.
fn hold_until_another_runs<const KIND: usize>(runtime: &Runtime) {
    let (runs, has_run) = mpsc::channel();
    let holds = runtime.spawn(async move {
        weald_kernel::spawn(async move { runs.send(KIND).unwrap() }).detach();
        has_run.recv().unwrap();
    });
    runtime.block_on(holds).unwrap();
}

/// Calls `act` while the monitor gets no memory, and until it was refused some.
fn without_memory(act: impl Fn()) {
    HAS_BEGUN.store(false, Ordering::SeqCst);
    REFUSED.store(monitor(), Ordering::SeqCst);
    let refusals = REFUSALS.load(Ordering::SeqCst);
    while REFUSALS.load(Ordering::SeqCst) < refusals + 10 {
        act();
    }
    REFUSED.store(0, Ordering::SeqCst);
}

#[test]
fn without_memory_the_monitor_goes_on() {
    let _watch = watch();
    let builder = Runtime::builder().workers(1).name("own");
    let stuck_after = Duration::from_millis(1);
    let runtime = builder.stuck_after(stuck_after).build().unwrap();
    // From now on there is a second thread, which is idle at the end.
    hold_until_another_runs::<1>(&runtime);
    let before = runtime.metrics().detached;
    assert!(before > 0);
    without_memory(|| hold_until_another_runs::<2>(&runtime));
    assert!(runtime.metrics().detached > before);
    // This kind is known, so its jobs run in quarantine.
    hold_until_another_runs::<3>(&runtime);
    without_memory(|| hold_until_another_runs::<3>(&runtime));
}
