//! The sleep of the monitor: it sleeps while every worker does, and the first worker to wake ends its sleep.

use std::{
    sync::atomic::{AtomicBool, Ordering, fence},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::sys::{Mutex, lock};

/// How the workers reach the monitor.
pub(crate) struct MonitorSleep {
    /// Whether the monitor sleeps until a worker wakes.
    asleep: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl MonitorSleep {
    pub(crate) fn new() -> MonitorSleep {
        MonitorSleep {
            asleep: AtomicBool::new(false),
            thread: Mutex::new(None),
        }
    }

    /// Whether the monitor sleeps until a worker wakes.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Called by a worker that has just stopped sleeping.
    pub(crate) fn worker_woke(&self) {
        // SeqCst: pairs with the fence in `sleep_until_a_worker_wakes`; the count of sleepers went down before this
        // load.
        if self.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Called by a detached thread that is watched again, after it has noted that in the list, and by a thread that
    /// forks, after it has pushed what no worker may take now: a stack job, or a part of a scope.
    pub(crate) fn begin_to_watch(&self) {
        // Pairs with the fence in `sleep_until_a_worker_wakes`: the list or the queue was changed before this load.
        fence(Ordering::SeqCst);
        self.worker_woke();
    }

    /// Called by a thread whose outbox has just begun to gather: the monitor empties it.
    pub(crate) fn outbox_begun(&self) {
        // Pairs with the fence in `sleep_until_a_worker_wakes`: the outbox was filled before this load.
        fence(Ordering::SeqCst);
        self.worker_woke();
    }

    /// The monitor's thread, which has just started.
    pub(crate) fn begin(&self, thread: Thread) {
        *lock(&self.thread) = Some(thread);
    }

    /// Wakes the monitor.
    pub(crate) fn wake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        if let Some(thread) = lock(&self.thread).as_ref() {
            thread.unpark();
        }
    }

    /// Sleeps while `is_quiet`, at most for `limit`, if there is one. Called by the monitor, when every worker sleeps.
    /// `alert` makes the forking threads look whether the monitor sleeps, which they otherwise would not.
    pub(crate) fn sleep_until_a_worker_wakes(
        &self,
        alert: impl FnOnce(),
        is_quiet: impl Fn() -> bool,
        limit: Option<Duration>,
    ) {
        let end = limit.map(|limit| Instant::now() + limit);
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        alert();
        while self.asleep.load(Ordering::SeqCst) && is_quiet() {
            match end.map(|end| end.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => break,
                Some(left) => thread::park_timeout(left),
            }
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}
