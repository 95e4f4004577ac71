//! Deep recursion through forks: near the end of its stack a fork goes on on a further one.
//!
//! What may be used in a region is bounded by the runtime's `fork_stack` setting; beyond it the fork panics.

use super::lane::Lane;

/// How much of a stack is left alone: for what runs between two forks, and for a panic.
const RESERVE: usize = 128 << 10;
/// The size of a further stack. Only what is used of it takes memory.
const FURTHER: usize = 16 << 20;

/// The address below which a fork on the calling thread's stack goes on on a further one.
pub(super) fn end_of_stack() -> usize {
    let here = 0u8;
    match stacker::remaining_stack() {
        Some(left) => (&raw const here).addr().saturating_sub(left) + RESERVE,
        None => 0,
    }
}

/// Runs `f` on a further stack.
///
/// # Panics
/// If the lane's region uses as much as it may. A panic of `f` comes through.
#[cold]
#[inline(never)]
pub(super) fn further<R>(lane: &Lane, f: impl FnOnce() -> R) -> R {
    let limit = lane.shared().config.fork_stack;
    let used = lane.further.get() + FURTHER;
    assert!(
        used <= limit,
        "this recursion through fork::join needs more than the {limit} bytes of stack that it may use; let \
         it be less deep, or raise Builder::fork_stack",
    );
    let _former = Former {
        lane,
        stack_end: lane.stack_end.get(),
    };
    lane.further.set(used);
    continue_on_further_stack(|| {
        lane.stack_end.set(end_of_stack());
        f()
    })
}

/// The stack from which a fork went on; the lane is on it again when this is dropped.
struct Former<'a> {
    lane: &'a Lane,
    stack_end: usize,
}

impl Drop for Former<'_> {
    fn drop(&mut self) {
        self.lane.stack_end.set(self.stack_end);
        self.lane.further.set(self.lane.further.get() - FURTHER);
    }
}

/// Runs `f` on another stack of [`FURTHER`] bytes, and comes back with its result, or its panic.
fn continue_on_further_stack<R>(f: impl FnOnce() -> R) -> R {
    stacker::grow(FURTHER, f)
}
