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
        marks::{Mark, MarkTable, NotedLength},
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
///
/// # Safety
/// The blocks below name these situations:
/// - *owned*: a node of the ring, or of a stack that is on its way into the ring. It is alive, because only a removal
///   gives it away; and no thread changes its link meanwhile, because that takes `&mut` to the ring.
/// - *scan*: the node of a [`Scan`] is *owned*, by the promise of the caller.
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
// SAFETY: through a shared chain nodes and the table are only read (`len`, `scan_since`), and no value is.
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

/// # Safety
/// The node is *owned* ([`MessageLinks`]).
#[inline(always)]
unsafe fn next_of(link: *mut Link) -> *mut Link {
    // SAFETY: the caller's promise.
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

/// # Safety
/// The node is *owned* ([`MessageLinks`]), and the caller has `&mut` to its ring, or owns its stack.
#[inline(always)]
unsafe fn set_next(link: *mut Link, next: *mut Link) {
    // SAFETY: the caller's promise.
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
            // SAFETY: *owned*: of the stack.
            let older = unsafe { next_of(first) };
            // SAFETY: as above.
            unsafe { set_next(first, behind) };
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
            // SAFETY: *owned*.
            false => unsafe { next_of(last) },
        };
        if !last.is_null() {
            // SAFETY: *owned*.
            unsafe { set_next(last, first) };
        }
        // SAFETY: *owned*: of the stack.
        unsafe { set_next(newest, front) };
        match self.table_mut() {
            Some(table) => table.append(newest, count),
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
        // SAFETY: *owned*: called with nodes of the ring only.
        let behind = |node: *mut Link| unsafe { next_of(node) };
        let first = (!last.is_null()).then(|| behind(last));
        let next = |node: &*mut Link| (*node != last).then(|| behind(*node));
        std::iter::successors(first, next).count()
    }

    /// How many nodes there are, and what was noted of it, if a mark stands behind one of them.
    pub(crate) fn marked_length(&mut self) -> Option<(usize, &mut NotedLength)> {
        self.table_mut()
            .map(|table| (table.length, &mut table.noted))
    }

    /// Whether there are nodes, and no mark stands behind any of them.
    #[inline(always)]
    pub(crate) fn is_unmarked(&self) -> bool {
        !self.is_empty() && !self.has_table()
    }

    /// Takes the oldest node of a chain that [is unmarked](MessageLinks::is_unmarked).
    #[inline(always)]
    pub(crate) fn pop_unmarked(&mut self) -> NonNull<Link> {
        // SAFETY: *owned*: the last node.
        unsafe { self.remove_plain(self.held) }
    }

    /// Takes the oldest node.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<NonNull<Link>> {
        if self.held.is_null() {
            return None;
        }
        match self.has_table() {
            // SAFETY: *owned*: the last node.
            false => Some(unsafe { self.remove_plain(self.held) }),
            // SAFETY: as above.
            true => Some(unsafe { self.remove_after(self.last()) }),
        }
    }

    /// Takes the node behind `before`, in a chain without marks.
    ///
    /// # Safety
    /// `before` is *owned*.
    #[inline(always)]
    unsafe fn remove_plain(&mut self, before: *mut Link) -> NonNull<Link> {
        // SAFETY: *owned*, by the caller's promise.
        let node = unsafe { next_of(before) };
        prefetch(node.wrapping_byte_add(AHEAD));
        if node == before {
            self.held = ptr::null_mut();
        } else {
            // SAFETY: *owned*: it is behind `before`.
            let after = unsafe { next_of(node) };
            // SAFETY: *owned*, by the caller's promise.
            unsafe { set_next(before, after) };
            if node == self.held {
                self.held = before;
            }
        }
        NonNull::new(node).expect("the nodes form a ring")
    }

    /// Takes the node behind `before`.
    ///
    /// # Safety
    /// `before` is *owned*.
    #[inline(never)]
    unsafe fn remove_after(&mut self, before: *mut Link) -> NonNull<Link> {
        let Some(table) = self.table_mut() else {
            // SAFETY: *owned*, by the caller's promise.
            return unsafe { self.remove_plain(before) };
        };
        // SAFETY: as above.
        let node = unsafe { next_of(before) };
        let node = NonNull::new(node).expect("the nodes form a ring");
        if node.as_ptr() == before {
            // Every mark stands before the oldest message now, and needs no table for that.
            drop(self.take_table());
            return node;
        }
        let was_oldest = before == table.last;
        // SAFETY: *owned*: it is behind `before`.
        let after = unsafe { next_of(node.as_ptr()) };
        // SAFETY: *owned*, by the caller's promise.
        unsafe { set_next(before, after) };
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
        // SAFETY: *scan*: the last node, or none.
        unsafe { self.set_mark(mark, Scan(self.last(), 0)) };
    }

    /// Puts `mark` where `scan` has come.
    ///
    /// # Safety
    /// *Scan*: the scan is of this chain, and nothing was removed since it began, except by that scan.
    pub(crate) unsafe fn set_mark(&mut self, mark: &mut Mark, scan: Scan) {
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
    /// end.
    ///
    /// # Safety
    /// *Scan* ([`MessageLinks`]): the scan is of this chain, and nothing was removed since it began, except by that
    /// scan, which stands before what it takes.
    pub(crate) unsafe fn take_if(
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
            // SAFETY: *scan*, or *owned*: a node that this loop has passed.
            let node = unsafe { next_of(before) };
            // SAFETY: *owned*: the node's value is alive.
            if wanted(unsafe { &(*node.cast::<NodeLayout<T>>()).value }) {
                // SAFETY: as for `node`.
                let link = unsafe { self.links.remove_after(before) };
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
mod tests;
