//! Free blocks that all threads share, in batches, and the chunks they were cut from.

#![allow(unsafe_code)]

use std::{
    mem,
    ptr::{self, NonNull},
    sync::{
        Mutex,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
};

use crate::memory::{
    class::{self, BlockKind, Class},
    region::{self, CHUNK, SendPtr},
    room::{lock_with_room, try_with_room, with_room},
};
use crate::sys::lock;

/// How many blocks migrate together.
pub(super) const BATCH: u32 = 128;

/// Blocks start here in a chunk, so that they keep the alignment of their size up to 64.
const HEAD: usize = 64;

/// The first word of a free block. It is atomic because a walk over all job blocks may read it as part of a job;
/// only the batch's owner uses it as a link.
pub(super) struct Free {
    next: AtomicPtr<Free>,
}

/// A list of free blocks, owned by the holder of this value.
pub(super) struct BlockBatch {
    pub(super) head: Option<NonNull<Free>>,
    pub(super) len: u32,
}

// SAFETY: the blocks of a batch are free: the batch is their only owner.
unsafe impl Send for BlockBatch {}

impl BlockBatch {
    pub(super) const EMPTY: BlockBatch = BlockBatch { head: None, len: 0 };

    #[inline(always)]
    pub(super) fn push(&mut self, block: NonNull<Free>) {
        let next = self.head.map_or(ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: the block is free and this batch becomes its only owner.
        unsafe { block.as_ref() }
            .next
            .store(next, Ordering::Relaxed);
        self.head = Some(block);
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<NonNull<Free>> {
        let block = self.head?;
        // SAFETY: a block in a batch is free, and the batch its only owner.
        self.head = NonNull::new(unsafe { block.as_ref() }.next.load(Ordering::Relaxed));
        self.len -= 1;
        Some(block)
    }

    /// Takes the first `len` blocks, or as many as there are.
    pub(super) fn split(&mut self, len: u32) -> BlockBatch {
        let head = self.head;
        let len = len.min(self.len);
        let Some(last) = (0..len).filter_map(|_| self.pop()).last() else {
            return BlockBatch::EMPTY;
        };
        // SAFETY: the block was in this batch until now, and belongs to the new one.
        unsafe { last.as_ref() }
            .next
            .store(ptr::null_mut(), Ordering::Relaxed);
        BlockBatch { head, len }
    }
}

/// The part of a chunk from which no blocks have been cut yet.
#[derive(Clone, Copy)]
pub(super) struct Uncut {
    start: SendPtr,
    blocks: u32,
}

impl Uncut {
    /// Cuts `len` blocks, or as many as there are, which `batch` then gives first to last.
    pub(super) fn cut_onto(&mut self, batch: &mut BlockBatch, class: Class, len: u32) {
        let blocks = self.blocks.min(len);
        let Some(last) = blocks.checked_sub(1) else {
            return;
        };
        let (start, size) = (self.start.0.cast::<Free>(), class.size());
        // Each block links to the one that the loop takes next, so that it keeps no list in memory.
        let mut block = start;
        for _ in 0..last {
            // SAFETY: the chunk has room for that many blocks.
            let next = unsafe { block.byte_add(size) };
            // SAFETY: the block is free and `batch` becomes its only owner.
            let link = unsafe { &block.as_ref().next };
            link.store(next.as_ptr(), Ordering::Relaxed);
            block = next;
        }
        let behind = batch.head.map_or(ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: as above.
        let link = unsafe { &block.as_ref().next };
        link.store(behind, Ordering::Relaxed);
        batch.head = Some(start);
        batch.len += blocks;
        // SAFETY: as above; the end of the last block is at most the chunk's.
        self.start.0 = unsafe { block.byte_add(size) }.cast();
        self.blocks -= blocks;
    }
}

struct Shelf {
    batches: Vec<BlockBatch>,
    uncut: Vec<Uncut>,
    chunks: Vec<SendPtr>,
}

static SHELVES: [Mutex<Shelf>; class::COUNT] = [const {
    Mutex::new(Shelf {
        batches: Vec::new(),
        uncut: Vec::new(),
        chunks: Vec::new(),
    })
}; class::COUNT];

/// What a thread with an empty cache gets.
pub(super) enum Refill {
    Batch(BlockBatch),
    Uncut(Uncut),
}

/// A batch that another thread freed, or else room to cut blocks from. None if the system has no memory left.
pub(super) fn refill(class: Class) -> Option<Refill> {
    let mut shelf = lock(&SHELVES[class.index()]);
    if let Some(batch) = shelf.batches.pop() {
        return Some(Refill::Batch(batch));
    }
    if let Some(uncut) = shelf.uncut.pop() {
        return Some(Refill::Uncut(uncut));
    }
    drop(shelf);
    let chunk = region::take_chunk()?;
    let shelf = &SHELVES[class.index()];
    let added = try_with_room(
        shelf,
        1,
        |shelf| &mut shelf.chunks,
        |shelf| shelf.chunks.push(SendPtr(chunk)),
    );
    if added.is_none() {
        region::put_back(chunk);
        return None;
    }
    // SAFETY: the chunk is longer than its head.
    let start = SendPtr(unsafe { chunk.byte_add(HEAD) });
    Some(Refill::Uncut(Uncut {
        start,
        blocks: blocks_per_chunk(class),
    }))
}

/// Takes a batch that a thread does not need.
pub(super) fn put(class: Class, batch: BlockBatch) {
    if batch.len > 0 {
        push(class, batch, |shelf| &mut shelf.batches);
    }
}

/// Takes the uncut rest of a chunk from a thread that flushes its cache.
pub(super) fn put_uncut(class: Class, uncut: Uncut) {
    if uncut.blocks > 0 {
        push(class, uncut, |shelf| &mut shelf.uncut);
    }
}

fn push<T>(class: Class, item: T, list: impl Fn(&mut Shelf) -> &mut Vec<T>) {
    let shelf = &SHELVES[class.index()];
    with_room(shelf, 1, &list, |shelf| list(shelf).push(item));
}

/// Removes the chunks whose blocks are all in the depot, and returns them.
pub(super) fn take_empty_chunks() -> Vec<SendPtr> {
    let mut all = Vec::new();
    for class in Class::all() {
        let mut empty = Vec::new();
        // Neither allocates nor frees under the lock (see `room`).
        loop {
            let mut shelf = lock(&SHELVES[class.index()]);
            let chunks = shelf.chunks.len();
            if empty.capacity() >= chunks {
                shelf.take_empty_chunks(class, &mut empty);
                break;
            }
            drop(shelf);
            empty = Vec::with_capacity(chunks);
        }
        all.append(&mut empty);
    }
    all
}

impl Shelf {
    /// Moves the chunks whose blocks are all on this shelf to `empty`, which has room for them.
    fn take_empty_chunks(&mut self, class: Class, empty: &mut Vec<SendPtr>) {
        self.count_free();
        let is_empty =
            |chunk: NonNull<u8>| count_of(chunk).load(Ordering::Relaxed) == blocks_per_chunk(class);
        if self.chunks.iter().any(|chunk| is_empty(chunk.0)) {
            self.keep_blocks(|block| !is_empty(chunk_of(block)));
            self.uncut
                .retain(|uncut| !is_empty(chunk_of(uncut.start.0)));
        }
        self.chunks.retain(|chunk| {
            let is_empty = is_empty(chunk.0);
            if is_empty {
                empty.push(*chunk);
            }
            count_of(chunk.0).store(0, Ordering::Relaxed);
            !is_empty
        });
    }

    /// Counts in the head of each chunk its blocks that are here, cut or uncut.
    fn count_free(&self) {
        for batch in &self.batches {
            let mut next = batch.head;
            while let Some(block) = next {
                count_of(chunk_of(block.cast())).fetch_add(1, Ordering::Relaxed);
                // SAFETY: blocks on the shelf are free and, under its lock, belong to this thread.
                next = NonNull::new(unsafe { block.as_ref() }.next.load(Ordering::Relaxed));
            }
        }
        for uncut in &self.uncut {
            count_of(chunk_of(uncut.start.0)).fetch_add(uncut.blocks, Ordering::Relaxed);
        }
    }

    /// Removes the blocks that `is_kept` refuses from the batches, and packs the others into full batches.
    fn keep_blocks(&mut self, is_kept: impl Fn(NonNull<u8>) -> bool) {
        let mut filled = 0;
        let mut kept = BlockBatch::EMPTY;
        for index in 0..self.batches.len() {
            let mut batch = mem::replace(&mut self.batches[index], BlockBatch::EMPTY);
            while let Some(block) = batch.pop() {
                if !is_kept(block.cast()) {
                    continue;
                }
                // Full only if `index + 1` batches have brought more blocks than `filled + 1` hold.
                if kept.len == BATCH {
                    self.batches[filled] = mem::replace(&mut kept, BlockBatch::EMPTY);
                    filled += 1;
                }
                kept.push(block);
            }
        }
        if kept.len > 0 {
            self.batches[filled] = kept;
            filled += 1;
        }
        self.batches.truncate(filled);
    }
}

/// Whether every block of the class is on the shelf.
#[cfg(test)]
pub(super) fn has_all(class: Class) -> bool {
    let shelf = lock(&SHELVES[class.index()]);
    let cut = shelf.batches.iter().map(|batch| batch.len as usize);
    let uncut = shelf.uncut.iter().map(|uncut| uncut.blocks as usize);
    cut.chain(uncut).sum::<usize>() == shelf.chunks.len() * blocks_per_chunk(class) as usize
}

/// Collects what `take` makes of every block, cut or uncut, of all chunks of `kind`.
pub(super) fn collect<T>(
    kind: BlockKind,
    found: &mut Vec<T>,
    take: &mut dyn FnMut(NonNull<u8>) -> Option<T>,
) {
    for class in Class::all().filter(|class| class.kind() == kind) {
        let room = |shelf: &Shelf| shelf.chunks.len() * blocks_per_chunk(class) as usize;
        // Under the lock, so that no chunk is returned and reused for another class meanwhile.
        let shelf = lock_with_room(&SHELVES[class.index()], found, room);
        for chunk in &shelf.chunks {
            walk_chunk(class, chunk, &mut |block| found.extend(take(block)));
        }
    }
}

/// Visits `block` if a chunk of `kind` has a block there, in use or not. The time grows with the number of chunks.
pub(super) fn with_block(kind: BlockKind, block: NonNull<u8>, act: &mut dyn FnMut(NonNull<u8>)) {
    let start = chunk_of(block).addr().get();
    for class in Class::all().filter(|class| class.kind() == kind) {
        let is_block = (block.addr().get() - start)
            .checked_sub(HEAD)
            .is_some_and(|offset| offset % class.size() == 0);
        // As in `collect`.
        let shelf = lock(&SHELVES[class.index()]);
        let mut chunks = shelf.chunks.iter();
        if is_block && chunks.any(|chunk| chunk.0.addr().get() == start) {
            return act(block);
        }
    }
}

/// A place in a walk over the chunks of a kind. If chunks come or go meanwhile, the walk may miss some, or meet them
/// twice.
#[derive(Default)]
pub(super) struct ChunkCursor {
    class: usize,
    chunk: usize,
}

/// As [`collect`], of the blocks of one chunk, and moves on to the next. False if there was none left.
pub(super) fn collect_next_chunk<T>(
    kind: BlockKind,
    cursor: &mut ChunkCursor,
    found: &mut Vec<T>,
    take: &mut dyn FnMut(NonNull<u8>) -> Option<T>,
) -> bool {
    let classes = Class::all().filter(|class| class.kind() == kind);
    for class in classes.skip(cursor.class) {
        let room = |_: &Shelf| blocks_per_chunk(class) as usize;
        // As in `collect`.
        let shelf = lock_with_room(&SHELVES[class.index()], found, room);
        if let Some(chunk) = shelf.chunks.get(cursor.chunk) {
            cursor.chunk += 1;
            walk_chunk(class, chunk, &mut |block| found.extend(take(block)));
            return true;
        }
        cursor.class += 1;
        cursor.chunk = 0;
    }
    false
}

fn walk_chunk(class: Class, chunk: &SendPtr, act: &mut dyn FnMut(NonNull<u8>)) {
    for index in 0..blocks_per_chunk(class) as usize {
        // SAFETY: the chunk has that many blocks behind its head.
        act(unsafe { chunk.0.byte_add(HEAD + index * class.size()) });
    }
}

fn chunk_of(block: NonNull<u8>) -> NonNull<u8> {
    // The uncut rest of a full chunk starts at the next one; it has no blocks and is never kept.
    let start = block.as_ptr().map_addr(|addr| addr & !(CHUNK - 1));
    NonNull::new(start).expect("no chunk is at address zero")
}

/// A word in the head of `chunk`, zero except during a trim, which counts there under the lock of the shelf.
fn count_of<'a>(chunk: NonNull<u8>) -> &'a AtomicU32 {
    // SAFETY: a chunk begins with its head, has the head's alignment, and stays mapped for ever.
    unsafe { chunk.cast().as_ref() }
}

#[expect(clippy::cast_possible_truncation, reason = "a chunk has 64 KiB")]
fn blocks_per_chunk(class: Class) -> u32 {
    ((CHUNK - HEAD) / class.size()) as u32
}
