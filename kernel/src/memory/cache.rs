//! The free blocks of one OS thread. For each class: two batches, the uncut rest of a chunk, and after a burst also
//! strips.
//!
//! There are two batches so that a thread that allocates and frees at the boundary of one does not go to the
//! depot each time (Bonwick and Adams, "Magazines and Vmem", 2001).
//!
//! Nothing allocates, frees or goes to the depot while a magazine is borrowed: the program's global allocator may come
//! back to this cache on the same thread. What a step needs from elsewhere it gets between two borrows, and then
//! expects that the magazine has changed.

#![allow(unsafe_code)]

use std::{
    cell::{Cell, UnsafeCell},
    mem::{self, ManuallyDrop},
    ptr::NonNull,
};

use crate::{
    memory::{
        class::{self, Class},
        depot::{self, BATCH, BlockBatch, Free, Refill, Uncut},
        strips::{self, Strips},
    },
    sys::with_local,
};

struct Magazine {
    loaded: BlockBatch,
    spare: BlockBatch,
    uncut: Option<Uncut>,
    strips: Option<Box<Strips>>,
}

impl Magazine {
    const EMPTY: Magazine = Magazine {
        loaded: BlockBatch::EMPTY,
        spare: BlockBatch::EMPTY,
        uncut: None,
        strips: None,
    };
}

thread_local! {
    // Without a destructor, so that an access is one load from the thread's base register. At the thread's
    // end, `FLUSH_AT_EXIT` gives the rest to the depot.
    static CACHE: ManuallyDrop<UnsafeCell<[Magazine; class::COUNT]>> = const {
        ManuallyDrop::new(UnsafeCell::new([const { Magazine::EMPTY }; class::COUNT]))
    };
    /// The neighbourhood that the thread joined last, and whether it differed from the one before.
    static LAST: Cell<usize> = const { Cell::new(0) };
    static ALTERNATES: Cell<bool> = const { Cell::new(false) };
    static FLUSH_AT_EXIT: FlushAtExit = const { FlushAtExit };
}

struct FlushAtExit;

impl Drop for FlushAtExit {
    fn drop(&mut self) {
        flush();
    }
}

/// Runs `act` on the calling thread's magazine of `class`.
#[inline(always)]
fn with<R>(class: Class, act: impl FnOnce(&mut Magazine) -> R) -> R {
    with_local(&CACHE, |cache| {
        let magazines = cache.get().cast::<Magazine>();
        // SAFETY: a class's index is below the number of magazines.
        let magazine = unsafe { magazines.add(class.index()) };
        // SAFETY: only this thread has access, and no `act` in this file calls `with` again, allocates, frees, or runs
        // other code from outside `crate::memory`.
        act(unsafe { &mut *magazine })
    })
}

/// A block. None if the system has no memory left.
#[inline(always)]
pub(super) fn alloc(class: Class) -> Option<NonNull<u8>> {
    match with(class, |magazine| magazine.loaded.pop()) {
        Some(block) => Some(block.cast()),
        None => alloc_slow(class).map(NonNull::cast),
    }
}

/// Notes that a block of the calling thread has joined others of `neighbourhood`.
#[inline(always)]
pub(super) fn note_joined(neighbourhood: usize) {
    if with_local(&LAST, |last| last.replace(neighbourhood)) != neighbourhood {
        with_local(&ALTERNATES, |alternates| alternates.set(true));
    }
}

/// Whether the thread alternates between neighbourhoods. While it stays with one, the blocks that it freed last are
/// near enough, and warm.
#[inline(always)]
pub(super) fn alternates() -> bool {
    with_local(&ALTERNATES, Cell::get)
}

/// A block from the strip of `neighbourhood`, unless the last block joined the same one.
#[cold]
pub(super) fn alloc_beside(class: Class, neighbourhood: usize) -> Option<NonNull<u8>> {
    ALTERNATES.set(false);
    if LAST.get() == neighbourhood {
        return alloc(class);
    }
    let block = with(class, |magazine| {
        let strips = magazine.strips.as_mut();
        strips.and_then(|strips| strips.of(neighbourhood).pop())
    });
    match block {
        Some(block) => Some(block.cast()),
        None => alloc_strip(class, neighbourhood),
    }
}

/// # Safety
/// The block is of this class and nothing points into it.
#[inline(always)]
pub(super) unsafe fn free(class: Class, block: NonNull<u8>) {
    let has_room = with(class, |magazine| {
        let has_room = magazine.loaded.len != BATCH;
        if has_room {
            magazine.loaded.push(block.cast());
        }
        has_room
    });
    if !has_room {
        free_slow(class, block.cast());
    }
}

/// The first block of a new strip; the rest is kept for the neighbourhood's next allocations.
#[inline(never)]
fn alloc_strip(class: Class, neighbourhood: usize) -> Option<NonNull<u8>> {
    let length = strips::length(class);
    // What an earlier cut left over makes no strip: its blocks would not be neighbours of the new ones.
    let mut cut = with(class, |magazine| {
        let mut cut = BlockBatch::EMPTY;
        if magazine.loaded.len < length
            && let Some(uncut) = &mut magazine.uncut
        {
            uncut.cut_onto(&mut cut, class, length);
        }
        cut
    });
    let first = match cut.pop() {
        Some(block) => block.cast(),
        None => {
            let first = alloc(class)?;
            cut = with(class, |magazine| magazine.loaded.split(length - 1));
            first
        }
    };
    if with(class, |magazine| magazine.strips.is_none()) && register_exit() == Flushed::AtExit {
        let new = Strips::new();
        let former = with(class, |magazine| magazine.strips.replace(new));
        if let Some(former) = former {
            empty(class, former);
        }
    }
    let former = with(class, |magazine| {
        let Some(strips) = &mut magazine.strips else {
            return cut;
        };
        mem::replace(strips.of(neighbourhood), cut)
    });
    depot::put(class, former);
    Some(first)
}

/// How many blocks are cut from a chunk together: at most 16 cache lines of them, because the cut writes to each block
/// long before it may be needed.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 16")]
fn cut_at_once(class: Class) -> u32 {
    (1024 / class.size()).clamp(1, 16) as u32
}

#[inline(never)]
fn alloc_slow(class: Class) -> Option<NonNull<Free>> {
    loop {
        let block = with(class, |magazine| {
            if magazine.loaded.len == 0
                && let Some(uncut) = &mut magazine.uncut
            {
                uncut.cut_onto(&mut magazine.loaded, class, cut_at_once(class));
            }
            if let Some(block) = magazine.loaded.pop() {
                return Some(block);
            }
            mem::swap(&mut magazine.loaded, &mut magazine.spare);
            magazine.loaded.pop()
        });
        if block.is_some() {
            return block;
        }
        register_exit();
        match depot::refill(class)? {
            Refill::Batch(batch) => {
                let former = with(class, |magazine| mem::replace(&mut magazine.loaded, batch));
                depot::put(class, former);
            }
            Refill::Uncut(uncut) => {
                let former = with(class, |magazine| magazine.uncut.replace(uncut));
                if let Some(former) = former {
                    depot::put_uncut(class, former);
                }
            }
        }
    }
}

#[inline(never)]
fn free_slow(class: Class, block: NonNull<Free>) {
    register_exit();
    let excess = with(class, |magazine| {
        mem::swap(&mut magazine.loaded, &mut magazine.spare);
        let excess = mem::replace(&mut magazine.loaded, BlockBatch::EMPTY);
        magazine.loaded.push(block);
        excess
    });
    depot::put(class, excess);
}

/// Gives all blocks of `strips` to the depot.
fn empty(class: Class, mut strips: Box<Strips>) {
    strips.empty(|batch| depot::put(class, batch));
}

/// Whether the cache is flushed when the thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushed {
    AtExit,
    /// The thread is ending already. Blocks that it caches from now on are never reused; without strips, these are at
    /// most two batches for each class.
    Never,
}

fn register_exit() -> Flushed {
    match FLUSH_AT_EXIT.try_with(|_| ()) {
        Ok(()) => Flushed::AtExit,
        Err(_) => Flushed::Never,
    }
}

/// Gives everything to the depot.
pub(super) fn flush() {
    for class in Class::all() {
        let magazine = with(class, |magazine| mem::replace(magazine, Magazine::EMPTY));
        depot::put(class, magazine.loaded);
        depot::put(class, magazine.spare);
        if let Some(uncut) = magazine.uncut {
            depot::put_uncut(class, uncut);
        }
        if let Some(strips) = magazine.strips {
            empty(class, strips);
        }
    }
}
