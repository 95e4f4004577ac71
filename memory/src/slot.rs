//! A slot: a pointer that some threads load while others replace it. Each takes a few steps, however many have loaded
//! before.
//!
//! The slot owns [`PREPAID`] shares of the counter of its value, and gives one to each load. The word of the pointer
//! also says how many it has given. So a load is one change of that word, and leaves the counter alone. A store takes
//! the whole word and gives back the shares that are left. So a store never looks for readers, and costs the same for
//! one as for thousands. (Folly's `AtomicSharedPtr` counts in the same way; C++ calls it a split counter.)
//!
//! A load that finds half of the shares given buys as many anew.
//!
//! **Safety.** The word is a pointer of a [`Shared`] and the number of shares given, in bits that no address of a
//! program has on a 64-bit machine. The counter of that value includes `PREPAID` less that number for the slot, and
//! this is at least one: the last share is never given. So the value lives while it is in the slot. Each case:
//! - *load*: one successful exchange moves one share from the slot to the loader. Between its look at the word and the
//!   exchange it does not touch the value, which may be gone.
//! - *buy*: the buyer has a share of its own, so the value lives. It adds to the counter first, and then to the slot,
//!   if the value is still there; otherwise it takes back what it added. If the value has left and come again
//!   meanwhile, the shares are still shares of that value.
//! - *another value at the same address*: an exchange may succeed after the value that was looked at has ended, and
//!   another one has come to its address. The share is of the value that is there now. So the word is a number, and the
//!   pointer is made of it after the exchange, from the provenance that the store exposed. A pointer kept from the look
//!   would point to the block that has ended.
//! - *store*: the exchange takes the word with all shares that it stands for; nobody else can give one of them.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::shared::{Shared, count_down_at, count_up_at};
use crate::sys::{AtomicUsize, Ordering, yield_now};

/// How many shares a value in a slot has at first, and at most.
const PREPAID: usize = if cfg!(any(loom, miri)) { 4 } else { 1 << 15 };
/// The number of given shares stands above the address.
const GIVEN: u32 = 48;

/// The newest of a sequence of values. Any thread loads it, in one locked step if no other thread interferes, and any
/// thread replaces it, in three.
///
/// ```
/// use weald_memory::{Shared, Slot};
///
/// let slot = Slot::new(Shared::new("old"));
/// let before = slot.load();
/// slot.store(Shared::new("new"));
/// assert_eq!((*before, *slot.load()), ("old", "new"));
/// ```
///
/// A slot takes values and gives them out, so its type is invariant: a slot for values of a longer lifetime is not one
/// for values of a shorter lifetime.
///
/// ```compile_fail
/// fn shorter<'slot, 'short>(slot: &'slot weald_memory::Slot<&'static str>) -> &'slot weald_memory::Slot<&'short str> {
///     slot
/// }
/// ```
pub struct Slot<T> {
    word: AtomicUsize,
    /// It takes and gives values by a shared reference.
    passes: PhantomData<fn(T) -> T>,
}

// SAFETY: it gives pointers to one value to several threads, as a reference to a `Shared` does.
unsafe impl<T: Send + Sync> Send for Slot<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// A slot with its first value.
    pub fn new(first: Shared<T>) -> Self {
        Self {
            word: AtomicUsize::new(prepaid(first)),
            passes: PhantomData,
        }
    }

    /// The newest value. Never waits for a store.
    #[inline]
    pub fn load(&self) -> Shared<T> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let given = given(word) + 1;
            if given == PREPAID {
                // Half of the shares belong to threads between their load and their purchase: let these threads run.
                yield_now();
                word = self.word.load(Ordering::Relaxed);
                continue;
            }
            // Acquire: pairs with the release by which the value was stored, or its last shares were bought.
            let (taken, failed) = (Ordering::Acquire, Ordering::Relaxed);
            let next = with_given(word, given);
            match (self.word).compare_exchange_weak(word, next, taken, failed) {
                Ok(_) => {
                    // SAFETY: the exchange gave one of the slot's shares to this pointer.
                    let loaded = unsafe { Shared::from_raw(pointer(word)) };
                    if given >= PREPAID / 2 {
                        self.buy(&loaded);
                    }
                    return loaded;
                }
                Err(now) => word = now,
            }
        }
    }

    /// Buys half of the shares anew for `loaded`, if they are given and it is still in the slot.
    #[cold]
    #[inline(never)]
    fn buy(&self, loaded: &Shared<T>) {
        let half = PREPAID / 2;
        let raw = loaded.as_raw();
        // SAFETY: `loaded` keeps its share.
        unsafe { count_up_at(raw, half) };
        let mut word = self.word.load(Ordering::Relaxed);
        while address(word) == raw.addr().get() && given(word) >= half {
            // Release: a thread that gets one of these shares counts it down after they were counted up. Acquire: this
            // thread does not need it, but it keeps the sequence of releases plain to see.
            let (bought, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            let next = with_given(word, given(word) - half);
            match (self.word).compare_exchange_weak(word, next, bought, failed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        // SAFETY: these shares were counted above and went nowhere; `loaded` keeps its own.
        let is_last = unsafe { count_down_at(raw, half) };
        debug_assert!(!is_last);
    }

    /// Replaces the value.
    #[inline]
    pub fn store(&self, value: Shared<T>) {
        // Release: pairs with the acquire of a load. Acquire: pairs with the release of a purchase, whose shares are
        // given back here after they were counted.
        let word = self.word.swap(prepaid(value), Ordering::AcqRel);
        // SAFETY: the exchange took the word out of the slot.
        unsafe { Self::give_back(word) };
    }

    /// Gives back the shares that a word stands for.
    ///
    /// # Safety
    /// The word is in no slot any more, and is given back once.
    unsafe fn give_back(word: usize) {
        let (raw, left) = (pointer(word), PREPAID - given(word));
        // SAFETY: these shares are the word's.
        if unsafe { count_down_at(raw, left) } {
            // SAFETY: they were the last.
            unsafe { Shared::<T>::end(raw) };
        }
    }
}

impl<T> Slot<T> {
    /// Whether the slot holds this value now. It may be another one a moment later.
    #[inline]
    pub fn holds(&self, value: &Shared<T>) -> bool {
        // Relaxed: no other value has this address, because `value` lives; nothing else is learned.
        address(self.word.load(Ordering::Relaxed)) == value.as_raw().addr().get()
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        // Relaxed would do: nobody else has the slot. The models know only this way to look.
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: the slot ends, and nobody loads from it.
        unsafe { Self::give_back(word) };
    }
}

/// The word of a value that comes into a slot.
fn prepaid<T>(value: Shared<T>) -> usize {
    let raw = value.into_raw();
    // SAFETY: the pointer had one share, which is the slot's now, as are these.
    unsafe { count_up_at(raw, PREPAID - 1) };
    let address = raw.as_ptr().expose_provenance();
    // Systems give larger addresses only to programs that ask for them.
    assert!(address >> GIVEN == 0, "an address has at most 48 bits");
    address
}

fn given(word: usize) -> usize {
    word >> GIVEN
}

fn with_given(word: usize, given: usize) -> usize {
    address(word) | given << GIVEN
}

fn address(word: usize) -> usize {
    word & ((1 << GIVEN) - 1)
}

fn pointer(word: usize) -> NonNull<()> {
    let raw = ptr::with_exposed_provenance_mut(address(word));
    // SAFETY: the address is that of a block.
    unsafe { NonNull::new_unchecked(raw) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// A value that counts those of its kind that live.
    struct Counted(u64, Arc<AtomicUsize>);

    impl Counted {
        fn new(number: u64, alive: &Arc<AtomicUsize>) -> Shared<Self> {
            alive.fetch_add(1, Ordering::Relaxed);
            Shared::new(Self(number, Arc::clone(alive)))
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_value_ends_with_its_slot_and_its_last_pointer() {
        let alive = Arc::default();
        let slot = Slot::new(Counted::new(0, &alive));
        let held = slot.load();
        slot.store(Counted::new(1, &alive));
        assert_eq!(
            (held.0, slot.load().0, alive.load(Ordering::Relaxed)),
            (0, 1, 2)
        );
        assert!(slot.holds(&slot.load()) && !slot.holds(&held));
        drop(held);
        assert_eq!(alive.load(Ordering::Relaxed), 1);
        drop(slot);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn shares_are_bought_anew_as_often_as_they_are_given() {
        let alive = Arc::default();
        let slot = Slot::new(Counted::new(0, &alive));
        let held: Vec<_> = (0..3 * PREPAID).map(|_| slot.load()).collect();
        assert!(given(slot.word.load(Ordering::Relaxed)) < PREPAID);
        slot.store(Counted::new(1, &alive));
        drop(held);
        assert_eq!(alive.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn one_value_may_leave_and_come_again() {
        let alive = Arc::default();
        let (one, other) = (Counted::new(1, &alive), Counted::new(2, &alive));
        let slot = Slot::new(one.clone());
        let held = slot.load();
        slot.store(other);
        slot.store(one);
        assert_eq!((held.0, slot.load().0), (1, 1));
        drop((slot, held));
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn threads_that_load_see_values_in_order_while_others_are_stored() {
        const STORES: u64 = if cfg!(miri) { 50 } else { 20_000 };
        let alive = Arc::default();
        let slot = Slot::new(Counted::new(0, &alive));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let now = slot.load();
                        assert!(now.0 >= last);
                        last = now.0;
                    }
                });
            }
            for number in 1..=STORES {
                slot.store(Counted::new(number, &alive));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!((slot.load().0, alive.load(Ordering::Relaxed)), (STORES, 1));
        drop(slot);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}
