//! A value in cache lines of its own, because one thread writes it often, and another one uses its neighbours.
//!
//! Without it the place decides how fast two workers are: what each of them writes at every step is allocated one
//! behind the other, and may or may not be in the same line.

use std::ops::Deref;

/// At the begin of two lines, of which it has both: processors fetch lines in pairs, or have lines of 128 bytes.
#[repr(align(128))]
pub(crate) struct CachePadded<T>(T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for CachePadded<T> {
    fn from(value: T) -> CachePadded<T> {
        CachePadded(value)
    }
}
