//! Received messages: a circular list of nodes, oldest first, and the scans that take one out of the middle.
//!
//! A chain is one word. It points to the list's last node. While the list has messages with a [`Mark`] among them, it
//! points to a table of the marks instead. Used by the mailbox ([`crate::api::mailbox`]) only.

#![allow(unsafe_code)]

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::{self, NonNull},
    thread,
};

use crate::{
    job::{
        marks::{Mark, MarkTable},
        message::{MessageNode, NodeLayout},
        state::Link,
    },
    report::payload,
};

/// Received nodes, oldest first: a circular list, held by its last node. This type does not know the type of the
/// messages, and so cannot drop them; see [`MessageChain`].
///
/// Invariants: `held` is null if there is no node. Otherwise it is the last node, whose `next` is the first, or, with
/// [`TABLE`] set, an owned [`MarkTable`] that has the last node. Every node is owned by the ring.
pub(crate) struct MessageLinks {
    held: *mut Link,
}

/// The bit of `held` that tells a table from a node: both are aligned to 8.
const TABLE: usize = 1;

/// Received messages, oldest first.
///
/// Invariant: the links belong to nodes of `T`.
pub(crate) struct MessageChain<T> {
    pub(crate) links: MessageLinks,
    values: PhantomData<T>,
}

// SAFETY: a chain owns its values, and a table that is `Send` except for pointers into the chain.
unsafe impl<T: Send> Send for MessageChain<T> {}
// SAFETY: a shared chain gives no access to its values, nor to its table.
unsafe impl<T: Send> Sync for MessageChain<T> {}

/// How far a scan of a chain has come: the last node that it has passed, and how many it has passed.
#[derive(Clone, Copy)]
pub(crate) struct Scan(*mut Link, usize);

impl Scan {
    /// The start of a scan: before the oldest message.
    pub(crate) const START: Scan = Scan(ptr::null_mut(), 0);

    /// How many messages the scan has passed, because they were not wanted.
    pub(crate) fn passed(self) -> usize {
        self.1
    }
}

// SAFETY: an address; only a chain follows it.
unsafe impl Send for Scan {}

fn next_of(link: *mut Link) -> *mut Link {
    // SAFETY: callers pass nodes that their chain owns.
    unsafe { (*link).next }
}

/// How many bytes ahead of the present node a walk prefetches. The messages of a burst are allocated in strips
/// ([`crate::memory`]), so the next node is likely near. Measured to save a tenth of a message's cost with a million of
/// them queued in a thousand mailboxes.
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
        self.held.is_null()
    }

    #[inline(always)]
    fn has_table(&self) -> bool {
        self.held.addr() & TABLE != 0
    }

    fn table_ptr(&self) -> Option<NonNull<MarkTable>> {
        let table = self.held.map_addr(|a| a & !TABLE).cast();
        self.has_table().then(|| NonNull::new(table)).flatten()
    }

    fn table(&self) -> Option<&MarkTable> {
        // SAFETY: the chain owns the table; it is borrowed as the chain is.
        self.table_ptr().map(|table| unsafe { table.as_ref() })
    }

    fn table_mut(&mut self) -> Option<&mut MarkTable> {
        // SAFETY: as above.
        self.table_ptr().map(|mut table| unsafe { table.as_mut() })
    }

    /// The last node, or null.
    #[inline(always)]
    fn last(&self) -> *mut Link {
        match self.table() {
            Some(table) => table.last,
            None => self.held,
        }
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
        let (mut first, mut behind) = (newest, ptr::null_mut());
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
        let last = self.last();
        let front = match last.is_null() {
            true => first,
            false => next_of(last),
        };
        if !last.is_null() {
            set_next(last, first);
        }
        set_next(newest, front);
        match self.table_mut() {
            Some(table) => (table.last, table.length) = (newest, table.length + count),
            None => self.held = newest,
        }
        count
    }

    /// How many nodes there are. O(n), unless there are marks.
    pub(crate) fn len(&self) -> usize {
        if let Some(table) = self.table() {
            return table.length;
        }
        let last = self.held;
        let first = (!last.is_null()).then(|| next_of(last));
        let next = |node: &*mut Link| (*node != last).then(|| next_of(*node));
        std::iter::successors(first, next).count()
    }

    /// How many nodes there are, if a mark stands behind one of them; otherwise 0.
    pub(crate) fn len_if_marked(&self) -> usize {
        self.table().map_or(0, |table| table.length)
    }

    /// Takes the oldest node.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<NonNull<Link>> {
        if self.held.is_null() {
            return None;
        }
        match self.has_table() {
            false => Some(self.remove_plain(self.held)),
            true => Some(self.remove_after(self.last())),
        }
    }

    /// Takes the node behind `before`, in a chain without marks.
    #[inline(always)]
    fn remove_plain(&mut self, before: *mut Link) -> NonNull<Link> {
        let node = next_of(before);
        prefetch(node.wrapping_byte_add(AHEAD));
        if node == before {
            self.held = ptr::null_mut();
        } else {
            set_next(before, next_of(node));
            if node == self.held {
                self.held = before;
            }
        }
        NonNull::new(node).expect("the nodes form a ring")
    }

    /// Takes the node behind `before`.
    #[inline(never)]
    fn remove_after(&mut self, before: *mut Link) -> NonNull<Link> {
        let Some(table) = self.table_mut() else {
            return self.remove_plain(before);
        };
        let node = NonNull::new(next_of(before)).expect("the nodes form a ring");
        if node.as_ptr() == before {
            // Every mark stands before the oldest message now, and needs no table for that.
            drop(self.take_table());
            return node;
        }
        let was_oldest = before == table.last;
        set_next(before, next_of(node.as_ptr()));
        if node.as_ptr() == table.last {
            table.last = before;
        }
        table.length -= 1;
        table.remove(node, NonNull::new(before).filter(|_| !was_oldest));
        node
    }

    /// Takes the table out, and with it the last node: the chain is empty now.
    fn take_table(&mut self) -> Option<Box<MarkTable>> {
        let table = self.table_ptr();
        self.held = ptr::null_mut();
        // SAFETY: the table came from a box in `set_mark`, and `held` names it no longer.
        table.map(|table| unsafe { Box::from_raw(table.as_ptr()) })
    }

    /// Where a scan with `mark` begins.
    pub(crate) fn scan_since(&self, mark: &Mark) -> Scan {
        let node = self.table().and_then(|table| table.find(mark));
        Scan(node.map_or(ptr::null_mut(), NonNull::as_ptr), 0)
    }

    /// Puts `mark` behind the newest message. O(n) the first time after the chain was empty.
    pub(crate) fn mark_newest(&mut self, mark: &mut Mark) {
        self.set_mark(mark, Scan(self.last(), 0));
    }

    /// Puts `mark` where `scan` has come. Nothing was removed since, except by that scan.
    pub(crate) fn set_mark(&mut self, mark: &mut Mark, scan: Scan) {
        // A scan that has passed nothing began before the oldest message, where a mark needs no place.
        let (Some(node), false) = (NonNull::new(scan.0), self.is_empty()) else {
            return;
        };
        if !self.has_table() {
            let table = Box::new(MarkTable::new(self.held, self.len()));
            let table: *mut Link = Box::into_raw(table).cast();
            self.held = table.map_addr(|a| a | TABLE);
        }
        let table = self.table_mut().expect("it was just made");
        table.set(mark, node);
    }
}

impl<T> MessageChain<T> {
    pub(crate) const fn new() -> MessageChain<T> {
        MessageChain {
            links: MessageLinks {
                held: ptr::null_mut(),
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

    /// Takes the first message after `scan` for which `wanted` is true, or else moves the scan to the
    /// end. Nothing was removed since the scan began.
    pub(crate) fn take_if(
        &mut self,
        scan: &mut Scan,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Option<T> {
        let last = self.links.last();
        if last.is_null() || scan.0 == last {
            return None;
        }
        let mut before = match scan.0.is_null() {
            true => last,
            false => scan.0,
        };
        loop {
            let node = next_of(before);
            // SAFETY: the chain owns the node, whose value is alive.
            if wanted(unsafe { &(*node.cast::<NodeLayout<T>>()).value }) {
                let link = self.links.remove_after(before);
                // SAFETY: the links belong to nodes of `T`.
                return Some(unsafe { MessageNode::<T>::from_link(link) }.into_value());
            }
            *scan = Scan(node, scan.1 + 1);
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
    use crate::job::JobPtr;

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
                        let mut scan = Scan::START;
                        let taken = chain.take_if(&mut scan, |value| wanted(**value));
                        let place = naive.iter().position(|value| wanted(*value));
                        let expected = place.and_then(|place| naive.remove(place));
                        prop_assert_eq!(taken.map(|value| *value), expected);
                        if place.is_none() {
                            // A scan that found nothing resumes after the last message it saw.
                            // SAFETY: as above.
                            unsafe { chain.links.append_stack(stack(next..next + 3)) };
                            naive.extend(next..next + 3);
                            let mut seen = Vec::new();
                            let _none = chain.take_if(&mut scan, |value| {
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

    /// What a mark is, told without nodes: values are given in rising order, and all below the bound are before it.
    #[derive(Default)]
    struct NaiveMark {
        mark: Mark,
        bound: u32,
    }

    /// What the naive scan from `bound` on looks at, and what it takes.
    fn naive_scan(
        values: &mut VecDeque<u32>,
        bound: &mut u32,
        wanted: impl Fn(u32) -> bool,
    ) -> (Vec<u32>, Option<u32>) {
        let mut seen = Vec::new();
        for place in 0..values.len() {
            let value = values[place];
            if value < *bound {
                continue;
            }
            seen.push(value);
            if wanted(value) {
                values.remove(place);
                return (seen, Some(value));
            }
            *bound = value + 1;
        }
        (seen, None)
    }

    proptest! {
        /// Several marks against their bounds: each scan looks at the messages behind its mark, at no other, in their order,
        /// whatever other scans and receives remove, and whatever marks are made and dropped between.
        #[test]
        fn marks_stay_between_the_messages_where_they_stood(
            steps in prop::collection::vec((0..7_u8, 0..9_u32, 0..5_usize), 0..300)
        ) {
            let mut chain = MessageChain::<Box<u32>>::new();
            let mut naive = VecDeque::new();
            let mut marks: Vec<NaiveMark> = (0..5).map(|_| NaiveMark::default()).collect();
            let mut next = 0;
            for (what, number, which) in steps {
                match what {
                    0 => {
                        // SAFETY: the stack was just built from such nodes.
                        let count = unsafe { chain.links.append_stack(stack(next..next + number)) };
                        prop_assert_eq!(count, number as usize);
                        naive.extend(next..next + number);
                        next += number;
                    }
                    1 => for _ in 0..number {
                        prop_assert_eq!(chain.pop().map(|value| *value), naive.pop_front());
                    },
                    2 => {
                        let taken = chain.take_if(&mut Scan::START.clone(), |v| **v % 10 == number);
                        let (_, expected) = naive_scan(&mut naive, &mut 0, |v| v % 10 == number);
                        prop_assert_eq!(taken.map(|value| *value), expected);
                    }
                    3 => {
                        let mut mark = Mark::oldest();
                        chain.links.mark_newest(&mut mark);
                        marks[which] = NaiveMark { mark, bound: next };
                    }
                    4 => marks[which] = NaiveMark::default(),
                    _ => {
                        let NaiveMark { mark, bound } = &mut marks[which];
                        let mut scan = chain.links.scan_since(mark);
                        let mut seen = Vec::new();
                        let taken = chain.take_if(&mut scan, |value| {
                            seen.push(**value);
                            **value % 10 == number
                        });
                        chain.links.set_mark(mark, scan);
                        let expected = naive_scan(&mut naive, bound, |v| v % 10 == number);
                        prop_assert_eq!((seen, taken.map(|value| *value)), expected);
                    }
                }
                prop_assert_eq!(chain.links.is_empty(), naive.is_empty());
                prop_assert_eq!(chain.links.len(), naive.len());
            }
        }
    }

    #[test]
    fn a_chain_forgets_marks_that_were_dropped() {
        let mut chain = MessageChain::<Box<u32>>::new();
        // SAFETY: the stack was just built from such nodes.
        unsafe { chain.links.append_stack(stack(0..3)) };
        for _ in 0..1_000 {
            chain.links.mark_newest(&mut Mark::oldest());
        }
        assert!(chain.links.table().unwrap().places() <= 5);
        while chain.pop().is_some() {}
        assert!(chain.links.table().is_none());
    }

    #[test]
    fn a_mark_of_another_chain_stands_before_the_oldest_message() {
        let [mut one, mut two] = [MessageChain::<Box<u32>>::new(), MessageChain::new()];
        let mut mark = Mark::oldest();
        for chain in [&mut one, &mut two] {
            // SAFETY: the stack was just built from such nodes.
            unsafe { chain.links.append_stack(stack(0..3)) };
            let scan = chain.links.scan_since(&mark);
            assert!(scan.0.is_null());
            chain.links.mark_newest(&mut mark);
            assert_eq!(chain.links.scan_since(&mark).0, chain.links.last());
        }
        assert!(one.links.scan_since(&mark).0.is_null());
        drop(one);
        assert_eq!(two.links.scan_since(&mark).0, two.links.last());
    }
}
