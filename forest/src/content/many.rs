//! Many erasable values at once, for readers on any thread and for an opening. The lock of the values is held for a few
//! of them at a time, and by `fill_from` that of one forest at a time, because commits to all trees wait for it.
//!
//! - What a value is made of lies in several places of memory, each of which tells where the next one is. In a large
//!   forest none of them is in the processor's cache. So each step is made for all values before the next step: the
//!   reads of one step do not depend on each other, and memory serves them at the same time.
//! - A forest of an earlier moment shares its bytes with the newest one: a clone costs a counter, and to read and
//!   unseal the bytes of a million messages took seconds.

use std::hint::black_box;
use std::sync::PoisonError;

use super::erasable::{Blobs, referred};
use super::shelves::{Content, Shelf};

/// How many blobs are looked for under one lock: so few that a commit that waits for the lock is not delayed.
const AT_ONCE: usize = 256;

impl Blobs {
    /// Reads a little of the bytes to which these values refer.
    pub(crate) fn prefetch(&self, values: &[&[u8]]) {
        if !self.were_used() {
            return;
        }
        for few in values.chunks(AT_ONCE) {
            let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
            let found = few.iter().map(|value| shelves.blobs.get(&referred(value)?));
            let found: Vec<_> = found.collect();
            black_box(found.iter().fold(0, |seen, shelf| seen ^ touched(*shelf)));
        }
    }

    /// Takes from another forest the bytes that are to be read back, as far as that has them. What was erased there
    /// stays to be read back, and is not found.
    pub(crate) fn fill_from(&self, other: &Self) {
        for ids in self.absent().chunks(AT_ONCE) {
            let theirs = other.shelves.read().unwrap_or_else(PoisonError::into_inner);
            let found = ids
                .iter()
                .filter_map(|id| match &theirs.blobs.get(id)?.content {
                    Content::Stored(bytes) => Some((*id, bytes.clone())),
                    Content::Erased(_) | Content::Absent | Content::Unreadable(_) => None,
                });
            let found: Vec<_> = found.collect();
            drop(theirs);
            let mut shelves = self.write();
            found
                .into_iter()
                .for_each(|(id, bytes)| shelves.fill(id, bytes));
        }
    }
}

/// A byte of what a shelf has, so that its memory is read.
fn touched(shelf: Option<&Shelf>) -> u8 {
    match shelf.map(|shelf| &shelf.content) {
        Some(Content::Stored(bytes)) => bytes.first().copied().unwrap_or_default(),
        _ => 0,
    }
}
