//! Events: descriptions of waits, and the one future that performs them.
//!
//! Every wait of this crate is an event, and every event is waited for by [`Waiting`]: one tool's wait
//! is a choice of one. The steps of a wait:
//! 1. [`Branch::attempt`] each base event: the first that is ready ends it.
//! 2. [`Branch::enrol`] each under one [`Claim`]: it leaves an offer where a partner will find it.
//! 3. A partner wins the claim for one of the offers, and wakes the owner.
//! 4. [`Branch::collect`] what the partner left; [`Branch::settle`] takes all other offers back.
//!
//! Then, when all offers are taken back, [`Event::conclude`] makes what the wait yields of what the branch
//! yielded: functions of [`Event::wrap`] run there.
//!
//! The words and the laws are those of Concurrent ML: J. H. Reppy, CML: A higher-order concurrent language,
//! PLDI 1991; the claims are those of J. Reppy, C. V. Russo, Y. Xiao, Parallel Concurrent ML, ICFP 2009.

mod description;
mod waiting;

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    claim::{Claim, Held, Lost},
    reason::Reason,
};
pub use description::{Event, Syncing};
pub use waiting::Waiting;

/// An opened event: one base event (a tool's wait) or several, numbered from 0.
///
/// It cannot be implemented, nor its wait's steps be taken, outside of this crate: an `Entry` and a `Won`
/// cannot be made, and have no public name. Memory safety relies on that: an offer points to its claim, and who
/// collects takes what is guarded. Events of other kinds are made of combinators and of
/// [`Source`](crate::Source).
///
/// ```compile_fail,E0308
/// use weald_sync::{Branch, Event, Mutex};
///
/// let mutex = Mutex::new(0);
/// let lock = std::pin::pin!(mutex.lock().open());
/// let not_mine = Branch::collect(lock, 0);
/// ```
///
/// Contract: after [`Branch::enrol`] was called, [`Branch::settle`] is called once before the branch is
/// dropped, and no base is enrolled after that.
pub trait Branch {
    /// What the wait yields.
    type Output;

    /// How many base events.
    fn bases(&self) -> u32 {
        1
    }

    /// Step 1: completes a base event if it is ready now. Leaves nothing behind if it is not, except that a
    /// foreign future may keep the waker. Each base event was attempted in the same poll before any is
    /// enrolled.
    fn attempt(self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<Self::Output>;

    /// Step 2: leaves an offer under the entry's claim; or holds the claim, completes, and wins it.
    fn enrol(
        self: Pin<&mut Self>,
        base: u32,
        entry: &Entry<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output>;

    /// Looks again at a base event that no partner ends but only wakes its owner for (a timer, a foreign
    /// future), as [`enrol`](Branch::enrol). Called at each further poll if [`is_polled`](Branch::is_polled).
    fn again(
        self: Pin<&mut Self>,
        _base: u32,
        _entry: &Entry<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        Enrolled::Waits
    }

    /// Whether there is anything to look at again.
    fn is_polled(&self) -> bool {
        false
    }

    /// Step 4: what the partner left that won the claim for this base event.
    fn collect(self: Pin<&mut Self>, won: Won) -> Self::Output;

    /// A partner won for this base event, but the wait is dropped: what it left goes to others.
    fn give_back(self: Pin<&mut Self>, won: Won);

    /// The end: takes back the offers that are still there. `won`: the base event that was chosen.
    fn settle(self: Pin<&mut Self>, won: Option<u32>);

    /// What the wait is noted as.
    fn reason(&self) -> Reason;
}

impl<T> Enrolled<T> {
    /// The same, its output through `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Enrolled<U> {
        match self {
            Enrolled::Waits => Enrolled::Waits,
            Enrolled::Ready(output) => Enrolled::Ready(f(output)),
            Enrolled::Lost => Enrolled::Lost,
        }
    }
}

/// Where an offer belongs: the claim of its wait, and its number in it.
#[derive(Debug)]
pub struct Entry<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) number: u32,
    /// Whether the wait has no other base event.
    pub(crate) is_alone: bool,
}

impl Entry<'_> {
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

    /// Ends the wait in favour of this entry; the owner itself does, and needs no wake.
    #[inline(always)]
    pub fn win(&self, held: Held<'_>) {
        held.win_own(self.number);
    }
}

/// The right to what a partner left: the number of the base event that it won the claim for.
#[derive(Clone, Copy, Debug)]
pub struct Won(u32);

impl Won {
    pub(crate) fn base(self) -> u32 {
        self.0
    }

    /// The same for a branch before which there are so many base events.
    pub(crate) fn below(self, bases: u32) -> Won {
        Won(self.0 - bases)
    }
}

/// What became of an enrolment.
#[derive(Debug)]
pub enum Enrolled<T> {
    /// The offer was left.
    Waits,
    /// The event was ready, and the claim is won for it.
    Ready(T),
    /// The claim was won for another offer before.
    Lost,
}
