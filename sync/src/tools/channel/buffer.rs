//! The buffer of a channel: a ring in one block of memory, with its counts at the block's beginning. So a channel whose
//! buffer was never used has one word of it.

#![allow(unsafe_code)]

use std::{
    alloc::{self, Layout},
    marker::PhantomData,
    ptr::NonNull,
};

/// What a block begins with. The slots follow.
struct BlockHead {
    /// How many slots there are: a power of two.
    capacity: usize,
    /// The slot of the oldest value.
    first: usize,
    /// How many values there are.
    len: usize,
}

/// The values, the oldest first.
///
/// # Safety
/// *Block*: if there is a block, it was allocated with the layout of its capacity, and belongs to this buffer.
/// *Values*: the slots from `first` on, `len` of them, round the end of the block, have values; the others have none.
pub(super) struct Buffer<T> {
    block: Option<NonNull<BlockHead>>,
    values: PhantomData<T>,
}

// SAFETY: a buffer owns its block and its values, as a `Vec` does.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: a shared buffer gives no access to its values.
unsafe impl<T: Send> Sync for Buffer<T> {}

impl<T> Buffer<T> {
    /// The capacity of the first block, as in `std`.
    const LEAST: usize = match size_of::<T>() {
        0..=1024 => 4,
        _ => 1,
    };

    pub(super) const fn new() -> Buffer<T> {
        Buffer {
            block: None,
            values: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        // SAFETY: *block*.
        self.block.map_or(0, |block| unsafe { block.as_ref() }.len)
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    pub(super) fn push_back(&mut self, value: T) {
        let mut block = self.with_room();
        // SAFETY: *block*.
        let head = unsafe { block.as_mut() };
        let place = head.first.wrapping_add(head.len) & (head.capacity - 1);
        head.len += 1;
        // SAFETY: the place is below the capacity.
        let slot = unsafe { Self::slot(block, place) };
        // SAFETY: *values*: the slot behind the last value has none.
        unsafe { slot.write(value) };
    }

    /// Puts a value back that was the oldest one.
    pub(super) fn push_front(&mut self, value: T) {
        let mut block = self.with_room();
        // SAFETY: *block*.
        let head = unsafe { block.as_mut() };
        head.first = head.first.wrapping_sub(1) & (head.capacity - 1);
        head.len += 1;
        let place = head.first;
        // SAFETY: the place is below the capacity.
        let slot = unsafe { Self::slot(block, place) };
        // SAFETY: *values*: the slot before the oldest value has none.
        unsafe { slot.write(value) };
    }

    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        let mut block = self.block?;
        // SAFETY: *block*.
        let head = unsafe { block.as_mut() };
        if head.len == 0 {
            return None;
        }
        let place = head.first;
        head.first = (place + 1) & (head.capacity - 1);
        head.len -= 1;
        // SAFETY: the place is below the capacity.
        let slot = unsafe { Self::slot(block, place) };
        // SAFETY: *values*: the slot has the oldest value, and has none from here on.
        Some(unsafe { slot.read() })
    }

    /// The block, which has an empty slot.
    #[inline(always)]
    fn with_room(&mut self) -> NonNull<BlockHead> {
        match self.block {
            // SAFETY: *block*.
            Some(block) if unsafe { block.as_ref() }.has_room() => block,
            _ => self.grow(),
        }
    }

    /// A slot of this block.
    ///
    /// # Safety
    /// `place` is below the block's capacity.
    #[inline(always)]
    unsafe fn slot(block: NonNull<BlockHead>, place: usize) -> NonNull<T> {
        let slots = const { Self::slots() };
        // SAFETY: *block*: its layout has the slots there.
        let first = unsafe { block.byte_add(slots) }.cast::<T>();
        // SAFETY: the caller's promise.
        unsafe { first.add(place) }
    }

    /// Where the slots begin.
    const fn slots() -> usize {
        size_of::<BlockHead>().next_multiple_of(align_of::<T>())
    }

    /// The layout of a block with this capacity.
    fn layout(capacity: usize) -> Layout {
        let slots = Layout::array::<T>(capacity);
        let block = slots.and_then(|slots| Layout::new::<BlockHead>().extend(slots));
        let (layout, begin) = block.expect("a channel's values fit into the address space");
        debug_assert_eq!(begin, Self::slots(), "slots begin where the layout says");
        layout
    }

    /// Twice as many slots.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> NonNull<BlockHead> {
        let block = match self.block {
            None => Self::first_block(),
            // SAFETY: *block*; from here on there is only the new one.
            Some(block) => unsafe { Self::doubled(block) },
        };
        self.block = Some(block);
        block
    }

    fn first_block() -> NonNull<BlockHead> {
        let layout = Self::layout(Self::LEAST);
        // SAFETY: a block has a head, so it is not empty.
        let block = unsafe { alloc::alloc(layout) };
        let Some(block) = NonNull::new(block.cast::<BlockHead>()) else {
            alloc::handle_alloc_error(layout);
        };
        let head = BlockHead {
            capacity: Self::LEAST,
            first: 0,
            len: 0,
        };
        // SAFETY: the block begins with its head.
        unsafe { block.write(head) };
        block
    }

    /// # Safety
    /// The block is full, and the caller uses the returned one in its place.
    unsafe fn doubled(block: NonNull<BlockHead>) -> NonNull<BlockHead> {
        // SAFETY: *block*.
        let BlockHead {
            capacity, first, ..
        } = *unsafe { block.as_ref() };
        let layout = Self::layout(capacity * 2);
        let former = Self::layout(capacity);
        // SAFETY: *block*.
        let grown = unsafe { alloc::realloc(block.as_ptr().cast(), former, layout.size()) };
        let Some(mut grown) = NonNull::new(grown.cast::<BlockHead>()) else {
            alloc::handle_alloc_error(layout);
        };
        // The values that went round the former end, from its first slot on, go behind it.
        // SAFETY: below the capacity.
        let begin = unsafe { Self::slot(grown, 0) };
        // SAFETY: below the doubled capacity.
        let behind = unsafe { Self::slot(grown, capacity) };
        // SAFETY: *values*: a full block has `first` values before its oldest one; behind its former end are none.
        unsafe { begin.copy_to_nonoverlapping(behind, first) };
        // SAFETY: *block*.
        unsafe { grown.as_mut() }.capacity = capacity * 2;
        grown
    }
}

impl BlockHead {
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.len < self.capacity
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Buffer<T> {
        Buffer::new()
    }
}

impl<T> Iterator for Buffer<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.pop_front()
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // A value whose destructor panics leaks those behind it: `drop_each` takes them out before.
        self.for_each(drop);
        if let Some(block) = self.block.take() {
            // SAFETY: *block*.
            let layout = Self::layout(unsafe { block.as_ref() }.capacity);
            // SAFETY: *block*; nothing uses it from here on.
            unsafe { alloc::dealloc(block.as_ptr().cast(), layout) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{collections::VecDeque, rc::Rc};

    use super::*;

    /// Steps of a made-up order: mostly pushes at first, mostly takes later, so that the ring grows at many places.
    fn compare<T: Clone + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        let (mut buffer, mut naive) = (Buffer::new(), VecDeque::new());
        let mut state = 1_usize;
        for step in 0..4_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step);
            match (state >> 40) % 8 {
                0 => {
                    buffer.push_front(value(step));
                    naive.push_front(value(step));
                }
                kind if kind < if step < 2_000 { 5 } else { 3 } => {
                    buffer.push_back(value(step));
                    naive.push_back(value(step));
                }
                _ => assert_eq!(buffer.pop_front(), naive.pop_front()),
            }
            assert_eq!(
                (buffer.len(), buffer.is_empty()),
                (naive.len(), naive.is_empty())
            );
        }
        assert!(buffer.len() > 2 * Buffer::<T>::LEAST || naive.is_empty());
        assert!(buffer.eq(naive));
    }

    #[test]
    fn it_holds_what_a_deque_of_std_holds() {
        compare(|step| step);
        compare(|step| step % 2 == 0);
        compare(|step| format!("value {step}"));
        compare(|step| [step; 200]);
        compare(|_| ());
    }

    #[test]
    fn each_value_is_dropped_once() {
        let value = Rc::new(());
        let mut buffer = Buffer::new();
        for round in 0..40 {
            buffer.push_back(Rc::clone(&value));
            if round % 3 == 0 {
                buffer.pop_front();
            }
        }
        assert_eq!(Rc::strong_count(&value), 1 + buffer.len());
        drop(buffer);
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    fn slots_of_a_large_alignment_are_aligned() {
        #[repr(align(128))]
        struct Aligned(u8);
        let mut buffer = Buffer::new();
        (0..40).for_each(|n| buffer.push_back(Aligned(n)));
        assert_eq!(
            buffer.map(|aligned| aligned.0).collect::<Vec<_>>(),
            Vec::from_iter(0..40)
        );
    }
}
