//! Blocks from the system's allocator: those too large, or too strictly aligned, for a class.

#![allow(unsafe_code)]

use std::{
    alloc::Layout,
    ptr::{self, NonNull},
    sync::Mutex,
};

use crate::memory::{
    class::BlockKind,
    room::{lock_with_room, try_with_room},
};
use crate::sys::lock;

/// How many parts the set of large job blocks has. A part is searched from its end, so 100,000 blocks cost a search of
/// 100.
const PARTS: usize = 1024;

/// The addresses of all large job blocks, each in the part of its address. A list grows outside of its lock
/// ([`room`](super::room)), because what grows it may allocate or free a large job block on the same thread.
static JOBS: [Mutex<Vec<usize>>; PARTS] = [const { Mutex::new(Vec::new()) }; PARTS];

fn part_of(addr: usize) -> &'static Mutex<Vec<usize>> {
    // Allocators place blocks at regular distances: the multiplication spreads these (Knuth, The Art of Computer
    // Programming 3, 6.4).
    const GOLDEN: usize = 0x9E37_79B9_7F4A_7C15;
    let bits = usize::BITS - PARTS.ilog2();
    &JOBS[addr.wrapping_mul(GOLDEN) >> bits]
}

/// A block. None if the system has no memory left.
pub(super) fn alloc(kind: BlockKind, layout: Layout) -> Option<NonNull<u8>> {
    let layout = at_least_a_link(layout);
    // SAFETY: the layout is not empty.
    let block = unsafe { std::alloc::alloc_zeroed(layout) };
    let block = NonNull::new(block)?;
    if kind == BlockKind::Job {
        let addr = block.as_ptr().expose_provenance();
        let noted = try_with_room(part_of(addr), 1, |part| part, |part| part.push(addr));
        if noted.is_none() {
            // SAFETY: allocated above, with this layout, and nobody else knows it.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
            return None;
        }
    }
    Some(block)
}

/// # Safety
/// As [`crate::memory::free`].
pub(super) unsafe fn free(kind: BlockKind, layout: Layout, block: NonNull<u8>) {
    if kind == BlockKind::Job {
        let addr = block.addr().get();
        let mut part = lock(part_of(addr));
        let index = part.iter().rposition(|known| *known == addr);
        part.swap_remove(index.expect("a large job block is in the set until it is freed"));
    }
    // SAFETY: the caller's promise; `alloc` rounded the layout in the same way.
    unsafe { std::alloc::dealloc(block.as_ptr(), at_least_a_link(layout)) };
}

/// Collects what `take` makes of every large job block.
pub(super) fn collect_jobs<T>(found: &mut Vec<T>, take: &mut dyn FnMut(NonNull<u8>) -> Option<T>) {
    for part in &JOBS {
        // Under the lock, so that no block is freed meanwhile.
        for addr in lock_with_room(part, found, Vec::len).iter() {
            let block = NonNull::new(ptr::with_exposed_provenance_mut(*addr));
            found.extend(take(block.expect("a block has an address")));
        }
    }
}

/// Calls `act` with `block` if it is a job's.
pub(super) fn with_job(block: NonNull<u8>, act: &mut dyn FnMut(NonNull<u8>)) {
    let addr = block.addr().get();
    // Under the lock, so that the block is not freed meanwhile.
    let part = lock(part_of(addr));
    if part.contains(&addr) {
        act(block);
    }
}

/// Gives back to the system what the C library's allocator keeps free: of the blocks here, of the boxes in which the
/// runtime keeps foreign wakers, and of all else that the program had from it. That allocator has a heap for each few
/// threads, and gives back by itself only what is free at the end of one.
///
/// Threads that use a heap wait while it is looked through.
pub(super) fn trim() {
    #[cfg(all(target_env = "gnu", not(miri)))]
    // SAFETY: any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0)
    };
}

fn at_least_a_link(layout: Layout) -> Layout {
    Layout::from_size_align(layout.size().max(8), layout.align().max(8))
        .expect("a layout stays valid when it grows to a word")
}
