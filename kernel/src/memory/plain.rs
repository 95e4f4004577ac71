//! Blocks from the system's allocator: those too large, or too strictly aligned, for a class.

#![allow(unsafe_code)]

use std::{
    alloc::Layout,
    collections::BTreeSet,
    ptr::{self, NonNull},
    sync::Mutex,
};

use crate::memory::{class::BlockKind, room::lock_with_room};
use crate::sys::lock;

/// The addresses of all large job blocks.
static JOBS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// A block. None if the system has no memory left.
pub(super) fn alloc(kind: BlockKind, layout: Layout) -> Option<NonNull<u8>> {
    let layout = at_least_a_link(layout);
    // SAFETY: the layout is not empty.
    let block = unsafe { std::alloc::alloc_zeroed(layout) };
    let block = NonNull::new(block)?;
    if kind == BlockKind::Job {
        lock(&JOBS).insert(block.as_ptr().expose_provenance());
    }
    Some(block)
}

/// # Safety
/// As [`crate::memory::free`].
pub(super) unsafe fn free(kind: BlockKind, layout: Layout, block: NonNull<u8>) {
    if kind == BlockKind::Job {
        lock(&JOBS).remove(&block.addr().get());
    }
    // SAFETY: the caller's promise; `alloc` rounded the layout in the same way.
    unsafe { std::alloc::dealloc(block.as_ptr(), at_least_a_link(layout)) };
}

/// Collects what `take` makes of every large job block.
pub(super) fn collect_jobs<T>(found: &mut Vec<T>, take: &mut dyn FnMut(NonNull<u8>) -> Option<T>) {
    // Under the lock, so that no block is freed during the visit.
    for addr in lock_with_room(&JOBS, found, BTreeSet::len).iter() {
        let block = NonNull::new(ptr::with_exposed_provenance_mut(*addr));
        found.extend(take(block.expect("a block has an address")));
    }
}

/// Visits `block` if it is a job's.
pub(super) fn with_job(block: NonNull<u8>, visit: &mut dyn FnMut(NonNull<u8>)) {
    // Under the lock, so that the block is not freed during the visit.
    let jobs = lock(&JOBS);
    if jobs.contains(&block.addr().get()) {
        visit(block);
    }
}

fn at_least_a_link(layout: Layout) -> Layout {
    Layout::from_size_align(layout.size().max(8), layout.align().max(8))
        .expect("a layout stays valid when it grows to a word")
}
