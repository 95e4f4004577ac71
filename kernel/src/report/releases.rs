//! The releasing thread: it drops values of the user whose last holder must not run user code (the monitor), and makes
//! the calls of user code that the monitor would have to make.
//!
//! There is one for the whole program, which starts with the first runtime and never ends. It is not the reporting
//! thread, so that a subscriber that blocks keeps no work from being done. A release that blocks holds up all later
//! ones. A release is a destructor or a description, and neither may block.

use std::{
    collections::VecDeque,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Condvar, Mutex, OnceLock, PoisonError},
    thread,
};

use crate::{report::payload::Payload, sys::lock};

/// A destructor runs on this stack. Only touched pages cost memory.
const STACK: usize = 512 << 10;

static RELEASES: Releases = Releases {
    queue: Mutex::new(ReleaseQueue {
        values: VecDeque::new(),
        is_running: false,
    }),
    queued: Condvar::new(),
};

struct Releases {
    queue: Mutex<ReleaseQueue>,
    queued: Condvar,
}

struct ReleaseQueue {
    values: VecDeque<Box<dyn Send>>,
    is_running: bool,
}

/// What is called with the payload of a release that has panicked.
static ON_PANIC: OnceLock<fn(&Payload)> = OnceLock::new();

/// Starts the thread, unless it runs. If the system refuses it, releases wait for the next attempt. `on_panic`: always
/// the same function.
pub(super) fn start(on_panic: fn(&Payload)) {
    let _is_first = ON_PANIC.set(on_panic);
    start_in(&mut lock(&RELEASES.queue));
}

fn start_in(queue: &mut ReleaseQueue) {
    if !queue.is_running {
        let thread = thread::Builder::new().name("weald-releases".to_owned());
        queue.is_running = thread.stack_size(STACK).spawn(run).is_ok();
    }
}

/// Hands a value to the thread, which drops it. Any thread, even under a lock of the kernel.
pub(super) fn push(value: Box<dyn Send>) {
    let mut queue = lock(&RELEASES.queue);
    start_in(&mut queue);
    queue.values.push_back(value);
    drop(queue);
    RELEASES.queued.notify_one();
}

fn run() {
    loop {
        let mut queue = lock(&RELEASES.queue);
        let value = loop {
            if let Some(value) = queue.values.pop_front() {
                break value;
            }
            let waited = RELEASES.queued.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            if let Some(report) = ON_PANIC.get() {
                report(&payload);
            }
            // The payload's destructor could panic again.
            mem::forget(payload);
        }
    }
}
