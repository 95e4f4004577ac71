//! The free stacks that a thread keeps for its next fibers, in front of the pool: a list through the stacks, last in,
//! first out. So a recursion in which each thread creates and joins the next finds as many warm stacks as it is deep.
//!
//! # Safety
//! **free**: nothing runs on a stack in the list, so its top, which is warm, has the link. All are of one class.

#![allow(unsafe_code)]

use std::{cell::Cell, ptr::NonNull};

use crate::stack::{self, Stack};

/// How many stacks are kept.
const MOST: u32 = 64;

/// The list.
pub(crate) struct CachedStacks {
    first: Cell<Option<Stack>>,
    count: Cell<u32>,
}

/// What is at the top of a stack in the list: the next one.
type NextFree = Option<Stack>;

fn link_of(stack: &Stack) -> NonNull<NextFree> {
    // SAFETY: *free*: a stack is far larger than a link, and its top is a multiple of 64.
    unsafe { stack.top().cast::<NextFree>().sub(1) }
}

impl CachedStacks {
    pub(super) const fn new() -> CachedStacks {
        CachedStacks {
            first: Cell::new(None),
            count: Cell::new(0),
        }
    }

    /// Takes the stack that was given last, if it is of `class`.
    #[inline(always)]
    pub(super) fn take(&self, class: u32) -> Option<Stack> {
        let stack = self.first.take()?;
        if stack.class() != class {
            self.first.set(Some(stack));
            return None;
        }
        // SAFETY: *free*.
        self.first.set(unsafe { link_of(&stack).read() });
        self.count.set(self.count.get() - 1);
        Some(stack)
    }

    /// Puts a stack into the list. Returns it if there is no room.
    #[inline(always)]
    pub(super) fn give(&self, stack: Stack) -> Option<Stack> {
        let count = self.count.get();
        let next = self.first.take();
        let is_fit = next.as_ref().is_none_or(|it| it.class() == stack.class());
        if count == MOST || !is_fit {
            self.first.set(next);
            return self.give_in_general(stack, is_fit);
        }
        self.put((stack, next), count);
        None
    }

    #[inline(always)]
    fn put(&self, (stack, next): (Stack, Option<Stack>), count: u32) {
        // SAFETY: *free*: the caller gives it.
        unsafe { link_of(&stack).write(next) };
        self.first.set(Some(stack));
        self.count.set(count + 1);
    }

    /// The list is full, or is one of another class, which makes room.
    #[cold]
    #[inline(never)]
    fn give_in_general(&self, stack: Stack, is_fit: bool) -> Option<Stack> {
        if is_fit {
            return Some(stack);
        }
        self.flush();
        self.put((stack, None), 0);
        None
    }

    /// Gives all of them to the pool.
    pub(super) fn flush(&self) {
        while let Some(stack) = self.first.take() {
            // SAFETY: *free*.
            self.first.set(unsafe { link_of(&stack).read() });
            stack::give(stack);
        }
        self.count.set(0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_of_one_class_makes_room_for_another_class() {
        let list = CachedStacks::new();
        let class_of = |bytes| Stack::class_for(bytes).unwrap();
        let (one, other) = (class_of(64 << 10), class_of(256 << 10));
        assert_ne!(one, other);
        for _ in 0..MOST {
            assert!(list.give(stack::take(one).unwrap()).is_none());
        }
        let surplus = list.give(stack::take(one).unwrap());
        stack::give(surplus.expect("the list is full"));
        assert!(list.give(stack::take(other).unwrap()).is_none());
        assert!(list.take(one).is_none());
        stack::give(list.take(other).expect("it was given"));
        list.flush();
    }
}
