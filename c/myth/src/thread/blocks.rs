//! The blocks of threads, of which each OS thread keeps some that have ended for the next ones.
//!
//! # Safety
//! *Three holds*, as in [`super`]. A block in the list has no thread.

#![allow(unsafe_code)]

use std::{cell::Cell, mem::MaybeUninit, ptr};

use super::Thread;

/// How many blocks an OS thread keeps for the next threads that it creates.
const KEPT: usize = 64;

/// The blocks of threads that have ended, as a list through their first words.
struct Spare {
    first: Cell<*mut SpareBlock>,
    count: Cell<usize>,
}

/// A block without a thread. In the list, it begins with the address of the next one.
type SpareBlock = MaybeUninit<Thread>;

const _: () = assert!(align_of::<Thread>() >= align_of::<*mut SpareBlock>());

impl Drop for Spare {
    fn drop(&mut self) {
        while let Some(block) = self.take() {
            // SAFETY: `new_block` made it; nobody uses it.
            drop(unsafe { Box::from_raw(block) });
        }
    }
}

impl Spare {
    #[inline(always)]
    fn take(&self) -> Option<*mut SpareBlock> {
        let first = self.first.get();
        if first.is_null() {
            return None;
        }
        // SAFETY: `keep` has written it.
        let next = unsafe { first.cast::<*mut SpareBlock>().read() };
        self.first.set(next);
        self.count.set(self.count.get() - 1);
        Some(first)
    }

    /// False if there are enough.
    #[inline(always)]
    fn keep(&self, block: *mut SpareBlock) -> bool {
        let has_room = self.count.get() < KEPT;
        if has_room {
            let next = self.first.replace(block);
            // SAFETY: nobody uses the block.
            unsafe { block.cast::<*mut SpareBlock>().write(next) };
            self.count.set(self.count.get() + 1);
        }
        has_room
    }
}

thread_local! {
    static SPARE: Spare = const {
        Spare {
            first: Cell::new(ptr::null_mut()),
            count: Cell::new(0),
        }
    };
}

/// A block for a new thread, which `give_back` takes.
// Not inlined, as `give_back`: the place of the spare ones belongs to the OS thread, and the caller may switch later.
#[inline(never)]
pub(super) fn new_block(state: u32) -> *const Thread {
    let spare = SPARE.try_with(Spare::take).ok().flatten();
    let block = spare.unwrap_or_else(|| Box::into_raw(Box::new(SpareBlock::uninit())));
    let thread: *mut Thread = block.cast();
    // SAFETY: it has room, and nobody uses it.
    unsafe { thread.write(Thread::new(state)) };
    thread
}

/// Ends a block.
///
/// # Safety
/// *Three holds*: nobody uses it any longer.
#[inline(never)]
pub(super) unsafe fn give_back(thread: *const Thread) {
    // SAFETY: the caller's promise.
    unsafe { thread.cast_mut().drop_in_place() };
    let block: *mut SpareBlock = thread.cast_mut().cast();
    if !SPARE.try_with(|spare| spare.keep(block)).unwrap_or(false) {
        // SAFETY: as above; `new_block` made it.
        drop(unsafe { Box::from_raw(block) });
    }
}
