//! Deep recursion through forks: near the end of its stack a fork goes on on a further one.
//!
//! What may be used in a region is bounded by the runtime's `fork_stack` setting; beyond it the fork panics.

use crate::{
    fork::fork_deque::ForkDeque,
    scheduler::{
        stackful::{segment, stack_context},
        workers::context,
    },
    stack::{self, Stack, thread_stack},
};

/// How much of a stack is left alone, at most: for what runs between two forks, and for a panic. Of a small
/// stack it is a quarter.
const RESERVE: usize = 128 << 10;
/// The size of a further stack. Only what is used of it takes memory.
const SEGMENT: usize = 16 << 20;

/// The address below which a fork on the calling thread's stack goes on on a further one.
pub(super) fn end_of_stack() -> usize {
    match stack_context::stack(context::here()) {
        Some(stack) => stack.limit().addr().get() + stack::PAGE + RESERVE.min(stack.size() / 4),
        None => {
            let here = 0_u8;
            let here = (&raw const here).addr();
            let lowest = thread_stack::lowest(here);
            lowest + RESERVE.min((here - lowest) / 4)
        }
    }
}

/// Runs `f` on a further stack.
///
/// # Panics
/// If the lane's region uses as much as it may. A panic of `f` comes through.
#[cold]
#[inline(never)]
pub(super) fn segment<R>(fork_deque: &ForkDeque, f: impl FnOnce() -> R) -> R {
    let limit = fork_deque.shared().config.fork_stack;
    let used = fork_deque.segment.get() + SEGMENT;
    assert!(
        used <= limit,
        "this recursion through fork::join needs more than the {limit} bytes of stack that it may use; let \
         it be less deep, or raise Builder::fork_stack",
    );
    let _former = Former {
        fork_deque,
        stack_end: fork_deque.stack_end.get(),
    };
    fork_deque.segment.set(used);
    continue_on_segment(|| {
        fork_deque.stack_end.set(end_of_stack());
        f()
    })
}

/// The stack from which a fork went on; the lane is on it again when this is dropped.
struct Former<'a> {
    fork_deque: &'a ForkDeque,
    stack_end: usize,
}

impl Drop for Former<'_> {
    fn drop(&mut self) {
        self.fork_deque.stack_end.set(self.stack_end);
        self.fork_deque
            .segment
            .set(self.fork_deque.segment.get() - SEGMENT);
    }
}

/// Runs `f` on another stack of [`SEGMENT`] bytes, and comes back with its result, or its panic.
fn continue_on_segment<R>(f: impl FnOnce() -> R) -> R {
    match stack::take(Stack::class_of(SEGMENT)) {
        Ok(stack) => segment::call_on(stack, f),
        Err(error) => panic!("this recursion through fork::join cannot go on: {error}"),
    }
}
