//! The claim: the right to end one wait, for which all its offers compete.
//!
//! A wait leaves an offer with each tool that could end it, all under one claim. A partner that can satisfy
//! an offer holds the claim, hands over, and wins the claim for that offer; other partners then find it won.
//! (Reppy's Concurrent ML calls this the transaction id; the protocol with two claims follows Reppy, Russo,
//! Xiao: Parallel Concurrent ML, ICFP 2009.)
//!
//! States: HELD (by the owner at first; later by the owner or a partner, for a few instructions, under the
//! lock of a tool, or, by an end of a oneshot, right after it), OPEN (not held), WON + number of the offer (for ever).
//!
//! Invariants:
//! - The holder of a claim waits for no tool's inner lock (at most for the table in `holders`, whose users wait
//!   for nothing), except its owner before it has left an offer: no other thread knows the claim then. So a thread that
//!   spins for a claim with an inner lock held always makes progress.
//! - After a partner won a claim, it touches nothing of that wait.

#![allow(unsafe_code)]

use std::{marker::PhantomPinned, task::Waker};

use crate::sys::{AtomicU32, Ordering, Rank, UnsafeCell, relax};

const HELD: u32 = 0;
const OPEN: u32 = 1;
/// Plus the number of the winning offer.
const WON: u32 = 2;

/// A claim. It is stored in the future that waits, and pinned with it.
///
/// # Safety
/// *Exclusive*: only the holder of the claim touches the waker. There is one [`Held`] for each time that the word
/// became `HELD`.
pub(crate) struct Claim {
    word: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
    /// Which of two claims gives way.
    rank: Rank,
    _pinned: PhantomPinned,
}

// SAFETY: *exclusive*.
unsafe impl Send for Claim {}
// SAFETY: *exclusive*.
unsafe impl Sync for Claim {}

/// The right to use the claim's waker, and to win the claim. Dropping it opens the claim (again).
pub struct Held<'a>(&'a Claim);

/// The claim is won: the wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// The right to what a partner left: the number of the base event for which the partner won the claim.
///
/// # Safety
/// *Routed*: only the owner of the wait has it, and only the branch with that base event is given it.
#[derive(Clone, Copy, Debug)]
pub struct Won(u32);

impl Won {
    /// For the owner of a wait.
    ///
    /// # Safety
    /// *Routed*: a partner has won the claim of the wait for this base event, and the owner gives the right to the
    /// wait's branch.
    pub(crate) unsafe fn new(base: u32) -> Won {
        Won(base)
    }

    pub(crate) fn base(self) -> u32 {
        self.0
    }

    /// The same for the branch with that base event, which has `bases` base events before it.
    pub(crate) fn below(self, bases: u32) -> Won {
        Won(self.0 - bases)
    }
}

impl Claim {
    /// A claim that its owner holds, and wakes `waker`.
    #[inline(always)]
    pub(crate) fn new(waker: Waker) -> Claim {
        Claim {
            word: AtomicU32::new(HELD),
            waker: UnsafeCell::new(Some(waker)),
            rank: Rank::new(),
            _pinned: PhantomPinned,
        }
    }

    /// The owner's first hold: nothing else refers to the claim yet.
    ///
    /// # Safety
    /// *Exclusive*: the claim is new, and this is called once.
    #[inline]
    pub(crate) unsafe fn first(&mut self) -> (&Claim, Held<'_>) {
        (self, Held(self))
    }

    /// Holds the claim. Waits while another thread holds it.
    ///
    /// # Errors
    /// [`Lost`] if it is won.
    #[inline(always)]
    pub(crate) fn hold(&self) -> Result<Held<'_>, Lost> {
        // Acquire: pairs with the release in `open`, which orders the uses of the waker.
        match self
            .word
            .compare_exchange(OPEN, HELD, Ordering::Acquire, Ordering::Acquire)
        {
            Ok(_) => Ok(Held(self)),
            Err(HELD) => self.hold_late(),
            Err(_) => Err(Lost),
        }
    }

    #[cold]
    fn hold_late(&self) -> Result<Held<'_>, Lost> {
        let mut round = 0;
        loop {
            match self.try_hold() {
                Some(held) => return held,
                None => relax(&mut round),
            }
        }
    }

    /// None: another thread holds it.
    #[inline]
    pub(crate) fn try_hold(&self) -> Option<Result<Held<'_>, Lost>> {
        // Acquire: as in `hold`.
        match self
            .word
            .compare_exchange(OPEN, HELD, Ordering::Acquire, Ordering::Acquire)
        {
            Ok(_) => Some(Ok(Held(self))),
            Err(HELD) => None,
            Err(_) => Some(Err(Lost)),
        }
    }

    /// The right that [`Held::keep`] gave up.
    ///
    /// # Safety
    /// *Exclusive*: called once for each `keep`, by its caller.
    #[inline]
    pub(crate) unsafe fn kept(&self) -> Held<'_> {
        Held(self)
    }

    /// Which offer won, if any did.
    #[inline(always)]
    pub(crate) fn winner(&self) -> Option<u32> {
        // Acquire: pairs with the release in `win`.
        match self.word.load(Ordering::Acquire) {
            HELD | OPEN => None,
            won => Some(won - WON),
        }
    }

    /// Opens the claim. Called by its holder.
    #[inline]
    fn open(&self) {
        // Release: pairs with the acquires above.
        self.word.store(OPEN, Ordering::Release);
    }
}

impl<'a> Held<'a> {
    /// Sets the waker; returns the former one, to be dropped when no lock is held.
    #[must_use = "a waker is user code: drop it when no lock is held"]
    #[inline]
    pub(crate) fn set_waker(&mut self, waker: Waker) -> Option<Waker> {
        let access = self.0.waker.get_mut();
        // SAFETY: *exclusive*.
        unsafe { access.deref() }.replace(waker)
    }

    /// Takes the waker, to wake the owner although the wait continues.
    #[inline]
    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        let access = self.0.waker.get_mut();
        // SAFETY: *exclusive*.
        unsafe { access.deref() }.take()
    }

    /// Whether the claim has a waker that wakes what `waker` does.
    #[inline]
    pub(crate) fn wakes(&self, waker: &Waker) -> bool {
        let access = self.0.waker.get_mut();
        // SAFETY: *exclusive*.
        let stored = unsafe { access.deref() };
        stored
            .as_ref()
            .is_some_and(|stored| stored.will_wake(waker))
    }

    /// Ends the wait in favour of the offer with this number. Returns the owner's waker, to be woken when no
    /// lock is held.
    #[must_use = "the owner of the wait must be woken"]
    #[inline]
    pub(crate) fn win(self, offer: u32) -> Option<Waker> {
        let claim = self.0;
        std::mem::forget(self);
        let waker = {
            let access = claim.waker.get_mut();
            // SAFETY: *exclusive*.
            unsafe { access.deref() }.take()
        };
        // Release: pairs with the acquire in `winner`, so the owner sees what was handed over.
        claim.word.store(WON + offer, Ordering::Release);
        waker
    }

    /// The same hold, for as long as the claim lives.
    ///
    /// # Safety
    /// The claim lives as long as the result.
    #[inline(always)]
    pub(crate) unsafe fn extended<'b>(self) -> Held<'b> {
        let claim = std::ptr::from_ref(self.0);
        std::mem::forget(self);
        // SAFETY: the caller's promise.
        Held(unsafe { &*claim })
    }

    /// Ends the wait in favour of the owner itself, which needs no wake: the waker stays, to be dropped with
    /// the claim, when no lock is held.
    #[inline]
    pub(crate) fn win_own(self, offer: u32) {
        let claim = self.0;
        std::mem::forget(self);
        // Release: as in `win`.
        claim.word.store(WON + offer, Ordering::Release);
    }

    /// Keeps the claim held without a value that says so. The caller later calls [`Claim::kept`].
    #[inline]
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }

    /// Holds a second claim as well: that of a partner whose offer fits the caller's own. Two threads that
    /// hold their own claims and want each other's would wait for ever, so the claim of the higher rank is
    /// opened again and again.
    ///
    /// # Errors
    /// `Mine` if the caller's own claim was won meanwhile; `Theirs` if the partner's was: the caller's own is
    /// still held.
    #[inline]
    pub(crate) fn and<'b>(self, theirs: &'b Claim) -> Result<(Held<'a>, Held<'b>), Missed<'a>> {
        let (claim, mut mine) = (self.0, self);
        let yields = claim.rank.is_above(&theirs.rank);
        let mut round = 0;
        loop {
            match theirs.try_hold() {
                Some(Ok(held)) => return Ok((mine, held)),
                Some(Err(Lost)) => return Err(Missed::Theirs(mine)),
                None if yields => {
                    drop(mine);
                    relax(&mut round);
                    mine = claim.hold().map_err(|Lost| Missed::Mine)?;
                }
                None => relax(&mut round),
            }
        }
    }
}

/// Why the two claims are not both held.
pub(crate) enum Missed<'a> {
    Mine,
    Theirs(Held<'a>),
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.open();
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim")
            .field("winner", &self.winner())
            .finish()
    }
}

impl std::fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Held").field(self.0).finish()
    }
}
