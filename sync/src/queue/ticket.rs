//! A ticket: what a wait hands to each of its base events, to enrol under the wait's claim.

use std::cell::Cell;

use super::claim::{Claim, Held, Lost};

/// Where an offer belongs: the claim of its wait, and its number in that wait.
pub struct Ticket<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) number: u32,
    /// Whether the wait has no other base event.
    pub(crate) is_alone: bool,
    /// The owner's hold from the claim's creation, for the first base event.
    first: Cell<Option<Held<'a>>>,
}

impl<'a> Ticket<'a> {
    /// The ticket of the base event with this number, out of `bases`. `first`: the owner's hold from the claim's
    /// creation, if no base event had it. It is dropped with the ticket, unless it was used.
    #[inline(always)]
    pub(crate) fn new(
        claim: &'a Claim,
        (number, bases): (u32, u32),
        first: Option<Held<'a>>,
    ) -> Ticket<'a> {
        Ticket {
            claim,
            number,
            is_alone: bases == 1,
            first: Cell::new(first),
        }
    }

    /// Holds the claim.
    ///
    /// # Errors
    /// [`Lost`] if a partner has won it.
    #[inline(always)]
    pub fn hold(&self) -> Result<Held<'_>, Lost> {
        match self.first.take() {
            Some(held) => Ok(held),
            None => self.claim.hold(),
        }
    }

    /// Whether the wait has no other base event: then nothing else is chosen meanwhile.
    #[inline(always)]
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Ends the wait in favour of this ticket. The owner itself does this, and needs no wake.
    #[inline(always)]
    pub fn win(&self, held: Held<'_>) {
        held.win_own(self.number);
    }
}
