//! The work-stealing deque of stack jobs: its owner pushes and pops at one end, thieves steal at the other.
//!
//! The entries are at the places `top..bottom`; those below `top` were stolen or withdrawn. The deque is as deep as its
//! owner's forks are nested, so an entry keeps its place from its push to its pop.
//!
//! Protocol, after Cilk's "THE", with the fences of [`barrier`]:
//! - owner: `bottom = place`; light fence; if `top <= place`, the owner has the entry back. Otherwise it
//!   decides under the thieves' lock.
//! - thief, under the lock: `top = place + 1`; heavy fence; if `bottom > place`, the entry is stolen.
//!   Otherwise the owner was faster, and the thief resets `top = place`.
//!
//! Why only one side gets the entry: because of the two fences, either the owner sees the thief's `top` and
//! waits under the lock for the verdict, or the thief sees the owner's `bottom` and backs out.
//!
//! A heavy fence interrupts the owner, which on a virtual machine costs both sides some ten microseconds. So a thief
//! first *asks*: it alerts the owner, and waits about as long. At its next push the owner *shares* its entries: it
//! raises `seen_top` above their places, as if a thief had them. From then on it decides about these entries under the
//! lock, so a thief that finds a shared entry under the lock needs no fence. An owner that gets a shared entry back
//! lowers `seen_top`, so the next entry in that place is its own again. A thief that takes the last shared entry alerts
//! the owner for the next thief. Only if the owner does not push for so long does the thief pay for the heavy fence.
//!
//! An owner *withdraws* its entries when it will drop them: it raises `top` above their places, under the lock, as if
//! thieves had stolen them. When it pops one, it finds out under the lock that no thief has it, and lowers `top` again.
//!
//! To *alert* the owner, any thread stores zero to `limit`. The owner's next push, which compares its place with
//! `limit` anyway, then makes the owner respond. Until then a push costs nothing extra.
//!
//! On a system without membarrier both sides need a full fence. There `limit` is always alerted and `seen_top`
//! is always above every place. So the owner always takes the slow paths, which have a full fence, and the
//! fast paths need no test for such systems.
//!
//! Invariants:
//! - Only the owner writes `bottom` and the slots; `top` is written only under the thieves' lock.
//! - `top <= bottom`, except under the lock and during an owner's pop.
//! - `seen_top` is `top`, or `shared` if that is greater; all three are written only under the thieves' lock, and
//!   `shared` only by the owner. So the owner sees `seen_top` above the place of each shared entry.
//! - There is always room for the next push, because the push that fills the last slot makes the owner respond and
//!   grow the deque.

#![allow(unsafe_code)]

use std::{mem, ops::Deref, ptr::NonNull};

use crate::memory::cache_padded::CachePadded;
use crate::sys::{AtomicPtr, AtomicUsize, Mutex, Ordering, barrier, lock, spin_loop};

/// The number of slots in a new deque. Models use few, so that a deque grows within a few steps.
#[cfg(not(any(loom, miri)))]
const FIRST_SLOTS: usize = 256;
#[cfg(any(loom, miri))]
const FIRST_SLOTS: usize = 2;

/// How often a thief checks that an entry is still there before it steals the entry; about half a microsecond
/// in total. An entry that its owner pops sooner is not worth stealing: a steal costs both threads more.
#[cfg(not(any(loom, miri)))]
const STEADY_CHECKS: usize = 32;
#[cfg(any(loom, miri))]
const STEADY_CHECKS: usize = 1;

/// How often a thief that has alerted the owner checks whether the owner shares the entry, before it pays for a heavy
/// fence. As long as such a fence takes on a virtual machine: some ten microseconds, which the owner loses, too.
#[cfg(not(any(loom, miri)))]
const ASKING_CHECKS: usize = 20 * STEADY_CHECKS;
#[cfg(any(loom, miri))]
const ASKING_CHECKS: usize = 1;

/// The value of `limit` after an alert.
const ALERTED: usize = 0;

/// A deque of pointers to `T`. A thief leaves an `S` at the place of the entry that it stole.
pub(crate) struct Deque<T, S> {
    /// The place of the next push.
    bottom: AtomicUsize,
    /// From this place on, a push makes the owner respond: the last slot, or [`ALERTED`].
    limit: AtomicUsize,
    /// The first of the slots.
    slots: AtomicPtr<AtomicPtr<T>>,
    /// From this place on, an entry is the owner's, and the lock need not be taken: the greater of `top` and
    /// [`ThiefSide::shared`], or `usize::MAX` if fences are symmetric.
    ///
    /// The owner reads it at each pop, and thieves write it.
    seen_top: CachePadded<AtomicUsize>,
    /// The place of the next steal.
    top: AtomicUsize,
    /// Whether both sides need a full fence.
    is_symmetric: bool,
    thieves: Mutex<ThiefSide<T, S>>,
}

/// What is at a place below `top`.
enum Gone<S> {
    /// A thief took the entry, and left this.
    Stolen(S),
    /// As above; the owner has taken what the thief left.
    Judged,
    /// The owner has withdrawn the entry.
    Withdrawn,
}

/// Whether thieves have left an `S` of a kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Search {
    Found,
    /// No, but the owner has taken the last one that they left.
    Judged,
    None,
}

/// What the thieves' lock guards.
struct ThiefSide<T, S> {
    /// What [`Deque::slots`] points to.
    slots: Slots<T>,
    /// What became of the entries from place 0 up to `top`.
    gone: Vec<Gone<S>>,
    /// The entries below this place are shared. Only the owner changes it.
    shared: usize,
}

/// The fate of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<S> {
    /// The owner has it back.
    Kept,
    /// A thief has it, and left this in its place.
    Stolen(S),
}

/// The memory of the slots. Not a box, which asserts whenever it is moved that nothing else points into its memory.
struct Slots<T>(NonNull<[AtomicPtr<T>]>);

// SAFETY: it owns its slots, which any thread may use.
unsafe impl<T> Send for Slots<T> {}

impl<T> Slots<T> {
    fn new(count: usize) -> Slots<T> {
        let slots: Box<[AtomicPtr<T>]> = (0..count).map(|_| AtomicPtr::default()).collect();
        Slots(NonNull::from(Box::leak(slots)))
    }

    fn first(&self) -> *mut AtomicPtr<T> {
        self.0.as_ptr().cast()
    }
}

impl<T> Deref for Slots<T> {
    type Target = [AtomicPtr<T>];

    fn deref(&self) -> &[AtomicPtr<T>] {
        // SAFETY: `new` leaked it, and `drop` frees it.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        // SAFETY: `new` leaked it; the deque forgets the address of slots that it drops.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<T, S> Deque<T, S> {
    pub(crate) fn new() -> Deque<T, S> {
        let is_symmetric = barrier::is_symmetric();
        let slots = Slots::new(FIRST_SLOTS);
        Deque {
            bottom: AtomicUsize::new(0),
            // A worker may be asleep already.
            limit: AtomicUsize::new(ALERTED),
            slots: AtomicPtr::new(slots.first()),
            seen_top: AtomicUsize::new(if is_symmetric { usize::MAX } else { 0 }).into(),
            top: AtomicUsize::new(0),
            is_symmetric,
            thieves: Mutex::new(ThiefSide {
                slots,
                gone: Vec::new(),
                shared: 0,
            }),
        }
    }

    /// Puts `entry` at the returned place. If the second value is true, the owner must respond at once:
    /// it calls [`Deque::reset_limit`], then does what the alert was for.
    ///
    /// # Safety
    /// The caller is the owner, and pops the entry before those that it pushed earlier.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, entry: *mut T) -> (usize, bool) {
        let place = self.bottom.load(Ordering::Relaxed);
        let slots = self.slots.load(Ordering::Relaxed);
        // SAFETY: there is room for a push: the push before this one made sure.
        let slot = unsafe { slots.add(place) };
        // SAFETY: the slots stay where they are until the owner, which is this thread, allocates more.
        unsafe { &*slot }.store(entry, Ordering::Relaxed);
        // Release: pairs with a thief's acquire load. The slot and the entry are written before.
        self.bottom.store(place + 1, Ordering::Release);
        // Pairs with the heavy fence of a sleeper between its alert and its last check.
        barrier::light_if_asymmetric();
        // Acquire: pairs with the store in `alert`. The owner sees why it was alerted.
        (place, place >= self.limit.load(Ordering::Acquire))
    }

    /// Takes back the entry at `place`. False if a thief has it, or may have it: [`Deque::judge`] decides.
    ///
    /// # Safety
    /// The caller is the owner, and `place` is that of its latest push that is not popped yet.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, place: usize) -> bool {
        self.bottom.store(place, Ordering::Relaxed);
        barrier::light_if_asymmetric();
        // Relaxed: a thief that backed out touched nothing.
        self.seen_top.load(Ordering::Relaxed) <= place
    }

    /// What became of the entry at `place`, whose pop failed: a thief has it or tries to, or it is shared or withdrawn.
    /// The place of a stolen entry stays occupied until [`Deque::give_up`].
    ///
    /// # Safety
    /// As for [`Deque::pop`], which has just returned false.
    #[cold]
    pub(crate) unsafe fn judge(&self, place: usize) -> Verdict<S> {
        if self.is_symmetric {
            // Pairs with a thief's fence. A thief that backed out touched nothing.
            barrier::full();
            if self.top.load(Ordering::Relaxed) <= place {
                return Verdict::Kept;
            }
        }
        let mut inner = lock(&self.thieves);
        if self.top.load(Ordering::Relaxed) <= place {
            self.unshare_from(place, &mut inner);
            return Verdict::Kept;
        }
        match mem::replace(&mut inner.gone[place], Gone::Judged) {
            Gone::Stolen(stolen) => {
                self.bottom.store(place + 1, Ordering::Relaxed);
                Verdict::Stolen(stolen)
            }
            Gone::Withdrawn => {
                self.free(place, &mut inner);
                Verdict::Kept
            }
            Gone::Judged => crate::report::impossible("a stack job was judged twice"),
        }
    }

    /// Frees the place of a stolen entry, the last place in use.
    ///
    /// # Safety
    /// The caller is the owner, and [`Deque::judge`] found the entry at `place` stolen.
    pub(crate) unsafe fn give_up(&self, place: usize) {
        let mut inner = lock(&self.thieves);
        self.free(place, &mut inner);
        self.bottom.store(place, Ordering::Relaxed);
    }

    /// Looks for an `S` like that at this place or a later one. Any thread.
    pub(crate) fn find_stolen_from(&self, place: usize, is_one: impl Fn(&S) -> bool) -> Search {
        let inner = lock(&self.thieves);
        let left = inner.gone.get(place..).unwrap_or_default();
        let is_one = |gone: &Gone<S>| matches!(gone, Gone::Stolen(stolen) if is_one(stolen));
        match left.last() {
            _ if left.iter().any(is_one) => Search::Found,
            Some(Gone::Judged) => Search::Judged,
            _ => Search::None,
        }
    }

    /// From now on no thief takes an entry that is there already. The owner still pops each of them, and thieves may
    /// steal what it pushes later.
    ///
    /// # Safety
    /// The caller is the owner.
    #[cold]
    pub(crate) unsafe fn withdraw(&self) {
        let mut inner = lock(&self.thieves);
        let bottom = self.bottom.load(Ordering::Relaxed);
        inner.gone.resize_with(bottom, || Gone::Withdrawn);
        self.set_top(bottom, &inner);
    }

    /// Makes room, shares what is there, and resets the limit, after a push that asked the owner to respond.
    ///
    /// # Safety
    /// The caller is the owner.
    #[cold]
    pub(crate) unsafe fn reset_limit(&self) {
        let mut inner = lock(&self.thieves);
        let len = inner.slots.len();
        if self.bottom.load(Ordering::Relaxed) >= len {
            let more = Slots::new(2 * len);
            for (old, new) in inner.slots.iter().zip(more.iter()) {
                new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            // Relaxed: thieves read the slots under the lock.
            self.slots.store(more.first(), Ordering::Relaxed);
            inner.slots = more;
        }
        if !self.is_symmetric {
            self.limit.store(inner.slots.len() - 1, Ordering::Relaxed);
            self.share(&mut inner);
        }
        drop(inner);
        // Pairs with the heavy fence that an alerting thread executes after it published the reason and before it
        // alerts: either the owner sees the reason when it responds, or the alert comes after this store.
        barrier::full();
    }

    /// Makes the owner respond at its next push. Any thread.
    pub(crate) fn alert(&self) {
        // Release: pairs with the load in `push`.
        self.limit.store(ALERTED, Ordering::Release);
    }

    /// Shares all entries, if no entry is shared.
    fn share(&self, inner: &mut ThiefSide<T, S>) {
        if inner.shared <= self.top.load(Ordering::Relaxed) {
            inner.shared = self.bottom.load(Ordering::Relaxed);
            self.show_top(inner);
        }
    }

    /// The owner has popped the entry at `place`, or has given its place up: the next one there is not shared.
    fn unshare_from(&self, place: usize, inner: &mut ThiefSide<T, S>) {
        if inner.shared > place {
            inner.shared = place;
            self.show_top(inner);
        }
    }

    /// The owner is done with `place`, the last one in use, which is below `top`.
    fn free(&self, place: usize, inner: &mut ThiefSide<T, S>) {
        inner.gone.truncate(place);
        self.set_top(place, inner);
        self.unshare_from(place, inner);
    }

    /// Sets the place of the next steal.
    fn set_top(&self, place: usize, inner: &ThiefSide<T, S>) {
        self.top.store(place, Ordering::Relaxed);
        self.show_top(inner);
    }

    /// Sets what the owner sees of `top` and `shared`.
    fn show_top(&self, inner: &ThiefSide<T, S>) {
        if !self.is_symmetric {
            let top = self.top.load(Ordering::Relaxed);
            self.seen_top
                .store(top.max(inner.shared), Ordering::Relaxed);
        }
    }

    /// Whether there was something to steal a moment ago. Any thread.
    pub(crate) fn has_entries(&self) -> bool {
        // Acquire: pairs with the push's store, so that the caller sees what the owner did before its push.
        self.bottom.load(Ordering::Acquire) > self.top.load(Ordering::Relaxed)
    }

    /// Whether the entry at `place` has been there for long enough to be worth a steal. Any thread.
    fn stays(&self, place: usize) -> bool {
        (0..STEADY_CHECKS).all(|_| {
            spin_loop();
            self.bottom.load(Ordering::Relaxed) > place
        })
    }

    /// Asks the owner to share the entry at `place`, unless it is shared already, and waits a little. Any thread.
    fn ask_for(&self, place: usize) {
        let is_shared = || self.seen_top.load(Ordering::Relaxed) > place;
        if is_shared() {
            return;
        }
        self.alert();
        let is_answered = |_| {
            spin_loop();
            is_shared() || self.bottom.load(Ordering::Relaxed) <= place
        };
        let _in_time = (0..ASKING_CHECKS).any(is_answered);
    }

    /// Steals the oldest entry, if it stays for a while and `admits` returns true, and leaves in its place what `leave`
    /// makes of the entry. Costs a heavy fence if the owner has not shared the entry, and does not share it when asked.
    /// Any thread.
    pub(crate) fn steal<R>(
        &self,
        admits: impl FnOnce() -> bool,
        leave: impl FnOnce(*mut T) -> (S, R),
    ) -> Option<R> {
        let place = self.top.load(Ordering::Relaxed);
        if !self.stays(place) {
            return None;
        }
        self.ask_for(place);
        let mut inner = lock(&self.thieves);
        if self.top.load(Ordering::Relaxed) != place {
            return None;
        }
        self.set_top(place + 1, &inner);
        if inner.shared <= place {
            barrier::heavy();
        }
        // Acquire: pairs with the owner's push.
        if self.bottom.load(Ordering::Acquire) <= place || !admits() {
            self.set_top(place, &inner);
            return None;
        }
        let entry = inner.slots[place].load(Ordering::Relaxed);
        let (left, result) = leave(entry);
        debug_assert_eq!(inner.gone.len(), place);
        inner.gone.push(Gone::Stolen(left));
        if inner.shared <= place + 1 {
            // For the next thief.
            self.alert();
        }
        Some(result)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
