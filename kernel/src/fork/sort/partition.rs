//! Dividing items without a branch that depends on an item: the processor would guess it wrong every other time, and
//! where an item refers to memory, as a text does, it would not fetch that of the next ones meanwhile.
//!
//! The safety argument, *gap*: one item is outside of the slice, in the [`Gap`], and one place of the slice, `at`, is
//! free for it. Every other place has an item. The destructor puts the item back, so the slice ends up with each item
//! once, also after a panic.

#![allow(unsafe_code)]

use std::{mem::ManuallyDrop, ptr};

/// An item outside of its slice, and the place that is free for it.
struct Gap<T> {
    at: *mut T,
    item: ManuallyDrop<T>,
}

impl<T> Drop for Gap<T> {
    fn drop(&mut self) {
        // SAFETY: gap: the place is free, and the item is not used again.
        unsafe { ptr::copy_nonoverlapping(&raw const *self.item, self.at, 1) };
    }
}

/// Moves the items for which `belongs` is true before the others, and returns how many there are.
///
/// The gap is behind the items that were asked about. Each next one goes to the first of the others, and that one into
/// the gap: two moves, where a change of places would be three.
#[inline]
pub(super) fn move_to_front<T>(items: &mut [T], belongs: impl Fn(&T) -> bool) -> usize {
    let len = items.len();
    if len == 0 {
        return 0;
    }
    let first = items.as_mut_ptr();
    let mut front = 0;
    let mut gap = Gap {
        at: first,
        // SAFETY: gap: there is an item, and from here on its place is free.
        item: ManuallyDrop::new(unsafe { first.read() }),
    };
    for index in 1..len {
        // SAFETY: gap: the place is within the slice, and behind the gap.
        let next = unsafe { first.add(index) };
        // SAFETY: as above: it has an item.
        let moves_up = belongs(unsafe { &*next });
        // SAFETY: gap: `front` counts some of the items before the gap, so this is the gap or a place before it.
        let other = unsafe { first.add(front) };
        // SAFETY: gap: the two may be the same place, whose bytes are then of no use.
        unsafe { ptr::copy(other, gap.at, 1) };
        // SAFETY: gap: the place `other` is free now, and it is before `next`.
        unsafe { ptr::copy_nonoverlapping(next, other, 1) };
        gap.at = next;
        front += usize::from(moves_up);
    }
    let moves_up = belongs(&gap.item);
    // SAFETY: gap: as above.
    let other = unsafe { first.add(front) };
    // SAFETY: as above.
    unsafe { ptr::copy(other, gap.at, 1) };
    gap.at = other;
    front + usize::from(moves_up)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn items_that_belong_come_first_whichever_they_are() {
        for len in 0..10_usize {
            for belonging in 0..1_u32 << len {
                let belongs = |item: &usize| belonging >> item & 1 == 1;
                let mut items: Vec<usize> = (0..len).collect();
                let front = move_to_front(&mut items, belongs);
                assert_eq!(front, belonging.count_ones() as usize);
                assert!(items[..front].iter().all(belongs));
                items.sort_unstable();
                assert!(items.into_iter().eq(0..len));
            }
        }
    }

    #[test]
    fn after_a_panic_every_item_is_there_once() {
        for last in 0..10 {
            let mut items: Vec<Box<usize>> = (0..10).map(Box::new).collect();
            let ended = catch_unwind(AssertUnwindSafe(|| {
                move_to_front(&mut items, |item| {
                    assert!(**item != last, "enough");
                    !item.is_multiple_of(3)
                })
            }));
            assert!(ended.is_err());
            items.sort_unstable();
            assert!(items.into_iter().map(|item| *item).eq(0..10));
        }
    }
}
