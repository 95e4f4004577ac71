//! The branch: an event that was opened for one wait, and the steps that the wait takes with it.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

pub(crate) use crate::queue::claim::Won;
use crate::{queue::ticket::Ticket, runtime::reason::Reason};

/// An opened event: one base event (a tool's wait) or several, numbered from 0.
///
/// Code outside this crate can neither implement it nor take the steps of its wait: a `Ticket` and a `Won`
/// cannot be created there, and have no public name. Memory safety relies on that: an offer points to its
/// claim, and `collect` takes what is guarded. Events of other kinds are built from combinators and from
/// [`Source`](crate::Source).
///
/// ```compile_fail,E0308
/// use weald::sync::{Branch, Event, Mutex};
///
/// let mutex = Mutex::new(0);
/// let lock = std::pin::pin!(mutex.lock().open());
/// let not_mine = Branch::collect(lock, 0);
/// ```
///
/// Contract: after [`Branch::enrol`] or [`Branch::wait_alone`] was called, and has not ended the wait,
/// [`Branch::settle`] is called once before the branch is dropped, unless a later attempt ends the wait of a branch
/// that does not [settle early](Branch::settles_early); and no base event is enrolled after that.
pub trait Branch {
    /// What the wait yields.
    type Output;

    /// How many base events.
    fn bases(&self) -> u32 {
        1
    }

    /// Step 1: completes a base event if it is ready now. Leaves nothing behind if it is not, except that a
    /// foreign future may keep the waker. Every base event is attempted in the same poll before any is
    /// enrolled, unless it is the only one and [enrols at once](Branch::enrols_at_once).
    fn attempt(self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<Self::Output>;

    /// Step 2: leaves an offer under the ticket's claim; or holds the claim, completes, and wins the claim.
    fn enrol(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output>;

    /// Whether a wait for this event alone leaves step 1 out: that is mostly in vain, and step 2 completes the event as
    /// well.
    fn enrols_at_once(&self) -> bool {
        false
    }

    /// Whether a wait for this event alone needs no claim: the tool keeps what is waited for, and the waker
    /// ([`wait_alone`](Branch::wait_alone)). Then neither [`enrol`](Branch::enrol) nor [`collect`](Branch::collect) is
    /// called in such a wait.
    fn keeps_waker(&self) -> bool {
        false
    }

    /// Completes the only base event, or leaves the waker with the tool, in place of one that was left before.
    /// [`settle`](Branch::settle) takes it back. Called if the branch [keeps the waker](Branch::keeps_waker).
    fn wait_alone(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        unreachable!("its tool keeps no waker")
    }

    /// Looks again, as [`enrol`](Branch::enrol) does, at a base event that no partner ends: a partner only
    /// wakes its owner (a timer, a foreign future). Called at each further poll if
    /// [`is_polled`](Branch::is_polled).
    fn again(
        self: Pin<&mut Self>,
        _base: u32,
        _ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        Enrolled::Waits
    }

    /// Whether [`again`](Branch::again) has anything to look at.
    fn is_polled(&self) -> bool {
        false
    }

    /// Step 4: takes what was left by the partner that won the claim for this base event. Memory safety relies on it:
    /// a branch of several passes `won` on only to the one with that base event.
    fn collect(self: Pin<&mut Self>, won: Won) -> Self::Output;

    /// A partner won for this base event, but the wait is dropped: what the partner left goes to others.
    fn give_back(self: Pin<&mut Self>, won: Won);

    /// The end: takes back the offers that are still there. `won`: the base event that was chosen.
    fn settle(self: Pin<&mut Self>, won: Option<u32>);

    /// Whether [`settle`](Branch::settle) has anything to do in a wait that one of its events ended before any was
    /// enrolled. If not, it is not called there.
    fn settles_early(&self) -> bool {
        true
    }

    /// Whether the branch must be dropped in a wait that one of its events ended before any was enrolled. If not, it is
    /// forgotten there.
    fn drops_early(&self) -> bool {
        true
    }

    /// The reason that is noted for the wait.
    fn reason(&self) -> Reason;
}

/// The result of an enrolment.
#[derive(Debug)]
pub enum Enrolled<T> {
    /// The offer was left.
    Waits,
    /// The event was ready, and the claim is won for it.
    Ready(T),
    /// The claim was already won for another offer.
    Lost,
}

impl<T> Enrolled<T> {
    /// The same, with its output passed through `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Enrolled<U> {
        match self {
            Enrolled::Waits => Enrolled::Waits,
            Enrolled::Ready(output) => Enrolled::Ready(f(output)),
            Enrolled::Lost => Enrolled::Lost,
        }
    }
}
