//! Whether there is memory for what a round of the monitor allocates.
//!
//! Most lists of Rust end the program when they find no memory. A job that took too much of it must not do that through
//! the monitor. So each round first tries to get more than it usually needs. Without it, the round does only what needs
//! no memory: it retakes stuck workers for idle threads, and moves jobs that are overdue. Reports, samples, due timers
//! and new threads wait for a round that has memory.
//!
//! This is no promise: another thread may take the memory after the attempt.

use std::hint::black_box;

/// More than a round allocates, unless hundreds of jobs are stuck at once. A test knows the beginning of a round by it.
const FOR_ROUND: usize = 64 << 10;
/// More than the standard library allocates to start a thread. A test knows the start by it.
const FOR_THREAD: usize = (8 << 10) + 24;

/// What an attempt has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundMemory {
    Enough,
    Lacking,
}

impl RoundMemory {
    /// Tries to get memory for a round, and gives it back.
    pub(super) fn attempt() -> RoundMemory {
        match is_there(FOR_ROUND) {
            true => RoundMemory::Enough,
            false => RoundMemory::Lacking,
        }
    }

    pub(super) fn is_enough(self) -> bool {
        self == RoundMemory::Enough
    }
}

/// Whether there is memory to start a thread.
pub(super) fn is_enough_for_thread() -> bool {
    is_there(FOR_THREAD)
}

fn is_there(bytes: usize) -> bool {
    let mut tried: Vec<u8> = Vec::new();
    let is_there = tried.try_reserve_exact(bytes).is_ok();
    // Otherwise the compiler may leave the attempt out.
    black_box(&tried);
    is_there
}
