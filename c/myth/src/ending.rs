//! Whether threads of a runtime that ends, or has ended, may still run.
//!
//! Such threads run on top of others that wake them (*on top*, at the head of [`crate::queue`]). A runtime that stopped
//! at its limit has left some, which may wake others much later, also beside the next runtime.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Every thread belongs to a runtime that runs.
const ALL_RUN: u8 = 0;
/// A runtime ends.
const ENDING: u8 = 1;
/// One has left threads behind.
const LEFT_SOME: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ALL_RUN);

/// Whether no waker runs a waiter on top of its caller. May change at any time.
#[inline(always)]
pub(crate) fn may_lend() -> bool {
    // Relaxed, as all accesses: a thread that sees the change late is as one that has looked just before it.
    STATE.load(Relaxed) == ALL_RUN
}

/// A runtime is about to end.
pub(crate) fn begin() {
    STATE.fetch_or(ENDING, Relaxed);
}

/// It has ended. `have_ended`: all of its threads have.
pub(crate) fn finish(have_ended: bool) {
    if !have_ended {
        STATE.fetch_or(LEFT_SOME, Relaxed);
    }
    STATE.fetch_and(!ENDING, Relaxed);
}
