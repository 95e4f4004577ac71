//! Stacks of our own: memory on which code runs and can be suspended.
//!
//! A stack is a slot of address space whose size is a power of two. Its lowest page is the guard: touching
//! it is a fault, which [`crate::observe::signals::overflow`] turns into a line that names the job. Pages are committed
//! when they are first touched, so a stack costs only the memory that was used.
//!
//! ```text
//!   limit ── guard page │ ..... pages, committed when touched ..... │ colour │ top
//! ```
//!
//! The top is moved down by up to 15 cache lines, depending on the slot's address (its *colour*): otherwise
//! the hottest lines of all stacks would compete for a few sets of the cache.
//!
//! Invariants:
//! - A slot is in exactly one place: in use, in one thread's cache, in the depot, or not yet cut.
//! - A slot is never unmapped, so reading through a stale pointer into it does not fault.
//! - A stack with live frames is never given back: the caller that gives a stack back has seen the code on it end.

#![allow(unsafe_code)]

use std::ptr::NonNull;

/// The size of a page and of the guard.
pub(crate) const PAGE: usize = 4096;
/// The smallest stack. A smaller one has no room for the message of a panic.
pub(crate) const SMALLEST: usize = 16 << 10;
/// The largest stack.
pub(crate) const LARGEST: usize = 1 << 30;

/// Why no stack is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// The system allows no further guard page. Before Linux 6.13 each is a mapping of its own.
    #[error(
        "the system refuses more than {stacks} stacks, because each has a guard page of its own; \
         raise vm.max_map_count, use Linux 6.13 or later, or start fewer threads at once"
    )]
    TooManyStacks {
        /// How many stacks there are.
        stacks: usize,
    },
    /// No stack is that large.
    #[error(
        "a stack of {bytes} bytes is larger than the largest, {largest} bytes; ask for a smaller one"
    )]
    TooLarge {
        /// The size that was asked for.
        bytes: usize,
        /// The largest size: 1 GiB.
        largest: usize,
    },
    /// The system gives no more address space.
    #[error(
        "the system refuses {bytes} bytes of address space for a stack; ask for a smaller one, or \
         raise the limit of the process's address space, or start fewer threads at once"
    )]
    NoAddressSpace {
        /// The size that was asked for.
        bytes: usize,
    },
}

/// The right to use one slot.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a stack that is forgotten is lost; give it back"]
pub(crate) struct Stack {
    /// The slot's lowest address, where its guard is.
    limit: NonNull<u8>,
    /// The base-2 logarithm of the slot's size.
    class: u32,
}

// SAFETY: it is a right to memory, and bound to no thread.
unsafe impl Send for Stack {}

impl Stack {
    /// The class of stacks with room for `bytes`; the largest one for more than [`LARGEST`].
    #[inline]
    pub(crate) fn class_of(bytes: usize) -> u32 {
        bytes
            .clamp(SMALLEST, LARGEST)
            .next_power_of_two()
            .trailing_zeros()
    }

    /// The class of stacks with room for `bytes`.
    ///
    /// # Errors
    /// If no stack is that large.
    #[inline]
    pub(crate) fn class_for(bytes: usize) -> Result<u32, StackError> {
        match bytes > LARGEST {
            true => Err(StackError::TooLarge {
                bytes,
                largest: LARGEST,
            }),
            false => Ok(Stack::class_of(bytes)),
        }
    }

    /// The right to the slot at `limit` of this class.
    pub(super) fn new(limit: NonNull<u8>, class: u32) -> Stack {
        Stack { limit, class }
    }

    /// The class: the base-2 logarithm of the size.
    pub(crate) fn class(&self) -> u32 {
        self.class
    }

    /// The slot's size, including its guard.
    pub(crate) fn size(&self) -> usize {
        1 << self.class
    }

    /// The slot's lowest address, where its guard is.
    pub(crate) fn limit(&self) -> NonNull<u8> {
        self.limit
    }

    /// Where the stack starts to grow downwards; a multiple of 64.
    #[inline(always)]
    pub(crate) fn top(&self) -> NonNull<u8> {
        let colour = (self.limit.addr().get() >> self.class) % 16;
        // SAFETY: less than 1 KiB below the slot's end, and a slot has at least 16 KiB.
        unsafe { self.limit.byte_add(self.size() - colour * 64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two_within_bounds() {
        assert_eq!(Stack::class_of(0), 14);
        assert_eq!(Stack::class_of(128 << 10), 17);
        assert_eq!(Stack::class_of((128 << 10) + 1), 18);
        assert_eq!(Stack::class_of(usize::MAX), 30);
    }
}
