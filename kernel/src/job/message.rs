//! Message nodes: what travels through a job's state word, typed for code that knows the message.
//!
//! A node is one slab block of a link and a value, so a queued message costs its size plus 8 bytes.

#![allow(unsafe_code)]

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
    thread,
};

use crate::{
    job::{JobPtr, state::Link},
    memory::{self, Owned},
    payload,
};

/// The layout of a node.
#[repr(C)]
pub(crate) struct NodeLayout<T> {
    link: Link,
    value: T,
}

/// An owned node.
pub(crate) struct MessageNode<T>(Owned<NodeLayout<T>>);

impl<T> MessageNode<T> {
    /// A node for a message to `job`.
    #[inline(always)]
    pub(crate) fn new(value: T, job: JobPtr) -> MessageNode<T> {
        let node = NodeLayout {
            link: Link {
                next: std::ptr::null_mut(),
            },
            value,
        };
        MessageNode(Owned::new_beside(node, neighbourhood(job)))
    }

    #[inline(always)]
    pub(crate) fn into_value(self) -> T {
        self.0.into_inner().value
    }

    /// Gives the node up, to be pushed onto a stack.
    #[inline(always)]
    pub(crate) fn into_link(self) -> NonNull<Link> {
        self.0.into_raw().cast()
    }

    /// # Safety
    /// `link` came from [`MessageNode::into_link`] of the same `T`, and is turned back once.
    #[inline(always)]
    pub(crate) unsafe fn from_link(link: NonNull<Link>) -> MessageNode<T> {
        // SAFETY: the caller's promise; a node begins with its link.
        MessageNode(unsafe { Owned::from_raw(link.cast()) })
    }
}

/// The neighbourhood of `job`'s messages.
#[inline(always)]
fn neighbourhood(job: JobPtr) -> usize {
    job.as_raw().addr().get()
}

/// Notes that the calling thread's message joined others in `job`'s mailbox: the next may be allocated near them.
#[inline(always)]
pub(crate) fn note_queued(job: JobPtr) {
    memory::note_joined(neighbourhood(job));
}

/// Whether a stack taken from a job's word has only one node. The caller owns the stack.
#[inline(always)]
pub(crate) fn is_single(newest: NonNull<Link>) -> bool {
    next_of(newest.as_ptr()).is_null()
}

/// Received nodes, oldest first: a ring, held by its last node. It does not know the nodes' type, and so cannot
/// drop them; see [`MessageChain`].
///
/// Invariant: `last` is null or a node whose `next` is the first; every node is owned by the ring.
pub(crate) struct MessageLinks {
    last: *mut Link,
}

/// Received messages, oldest first.
///
/// Invariant: the links belong to nodes of `T`.
pub(crate) struct MessageChain<T> {
    pub(crate) links: MessageLinks,
    values: PhantomData<T>,
}

// SAFETY: a chain owns its values and nothing else.
unsafe impl<T: Send> Send for MessageChain<T> {}
// SAFETY: a shared chain gives no access to its values.
unsafe impl<T: Send> Sync for MessageChain<T> {}

/// How far a scan of a chain has come: the node before the next one to look at, and how many it has passed.
#[derive(Clone, Copy)]
pub(crate) struct Mark(*mut Link, usize);

impl Mark {
    /// How many messages the scan has passed, because they were not wanted.
    pub(crate) fn passed(self) -> usize {
        self.1
    }
}

// SAFETY: an address; only a chain follows it.
unsafe impl Send for Mark {}

fn next_of(link: *mut Link) -> *mut Link {
    // SAFETY: callers pass nodes that their chain owns.
    unsafe { (*link).next }
}

/// How many bytes ahead of a walk to prefetch. The messages of a burst are allocated in strips
/// ([`crate::memory`]), so the next node is likely near. Measured to save a tenth of a message's cost with a
/// million of them queued in a thousand mailboxes.
const AHEAD: usize = 192;

/// Prefetches the memory at `place`, which need not exist.
#[inline(always)]
fn prefetch(place: *mut Link) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is a hint and accesses nothing; every x86-64 processor has it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

fn set_next(link: *mut Link, next: *mut Link) {
    // SAFETY: callers pass nodes that their chain owns.
    unsafe { (*link).next = next };
}

impl MessageLinks {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_null()
    }

    /// Appends a stack of messages to the ring: the stack's newest node, `newest`, becomes the last.
    /// Returns the stack's length.
    ///
    /// # Safety
    /// The ring now owns the stack, which may be null; its nodes are of the ring's type.
    pub(crate) unsafe fn append_stack(&mut self, newest: *mut Link) -> usize {
        if newest.is_null() {
            return 0;
        }
        let mut count = 1;
        // Reverses the stack: `first` walks to the oldest node, while each link is turned to the next newer one.
        let (mut first, mut behind) = (newest, std::ptr::null_mut());
        loop {
            prefetch(first.wrapping_byte_sub(AHEAD));
            let older = next_of(first);
            set_next(first, behind);
            behind = first;
            if older.is_null() {
                break;
            }
            first = older;
            count += 1;
        }
        let front = match self.last.is_null() {
            true => first,
            false => next_of(self.last),
        };
        if !self.last.is_null() {
            set_next(self.last, first);
        }
        set_next(newest, front);
        self.last = newest;
        count
    }

    /// How many nodes there are. O(n).
    pub(crate) fn len(&self) -> usize {
        let first = (!self.last.is_null()).then(|| next_of(self.last));
        let next = |node: &*mut Link| (*node != self.last).then(|| next_of(*node));
        std::iter::successors(first, next).count()
    }

    /// Takes the oldest node.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<NonNull<Link>> {
        match self.last.is_null() {
            true => None,
            false => Some(self.remove_after(self.last)),
        }
    }

    fn remove_after(&mut self, before: *mut Link) -> NonNull<Link> {
        let node = next_of(before);
        prefetch(node.wrapping_byte_add(AHEAD));
        if node == before {
            self.last = std::ptr::null_mut();
        } else {
            set_next(before, next_of(node));
            if node == self.last {
                self.last = before;
            }
        }
        NonNull::new(node).expect("the nodes form a ring")
    }
}

impl<T> MessageChain<T> {
    pub(crate) const fn new() -> MessageChain<T> {
        MessageChain {
            links: MessageLinks {
                last: std::ptr::null_mut(),
            },
            values: PhantomData,
        }
    }

    /// Takes the oldest message.
    pub(crate) fn pop(&mut self) -> Option<T> {
        // SAFETY: the links belong to nodes of `T`.
        let value = |link| unsafe { MessageNode::<T>::from_link(link) }.into_value();
        self.links.pop().map(value)
    }

    /// The start of a scan: before the oldest message.
    pub(crate) fn start(&self) -> Mark {
        Mark(std::ptr::null_mut(), 0)
    }

    /// Takes the first message after `mark` for which `wanted` is true, or else moves the mark to the
    /// end. The mark came from [`MessageChain::start`], and nothing has been popped since.
    pub(crate) fn take_if(
        &mut self,
        mark: &mut Mark,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Option<T> {
        let last = self.links.last;
        if last.is_null() || mark.0 == last {
            return None;
        }
        let mut before = match mark.0.is_null() {
            true => last,
            false => mark.0,
        };
        loop {
            let node = next_of(before);
            // SAFETY: the chain owns the node, whose value is alive.
            if wanted(unsafe { &(*node.cast::<NodeLayout<T>>()).value }) {
                let link = self.links.remove_after(before);
                // SAFETY: the links belong to nodes of `T`.
                return Some(unsafe { MessageNode::<T>::from_link(link) }.into_value());
            }
            *mark = Mark(node, mark.1 + 1);
            if node == last {
                return None;
            }
            before = node;
        }
    }
}

impl<T> Drop for MessageChain<T> {
    /// Drops every message, whatever their destructors do. The first panic continues behind the last message.
    fn drop(&mut self) {
        let mut first = None;
        while !self.links.is_empty() {
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(self.pop())));
            match (dropped, &first) {
                (Err(payload), None) => first = Some(payload),
                (Err(payload), Some(_)) => payload::discard(payload),
                (Ok(()), _) => {}
            }
        }
        match first {
            Some(payload) if thread::panicking() => payload::discard(payload),
            Some(payload) => resume_unwind(payload),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn stack(values: std::ops::Range<u32>) -> *mut Link {
        values.fold(std::ptr::null_mut(), |older, value| {
            let link = MessageNode::new(Box::new(value), JobPtr::from_raw(NonNull::dangling()))
                .into_link();
            set_next(link.as_ptr(), older);
            link.as_ptr()
        })
    }

    #[test]
    fn a_chain_drops_its_messages_although_some_panic() {
        struct Message<'a>(u32, &'a std::cell::RefCell<Vec<u32>>);
        impl Drop for Message<'_> {
            fn drop(&mut self) {
                self.1.borrow_mut().push(self.0);
                if self.0.is_multiple_of(2) {
                    resume_unwind(Box::new(self.0));
                }
            }
        }
        let dropped = std::cell::RefCell::new(Vec::new());
        let mut chain = MessageChain::<Message<'_>>::new();
        let job = JobPtr::from_raw(NonNull::dangling());
        for number in 1..=5 {
            let link = MessageNode::new(Message(number, &dropped), job).into_link();
            set_next(link.as_ptr(), std::ptr::null_mut());
            // SAFETY: a stack of one new node.
            unsafe { chain.links.append_stack(link.as_ptr()) };
        }
        let panic = catch_unwind(AssertUnwindSafe(|| drop(chain))).unwrap_err();
        assert_eq!(panic.downcast_ref::<u32>(), Some(&2));
        assert_eq!(*dropped.borrow(), [1, 2, 3, 4, 5]);
    }

    proptest! {
        /// Against a deque: the same values in the same order, whatever is removed from the middle.
        #[test]
        fn behaves_like_a_deque(steps in prop::collection::vec((0..4_u8, 0..9_u32), 0..200)) {
            let mut chain = MessageChain::<Box<u32>>::new();
            let mut naive = VecDeque::new();
            let mut next = 0;
            for (what, number) in steps {
                match what {
                    0 => {
                        // SAFETY: the stack was just built from such nodes.
                        let count =
                            unsafe { chain.links.append_stack(stack(next..next + number)) };
                        prop_assert_eq!(count, number as usize);
                        naive.extend(next..next + number);
                        next += number;
                    }
                    1 => prop_assert_eq!(chain.pop().map(|value| *value), naive.pop_front()),
                    _ => {
                        let wanted = |value: u32| value % 10 == number;
                        let mut mark = chain.start();
                        let taken = chain.take_if(&mut mark, |value| wanted(**value));
                        let place = naive.iter().position(|value| wanted(*value));
                        let expected = place.and_then(|place| naive.remove(place));
                        prop_assert_eq!(taken.map(|value| *value), expected);
                        if place.is_none() {
                            // A scan that found nothing resumes after the last message it saw.
                            // SAFETY: as above.
                            unsafe { chain.links.append_stack(stack(next..next + 3)) };
                            naive.extend(next..next + 3);
                            let mut seen = Vec::new();
                            let _none = chain.take_if(&mut mark, |value| {
                                seen.push(**value);
                                false
                            });
                            prop_assert_eq!(seen, (next..next + 3).collect::<Vec<_>>());
                            next += 3;
                        }
                    }
                }
                prop_assert_eq!(chain.links.is_empty(), naive.is_empty());
                prop_assert_eq!(chain.links.len(), naive.len());
            }
        }
    }
}
