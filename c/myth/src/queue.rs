//! A queue of waiting threads in one word, which is zero when it is empty.
//!
//! C programs have the objects of this library in their own memory, for which MassiveThreads sets the sizes; some are
//! never initialised, and some are never destroyed. So a queue allocates nothing, and zero is an empty one. The word is
//! the address of the last node of a ring, with a lock bit. The lock is held for a few instructions, in which no thread
//! switches.
//!
//! # Safety
//! - *Alive*: a node is in the frame of the wait that it stands for ([`crate::wait`]). The wait ends after somebody has
//!   marked the node as woken, or after the wait has taken it out itself, under the lock.
//! - *Locked*: only code that holds the lock touches the links of a node in the queue.
//! - *Taken*: the thread that takes a node out under the lock owns its links, its waker and its note, until it marks
//!   the node as woken, as its last access.
//! - *Lent*: the waker of a job without a count is used before the wait ends, and so before the job's code ends. So it
//!   is used first, and the node is marked then. Between the two are a few instructions; a waiter that runs by then
//!   waits for the mark without suspending its stack, since nobody would wake it again ([`Node::is_woken`]).
//! - *On top*: once the runtime has stopped, a waker may run a waiter on top of its caller, where it must not wait for
//!   a mark. So a waker with a count is taken out, and its node marked, before it or any waker beside it is used
//!   ([`taken`]); and from the begin of a runtime's end on, which is before it stops, a lent one gets a count first
//!   ([`may_lend`]). What is left: a thread that loses its core for longer than that end takes, between its look and
//!   its wake.

#![allow(unsafe_code)]

mod taken;

use std::{
    cell::{Cell, UnsafeCell},
    mem::{self, ManuallyDrop},
    ptr,
    sync::atomic::Ordering::{Acquire, Relaxed, Release},
    task::Waker,
};

pub(crate) use taken::Taken;

use crate::{
    ending::may_lend,
    sys::{AtomicU8, AtomicUsize, spin, yield_now},
};

/// Set while somebody holds the lock.
const LOCK: usize = 1;
/// How often a thread looks at a lock before it yields to the other OS threads.
const LOOKS: u32 = 100;

/// Nobody has taken the node.
const WAITS: u8 = 0;
/// Somebody has, and wakes its thread.
const TAKEN: u8 = 1;
/// Whoever had it touches it no more.
const WOKEN: u8 = 2;

/// Whom to wake.
enum Whom {
    Nobody,
    /// *Lent*: it has no count.
    Lent(ManuallyDrop<Waker>),
    Own(Waker),
}

/// A waiting thread.
#[repr(align(8))]
pub(crate) struct Node {
    next: Cell<*const Node>,
    previous: Cell<*const Node>,
    waker: UnsafeCell<Whom>,
    /// What the waiter and those that wake it tell each other.
    pub(crate) note: Cell<u32>,
    state: AtomicU8,
}

impl Node {
    pub(crate) fn new(note: u32) -> Node {
        Node {
            next: Cell::new(ptr::null()),
            previous: Cell::new(ptr::null()),
            waker: UnsafeCell::new(Whom::Nobody),
            note: Cell::new(note),
            state: AtomicU8::new(WAITS),
        }
    }

    /// Before it is pushed: whom to wake.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        self.set_whom(Whom::Own(waker.clone()));
    }

    /// As [`set_waker`](Node::set_waker), without a count.
    ///
    /// # Safety
    /// *Lent*: a copy of the waker may be used until the wait ends.
    pub(crate) unsafe fn lend_waker(&self, waker: &Waker) {
        // SAFETY: the caller's promise; a copy that is not dropped.
        let copy = unsafe { ptr::read(waker) };
        // Without a drop of what was there: nothing, or what was lent before.
        // SAFETY: *taken*: as in `set_whom`.
        unsafe { self.waker.get().write(Whom::Lent(ManuallyDrop::new(copy))) };
    }

    fn set_whom(&self, whom: Whom) {
        // SAFETY: *taken*: its own frame calls this before it is in a queue.
        unsafe { *self.waker.get() = whom };
    }

    /// Whether its wait is over, and nobody touches it any longer. If somebody is about to wake its thread, it waits
    /// for the end of that.
    pub(crate) fn is_woken(&self) -> bool {
        // Pairs with the release in `mark_woken`.
        match self.state.load(Acquire) {
            WAITS => false,
            WOKEN => true,
            _taken => {
                self.until_woken();
                true
            }
        }
    }

    /// Somebody has taken it: waits until it is marked.
    #[cold]
    pub(crate) fn until_woken(&self) {
        let mut looks = 0;
        // Pairs with the release in `mark_woken`.
        while self.state.load(Acquire) != WOKEN {
            match looks < LOOKS {
                true => spin(),
                // Whoever has it may have lost its core.
                false => yield_now(),
            }
            looks += 1;
        }
    }

    /// The waker that was lent, for whoever has taken it.
    fn lent_waker(&self) -> Option<&Waker> {
        // SAFETY: *taken*.
        match unsafe { &*self.waker.get() } {
            Whom::Nobody | Whom::Own(_) => None,
            Whom::Lent(waker) => Some(waker),
        }
    }

    /// Whether its waker was lent. By whoever has taken it.
    fn is_lent(&self) -> bool {
        self.lent_waker().is_some()
    }

    /// Takes its waker out, whatever it is. By whoever has taken it.
    fn take_whom(&self) -> Whom {
        // SAFETY: *taken*.
        unsafe { mem::replace(&mut *self.waker.get(), Whom::Nobody) }
    }

    /// Takes and wakes one that is in no queue, by whoever alone may do that.
    pub(crate) fn take_and_wake(&self) {
        self.state.store(TAKEN, Relaxed);
        self.wake();
    }

    /// Wakes it and marks it, by whoever has taken it.
    fn wake(&self) {
        match self.lent_waker() {
            Some(waker) if may_lend() => {
                waker.wake_by_ref();
                self.mark_woken();
            }
            _ => {
                if let Some(waker) = self.mark_before_wake() {
                    waker.wake();
                }
            }
        }
    }

    /// Marks it, and returns its waker with a count, which is used then: *on top*. By whoever has taken it.
    fn mark_before_wake(&self) -> Option<Waker> {
        let waker = match self.take_whom() {
            Whom::Nobody => None,
            // *Lent*: its job lasts until the mark.
            Whom::Lent(waker) => Some(Waker::clone(&waker)),
            Whom::Own(waker) => Some(waker),
        };
        self.mark_woken();
        waker
    }

    /// The last access of whoever has taken it.
    fn mark_woken(&self) {
        // Pairs with the acquire in `is_woken`.
        self.state.store(WOKEN, Release);
    }
}

/// The queue.
#[repr(transparent)]
pub(crate) struct Queue(AtomicUsize);

impl Queue {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Queue {
        Queue(AtomicUsize::new(0))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Queue {
        Queue(AtomicUsize::new(0))
    }

    /// Locks it.
    #[inline(always)]
    pub(crate) fn lock(&self) -> Locked<'_> {
        self.try_lock().unwrap_or_else(|| self.lock_after_others())
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<Locked<'_>> {
        let word = self.0.load(Relaxed) & !LOCK;
        // Pairs with the release in the drop of `Locked`.
        let locked = self
            .0
            .compare_exchange_weak(word, word | LOCK, Acquire, Relaxed);
        // Not made before it is known: its drop unlocks.
        locked.is_ok().then(|| Locked { queue: self, word })
    }

    #[cold]
    #[inline(never)]
    fn lock_after_others(&self) -> Locked<'_> {
        let mut looks = 0;
        loop {
            match looks < LOOKS {
                true => spin(),
                // The holder may have lost its core.
                false => yield_now(),
            }
            if let Some(locked) = self.try_lock() {
                return locked;
            }
            looks += 1;
        }
    }
}

/// A queue whose lock the caller holds.
pub(crate) struct Locked<'a> {
    queue: &'a Queue,
    /// The word without the lock.
    word: usize,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.queue.0.store(self.word, Release);
    }
}

impl Locked<'_> {
    /// The last node; null: there is none.
    fn last(&self) -> *const Node {
        ptr::with_exposed_provenance(self.word)
    }

    fn set_last(&mut self, last: *const Node) {
        self.word = last.expose_provenance();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last().is_null()
    }

    /// The note of the first node.
    pub(crate) fn first_note(&self) -> Option<u32> {
        // SAFETY: *locked*, *alive*.
        let last = unsafe { self.last().as_ref() }?;
        // SAFETY: as above.
        Some(unsafe { &*last.next.get() }.note.get())
    }

    /// Puts a node behind all others.
    pub(crate) fn push(&mut self, node: &Node) {
        self.push_first(node);
        self.set_last(node);
    }

    /// Puts a node before all others.
    pub(crate) fn push_first(&mut self, node: &Node) {
        // A node that waits again.
        node.state.store(WAITS, Relaxed);
        // SAFETY: *locked*, *alive*.
        let Some(last) = (unsafe { self.last().as_ref() }) else {
            node.next.set(node);
            node.previous.set(node);
            return self.set_last(node);
        };
        let first = last.next.get();
        node.next.set(first);
        node.previous.set(last);
        last.next.set(node);
        // SAFETY: as above.
        unsafe { &*first }.previous.set(node);
    }

    /// Takes the first node.
    pub(crate) fn pop(&mut self) -> Option<Taken> {
        // SAFETY: *locked*, *alive*.
        let last = unsafe { self.last().as_ref() }?;
        // SAFETY: as above.
        let first = unsafe { &*last.next.get() };
        self.unlink(first);
        first.state.store(TAKEN, Relaxed);
        first.next.set(ptr::null());
        Some(Taken::of(first, first.is_lent()))
    }

    /// Takes all nodes.
    pub(crate) fn take_all(&mut self) -> Taken {
        // SAFETY: *locked*, *alive*.
        let Some(last) = (unsafe { self.last().as_ref() }) else {
            return Taken::NONE;
        };
        let first = last.next.replace(ptr::null());
        let (mut node, mut are_lent) = (first, true);
        // SAFETY: as above.
        while let Some(each) = unsafe { node.as_ref() } {
            each.state.store(TAKEN, Relaxed);
            are_lent &= each.is_lent();
            node = each.next.get();
        }
        self.set_last(ptr::null());
        Taken::of(first, are_lent)
    }

    /// Takes `node` out, whose wait ends by itself. False if somebody else has taken it, and will wake it.
    pub(crate) fn remove(&mut self, node: &Node) -> bool {
        let waits = node.state.load(Relaxed) == WAITS;
        if waits {
            self.unlink(node);
        }
        waits
    }

    fn unlink(&mut self, node: &Node) {
        let (next, previous) = (node.next.get(), node.previous.get());
        if ptr::eq(next, node) {
            return self.set_last(ptr::null());
        }
        // SAFETY: *locked*, *alive*.
        unsafe { &*next }.previous.set(previous);
        // SAFETY: as above.
        unsafe { &*previous }.next.set(next);
        if ptr::eq(self.last(), node) {
            self.set_last(previous);
        }
    }
}
