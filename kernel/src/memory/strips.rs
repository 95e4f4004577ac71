//! Strips: a few adjacent free blocks, reserved for one neighbourhood.
//!
//! A mailbox with a long queue is a list of blocks. If the blocks of thousands of such lists are allocated in turn,
//! each step along one list waits for memory. From strips, consecutive blocks of one list share cache lines, and
//! the hardware prefetches the rest.
//!
//! A thread uses strips only while its blocks join several queues in turn: see `note_joined` in
//! [`crate::memory::cache`]. While a thread stays with one queue, it reuses the blocks that it freed last, which are
//! warm.
//!
//! A neighbourhood is a number, for example a mailbox's address. Two neighbourhoods that hash to the same slot of the
//! table share its strip; they lose locality and nothing else.

use crate::memory::{
    class::Class,
    depot::{BATCH, BlockBatch},
};

/// The base-2 logarithm of a table's size.
const SLOTS_LOG2: u32 = 10;
/// How many blocks a strip has at most.
const BLOCKS: u32 = 16;
/// How many bytes a strip has at most, so that a full table holds half a megabyte.
const BYTES: usize = 512;

/// How many blocks a strip has; with fewer than two, strips are useless.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most the bytes of a strip"
)]
pub(super) fn length(class: Class) -> u32 {
    ((BYTES / class.size()) as u32).min(BLOCKS)
}

/// The strips of one thread and class.
pub(super) struct Strips([BlockBatch; 1 << SLOTS_LOG2]);

impl Strips {
    /// Empty strips. Not inlined: on the way to the heap they are on the stack, which callers' frames should not have
    /// room for.
    #[inline(never)]
    pub(super) fn new() -> Box<Strips> {
        Box::new(Strips([const { BlockBatch::EMPTY }; 1 << SLOTS_LOG2]))
    }

    /// The strip of `neighbourhood`.
    #[inline(always)]
    pub(super) fn of(&mut self, neighbourhood: usize) -> &mut BlockBatch {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the number.
        let hash = (neighbourhood as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = (hash >> (u64::BITS - SLOTS_LOG2)) as usize;
        &mut self.0[slot]
    }

    /// Gives every block to `put`, in batches of the depot's size.
    pub(super) fn empty(&mut self, mut put: impl FnMut(BlockBatch)) {
        let mut batch = BlockBatch::EMPTY;
        for strip in &mut self.0 {
            while let Some(block) = strip.pop() {
                batch.push(block);
                if batch.len == BATCH {
                    put(std::mem::replace(&mut batch, BlockBatch::EMPTY));
                }
            }
        }
        put(batch);
    }
}
