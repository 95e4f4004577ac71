//! All slots of a reactor, by number.
//!
//! A slot never moves and lives as long as the reactor, so that a late event always finds a slot, perhaps another
//! descriptor's. Chunks double in size: 64 slots, 128, and so on.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::reactor::slot::SourceSlot;
use crate::sys::{Mutex, lock};

/// The base-2 logarithm of the first chunk's size.
const FIRST_CHUNK: u32 = 6;
/// How many chunks there are. Together they have room for more descriptors than a process may have.
const CHUNKS: usize = 24;

pub(crate) struct Table {
    chunks: [OnceLock<Arc<[SourceSlot]>>; CHUNKS],
    free: Mutex<Vec<u32>>,
    /// Slots below this number exist.
    used: AtomicU32,
}

/// A slot that is found without its number.
pub(crate) struct SharedSlot {
    chunk: Arc<[SourceSlot]>,
    place: usize,
}

impl SharedSlot {
    #[inline]
    pub(crate) fn get(&self) -> &SourceSlot {
        &self.chunk[self.place]
    }
}

/// The chunk of a number, and the index in it.
fn place(index: u32) -> (usize, usize) {
    let shifted = index + (1 << FIRST_CHUNK);
    let chunk = shifted.ilog2();
    (
        (chunk - FIRST_CHUNK) as usize,
        (shifted - (1 << chunk)) as usize,
    )
}

impl Table {
    pub(crate) fn new() -> Table {
        Table {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Vec::new()),
            used: AtomicU32::new(0),
        }
    }

    /// The slot with a number that [`take`](Table::take) once returned.
    pub(crate) fn get(&self, index: u32) -> &SourceSlot {
        let (chunk, place) = self.find(index);
        &chunk[place]
    }

    /// As [`get`](Table::get), for a caller that uses the slot often.
    pub(crate) fn share(&self, index: u32) -> SharedSlot {
        let (chunk, place) = self.find(index);
        let chunk = chunk.clone();
        SharedSlot { chunk, place }
    }

    fn find(&self, index: u32) -> (&Arc<[SourceSlot]>, usize) {
        let (chunk, place) = place(index);
        let chunk = self.chunks[chunk].get();
        let chunk = chunk.expect("a slot's chunk is created before its number is returned");
        (chunk, place)
    }

    /// The number of a free slot.
    pub(crate) fn take(&self) -> io::Result<u32> {
        let mut free = lock(&self.free);
        if let Some(index) = free.pop() {
            return Ok(index);
        }
        let index = self.used.load(Ordering::Relaxed);
        let (chunk, _) = place(index);
        let Some(chunk_of_index) = self.chunks.get(chunk) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        chunk_of_index.get_or_init(|| {
            let size = 1 << (FIRST_CHUNK as usize + chunk);
            std::iter::repeat_with(SourceSlot::new).take(size).collect()
        });
        // Release: pairs with the load in `used`. Only written under the lock.
        self.used.store(index + 1, Ordering::Release);
        Ok(index)
    }

    pub(crate) fn give_back(&self, index: u32) {
        lock(&self.free).push(index);
    }

    /// Every slot that was ever taken has a lower number.
    pub(crate) fn used(&self) -> u32 {
        self.used.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_consecutive_across_chunks_and_are_reused() {
        let table = Table::new();
        for number in 0..1000 {
            assert_eq!(table.take().unwrap(), number);
        }
        let mut places: Vec<_> = (0..1000)
            .map(|n| std::ptr::from_ref(table.get(n)))
            .collect();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), 1000, "every number has a slot of its own");
        table.give_back(500);
        assert_eq!(table.take().unwrap(), 500);
        assert_eq!(table.used(), 1000);
    }
}
