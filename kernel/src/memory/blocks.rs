//! The slab allocator for jobs, messages and timers: a cache for each OS thread, and an explicit trim.
//!
//! Memory goes `region` (64 MiB from the system, huge pages) → `chunk` (64 KiB, one class) →
//! `depot` (batches of free blocks that all threads share) → `cache` (free blocks of one thread).
//! Allocating and freeing touch only the cache, 2 to 3 ns; batches of 128 blocks migrate through the
//! depot, so that a thread that only frees feeds one that only allocates. Messages that queue up in one
//! mailbox are allocated next to each other, from the mailbox's strip ([`strips`](crate::memory::strips)).
//!
//! Invariants:
//! - A block is in exactly one place: in use, in one cache, in one batch of the depot, or uncut.
//! - In a free block only the first word is ever written, and an uncut block is all zero. So another word of a job
//!   block shows whether it is in use, and [`collect_job_blocks`] finds the live jobs without a list that every
//!   spawn would have to enter.
//! - Memory returns to the system only through [`trim`].
//!
//! `WEALD_HUGE_PAGES=off` in the environment leaves huge pages to the system's default. Built with
//! `--cfg weald_plain_alloc` (for AddressSanitizer, ThreadSanitizer and Miri), every block
//! comes from the system's allocator, so that those tools see each block's life.

#![allow(unsafe_code)]

use std::{alloc::Layout, ptr::NonNull};

use crate::memory::class::{BlockKind, Class};

/// Whether every block comes from the system's allocator.
const PLAIN: bool = cfg!(weald_plain_alloc);

/// A block for `layout`. Any thread; amortised O(1). Panics when the system has no memory left.
// Inlined always, also below, so that the class of a constant layout is a constant.
#[inline(always)]
pub(crate) fn alloc(kind: BlockKind, layout: Layout) -> NonNull<u8> {
    try_alloc(kind, layout).unwrap_or_else(|| no_memory(layout))
}

/// As [`alloc`]. None when the system has no memory left.
#[inline(always)]
pub(crate) fn try_alloc(kind: BlockKind, layout: Layout) -> Option<NonNull<u8>> {
    match crate::memory::class::of(kind, layout) {
        Some(class) if !PLAIN => crate::memory::cache::alloc(class),
        _ => crate::memory::plain::alloc(kind, layout),
    }
}

/// As [`alloc`]. But while the thread allocates for several neighbourhoods in turn, the block is next to the last one
/// allocated for the same `neighbourhood`. A neighbourhood is a number that the caller chooses, for example a mailbox's
/// address.
#[inline(always)]
pub(crate) fn alloc_beside(kind: BlockKind, layout: Layout, neighbourhood: usize) -> NonNull<u8> {
    match crate::memory::class::of(kind, layout) {
        Some(class)
            if !PLAIN
                && crate::memory::strips::length(class) > 1
                && crate::memory::cache::alternates() =>
        {
            let block = crate::memory::cache::alloc_beside(class, neighbourhood);
            block.unwrap_or_else(|| no_memory(layout))
        }
        _ => alloc(kind, layout),
    }
}

/// A panic and not an abort: the caller may be one unit of many.
#[cold]
fn no_memory(layout: Layout) -> ! {
    panic!(
        "the system refused memory for {} bytes; end some units, or give back what is free with Runtime::trim",
        layout.size()
    )
}

/// Notes that the block that the thread allocated last joined other blocks of `neighbourhood`.
#[inline(always)]
pub(crate) fn note_joined(neighbourhood: usize) {
    crate::memory::cache::note_joined(neighbourhood);
}

/// Frees a block. Any thread; amortised O(1).
///
/// # Safety
/// `block` came from [`alloc`] with the same `kind` and `layout`, and nothing points into it any longer.
#[inline(always)]
pub(crate) unsafe fn free(kind: BlockKind, layout: Layout, block: NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe { free_of(class_of(kind, layout), kind, layout, block) };
}

/// The class of a layout, for [`free_of`]; computed once for all blocks of the layout.
#[inline(always)]
pub(crate) const fn class_of(kind: BlockKind, layout: Layout) -> Option<Class> {
    crate::memory::class::of(kind, layout)
}

/// As [`free`], for a caller that knows the block's class.
///
/// # Safety
/// As [`free`]; and `class` is the result of [`class_of`].
#[inline(always)]
pub(crate) unsafe fn free_of(
    class: Option<Class>,
    kind: BlockKind,
    layout: Layout,
    block: NonNull<u8>,
) {
    match class {
        // SAFETY: the caller's promise; equal layouts have equal classes.
        Some(class) if !PLAIN => unsafe { crate::memory::cache::free(class, block) },
        // SAFETY: as above.
        _ => unsafe { crate::memory::plain::free(kind, layout, block) },
    }
}

/// Moves the calling thread's free blocks to the depot, where [`trim`] finds them.
pub(crate) fn flush() {
    crate::memory::cache::flush();
}

/// Returns chunks without a block in use to the system, and their total size to the caller, and what the system's
/// allocator keeps free. Any thread; the time grows with the number of free blocks. Blocks in other threads' caches
/// stay there.
pub(crate) fn trim() -> usize {
    crate::memory::plain::trim();
    crate::memory::cache::flush();
    let empty = crate::memory::depot::take_empty_chunks();
    crate::memory::region::give_back(empty)
}

/// Collects what `take` makes of every job block, in use or not, of all runtimes. `take` neither allocates nor frees:
/// it is called under locks that an allocation of a job block takes, and the global allocator may come back here.
pub(crate) fn collect_job_blocks<T>(
    found: &mut Vec<T>,
    mut take: impl FnMut(NonNull<u8>) -> Option<T>,
) {
    crate::memory::plain::collect_jobs(found, &mut take);
    crate::memory::depot::collect(BlockKind::Job, found, &mut take);
}

/// A walk over all job blocks in steps. Blocks that come or go meanwhile may be missed, or met twice.
#[derive(Default)]
pub(crate) struct JobWalk {
    has_begun: bool,
    cursor: crate::memory::depot::ChunkCursor,
}

impl JobWalk {
    /// The next step: walks over some hundred blocks, as [`collect_job_blocks`] does. False if none was left.
    pub(crate) fn step<T>(
        &mut self,
        found: &mut Vec<T>,
        mut take: impl FnMut(NonNull<u8>) -> Option<T>,
    ) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            crate::memory::plain::collect_jobs(found, &mut take);
            return true;
        }
        let cursor = &mut self.cursor;
        crate::memory::depot::collect_next_chunk(BlockKind::Job, cursor, found, &mut take)
    }
}

/// Calls `act` with `block`, which was a job block when the caller got it, if it still is one, in use or not. A large
/// block may have gone back to the system meanwhile, and a chunk of other blocks may serve messages now. `act` must
/// neither allocate nor free job blocks.
pub(crate) fn with_job_block(block: NonNull<u8>, mut act: impl FnMut(NonNull<u8>)) {
    crate::memory::plain::with_job(block, &mut act);
    crate::memory::depot::with_block(BlockKind::Job, block, &mut act);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_block_is_found_until_it_goes_back_and_nothing_else_is() {
        let small = Layout::from_size_align(96, 8).unwrap();
        let large = Layout::from_size_align(100_000, 8).unwrap();
        let is_found = |block: NonNull<u8>| {
            let mut calls = 0;
            with_job_block(block, |_| calls += 1);
            calls == 1
        };
        let jobs = [small, large].map(|layout| alloc(BlockKind::Job, layout));
        assert!(jobs.map(is_found).iter().all(|found| *found));
        let node = alloc(BlockKind::Node, small);
        assert!(!is_found(node));
        // SAFETY: inside the block.
        assert!(!is_found(unsafe { jobs[0].byte_add(8) }));
        let given_back = [
            (BlockKind::Job, small, jobs[0]),
            (BlockKind::Job, large, jobs[1]),
            (BlockKind::Node, small, node),
        ];
        for (kind, layout, block) in given_back {
            // SAFETY: each block is given back once, with its kind and layout.
            unsafe { free(kind, layout, block) };
        }
        assert!(PLAIN || is_found(jobs[0]), "free, and still a job's");
        assert!(!is_found(jobs[1]), "gone");
    }

    #[test]
    fn blocks_are_distinct_aligned_and_come_back() {
        let layout = Layout::from_size_align(96, 32).unwrap();
        let mut blocks: Vec<_> = (0..10_000)
            .map(|_| alloc(BlockKind::Node, layout))
            .collect();
        assert!(blocks.iter().all(|block| block.addr().get() % 32 == 0));
        blocks.sort();
        assert!(
            blocks
                .windows(2)
                .all(|pair| pair[1].addr().get() - pair[0].addr().get() >= 96)
        );
        for block in blocks {
            // SAFETY: it was allocated above with this layout and is not used again.
            unsafe { free(BlockKind::Node, layout, block) };
        }
    }

    #[test]
    fn neighbours_are_adjacent_and_their_strips_come_back() {
        // A size that nothing else in this process has.
        let layout = Layout::from_size_align(120, 8).unwrap();
        let neighbours = 2_000..3_000_usize;
        let one = |n| {
            let block = alloc_beside(BlockKind::Node, layout, n * 64);
            note_joined(n * 64);
            block
        };
        let round = || neighbours.clone().map(one);
        let rounds: Vec<Vec<_>> = (0..10).map(|_| round().collect()).collect();
        let distance = |a: NonNull<u8>, b: NonNull<u8>| a.addr().get().abs_diff(b.addr().get());
        let pairs = rounds
            .windows(2)
            .flat_map(|pair| pair[0].iter().zip(&pair[1]));
        let near = pairs.filter(|(a, b)| distance(**a, **b) == 120).count();
        // Four to a strip; some neighbourhoods share a slot of the table.
        assert!(PLAIN || near > 4_000, "only {near} of 9,000 pairs");

        let mut blocks: Vec<_> = rounds.into_iter().flatten().collect();
        blocks.sort();
        assert!(
            blocks
                .windows(2)
                .all(|pair| distance(pair[0], pair[1]) >= 120)
        );
        for block in blocks {
            // SAFETY: it was allocated above with this layout and is not used again.
            unsafe { free(BlockKind::Node, layout, block) };
        }
        flush();
        let class = crate::memory::class::of(BlockKind::Node, layout).unwrap();
        assert!(
            PLAIN || crate::memory::depot::has_all(class),
            "a block is missing"
        );
    }

    #[test]
    fn a_strip_is_whole_whatever_was_cut_before_and_a_thread_gives_back_what_it_cut() {
        // Smaller than any job, so that nothing else in this process has a block of this class.
        let layout = Layout::from_size_align(40, 8).unwrap();
        let class = crate::memory::class::of(BlockKind::Job, layout).unwrap();
        let length = crate::memory::strips::length(class) as usize;
        let allocate = move || {
            let one = |neighbour: usize| {
                let block = alloc_beside(BlockKind::Job, layout, neighbour);
                note_joined(neighbour);
                block
            };
            let alone = one(1);
            // Two neighbours in turn, for two strips each.
            let rounds: Vec<_> = (0..2 * length).map(|_| [2, 3].map(one)).collect();
            let addr = |block: NonNull<u8>| block.addr().get();
            for strip in rounds.chunks(length) {
                let near = strip.windows(2).all(|pair| {
                    (0..2)
                        .all(|neighbour| addr(pair[1][neighbour]) == addr(pair[0][neighbour]) + 40)
                });
                assert!(PLAIN || near, "{strip:?}");
            }
            for block in rounds.into_iter().flatten().chain([alone]) {
                // SAFETY: it was allocated above with this layout and is not used again.
                unsafe { free(BlockKind::Job, layout, block) };
            }
        };
        std::thread::spawn(allocate).join().unwrap();
        assert!(
            PLAIN || crate::memory::depot::has_all(class),
            "a block is missing"
        );
    }

    #[test]
    fn a_thread_that_frees_feeds_one_that_allocates() {
        let layout = Layout::from_size_align(1000, 8).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel::<usize>();
        let freeing = std::thread::spawn(move || {
            for addr in receiver {
                let block = NonNull::new(std::ptr::with_exposed_provenance_mut(addr)).unwrap();
                // SAFETY: the other thread allocated it with this layout and no longer uses it.
                unsafe { free(BlockKind::Node, layout, block) };
            }
        });
        for _ in 0..100_000 {
            sender
                .send(alloc(BlockKind::Node, layout).as_ptr().expose_provenance())
                .unwrap();
        }
        drop(sender);
        freeing.join().unwrap();
    }
}
