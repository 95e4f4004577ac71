//! The deque of forked halves: its owner pushes and pops at one end, thieves take at the other.
//!
//! Entries lie at the places `top..bottom`; what lay below `top` was stolen. The deque is as deep as the
//! forks of its owner, so that a half has the same place from its push to its pop.
//!
//! Protocol, after Cilk's "THE", with the fences of [`barrier`]:
//! - owner: `bottom = place`; light fence; if `top <= place`, the entry is the owner's again. Else it asks
//!   under the thieves' lock.
//! - thief, under the lock: `top = place + 1`; heavy fence; if `bottom > place`, the entry is stolen. Else
//!   the owner was faster, and `top = place` again.
//!
//! Why only one gets it: by the two fences either the owner sees the thief's `top`, and waits for its
//! verdict under the lock, or the thief sees the owner's `bottom` and backs out.
//!
//! A ring of the bell is a store of zero to `limit`, which each push compares with its place anyway. So
//! whoever wants the owner's attention gets it at the owner's next push, which pays nothing until then.
//!
//! Where the system has no membarrier both sides need a full fence. `limit` is then always rung and `seen_top`
//! always above every place, so that the owner takes the longer ways, which have one, and the usual ways need
//! not ask.
//!
//! Invariants:
//! - `bottom`, and the slots, are written by the owner only; `top` under the thieves' lock only.
//! - Outside of the lock and of an owner's pop `top <= bottom`.
//! - There is room for the next push: the push that fills the last slot is told to look around.

#![allow(unsafe_code)]

use crate::sys::{AtomicPtr, AtomicUsize, Mutex, MutexGuard, Ordering, barrier, lock, spin_loop};

/// Slots that a new deque has. loom models use few, so that growth happens within few steps.
#[cfg(not(loom))]
const FIRST_SLOTS: usize = 256;
#[cfg(loom)]
const FIRST_SLOTS: usize = 2;

/// How often a thief looks whether an entry is still there before it steals it; together about half a
/// microsecond. A half that its owner reaches sooner is not worth a theft, which costs both of them more.
#[cfg(not(loom))]
const STEADY_LOOKS: usize = 32;
#[cfg(loom)]
const STEADY_LOOKS: usize = 1;

/// The value of `limit` after a ring.
const RUNG: usize = 0;

/// Keeps what thieves write out of the cache line that the owner writes.
#[repr(align(128))]
struct Apart<T>(T);

/// A deque of pointers to `T`. A thief leaves an `S` in the place of what it stole.
pub(crate) struct Deque<T, S> {
    /// The place of the next push.
    bottom: AtomicUsize,
    /// From this place on a push looks around: the last slot, or [`RUNG`].
    limit: AtomicUsize,
    /// The first of the slots.
    slots: AtomicPtr<AtomicPtr<T>>,
    /// The place of the next theft, as the owner sees it: `top`, or the highest number.
    seen_top: Apart<AtomicUsize>,
    /// The place of the next theft.
    top: AtomicUsize,
    /// Whether both sides need a full fence.
    is_symmetric: bool,
    thieves: Mutex<DequeRoom<T, S>>,
}

struct DequeRoom<T, S> {
    /// What `slots` points to.
    room: Box<[AtomicPtr<T>]>,
    /// What thieves left; the entry of place 0 first. As long as `top`.
    stolen: Vec<Option<S>>,
}

/// What became of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<S> {
    /// It is the owner's again.
    Kept,
    /// A thief has it, and left this.
    Stolen(S),
}

fn room<T>(slots: usize) -> Box<[AtomicPtr<T>]> {
    (0..slots)
        .map(|_| AtomicPtr::new(std::ptr::null_mut()))
        .collect()
}

impl<T, S> Deque<T, S> {
    pub(crate) fn new() -> Deque<T, S> {
        let is_symmetric = barrier::is_symmetric();
        let mut room = room(FIRST_SLOTS);
        Deque {
            bottom: AtomicUsize::new(0),
            // Somebody may sleep already.
            limit: AtomicUsize::new(RUNG),
            slots: AtomicPtr::new(room.as_mut_ptr()),
            seen_top: Apart(AtomicUsize::new(if is_symmetric { usize::MAX } else { 0 })),
            top: AtomicUsize::new(0),
            is_symmetric,
            thieves: Mutex::new(DequeRoom {
                room,
                stolen: Vec::new(),
            }),
        }
    }

    /// Puts `entry` at the returned place. If the second value is true the owner looks around at once:
    /// it calls [`Deque::reset_limit`], and does what the ring was for.
    ///
    /// # Safety
    /// The caller is the owner. It pops the entry before those that it pushed earlier.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, entry: *mut T) -> (usize, bool) {
        let place = self.bottom.load(Ordering::Relaxed);
        let slots = self.slots.load(Ordering::Relaxed);
        // SAFETY: there is room for a push: the one before made it.
        let slot = unsafe { slots.add(place) };
        // SAFETY: the slots stay where they are until the owner, which is here, makes more.
        unsafe { &*slot }.store(entry, Ordering::Relaxed);
        // Release: pairs with a thief's acquire load: the slot is filled, and so is the entry.
        self.bottom.store(place + 1, Ordering::Release);
        // Pairs with the heavy fence of a sleeper between its ring and its last look.
        barrier::light_or_nothing();
        // Acquire: pairs with the store in `ring`: we see what made the ringer ring.
        (place, place >= self.limit.load(Ordering::Acquire))
    }

    /// Takes back the entry at `place`. False if a thief has it, or seems to: [`Deque::judge`] tells.
    ///
    /// # Safety
    /// The caller is the owner, and `place` is that of its latest push that it has not popped.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, place: usize) -> bool {
        self.bottom.store(place, Ordering::Relaxed);
        barrier::light_or_nothing();
        // Relaxed: a thief that backed out touched nothing.
        self.seen_top.0.load(Ordering::Relaxed) <= place
    }

    /// What became of the entry at `place`, whose pop failed. If it is stolen its place stays taken until
    /// [`Deque::give_up`].
    ///
    /// # Safety
    /// As for [`Deque::pop`], which has just said false.
    #[cold]
    pub(crate) unsafe fn judge(&self, place: usize) -> Verdict<S> {
        // For a symmetric fence: pairs with that of a thief, as the light one of `pop` else.
        barrier::full();
        if self.top.load(Ordering::Relaxed) <= place {
            return Verdict::Kept;
        }
        let mut inner = lock(&self.thieves);
        if self.top.load(Ordering::Relaxed) <= place {
            return Verdict::Kept;
        }
        self.bottom.store(place + 1, Ordering::Relaxed);
        match inner.stolen[place].take() {
            Some(stolen) => Verdict::Stolen(stolen),
            None => crate::report::impossible("a forked half was judged twice"),
        }
    }

    /// Frees the place of a stolen entry, the last one that there is.
    ///
    /// # Safety
    /// The caller is the owner, and [`Deque::judge`] said that the entry at `place` is stolen.
    pub(crate) unsafe fn give_up(&self, place: usize) {
        let mut inner = lock(&self.thieves);
        inner.stolen.truncate(place);
        self.set_top(place);
        self.bottom.store(place, Ordering::Relaxed);
    }

    /// Makes room and sets the limit anew, after a push that was told to look around.
    ///
    /// # Safety
    /// The caller is the owner.
    #[cold]
    pub(crate) unsafe fn reset_limit(&self) {
        let mut inner = lock(&self.thieves);
        let slots = inner.room.len();
        if self.bottom.load(Ordering::Relaxed) >= slots {
            let mut more = room(2 * slots);
            for (old, new) in inner.room.iter().zip(&more) {
                new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            // Relaxed: thieves look at the slots under the lock.
            self.slots.store(more.as_mut_ptr(), Ordering::Relaxed);
            inner.room = more;
        }
        if !self.is_symmetric {
            self.limit.store(inner.room.len() - 1, Ordering::Relaxed);
        }
        drop(inner);
        // Pairs with the heavy fence of a ringer between its news and its ring: either the owner's look
        // sees the news, or the ring comes after this store.
        barrier::full();
    }

    /// Makes the owner look around at its next push. Any thread.
    pub(crate) fn ring(&self) {
        // Release: pairs with the load in `push`.
        self.limit.store(RUNG, Ordering::Release);
    }

    /// Sets the place of the next theft. Under the thieves' lock.
    fn set_top(&self, place: usize) {
        self.top.store(place, Ordering::Relaxed);
        if !self.is_symmetric {
            self.seen_top.0.store(place, Ordering::Relaxed);
        }
    }

    /// Whether there was something to steal a moment ago. Any thread.
    pub(crate) fn has_entries(&self) -> bool {
        self.bottom.load(Ordering::Relaxed) > self.top.load(Ordering::Relaxed)
    }

    /// Lets a thief in; one at a time. Any thread.
    pub(crate) fn thief(&self) -> DequeThief<'_, T, S> {
        DequeThief {
            deque: self,
            inner: lock(&self.thieves),
        }
    }
}

/// A thief, alone among thieves.
pub(crate) struct DequeThief<'a, T, S> {
    deque: &'a Deque<T, S>,
    inner: MutexGuard<'a, DequeRoom<T, S>>,
}

impl<T, S> DequeThief<'_, T, S> {
    /// Steals the oldest entry, if one stays for a while, and leaves in its place what `leave` makes of it.
    /// Costs a heavy fence if there seems to be one.
    pub(crate) fn steal<R>(
        &mut self,
        admits: impl FnOnce() -> bool,
        leave: impl FnOnce(*mut T) -> (S, R),
    ) -> Option<R> {
        let place = self.deque.top.load(Ordering::Relaxed);
        for _ in 0..STEADY_LOOKS {
            if self.deque.bottom.load(Ordering::Relaxed) <= place {
                return None;
            }
            spin_loop();
        }
        self.deque.set_top(place + 1);
        barrier::heavy();
        // Acquire: pairs with the owner's push.
        if self.deque.bottom.load(Ordering::Acquire) <= place || !admits() {
            self.deque.set_top(place);
            return None;
        }
        let entry = self.inner.room[place].load(Ordering::Relaxed);
        let (left, result) = leave(entry);
        debug_assert_eq!(self.inner.stolen.len(), place);
        self.inner.stolen.push(Some(left));
        Some(result)
    }
}
