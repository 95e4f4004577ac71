//! Whether a detached thread continues to send.
//!
//! To the system, a job that sends for a long time is one that computes, so its worker is retaken. But others wait for
//! it: if its priority were lowered as that of a computation, its receivers would wait whenever anything else wants the
//! core. So while it keeps completing operations, it counts as a sender ([`detached`](super::detached)).
//!
//! A sender with the priority of a worker may keep the core of one for a whole time slice, and the system decides only
//! 250 times a second. So such a thread gives way by itself, once in some thousand posts (`give_way` in
//! `workers::ready`; 0036).

#![allow(unsafe_code)]

use std::{mem, ptr::NonNull, sync::atomic::AtomicU32, time::Duration};

use weald_sync::unit;

use crate::sys::Ordering;

/// A thread that completes this many operations between two checks, one in some 10 µs, sends.
const MANY: u32 = 100;
/// After this many checks without a send, although it ran, a thread is no longer a sender; that is some
/// 10 to 40 ms.
const SILENT_CHECKS: u32 = 16;

/// What the monitor has seen of the operations of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sends {
    /// The count at the last check.
    operations: u32,
    /// How many checks there were since the thread last sent; more than [`SILENT_CHECKS`] if it has not sent.
    silent: u32,
    /// How long the thread had run at the last of these checks, if that is known.
    ran: Option<Duration>,
}

impl Sends {
    /// At the first check, of a thread with this count of operations. It does not send yet.
    pub(crate) fn at_first(operations: u32) -> Sends {
        Sends {
            operations,
            silent: SILENT_CHECKS + 1,
            ran: None,
        }
    }

    /// At the first check, of the calling thread.
    pub(crate) fn here() -> Sends {
        Sends::at_first(unit::with(unit::Unit::operations))
    }

    /// Whether the next check depends on how long the thread has run: it sent before, and did not at the last check.
    /// Beside other programs it may have had no core, and then it is not silent.
    pub(crate) fn depends_on_time(&self) -> bool {
        (1..=SILENT_CHECKS).contains(&self.silent)
    }

    /// The next check. Returns whether the thread sends. `ran`: how long it has run, if that is known.
    pub(crate) fn check(&mut self, operations: u32, ran: Option<Duration>) -> bool {
        let before = mem::replace(&mut self.operations, operations);
        if operations.wrapping_sub(before) >= MANY {
            self.silent = 0;
            return true;
        }
        if self.silent > SILENT_CHECKS {
            return false;
        }
        if ran.is_none() || mem::replace(&mut self.ran, ran) != ran {
            self.silent += 1;
        }
        self.silent <= SILENT_CHECKS
    }
}

/// The count of the operations of one thread of a pool.
///
/// # Safety
/// *The count is alive* while its thread runs: it is a thread-local value without a destructor. The pool lists a thread
/// from its beginning until it is about to end, and under the pool's lock ([`ThreadPool`](super::pool::ThreadPool)), so
/// code that has found it in the list, and still holds the lock, may read the count.
pub(crate) struct OperationCount(NonNull<AtomicU32>);

// SAFETY: an address; the type says when a thread may follow it. The count itself is atomic.
unsafe impl Send for OperationCount {}
// SAFETY: as above.
unsafe impl Sync for OperationCount {}

impl OperationCount {
    /// That of the calling thread.
    pub(crate) fn here() -> OperationCount {
        OperationCount(unit::with(|unit| NonNull::from(unit.count())))
    }

    /// # Safety
    /// The thread is listed in its pool, and the caller holds the pool's lock.
    pub(crate) unsafe fn get(&self) -> u32 {
        // SAFETY: the count is alive.
        unsafe { self.0.as_ref() }.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Nobody receives, so no post finds out that the worker is gone.
    #[test]
    fn a_job_that_sends_gives_way_if_it_has_lost_its_worker() {
        let hour = Duration::from_secs(3_600);
        for (bound, loses_worker) in [(Duration::from_millis(1), true), (hour, false)] {
            let builder = crate::Runtime::builder().workers(1);
            let runtime = builder.stuck_after(bound).build().unwrap();
            let shared = runtime.shared.clone();
            let code = move |mailbox: crate::Mailbox<u8>| async move {
                let (address, counters) = (mailbox.address(), &shared.counters);
                while loses_worker && counters.detached.load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
                (0..100_000).for_each(|_| address.post(1).unwrap());
                counters.gave_way.load(Ordering::Relaxed)
            };
            let spawned = runtime.block_on(async { crate::Spawn::new().spawn_with_mailbox(code) });
            let gave_way = runtime.block_on(spawned.unwrap().0).unwrap();
            assert_eq!(gave_way > 0, loses_worker);
        }
    }

    #[test]
    fn a_thread_sends_from_the_first_burst_until_it_ran_for_long_and_was_silent() {
        let ran = |checks: u32| Some(checks * Duration::from_millis(1));
        let mut sends = Sends::at_first(u32::MAX);
        assert!(!sends.check(u32::MAX, ran(0)));
        assert!(!sends.depends_on_time(), "it never sent");
        for mut operations in [7, 10_000] {
            let mut check = |more: u32, has_run| {
                operations += more;
                sends.check(operations, ran(has_run))
            };
            assert!(check(MANY, 0));
            for checks in 1..=SILENT_CHECKS {
                assert!(check(MANY - 1, checks));
                // It had no core.
                assert!((0..100).all(|_| check(0, checks)));
            }
            assert!(!check(MANY - 1, SILENT_CHECKS + 1));
        }
    }
}
