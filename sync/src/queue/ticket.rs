//! A ticket: what a wait hands to each of its base events, to enrol under the wait's claim.

use super::claim::{Claim, Held, Lost};

/// Where an offer belongs: the claim of its wait, and its number in that wait.
#[derive(Debug)]
pub struct Ticket<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) number: u32,
    /// Whether the wait has no other base event.
    pub(crate) is_alone: bool,
}

impl Ticket<'_> {
    /// Holds the claim.
    ///
    /// # Errors
    /// [`Lost`] if a partner has won it.
    #[inline(always)]
    pub fn hold(&self) -> Result<Held<'_>, Lost> {
        self.claim.hold()
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
