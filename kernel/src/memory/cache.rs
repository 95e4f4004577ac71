//! The free blocks of one OS thread: for each class two batches, the uncut rest of a chunk and, once there was
//! a burst, strips.
//!
//! There are two batches so that a thread that allocates and frees at the boundary of one does not go to the
//! depot each time (Bonwick and Adams, "Magazines and Vmem", 2001).

#![allow(unsafe_code)]

use std::{
    cell::{Cell, UnsafeCell},
    mem::ManuallyDrop,
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
        // SAFETY: only this thread has access, and no `act` in this file calls `with` again or runs code from
        // outside `crate::memory`.
        act(unsafe { &mut *magazine })
    })
}

#[inline(always)]
pub(super) fn alloc(class: Class) -> NonNull<u8> {
    with(class, |magazine| match magazine.loaded.pop() {
        Some(block) => block,
        None => alloc_slow(magazine, class),
    })
    .cast()
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
pub(super) fn alloc_beside(class: Class, neighbourhood: usize) -> NonNull<u8> {
    ALTERNATES.set(false);
    if LAST.get() == neighbourhood {
        return alloc(class);
    }
    with(class, |magazine| {
        let strips = magazine.strips.as_mut();
        match strips.and_then(|strips| strips.of(neighbourhood).pop()) {
            Some(block) => block,
            None => alloc_strip(magazine, class, neighbourhood),
        }
    })
    .cast()
}

/// # Safety
/// The block is of this class and nothing points into it.
#[inline(always)]
pub(super) unsafe fn free(class: Class, block: NonNull<u8>) {
    with(class, |magazine| {
        if magazine.loaded.len == BATCH {
            free_slow(magazine, class);
        }
        magazine.loaded.push(block.cast());
    });
}

/// The first block of a new strip; the rest is kept for the neighbourhood's next allocations.
#[inline(never)]
fn alloc_strip(magazine: &mut Magazine, class: Class, neighbourhood: usize) -> NonNull<Free> {
    let first = match magazine.loaded.pop() {
        Some(block) => block,
        None => alloc_slow(magazine, class),
    };
    if magazine.strips.is_none() && register_exit() == Flushed::AtExit {
        magazine.strips = Some(Strips::new());
    }
    if let Some(strips) = &mut magazine.strips {
        let length = strips::length(class) - 1;
        *strips.of(neighbourhood) = match &mut magazine.uncut {
            Some(uncut) if magazine.loaded.len == 0 => uncut.cut_batch(class, length),
            _ => magazine.loaded.split(length),
        };
    }
    first
}

#[inline(never)]
fn alloc_slow(magazine: &mut Magazine, class: Class) -> NonNull<Free> {
    loop {
        if let Some(block) = magazine.uncut.as_mut().and_then(|uncut| uncut.cut(class)) {
            return block;
        }
        std::mem::swap(&mut magazine.loaded, &mut magazine.spare);
        if let Some(block) = magazine.loaded.pop() {
            return block;
        }
        register_exit();
        match depot::refill(class) {
            Refill::Batch(batch) => magazine.loaded = batch,
            Refill::Uncut(uncut) => magazine.uncut = Some(uncut),
        }
    }
}

#[inline(never)]
fn free_slow(magazine: &mut Magazine, class: Class) {
    register_exit();
    std::mem::swap(&mut magazine.loaded, &mut magazine.spare);
    depot::put(
        class,
        std::mem::replace(&mut magazine.loaded, BlockBatch::EMPTY),
    );
}

/// Whether the cache is flushed when the thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushed {
    AtExit,
    /// The thread is ending already. What it caches from now on is never reused; without strips, that is at most
    /// two batches for each class.
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
        let magazine = with(class, |magazine| {
            std::mem::replace(magazine, Magazine::EMPTY)
        });
        depot::put(class, magazine.loaded);
        depot::put(class, magazine.spare);
        if let Some(uncut) = magazine.uncut {
            depot::put_uncut(class, uncut);
        }
        if let Some(mut strips) = magazine.strips {
            strips.empty(|batch| depot::put(class, batch));
        }
    }
}
