//! The list of waiters: intrusive, first in first out, O(1) removal from the middle.
//!
//! A list is part of the state of a [`SpinLock`](crate::queue::spin_lock::SpinLock), so `&mut List` proves that
//! the lock is held. Its nodes are stored in the futures that wait, so a wait allocates nothing.

#![allow(unsafe_code)]

use std::{cell::UnsafeCell, marker::PhantomPinned, mem::MaybeUninit, pin::Pin, ptr, ptr::NonNull};

use super::claim::Won;

/// A waiter, and a value: what the list's users leave for each other.
///
/// # Safety
/// - *Bound*: from its first push on a node belongs to one list, whose address does not change
///   (the waiting future borrows it, or shares ownership).
/// - *Locked*: only code that has `&mut` to its list touches the links and the value of a bound node; only
///   its owner touches those of an unbound node.
/// - *Left*: the one exception to *locked*. A partner takes a node out before it wins the claim of the node's wait, and
///   touches the node no more. So the owner that has found its claim won for this node needs no lock.
/// - *Pinned*: a linked node does not move, and dropping it aborts, so a linked node is always alive.
/// - *Linked*: *locked* and *pinned*, for a node that is in the list.
pub(crate) struct Node<V> {
    list: UnsafeCell<*const List<V>>,
    /// Written when the node is bound, so a wait that is ready at once pays nothing for the links.
    links: UnsafeCell<MaybeUninit<Links<V>>>,
    value: UnsafeCell<V>,
    _pinned: PhantomPinned,
}

struct Links<V> {
    /// Null while the node is in no list.
    next: *mut Node<V>,
    previous: *mut Node<V>,
}

// SAFETY: *locked*.
unsafe impl<V: Send> Send for Node<V> {}
// SAFETY: *locked*; a shared node gives no access to its fields.
unsafe impl<V: Send> Sync for Node<V> {}

/// Nodes in the order of their arrival: a ring; the list keeps its first node.
pub(crate) struct List<V> {
    first: *mut Node<V>,
}

// SAFETY: a list moves between threads with the lock that guards it.
unsafe impl<V: Send> Send for List<V> {}

impl<V> Node<V> {
    pub(crate) const fn new(value: V) -> Node<V> {
        Node {
            list: UnsafeCell::new(ptr::null()),
            links: UnsafeCell::new(MaybeUninit::uninit()),
            value: UnsafeCell::new(value),
            _pinned: PhantomPinned,
        }
    }

    /// The value of a node that was never pushed.
    ///
    /// # Panics
    /// If the node was pushed.
    #[inline(always)]
    pub(crate) fn own_value(self: Pin<&mut Self>) -> &mut V {
        assert!(!self.is_bound(), "the node belongs to a list");
        // SAFETY: *locked*: unbound, and the caller is the owner. The value is not pinned.
        unsafe { &mut *self.value.get() }
    }

    /// The value that a partner has left, without the lock. Called by the owner of the node.
    ///
    /// # Panics
    /// If the node is linked.
    ///
    /// # Safety
    /// *Left*: the partner has won the claim of the node's wait, for this node; `won` is what the owner found.
    #[inline(always)]
    pub(crate) unsafe fn left_value(self: Pin<&mut Self>, _won: Won) -> &mut V {
        assert!(
            self.is_bound() && !self.is_linked(),
            "a partner takes the node out"
        );
        // SAFETY: *left*. The value is not pinned.
        unsafe { &mut *self.value.get() }
    }

    /// Whether the node was ever pushed. Called by its owner.
    #[inline(always)]
    pub(crate) fn is_bound(&self) -> bool {
        // SAFETY: `list` is written by the owner only, in `push`.
        !unsafe { *self.list.get() }.is_null()
    }

    /// Called only for a bound node.
    #[inline]
    fn is_linked(&self) -> bool {
        // SAFETY: *locked*; or *left*; or called by `drop`, whose caller has retracted the node, else `drop` aborts.
        let links = unsafe { &*self.links.get() };
        // SAFETY: *bound*: written with the list.
        !unsafe { links.assume_init_ref() }.next.is_null()
    }
}

impl<V> Drop for Node<V> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_bound() {
            self.check_unlinked();
        }
    }
}

impl<V> Node<V> {
    // Out of line, so that the drop of a wait that was ready at once stays small.
    #[cold]
    fn check_unlinked(&self) {
        if self.is_linked() {
            // Others would follow the link into freed memory: unwinding must not continue past this point.
            std::process::abort();
        }
    }
}

impl<V> List<V> {
    pub(crate) const fn new() -> List<V> {
        List {
            first: ptr::null_mut(),
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Appends a node.
    ///
    /// # Panics
    /// If the node is in a list, or was in another one.
    #[inline]
    pub(crate) fn push(&mut self, node: Pin<&mut Node<V>>) {
        self.bind(&node);
        assert!(!node.is_linked(), "a node waits once");
        // SAFETY: *pinned*: the node is not moved through this pointer.
        let node: *mut Node<V> = unsafe { node.get_unchecked_mut() };
        if self.first.is_null() {
            // SAFETY: *locked*, *bound*; it is pinned.
            unsafe { set_links(node, node, node) };
            self.first = node;
            return;
        }
        let first = self.first;
        // SAFETY: *linked*.
        let last = unsafe { links(first) }.previous;
        // SAFETY: *locked*, *bound*; it is pinned.
        unsafe { set_links(node, last, first) };
        // SAFETY: *linked*.
        unsafe { links(last) }.next = node;
        // SAFETY: *linked*.
        unsafe { links(first) }.previous = node;
    }

    /// Takes a node out. False if it was already taken out.
    ///
    /// # Panics
    /// If the node belongs to another list.
    #[inline]
    pub(crate) fn remove(&mut self, node: Pin<&mut Node<V>>) -> bool {
        if !node.is_bound() {
            return false;
        }
        self.bind(&node);
        let linked = node.is_linked();
        if linked {
            // SAFETY: *pinned*: the node is not moved through this pointer.
            let node: *mut Node<V> = unsafe { node.get_unchecked_mut() };
            // SAFETY: *linked*.
            unsafe { self.unlink(node) };
        }
        linked
    }

    /// The value of a node of this list, which may be linked or not.
    ///
    /// # Panics
    /// If the node belongs to another list.
    #[inline]
    pub(crate) fn value<'a>(&'a mut self, node: Pin<&'a mut Node<V>>) -> &'a mut V {
        self.bind(&node);
        // SAFETY: *locked*: `self` is its list.
        unsafe { &mut *node.value.get() }
    }

    /// The value of the first node.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<&mut V> {
        let first = NonNull::new(self.first)?;
        // SAFETY: *locked*; *pinned*: a linked node is alive.
        Some(unsafe { value(first) })
    }

    /// Takes out the first node, and returns its value, which is valid as long as the list's lock is held.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<&mut V> {
        let first = NonNull::new(self.first)?;
        // SAFETY: *linked*.
        unsafe { self.unlink(first.as_ptr()) };
        // SAFETY: *locked*: to drop the node meanwhile, its owner would have needed the lock to retract it, or to find
        // its claim won, after which the caller touches it no more (*left*).
        Some(unsafe { value(first) })
    }

    /// The value of the first node for which `wanted` is true.
    #[inline]
    pub(crate) fn find(&mut self, wanted: impl FnMut(&mut V) -> bool) -> Option<&mut V> {
        let node = self.search(wanted)?;
        // SAFETY: *locked*; *pinned*: a linked node is alive.
        Some(unsafe { value(node) })
    }

    /// How many nodes there are; looks at each of them.
    pub(crate) fn count(&mut self) -> usize {
        let mut count = 0;
        self.find(|_| {
            count += 1;
            false
        });
        count
    }

    /// Takes out the first node for which `wanted` is true, as [`List::pop`].
    #[inline]
    pub(crate) fn pop_if(&mut self, wanted: impl FnMut(&mut V) -> bool) -> Option<&mut V> {
        let node = self.search(wanted)?;
        // SAFETY: *linked*.
        unsafe { self.unlink(node.as_ptr()) };
        // SAFETY: as in `pop`.
        Some(unsafe { value(node) })
    }

    #[inline]
    fn search(&self, mut wanted: impl FnMut(&mut V) -> bool) -> Option<NonNull<Node<V>>> {
        let mut node = NonNull::new(self.first)?;
        loop {
            // SAFETY: *locked*; *pinned*.
            if wanted(unsafe { value(node) }) {
                return Some(node);
            }
            // SAFETY: *linked*.
            let next = unsafe { links(node.as_ptr()) }.next;
            node = NonNull::new(next).filter(|n| n.as_ptr() != self.first)?;
        }
    }

    /// Visits the nodes in order, and takes out those for which `keep` is false.
    #[inline]
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut V) -> bool) {
        let Some(first) = NonNull::new(self.first) else {
            return;
        };
        // SAFETY: *linked*.
        let last = unsafe { links(first.as_ptr()) }.previous;
        let mut node = first;
        loop {
            // SAFETY: *linked*.
            let next = unsafe { links(node.as_ptr()) }.next;
            // SAFETY: *locked*; *pinned*.
            if !keep(unsafe { value(node) }) {
                // SAFETY: *linked*.
                unsafe { self.unlink(node.as_ptr()) };
            }
            match NonNull::new(next) {
                Some(next) if node.as_ptr() != last => node = next,
                _ => return,
            }
        }
    }

    /// Binds the node to this list, if it is new.
    #[inline]
    fn bind(&mut self, node: &Node<V>) {
        let this: *const List<V> = self;
        if !node.is_bound() {
            let unlinked = Links {
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
            };
            // SAFETY: *locked*: unbound, and the caller is the owner.
            unsafe { *node.links.get() = MaybeUninit::new(unlinked) };
            // SAFETY: as above.
            unsafe { *node.list.get() = this };
        }
        // SAFETY: only the owner writes it, and the caller is the owner.
        let bound = unsafe { *node.list.get() };
        assert!(ptr::eq(bound, this), "the node belongs to another list");
    }

    /// # Safety
    /// *Linked*: the node is in this list.
    #[inline]
    unsafe fn unlink(&mut self, node: *mut Node<V>) {
        // SAFETY: *linked*, by the caller's promise.
        let Links { next, previous } = *unsafe { links(node) };
        if next == node {
            self.first = ptr::null_mut();
        } else {
            // SAFETY: *linked*.
            unsafe { links(previous) }.next = next;
            // SAFETY: *linked*.
            unsafe { links(next) }.previous = previous;
            if self.first == node {
                self.first = next;
            }
        }
        // SAFETY: *linked*, by the caller's promise.
        unsafe { set_links(node, ptr::null_mut(), ptr::null_mut()) };
    }
}

/// The value of a node of a list to which the caller has `&mut`, for as long as the caller has it.
///
/// # Safety
/// The node is alive, and the caller has no other reference to its value.
#[inline]
unsafe fn value<'a, V>(node: NonNull<Node<V>>) -> &'a mut V {
    // SAFETY: the caller's promise.
    let node = unsafe { node.as_ref() };
    // SAFETY: as above.
    unsafe { &mut *node.value.get() }
}

/// The links of a node of a list to which the caller has `&mut`, for as long as the caller has it.
///
/// # Safety
/// *Linked*; or the node is bound to the list, and the caller has its pin. The caller has no other reference to the
/// links.
#[inline]
unsafe fn links<'a, V>(node: *mut Node<V>) -> &'a mut Links<V> {
    // SAFETY: *locked*; *pinned*.
    let links = unsafe { (*node).links.get() };
    // SAFETY: as above.
    let links = unsafe { &mut *links };
    // SAFETY: *bound*: written with the list.
    unsafe { links.assume_init_mut() }
}

/// # Safety
/// As of [`links`].
#[inline]
unsafe fn set_links<V>(node: *mut Node<V>, previous: *mut Node<V>, next: *mut Node<V>) {
    // SAFETY: the caller's promise.
    *unsafe { links(node) } = Links { next, previous };
}

/// Splits a pinned wait into its tool and its node.
#[inline(always)]
pub(crate) fn project<'p, W, P, V>(
    wait: Pin<&'p mut W>,
    parts: impl FnOnce(&'p mut W) -> (P, &'p mut Node<V>),
) -> (P, Pin<&'p mut Node<V>>) {
    // SAFETY: *pinned*: callers pass the node that is a field of the wait, and pinned with it; no other field
    // of the wait is pinned.
    let (tool, node) = parts(unsafe { wait.get_unchecked_mut() });
    // SAFETY: as above.
    (tool, unsafe { Pin::new_unchecked(node) })
}
