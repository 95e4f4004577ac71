//! A value in a slab block, with one owner: what `Box` is to the system's allocator.

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

// SAFETY: an owner of a `T`, no more.
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

    /// Gives the value up; the pointer now is the owner.
    pub(crate) fn into_raw(self) -> NonNull<T> {
        let block = self.0;
        mem::forget(self);
        block
    }

    /// # Safety
    /// `block` came from [`Owned::into_raw`], and this is the only time it is turned back.
    pub(crate) unsafe fn from_raw(block: NonNull<T>) -> Owned<T> {
        Owned(block)
    }

    /// Moves the value out.
    #[inline(always)]
    pub(crate) fn into_inner(self) -> T {
        let block = self.into_raw();
        // SAFETY: the block holds a value, which is moved out exactly here.
        let value = unsafe { block.read() };
        // SAFETY: the block came from `new`, and its value is gone.
        unsafe { crate::memory::free(BlockKind::Node, Layout::new::<T>(), block.cast()) };
        value
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // The second owner is the last: `self` is not looked at again.
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
