//! Blocks that have ended, of which an OS thread keeps some for the next ones: a list through the blocks.

#![allow(unsafe_code)]

use std::{cell::Cell, mem::MaybeUninit, ptr};

/// How many blocks are kept.
const KEPT: usize = 64;

/// Blocks without a value. Each begins with the address of the next one.
pub(super) struct Spare<T> {
    first: Cell<*mut MaybeUninit<T>>,
    count: Cell<usize>,
}

impl<T> Drop for Spare<T> {
    fn drop(&mut self) {
        while let Some(block) = self.take() {
            // SAFETY: `keep` took it over, and it is in the list no more.
            drop(unsafe { Box::from_raw(block) });
        }
    }
}

impl<T> Spare<T> {
    pub(super) const fn new() -> Spare<T> {
        const {
            assert!(align_of::<T>() >= align_of::<usize>() && size_of::<T>() >= size_of::<usize>());
        }
        Spare {
            first: Cell::new(ptr::null_mut()),
            count: Cell::new(0),
        }
    }

    /// A block, which `Box` has made.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<*mut MaybeUninit<T>> {
        let first = self.first.get();
        if first.is_null() {
            return None;
        }
        // SAFETY: `keep` has written it.
        let next = unsafe { first.cast::<*mut MaybeUninit<T>>().read() };
        self.first.set(next);
        self.count.set(self.count.get() - 1);
        Some(first)
    }

    /// Keeps a block. False if there are enough.
    ///
    /// # Safety
    /// `Box` has made it, and nobody uses it.
    #[inline(always)]
    pub(super) unsafe fn keep(&self, block: *mut MaybeUninit<T>) -> bool {
        let has_room = self.count.get() < KEPT;
        if has_room {
            let next = self.first.replace(block);
            // SAFETY: the caller's promise; it has room, as `new` asserts.
            unsafe { block.cast::<*mut MaybeUninit<T>>().write(next) };
            self.count.set(self.count.get() + 1);
        }
        has_room
    }
}
