//! A thread that takes the worker of a stuck job over does not begin another job of that kind.
//!
//! A program of its own, because its allocator holds up the monitor.

#![allow(
    unsafe_code,
    reason = "an allocator can be defined in no other way; it passes each call on"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use blocker::Blocker;
use reports::{collect_reports, flushed, reports};
use tools::{runtime, until, watch};
use weald_kernel::{Describe, Spawn};

/// What the runtime tries to get before it starts a thread. Here only the monitor starts one.
const FOR_THREAD: usize = (8 << 10) + 24;
/// How often the monitor stands still, and for how long, unless the second job begins.
const PAUSES: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// Whether the monitor stands still whenever it needs memory, once it has started a thread.
static IS_HELD: AtomicBool = AtomicBool::new(false);
static HELD: AtomicUsize = AtomicUsize::new(0);
/// How many jobs have begun.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_MONITOR: Cell<bool> = const { Cell::new(false) };
}

struct HoldsMonitor;

#[global_allocator]
static ALLOCATOR: HoldsMonitor = HoldsMonitor;

// SAFETY: the system's allocator keeps the contract.
unsafe impl GlobalAlloc for HoldsMonitor {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.size() == FOR_THREAD {
            true => IS_MONITOR.set(true),
            false if IS_MONITOR.get() => hold(),
            false => {}
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; every block is the system's.
        unsafe { System.dealloc(block, layout) };
    }
}

fn hold() {
    if !IS_HELD.load(Ordering::SeqCst) || HELD.fetch_add(1, Ordering::SeqCst) >= PAUSES {
        return;
    }
    let since = Instant::now();
    while BEGUN.load(Ordering::SeqCst) < 2 && since.elapsed() < PAUSE {
        std::thread::yield_now();
    }
}

/// For it the monitor needs memory when it notes that the job offends.
#[derive(Debug)]
struct Described(&'static str);

impl Describe for Described {
    fn name(&self) -> String {
        self.0.to_owned()
    }
}

#[test]
fn a_job_behind_one_that_blocks_runs_in_quarantine_however_late_the_monitor_goes_on() {
    const NAMES: [&str; 2] = ["the first to block", "the second to block"];
    let _watch = watch();
    collect_reports();
    let (runtime, blocker) = (runtime(1), Blocker::default());
    IS_HELD.store(true, Ordering::SeqCst);
    let jobs: Vec<_> = runtime.block_on(async {
        let spawn = |name| {
            let blocks = blocker.clone();
            let described = Spawn::new().described_by(Arc::new(Described(name)));
            described.spawn(async move {
                BEGUN.fetch_add(1, Ordering::SeqCst);
                blocks.block();
            })
        };
        NAMES.map(spawn).into()
    });
    until(|| !reports("weald::monitor", NAMES[1]).is_empty());
    flushed();
    let of_second = reports("weald::monitor", NAMES[1]);
    blocker.open();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    let text = &of_second[0].text;
    assert!(text.contains("on a thread without a worker"), "{text}");
    assert!(HELD.load(Ordering::SeqCst) > 0);
}
