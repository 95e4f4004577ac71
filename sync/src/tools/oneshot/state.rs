//! The block that both ends of a oneshot share: its word, the value, and the offers of both ends.
//!
//! Each end leaves the block by the store that releases the lock, which also says that the end is gone. So a send takes
//! the lock by one exchange, and a receive of a value that was sent needs none. The end that finds the other one gone
//! is alone with the block, and frees it.
//!
//! Rejected: counts, as in `Arc`, which took five exchanges more for each oneshot.

#![allow(unsafe_code)]

use std::{marker::PhantomData, mem, ops::Deref, ptr::NonNull, task::Waker};

use super::spare;
use crate::{
    queue::offer::Offers,
    sys::{AtomicU32, MutPtr, Ordering, UnsafeCell, relax},
};

/// Held by whoever touches the offers or changes the word, for a few instructions.
const LOCKED: u32 = 1 << 0;
/// The sender is gone: nothing (more) will be sent.
pub(super) const SENT: u32 = 1 << 1;
/// Nothing (more) will be received.
pub(super) const REFUSED: u32 = 1 << 2;
/// The receiver is gone.
pub(super) const GONE: u32 = 1 << 3;

/// The block.
///
/// # Safety
/// *Locked*: only the holder of `LOCKED` touches the offers, and changes the word. *Handed*: the sender touches the
/// value until it sets `SENT`, and the receiver only after it has seen that. Each of them exists once, and gives
/// exclusive access to one user at a time. *Ends*: the block lives until both ends have left. An end touches the block
/// no more once it has stored its bit (`SENT`, `GONE`), unless the other's was there before: then it is alone with the
/// block.
pub(super) struct Oneshot<T> {
    word: AtomicU32,
    offers: UnsafeCell<EndOffers>,
    value: UnsafeCell<Option<T>>,
}

/// The offers of both ends. At most one unit waits at each, because a wait borrows its end exclusively.
pub(super) struct EndOffers {
    pub(super) receiver: Receiving,
    pub(super) sender: Offers<()>,
}

/// How the receiver waits.
pub(super) enum Receiving {
    /// For one of several events; or not at all.
    Offers(Offers<()>),
    /// For the value alone: its waker.
    Alone(Waker),
}

/// The right to the offers and the word; releases the lock when dropped.
pub(super) struct Locked<'a, T> {
    oneshot: &'a Oneshot<T>,
    /// The word that the release stores.
    word: u32,
    /// Some until the release; loom checks that the access ends before.
    access: Option<MutPtr<EndOffers>>,
}

/// A pointer to the block, which one of the two ends has (*ends*).
pub(super) struct End<T> {
    oneshot: NonNull<Oneshot<T>>,
    /// The last end drops the value.
    values: PhantomData<Oneshot<T>>,
}

// SAFETY: *handed*, *locked*: the value moves from one thread to another, and is never shared.
unsafe impl<T: Send> Send for End<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for End<T> {}
// SAFETY: as above: waits have references.
unsafe impl<T: Send> Send for Oneshot<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Oneshot<T> {}

// An end is a pointer: to move it does not move the value.
impl<T> Unpin for End<T> {}

impl<T> End<T> {
    /// Both ends of a new oneshot.
    #[inline(always)]
    pub(super) fn pair() -> (End<T>, End<T>) {
        let oneshot = Oneshot::allocate(Oneshot {
            word: AtomicU32::new(0),
            offers: UnsafeCell::new(EndOffers {
                receiver: Receiving::NOT,
                sender: Offers::new(),
            }),
            value: UnsafeCell::new(None),
        });
        let end = || End {
            oneshot,
            values: PhantomData,
        };
        (end(), end())
    }

    /// Frees the block, with the value that was not received.
    ///
    /// # Safety
    /// *Ends*: the other end has left, and the caller's end does not use the block again.
    #[inline]
    pub(super) unsafe fn free(&self) {
        // SAFETY: the caller's promise.
        unsafe { Oneshot::free(self.oneshot) };
    }
}

impl<T> Deref for End<T> {
    type Target = Oneshot<T>;

    #[inline(always)]
    fn deref(&self) -> &Oneshot<T> {
        // SAFETY: *ends*.
        unsafe { self.oneshot.as_ref() }
    }
}

impl<T> Oneshot<T> {
    /// Whether the block is one of those that threads keep.
    const IS_SPARE: bool = size_of::<Oneshot<T>>() <= spare::LAYOUT.size()
        && align_of::<Oneshot<T>>() <= spare::LAYOUT.align();

    #[inline(always)]
    fn allocate(oneshot: Oneshot<T>) -> NonNull<Oneshot<T>> {
        if !Self::IS_SPARE {
            return NonNull::from(Box::leak(Box::new(oneshot)));
        }
        let block = spare::take().cast::<Oneshot<T>>();
        // SAFETY: the block is new, and has room.
        unsafe { block.write(oneshot) };
        block
    }

    /// # Safety
    /// It came from `allocate`, and is not used again.
    #[inline]
    unsafe fn free(oneshot: NonNull<Oneshot<T>>) {
        /// Gives a block back, even if the value's destructor panics.
        struct Block(NonNull<u8>);
        impl Drop for Block {
            fn drop(&mut self) {
                // SAFETY: the caller's promise.
                unsafe { spare::give(self.0) };
            }
        }
        if !Self::IS_SPARE {
            // SAFETY: the caller's promise.
            return drop(unsafe { Box::from_raw(oneshot.as_ptr()) });
        }
        let _block = Block(oneshot.cast());
        // SAFETY: the caller's promise.
        unsafe { oneshot.drop_in_place() };
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> Locked<'_, T> {
        let mut word = self.word.load(Ordering::Relaxed) & !LOCKED;
        // Acquire: pairs with the release in the drop of `Locked`.
        let taken =
            self.word
                .compare_exchange(word, word | LOCKED, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            word = self.lock_late();
        }
        Locked {
            oneshot: self,
            word,
            access: Some(self.offers.get_mut()),
        }
    }

    /// Returns the word without `LOCKED`.
    #[cold]
    fn lock_late(&self) -> u32 {
        let mut round = 0;
        loop {
            let word = self.word.load(Ordering::Relaxed) & !LOCKED;
            let exchanged = self.word.compare_exchange(
                word,
                word | LOCKED,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if exchanged.is_ok() {
                return word;
            }
            relax(&mut round);
        }
    }

    /// Whether nothing (more) will be sent.
    #[inline(always)]
    pub(super) fn is_sent(&self) -> bool {
        self.is(SENT)
    }

    /// Whether nothing (more) will be received.
    #[inline(always)]
    pub(super) fn is_refused(&self) -> bool {
        self.is(REFUSED)
    }

    #[inline(always)]
    fn is(&self, bit: u32) -> bool {
        // Acquire: pairs with the release in the drop of `Locked`, so the receiver sees the value.
        self.word.load(Ordering::Acquire) & bit != 0
    }

    /// Puts the value into the block.
    ///
    /// # Safety
    /// *Handed*: the caller is the sender, which sets `SENT` later.
    #[inline(always)]
    pub(super) unsafe fn put(&self, value: T) {
        let access = self.value.get_mut();
        // SAFETY: *handed*, by the caller's promise.
        *unsafe { access.deref() } = Some(value);
    }

    /// The value, if one was sent and not received yet.
    ///
    /// # Safety
    /// *Handed*: the caller is the receiver, has exclusive access to it, and has seen `SENT`.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> Option<T> {
        let access = self.value.get_mut();
        // SAFETY: *handed*, by the caller's promise.
        unsafe { access.deref() }.take()
    }
}

impl Receiving {
    const NOT: Receiving = Receiving::Offers(Offers::new());

    /// The waker of a receiver that waits for the value alone, which no longer waits.
    #[inline(always)]
    pub(super) fn take_alone(&mut self) -> Option<Waker> {
        match self {
            Receiving::Offers(_) => None,
            Receiving::Alone(_) => self.forget(),
        }
    }

    /// Nobody waits any longer. Returns the waker of a wait for the value alone.
    #[inline(always)]
    pub(super) fn forget(&mut self) -> Option<Waker> {
        match mem::replace(self, Receiving::NOT) {
            Receiving::Offers(_) => None,
            Receiving::Alone(waker) => Some(waker),
        }
    }

    /// The list of a receiver that does not wait for the value alone.
    #[inline(always)]
    pub(super) fn offers(&mut self) -> &mut Offers<()> {
        match self {
            Receiving::Offers(offers) => offers,
            Receiving::Alone(_) => unreachable!("the waker was taken before"),
        }
    }
}

impl<T> Locked<'_, T> {
    #[inline(always)]
    pub(super) fn has(&self, bit: u32) -> bool {
        self.word & bit != 0
    }

    #[inline(always)]
    pub(super) fn offers(&mut self) -> &mut EndOffers {
        let access = self
            .access
            .as_ref()
            .expect("there is access until the release");
        // SAFETY: *locked*.
        unsafe { access.deref() }
    }

    /// The sender leaves: sets `SENT`, releases the lock, and ends the receiver's wait. Returns the waker of its owner,
    /// to be woken. The block may be gone when this returns.
    #[inline(always)]
    pub(super) fn end_sender(mut self) -> Option<Waker> {
        let Some(alone) = self.offers().receiver.take_alone() else {
            return self.end(SENT, |offers| offers.receiver.offers());
        };
        self.word |= SENT;
        Some(alone)
    }

    /// Sets `bits`, releases the lock, and ends the wait in the list that `of` chooses. Returns the waker of its owner,
    /// to be woken. The block may be gone when this returns, if the caller's end has left with `bits`.
    #[inline(always)]
    pub(super) fn end(
        mut self,
        bits: u32,
        of: impl FnOnce(&mut EndOffers) -> &mut Offers<()>,
    ) -> Option<Waker> {
        // SAFETY: it is won below.
        let accepted = unsafe { of(self.offers()).accept_beyond() };
        self.word |= bits;
        // Before the claim is won: the owner looks for the bits, and then may leave, too.
        drop(self);
        let (held, number) = accepted?;
        held.win(number)
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.access = None;
        // Release: pairs with the acquires in `lock` and `is`. Nothing touches the block after it (*ends*).
        self.oneshot.word.store(self.word, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_oneshot_of_a_text_fits_a_spare_block() {
        assert_eq!(size_of::<Receiving>(), size_of::<Waker>());
        const { assert!(Oneshot::<String>::IS_SPARE) };
    }
}
