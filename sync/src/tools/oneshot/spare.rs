//! Blocks of oneshots that a thread has freed, and uses again: a request and its answer need one each, and the system's
//! allocator takes a third of what the whole oneshot does.
//!
//! A thread keeps at most [`MOST`] blocks, and frees them when it ends. All have one size, so a block serves any
//! oneshot that fits. Under a sanitizer, under Miri and in models every block comes from the allocator, so that these
//! see its end.

#![allow(unsafe_code)]

use std::{
    alloc::{self, Layout},
    cell::Cell,
    ptr::{self, NonNull},
};

/// The layout of every block.
pub(super) const LAYOUT: Layout = match Layout::from_size_align(64, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("64 bytes are a layout"),
};
/// How many blocks a thread keeps.
const MOST: u32 = 16;
const KEEPS: bool = !cfg!(any(loom, miri, weald_plain_alloc));

/// The blocks, each of which begins with a pointer to the next.
///
/// # Safety
/// *Free*: each block in the list was allocated with `LAYOUT`, and is in no other use.
struct Spare {
    first: Cell<*mut u8>,
    count: Cell<u32>,
}

thread_local! {
    static SPARE: Spare = const {
        Spare {
            first: Cell::new(ptr::null_mut()),
            count: Cell::new(0),
        }
    };
}

/// A block.
// In a frame of its own, as `give`: a thread that migrates may call both on different OS threads.
#[inline(never)]
pub(super) fn take() -> NonNull<u8> {
    let kept = SPARE.try_with(Spare::pop).ok().flatten();
    kept.unwrap_or_else(allocate)
}

#[cold]
fn allocate() -> NonNull<u8> {
    // SAFETY: the layout is not empty.
    let block = unsafe { alloc::alloc(LAYOUT) };
    NonNull::new(block).unwrap_or_else(|| alloc::handle_alloc_error(LAYOUT))
}

/// Frees a block.
///
/// # Safety
/// *Free*: it came from [`take`], and is not used again.
#[inline(never)]
pub(super) unsafe fn give(block: NonNull<u8>) {
    // SAFETY: the caller's promise.
    let is_kept = SPARE.try_with(|spare| unsafe { spare.push(block) });
    if is_kept != Ok(true) {
        // SAFETY: *free*.
        unsafe { alloc::dealloc(block.as_ptr(), LAYOUT) };
    }
}

impl Spare {
    #[inline(always)]
    fn pop(&self) -> Option<NonNull<u8>> {
        let first = NonNull::new(self.first.get())?;
        // SAFETY: *free*: `push` wrote it.
        self.first.set(unsafe { first.cast::<*mut u8>().read() });
        self.count.set(self.count.get() - 1);
        Some(first)
    }

    /// False: there are enough.
    ///
    /// # Safety
    /// *Free*.
    #[inline(always)]
    unsafe fn push(&self, block: NonNull<u8>) -> bool {
        let count = self.count.get();
        if !KEEPS || count == MOST {
            return false;
        }
        // SAFETY: *free*: a block has room for a pointer, and is aligned for it.
        unsafe { block.cast::<*mut u8>().write(self.first.get()) };
        self.first.set(block.as_ptr());
        self.count.set(count + 1);
        true
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        while let Some(block) = self.pop() {
            // SAFETY: *free*.
            unsafe { alloc::dealloc(block.as_ptr(), LAYOUT) };
        }
    }
}

#[cfg(all(test, not(any(loom, miri, weald_plain_alloc))))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_a_few_blocks_and_uses_them_again() {
        let blocks: Vec<NonNull<u8>> = (0..2 * MOST).map(|_| take()).collect();
        for block in &blocks {
            // SAFETY: *free*.
            unsafe { give(*block) };
        }
        assert_eq!(SPARE.with(|spare| spare.count.get()), MOST);
        let (kept, _) = blocks.split_at(MOST as usize);
        let mut again: Vec<NonNull<u8>> = kept.iter().map(|_| take()).collect();
        again.reverse();
        assert_eq!(again, kept);
        for block in again {
            // SAFETY: *free*.
            unsafe { give(block) };
        }
    }
}
