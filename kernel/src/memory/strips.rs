//! Strips: a few free blocks that lie beside each other, set apart for one neighbourhood.
//!
//! A mailbox with a long queue is a list of blocks. If the blocks of thousands of such lists are
//! allocated in turn, each step along one of them waits for memory; from strips, consecutive blocks of
//! one list share cache lines, and the machine foresees the rest.
//!
//! Only blocks that join a queue in turn with others are cut from strips: see `note_joined` in
//! [`crate::memory::cache`]. Whoever stays with one queue has the blocks that it freed last, which are warm.
//!
//! A neighbourhood is a number, say a mailbox's address. Two that meet in one place of the table share
//! its strip, which costs them nearness and nothing else.

use crate::memory::{
    class::Class,
    depot::{BATCH, BlockBatch},
};

/// Two to this power are the places of a table.
const PLACES_LOG2: u32 = 10;
/// The most blocks in a strip.
const BLOCKS: u32 = 16;
/// The most bytes in a strip, so that a full table holds half a megabyte.
const BYTES: usize = 512;

/// How many blocks a strip has; with fewer than two there is no use in one.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most the bytes of a strip"
)]
pub(super) fn length(class: Class) -> u32 {
    ((BYTES / class.size()) as u32).min(BLOCKS)
}

/// The strips of one thread and class.
pub(super) struct Strips([BlockBatch; 1 << PLACES_LOG2]);

impl Strips {
    /// Empty ones. On the way they lie on the stack, which nobody else's frame shall have room for.
    #[inline(never)]
    pub(super) fn new() -> Box<Strips> {
        Box::new(Strips([const { BlockBatch::EMPTY }; 1 << PLACES_LOG2]))
    }

    /// The strip of `neighbourhood`.
    #[inline(always)]
    pub(super) fn of(&mut self, neighbourhood: usize) -> &mut BlockBatch {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the number.
        let hash = (neighbourhood as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = (hash >> (u64::BITS - PLACES_LOG2)) as usize;
        &mut self.0[place]
    }

    /// Gives every block to `put`, in batches as the depot wants them.
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
