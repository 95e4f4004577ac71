//! A value in a slab block, with one owner: a `Box` for slab blocks.

#![allow(unsafe_code)]

use std::{
    alloc::Layout,
    mem,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

use crate::memory::BlockKind;

/// An owned value. Dropping it drops the value and frees the block.
pub(crate) struct Owned<T>(NonNull<T>);

// SAFETY: it owns a `T`, and nothing else.
unsafe impl<T: Send> Send for Owned<T> {}

impl<T> Owned<T> {
    #[inline(always)]
    pub(crate) fn new(value: T) -> Owned<T> {
        Owned::put(
            crate::memory::alloc(BlockKind::Node, Layout::new::<T>()),
            value,
        )
    }

    /// As [`Owned::new`], in a block of [`alloc_beside`](crate::memory::alloc_beside).
    #[inline(always)]
    pub(crate) fn new_beside(value: T, neighbourhood: usize) -> Owned<T> {
        let block = crate::memory::alloc_beside(BlockKind::Node, Layout::new::<T>(), neighbourhood);
        Owned::put(block, value)
    }

    #[inline(always)]
    fn put(block: NonNull<u8>, value: T) -> Owned<T> {
        let block = block.cast::<T>();
        // SAFETY: the callers' block is new and fits a `T`.
        unsafe { block.write(value) };
        Owned(block)
    }

    /// Gives up ownership to the returned pointer.
    pub(crate) fn into_raw(self) -> NonNull<T> {
        let block = self.0;
        mem::forget(self);
        block
    }

    /// # Safety
    /// `block` came from [`Owned::into_raw`], and is turned back only once.
    pub(crate) unsafe fn from_raw(block: NonNull<T>) -> Owned<T> {
        Owned(block)
    }

    /// Moves the value out.
    #[inline(always)]
    pub(crate) fn into_inner(self) -> T {
        let block = self.into_raw();
        // SAFETY: the block holds a value, which is moved out only here.
        let value = unsafe { block.read() };
        // SAFETY: the block came from `new` or `new_beside`, and its value was moved out.
        unsafe { crate::memory::free(BlockKind::Node, Layout::new::<T>(), block.cast()) };
        value
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // The new owner frees the block; `self` is not used again.
        drop(Owned(self.0).into_inner());
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the owner's value is alive.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the owner's value is alive, and the owner is borrowed mutably.
        unsafe { self.0.as_mut() }
    }
}
