//! Deep recursion through forks: near the end of its stack, a fork continues on a new stack segment.
//!
//! The runtime's `fork_stack` setting bounds the segments of one root fork. A fork that needs more panics.

use crate::{
    fork::fork_deque::ForkDeque,
    scheduler::{
        stackful::{segment, stack_context},
        workers::context,
    },
    stack::{self, Stack, thread_stack},
};

/// How much of a stack is kept free for what runs between two forks, and for a panic. A small stack keeps a
/// quarter free.
const RESERVE: usize = 128 << 10;
/// The size of a segment. Only the part that is used takes memory.
const SEGMENT: usize = 16 << 20;

/// The address below which a fork on the calling thread's stack continues on a new segment.
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

/// Runs `f` on a new segment.
///
/// # Panics
/// If the root fork has used up its segments. A panic of `f` passes through.
#[cold]
#[inline(never)]
pub(super) fn segment<R>(fork_deque: &ForkDeque, f: impl FnOnce() -> R) -> R {
    let limit = fork_deque.shared().config.fork_stack;
    let used = fork_deque.segment.get() + SEGMENT;
    assert!(
        used <= limit,
        "this recursion through fork::join needs more than the {limit} bytes of stack that it may use; \
         make it less deep, or raise Builder::fork_stack",
    );
    let _previous = PreviousStack {
        fork_deque,
        stack_end: fork_deque.stack_end.get(),
    };
    fork_deque.segment.set(used);
    continue_on_segment(|| {
        fork_deque.stack_end.set(end_of_stack());
        f()
    })
}

/// The stack that a fork left. When this value is dropped, the fork deque counts that stack as current again.
struct PreviousStack<'a> {
    fork_deque: &'a ForkDeque,
    stack_end: usize,
}

impl Drop for PreviousStack<'_> {
    fn drop(&mut self) {
        self.fork_deque.stack_end.set(self.stack_end);
        self.fork_deque
            .segment
            .set(self.fork_deque.segment.get() - SEGMENT);
    }
}

/// Runs `f` on another stack of [`SEGMENT`] bytes, and returns with its result, or its panic.
fn continue_on_segment<R>(f: impl FnOnce() -> R) -> R {
    match stack::take(Stack::class_of(SEGMENT)) {
        Ok(stack) => segment::call_on(stack, f),
        Err(error) => panic!("this recursion through fork::join cannot continue: {error}"),
    }
}
