//! Offers: the nodes of waiters, each under the claim of its wait.
//!
//! Steps of a wait that a partner ends: [`Offers::leave`] → the partner's [`Offers::accept`] → the partner
//! puts the value into the offer and wins the claim → the owner finds its claim won, and collects.

#![allow(unsafe_code)]

use std::{marker::PhantomData, mem::MaybeUninit, pin::Pin, ptr::NonNull, task::Waker};

use crate::queue::{
    claim::{Claim, Held, Lost, Missed},
    list::{List, Node},
    ticket::Ticket,
};

/// An offer: a slot that a partner fills or empties, and the claim that the offer is under.
///
/// # Safety
/// *Retracted*: the claim lives as long as the offer is linked, and as long as a partner holds the lock of the
/// list in which it was linked: a wait retracts each of its offers, under that lock, before it ends. The offer that has
/// won needs no lock: its claim and its node live until the partner has won the claim, which is the last that it does
/// with them.
pub(crate) struct Offer<V> {
    place: MaybeUninit<Place>,
    pub(crate) slot: V,
}

/// Written when the offer is left; only offers that were left are ever looked at.
#[derive(Clone, Copy)]
struct Place {
    claim: NonNull<Claim>,
    /// The offer's number among those of its wait.
    number: u32,
}

// SAFETY: any thread may use the claim.
unsafe impl<V: Send> Send for Offer<V> {}

/// The offers of the waiters, in the order of arrival.
pub(crate) type Offers<V> = List<Offer<V>>;
/// A node of such a list.
pub(crate) type OfferNode<V> = Node<Offer<V>>;

/// An offer that the caller may satisfy.
pub(crate) struct Accepted<'a, V> {
    /// Not a reference: as an argument that would have to stay the only one until the function returns, and the owner
    /// may use the slot as soon as the claim is won.
    slot: NonNull<V>,
    list: PhantomData<&'a mut V>,
    held: Held<'a>,
    number: u32,
}

impl<V> Offer<V> {
    /// Called only for an offer that was left.
    #[inline]
    fn place(&self) -> Place {
        // SAFETY: `leave` wrote it before it pushed the node, and nothing else pushes one.
        unsafe { self.place.assume_init() }
    }

    /// Whether the offer belongs to the wait with this claim. Called only for an offer that was left.
    #[inline]
    fn is_under(&self, claim: &Claim) -> bool {
        self.place().claim == NonNull::from(claim)
    }
}

impl<V> OfferNode<V> {
    #[inline]
    pub(crate) const fn with_slot(slot: V) -> OfferNode<V> {
        Node::new(Offer {
            place: MaybeUninit::uninit(),
            slot,
        })
    }
}

impl<V> Offers<V> {
    /// Leaves an offer at the end of the list.
    #[inline]
    pub(crate) fn leave(&mut self, mut node: Pin<&mut OfferNode<V>>, ticket: &Ticket<'_>) {
        let offer = self.value(node.as_mut());
        offer.place.write(Place {
            claim: NonNull::from(ticket.claim),
            number: ticket.number,
        });
        self.push(node);
    }

    /// Takes out the first offer whose wait has not ended, and holds its claim. Offers of ended waits are
    /// taken out on the way.
    #[inline]
    pub(crate) fn accept(&mut self) -> Option<Accepted<'_, V>> {
        match self.is_empty() {
            true => None,
            false => self.accept_one(),
        }
    }

    #[inline(never)]
    fn accept_one(&mut self) -> Option<Accepted<'_, V>> {
        loop {
            let offer = NonNull::from(self.pop()?);
            // SAFETY: `pop` gives the value for as long as `self` is borrowed; the loop only hides that
            // from the compiler.
            let offer = unsafe { &mut *offer.as_ptr() };
            let Place { claim, number } = offer.place();
            // SAFETY: *retracted*.
            if let Ok(held) = unsafe { claim.as_ref() }.hold() {
                return Some(Accepted::new(&mut offer.slot, held, number));
            }
        }
    }

    /// As [`Offers::accept`], for an offer without a value: the hold of its claim, and its number. The hold is good
    /// after the list's lock was released, because the wait does not end before (*retracted*).
    ///
    /// # Safety
    /// The caller wins the claim for that number, and does nothing else with it.
    #[inline(always)]
    pub(crate) unsafe fn accept_beyond<'a>(&mut self) -> Option<(Held<'a>, u32)> {
        if self.is_empty() {
            return None;
        }
        let Accepted { held, number, .. } = self.accept_one()?;
        // SAFETY: *retracted*: the claim lives until it is won.
        Some((unsafe { held.extended() }, number))
    }

    /// As [`Offers::accept`], but only if `fits` is true for the first offer whose wait has not ended. The
    /// caller holds no claim.
    #[inline]
    pub(crate) fn accept_if(
        &mut self,
        fits: impl FnOnce(&mut V) -> bool,
    ) -> Option<Accepted<'_, V>> {
        let place = loop {
            let place = self.front()?.place();
            // SAFETY: *retracted*.
            match unsafe { place.claim.as_ref() }.hold() {
                Ok(held) => {
                    held.keep();
                    break place;
                }
                Err(Lost) => {
                    self.pop();
                }
            }
        };
        // SAFETY: *retracted*.
        let claim = unsafe { place.claim.as_ref() };
        // SAFETY: *exclusive*: it was kept above.
        let held = unsafe { claim.kept() };
        if !fits(&mut self.front()?.slot) {
            return None;
        }
        Some(Accepted::new(&mut self.pop()?.slot, held, place.number))
    }

    /// Ends all waits with their slots unchanged. Returns the wakers of their owners.
    #[inline]
    pub(crate) fn accept_all(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(accepted) = self.accept() {
            wakers.extend(accepted.win());
        }
        wakers
    }

    /// The first offer whose wait has not ended at this moment. Offers of ended waits are taken out on the
    /// way. The caller may hold a claim.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<&mut V> {
        loop {
            let claim = self.front()?.place().claim;
            // SAFETY: *retracted*.
            if unsafe { claim.as_ref() }.winner().is_none() {
                return self.front().map(|offer| &mut offer.slot);
            }
            self.pop();
        }
    }

    /// Takes the waker of the first wait that has not ended, so that its owner tries again by itself; `note`
    /// notes that in the slot. None: nothing waits. Offers of ended waits are taken out on the way.
    #[inline]
    pub(crate) fn nudge(&mut self, note: impl FnOnce(&mut V)) -> Option<Option<Waker>> {
        loop {
            let offer = self.front()?;
            // SAFETY: *retracted*.
            match unsafe { offer.place().claim.as_ref() }.hold() {
                Err(Lost) => {
                    self.pop();
                }
                Ok(mut held) => {
                    note(&mut offer.slot);
                    // The owner sets a new one when it is polled.
                    return Some(held.take_waker());
                }
            }
        }
    }

    /// As [`Offers::accept`], for a caller that holds a claim of its own, under which it may have offers
    /// elsewhere: lets `exchange` fill or empty the partner's slot, and ends both waits. A wait never meets an
    /// offer of its own.
    #[inline]
    pub(crate) fn meet<'o, R>(
        &mut self,
        mut own: Held<'o>,
        ticket: &Ticket<'_>,
        exchange: impl FnOnce(&mut V) -> R,
    ) -> Met<'o, R> {
        loop {
            // The caller's wait may have left an offer here for another of its events.
            let Some(first) = self.find(|offer| !offer.is_under(ticket.claim)) else {
                return Met::Nobody(own);
            };
            let Place { claim, number } = first.place();
            // SAFETY: *retracted*.
            let claim = unsafe { claim.as_ref() };
            match own.and(claim) {
                Ok((own, theirs)) => {
                    let offer = self.pop_if(|offer| offer.is_under(claim));
                    let offer = offer.expect("it is still there");
                    let exchanged = exchange(&mut offer.slot);
                    ticket.win(own);
                    return Met::Partner(exchanged, theirs.win(number));
                }
                Err(Missed::Mine) => return Met::Lost,
                Err(Missed::Theirs(still)) => {
                    own = still;
                    self.pop_if(|offer| offer.is_under(claim));
                }
            }
        }
    }
}

/// All offers of a list, with their claims held. Dropping it opens the claims again.
pub(crate) struct AllHeld<'a, V> {
    offers: &'a mut Offers<V>,
    count: usize,
}

impl<V> Offers<V> {
    /// Holds the claims of all offers at once. Offers of ended waits are taken out, and counted in `gone`.
    /// None if another thread holds a claim: then none is held here, and a caller that tries again opens its
    /// own claim in between.
    #[inline]
    pub(crate) fn hold_all(&mut self, gone: &mut u32) -> Option<AllHeld<'_, V>> {
        let (mut count, mut busy) = (0, false);
        self.retain(|offer| {
            if busy {
                return true;
            }
            // SAFETY: *retracted*.
            match unsafe { offer.place().claim.as_ref() }.try_hold() {
                Some(Ok(held)) => {
                    held.keep();
                    count += 1;
                    true
                }
                Some(Err(Lost)) => {
                    *gone += 1;
                    false
                }
                None => {
                    busy = true;
                    true
                }
            }
        });
        let all = AllHeld {
            offers: self,
            count,
        };
        (!busy).then_some(all)
    }

    /// Takes out all but one of several offers of the same wait, and all offers of the wait with the claim
    /// `own`. Returns how many. Takes O(n²).
    pub(crate) fn remove_doubles(&mut self, own: Option<&Claim>) -> u32 {
        let mut seen: Vec<NonNull<Claim>> = own.map(NonNull::from).into_iter().collect();
        let mut gone = 0;
        self.retain(|offer| {
            let claim = offer.place().claim;
            let is_double = seen.contains(&claim);
            match is_double {
                true => gone += 1,
                false => seen.push(claim),
            }
            !is_double
        });
        gone
    }
}

impl<V> AllHeld<'_, V> {
    /// Ends all waits. Returns the wakers of their owners.
    #[inline]
    pub(crate) fn win(mut self) -> Vec<Waker> {
        let mut wakers = Vec::with_capacity(self.count);
        while self.count > 0
            && let Some(offer) = self.offers.pop()
        {
            self.count -= 1;
            let Place { claim, number } = offer.place();
            // SAFETY: *retracted*.
            let claim = unsafe { claim.as_ref() };
            // SAFETY: *exclusive*: the claims of the first `count` offers were kept, and this one leaves the list.
            wakers.extend(unsafe { claim.kept() }.win(number));
        }
        wakers
    }
}

impl<V> Drop for AllHeld<'_, V> {
    #[inline]
    fn drop(&mut self) {
        let mut left = self.count;
        self.offers.retain(|offer| {
            if left > 0 {
                left -= 1;
                // SAFETY: *retracted*.
                let claim = unsafe { offer.place().claim.as_ref() };
                // SAFETY: *exclusive*: the claims of the first `count` offers were kept, and each is passed once.
                drop(unsafe { claim.kept() });
            }
            true
        });
    }
}

/// The result of looking for a partner.
pub(crate) enum Met<'o, R> {
    /// What was exchanged, and the partner's waker. Both waits have ended.
    Partner(R, Option<Waker>),
    /// Nothing waits; the caller still holds its own claim.
    Nobody(Held<'o>),
    /// Another partner ended the caller's own wait.
    Lost,
}

impl<'a, V> Accepted<'a, V> {
    #[inline(always)]
    fn new(slot: &'a mut V, held: Held<'a>, number: u32) -> Accepted<'a, V> {
        Accepted {
            slot: NonNull::from(slot),
            list: PhantomData,
            held,
            number,
        }
    }

    /// The slot, to be filled or emptied.
    #[inline(always)]
    pub(crate) fn slot(&mut self) -> &mut V {
        // SAFETY: *retracted*: the claim is not won yet, and the caller has the list for `'a`.
        unsafe { self.slot.as_mut() }
    }

    /// Ends the wait, after the slot was filled or emptied. The caller wakes the waker when it holds no lock.
    #[must_use = "the owner of the wait must be woken"]
    #[inline]
    pub(crate) fn win(self) -> Option<Waker> {
        self.held.win(self.number)
    }
}
