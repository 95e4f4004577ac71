//! Pinned parts: the one place where combinators take a pinned value apart.
//!
//! Each type pins some parts with the whole. It has no `Drop`, is `Unpin` only if all its parts are, and once
//! the whole is pinned it gives access to a pinned part only through `Pin`.

#![allow(unsafe_code)]

use std::pin::Pin;

/// A part that is pinned, and one that is not.
///
/// # Safety
/// *Structural*: as the head says; the plain part is never pinned.
pub struct Both<P, U> {
    pinned: P,
    plain: U,
}

impl<P, U> Both<P, U> {
    #[inline]
    pub(crate) fn new(pinned: P, plain: U) -> Both<P, U> {
        Both { pinned, plain }
    }

    #[inline(always)]
    pub(crate) fn parts(self: Pin<&mut Self>) -> (Pin<&mut P>, &mut U) {
        // SAFETY: *structural*: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: *structural*.
        (
            unsafe { Pin::new_unchecked(&mut this.pinned) },
            &mut this.plain,
        )
    }

    /// Both parts of a value that is not pinned (yet).
    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (&mut P, &mut U) {
        (&mut self.pinned, &mut self.plain)
    }

    #[inline(always)]
    pub(crate) fn pinned(&self) -> &P {
        &self.pinned
    }

    #[inline(always)]
    pub(crate) fn plain(&self) -> &U {
        &self.plain
    }
}

/// Two parts that are pinned.
///
/// # Safety
/// *Structural*: as the head says.
pub struct Pair<A, B> {
    first: A,
    rest: B,
}

impl<A, B> Pair<A, B> {
    #[inline]
    pub(crate) fn new(first: A, rest: B) -> Pair<A, B> {
        Pair { first, rest }
    }

    #[inline(always)]
    pub(crate) fn parts(self: Pin<&mut Self>) -> (Pin<&mut A>, Pin<&mut B>) {
        // SAFETY: *structural*: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: *structural*.
        let first = unsafe { Pin::new_unchecked(&mut this.first) };
        // SAFETY: *structural*.
        (first, unsafe { Pin::new_unchecked(&mut this.rest) })
    }

    #[inline(always)]
    pub(crate) fn first(&self) -> &A {
        &self.first
    }

    #[inline(always)]
    pub(crate) fn rest(&self) -> &B {
        &self.rest
    }
}

/// An element of a pinned slice.
#[inline(always)]
pub(crate) fn element<T>(slice: Pin<&mut [T]>, index: usize) -> Pin<&mut T> {
    // SAFETY: a slice consists only of its elements: they are pinned with it, and it moves none of them.
    unsafe { slice.map_unchecked_mut(|slice| &mut slice[index]) }
}

/// A pinned array as a slice.
#[inline(always)]
pub(crate) fn slice<T, const N: usize>(array: Pin<&mut [T; N]>) -> Pin<&mut [T]> {
    // SAFETY: as for `element`.
    unsafe { array.map_unchecked_mut(|array| array.as_mut_slice()) }
}
