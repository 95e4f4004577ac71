//! Free blocks of one OS thread: two batches and the uncut rest of a chunk for each class.
//!
//! Two batches, so that a thread that allocates and frees around the edge of one does not go to the
//! depot each time (Bonwick and Adams, "Magazines and Vmem", 2001).

#![allow(unsafe_code)]

use std::{cell::UnsafeCell, ptr::NonNull};

use super::{
    class::{self, Class},
    depot::{self, BATCH, Batch, Free, Refill, Uncut},
};

struct Magazine {
    loaded: Batch,
    spare: Batch,
    uncut: Option<Uncut>,
}

thread_local! {
    // Without a destructor, so that an access is one load from the thread's base register; what is
    // left at the thread's end is handed over by `FLUSH_AT_EXIT`.
    static CACHE: UnsafeCell<[Magazine; class::COUNT]> = const {
        UnsafeCell::new([const {
            Magazine { loaded: Batch::EMPTY, spare: Batch::EMPTY, uncut: None }
        }; class::COUNT])
    };
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
    depot::put(class, std::mem::replace(&mut magazine.loaded, Batch::EMPTY));
}

fn register_exit() {
    // Fails only while the thread is ending. What it caches after that is lost to reuse; it is at
    // most two batches a class.
    let _ = FLUSH_AT_EXIT.try_with(|_| ());
}

/// Hands everything to the depot.
pub(super) fn flush() {
    for class in Class::all() {
        let (loaded, spare, uncut) = with(class, |magazine| {
            (
                std::mem::replace(&mut magazine.loaded, Batch::EMPTY),
                std::mem::replace(&mut magazine.spare, Batch::EMPTY),
                magazine.uncut.take(),
            )
        });
        depot::put(class, loaded);
        depot::put(class, spare);
        if let Some(uncut) = uncut {
            depot::put_uncut(class, uncut);
        }
    }
}
