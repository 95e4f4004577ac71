//! A counted pointer to one value in a block.
//!
//! **Safety.** The block lives while its counter is above zero, and the counter is at least the number of the
//! pointers to it. A mutable reference to the value is given out only by the one pointer that there is, and
//! borrows that pointer, so that no other can come from it meanwhile. The last pointer to go has seen all that
//! was done through the others (`Release` when they go, `Acquire` before the end), as in `std::sync::Arc`.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::pool;
use crate::sys::{AtomicUsize, Ordering, fence};

/// A counted pointer to a value, like `std::sync::Arc` without weak pointers, whose block is from a slab.
///
/// ```
/// use weald_memory::Shared;
///
/// let one = Shared::new(vec![1]);
/// let mut two = one.clone();
/// two.own().push(2); // Another pointer needs the old value, so it is cloned first.
/// assert_eq!((&one[..], &two[..]), (&[1][..], &[1, 2][..]));
/// ```
pub struct Shared<T>(NonNull<SharedBlock<T>>, PhantomData<SharedBlock<T>>);

#[repr(C)]
struct SharedBlock<T> {
    counter: AtomicUsize,
    value: T,
}

// SAFETY: pointers in several threads give references to one value in all of them, and the last one drops it.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above, since a reference to a pointer can be cloned.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Moves a value into a block of its own.
    #[inline]
    pub fn new(value: T) -> Self {
        let block = pool::take(Layout::new::<SharedBlock<T>>()).cast::<SharedBlock<T>>();
        let counter = AtomicUsize::new(1);
        // SAFETY: the block is new, and has the layout.
        unsafe { block.write(SharedBlock { counter, value }) };
        Self(block, PhantomData)
    }

    /// How many bytes a block takes, with its counter.
    pub const BYTES: usize = size_of::<SharedBlock<T>>();

    /// The address of the value, which tells pointers to one value from others while one of them lives.
    #[inline]
    pub fn address(this: &Self) -> usize {
        this.0.addr().get()
    }

    /// Whether both point to one value.
    #[inline]
    pub fn is(one: &Self, other: &Self) -> bool {
        one.0 == other.0
    }

    /// Whether this is the only pointer to its value.
    #[inline]
    pub fn is_alone(this: &Self) -> bool {
        // Acquire: pairs with the release of the pointers that went.
        this.block().counter.load(Ordering::Acquire) == 1
    }

    /// The value, if this is the only pointer to it.
    #[inline]
    pub fn own_if_alone(&mut self) -> Option<&mut T> {
        if !Self::is_alone(self) {
            return None;
        }
        // SAFETY: this is the only pointer, and it is borrowed for as long as the reference lives.
        Some(unsafe { &mut self.0.as_mut().value })
    }

    #[inline]
    fn block(&self) -> &SharedBlock<T> {
        // SAFETY: the block lives at least as long as this pointer.
        unsafe { self.0.as_ref() }
    }

    /// The pointer as it is in memory, with its share of the counter.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<()> {
        let raw = self.0.cast();
        std::mem::forget(self);
        raw
    }

    /// The pointer as it is in memory; its share of the counter stays here.
    #[inline]
    pub(crate) fn as_raw(&self) -> NonNull<()> {
        self.0.cast()
    }

    /// The pointer that was turned into this one.
    ///
    /// # Safety
    /// It came from [`into_raw`](Self::into_raw) of this type, and stands for its share of the counter.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self(raw.cast(), PhantomData)
    }

    /// The value behind a pointer that was turned into this one.
    ///
    /// # Safety
    /// It came from [`into_raw`](Self::into_raw) of this type, and its share of the counter is not given up for as
    /// long as the reference lives.
    #[inline]
    pub(crate) unsafe fn value_at<'a>(raw: NonNull<()>) -> &'a T {
        // SAFETY: as the caller promises.
        let block: &SharedBlock<T> = unsafe { raw.cast().as_ref() };
        &block.value
    }

    /// The value behind such a pointer, to be changed.
    ///
    /// # Safety
    /// As for [`value_at`](Self::value_at), and nothing else points to the block for as long as the reference lives.
    #[inline]
    pub(crate) unsafe fn value_at_mut<'a>(raw: NonNull<()>) -> &'a mut T {
        // SAFETY: as the caller promises.
        let block: &mut SharedBlock<T> = unsafe { raw.cast().as_mut() };
        &mut block.value
    }

    /// Drops the value and frees the block.
    ///
    /// # Safety
    /// The pointer is as from [`into_raw`](Self::into_raw) of this type, and [`count_down`] has returned that its share
    /// of the counter was the last.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn end(raw: NonNull<()>) {
        let block = raw.cast::<SharedBlock<T>>();
        // SAFETY: no other pointer is left, so nobody uses the value any more.
        unsafe { block.as_ptr().drop_in_place() };
        // SAFETY: the block was taken with this layout.
        unsafe { pool::free(block.cast(), Layout::new::<SharedBlock<T>>()) };
    }
}

impl<T: Clone> Shared<T> {
    /// The value, to be changed. If there are other pointers to it, this one gets a clone first.
    #[inline]
    pub fn own(&mut self) -> &mut T {
        if !Self::is_alone(self) {
            *self = Self::new(T::clone(self));
        }
        // SAFETY: this is the only pointer, and it is borrowed for as long as the reference lives.
        unsafe { &mut self.0.as_mut().value }
    }
}

/// Counts more pointers.
#[inline(always)]
pub(crate) fn count_up(counter: &AtomicUsize, more: usize) {
    // Relaxed: a pointer is made from another, which keeps the value alive.
    let before = counter.fetch_add(more, Ordering::Relaxed);
    if before > isize::MAX as usize {
        std::process::abort(); // Pointers were forgotten without end.
    }
}

/// Counts more pointers to the block of a pointer from [`Shared::into_raw`].
///
/// # Safety
/// The share of the counter of this pointer is not given up meanwhile.
#[inline(always)]
pub(crate) unsafe fn count_up_at(raw: NonNull<()>, more: usize) {
    // SAFETY: as the caller promises; the counter is the first part of a block, whatever its value is.
    count_up(unsafe { raw.cast().as_ref() }, more);
}

/// Counts pointers less to the block of a pointer from [`Shared::into_raw`]; true if they were the last.
///
/// # Safety
/// The caller gives up as many shares of the counter.
#[inline(always)]
pub(crate) unsafe fn count_down_at(raw: NonNull<()>, less: usize) -> bool {
    // SAFETY: the block lives until its last share is given up, which is now at the earliest.
    count_down(unsafe { raw.cast().as_ref() }, less)
}

/// Whether a pointer from [`Shared::into_raw`] is the only one to its block.
///
/// # Safety
/// As for [`count_up_at`].
#[inline(always)]
pub(crate) unsafe fn is_alone_at(raw: NonNull<()>) -> bool {
    // SAFETY: as the caller promises.
    let counter: &AtomicUsize = unsafe { raw.cast().as_ref() };
    counter.load(Ordering::Acquire) == 1
}

/// Counts pointers less; true if they were the last, and then the caller has seen all that the others did.
#[inline(always)]
pub(crate) fn count_down(counter: &AtomicUsize, less: usize) -> bool {
    let is_last = counter.fetch_sub(less, Ordering::Release) == less;
    if is_last {
        if cfg!(weald_thread_sanitizer) {
            // ThreadSanitizer does not follow fences. This read replaces the fence, for the releases of this
            // counter.
            counter.load(Ordering::Acquire);
        } else {
            fence(Ordering::Acquire);
        }
    }
    is_last
}

impl<T> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Self {
        count_up(&self.block().counter, 1);
        Self(self.0, PhantomData)
    }
}

impl<T> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        if count_down(&self.block().counter, 1) {
            // SAFETY: the pointer is as it would be turned into a raw one, and its share was the last.
            unsafe { Self::end(self.0.cast()) };
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.block().value
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_last_pointer_drops_the_value() {
        let counted = Arc::new(());
        let one = Shared::new(Arc::clone(&counted));
        let two = one.clone();
        assert!(Shared::is(&one, &two) && Shared::address(&one) == Shared::address(&two));
        drop(one);
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(two);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn only_a_lone_pointer_changes_its_value_in_place() {
        let mut one = Shared::new(String::from("a"));
        let address = Shared::address(&one);
        one.own().push('b');
        assert_eq!(Shared::address(&one), address);
        let mut two = one.clone();
        assert!(two.own_if_alone().is_none());
        two.own().push('c');
        assert_eq!((&**one, &**two), ("ab", "abc"));
        assert!(!Shared::is(&one, &two) && two.own_if_alone().is_some());
    }

    #[test]
    fn pointers_may_be_dropped_in_several_threads() {
        let counted = Arc::new(());
        let one = Shared::new((Arc::clone(&counted), [1_u64; 9]));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mut mine = one.clone();
                scope.spawn(move || {
                    mine.own().1[0] += 1;
                    assert_eq!((*mine).1[0], 2);
                });
            }
        });
        assert_eq!((*one).1[0], 1);
        drop(one);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
