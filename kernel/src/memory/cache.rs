//! Free blocks of one OS thread: two batches and the uncut rest of a chunk for each class, and its
//! strips once there was a burst.
//!
//! Two batches, so that a thread that allocates and frees around the edge of one does not go to the
//! depot each time (Bonwick and Adams, "Magazines and Vmem", 2001).

#![allow(unsafe_code)]

use std::{
    cell::{Cell, UnsafeCell},
    mem::ManuallyDrop,
    ptr::NonNull,
};

use crate::memory::{
    class::{self, Class},
    depot::{self, BATCH, BlockBatch, Free, Refill, Uncut},
    strips::{self, Strips},
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
    // Without a destructor, so that an access is one load from the thread's base register; what is
    // left at the thread's end is handed over by `FLUSH_AT_EXIT`.
    static CACHE: ManuallyDrop<UnsafeCell<[Magazine; class::COUNT]>> = const {
        ManuallyDrop::new(UnsafeCell::new([const { Magazine::EMPTY }; class::COUNT]))
    };
    /// The neighbourhood that the thread named last, and whether that was another than before.
    static LAST: Cell<usize> = const { Cell::new(0) };
    static TURNED: Cell<bool> = const { Cell::new(false) };
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
    CACHE.with(|cache| {
        let magazines = cache.get().cast::<Magazine>();
        // SAFETY: a class's index is below the number of magazines.
        let magazine = unsafe { magazines.add(class.index()) };
        // SAFETY: only this thread has access, and no `act` in this file calls `with` again: none
        // runs code from outside this module's children.
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

/// A block of the calling thread has joined others of `neighbourhood`.
#[inline(always)]
pub(super) fn note_joined(neighbourhood: usize) {
    if LAST.replace(neighbourhood) != neighbourhood {
        TURNED.set(true);
    }
}

/// Whether the thread turns from neighbourhood to neighbourhood. While it stays with one, the blocks
/// that it freed last are near enough, and warm.
#[inline(always)]
pub(super) fn turns() -> bool {
    TURNED.get()
}

/// From the strip of `neighbourhood`, if the thread turns to that one now.
#[cold]
pub(super) fn alloc_beside(class: Class, neighbourhood: usize) -> NonNull<u8> {
    TURNED.set(false);
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

/// The first block of a new strip; the others wait for the next of the neighbourhood.
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

/// What becomes of the cache when the thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushed {
    AtExit,
    /// The thread is ending. What it caches from now on is lost to reuse; without strips, that is at
    /// most two batches a class.
    Never,
}

fn register_exit() -> Flushed {
    match FLUSH_AT_EXIT.try_with(|_| ()) {
        Ok(()) => Flushed::AtExit,
        Err(_) => Flushed::Never,
    }
}

/// Hands everything to the depot.
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
