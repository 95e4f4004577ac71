//! The barrier: a number of units wait until all of them have arrived; then the next round begins.
//!
//! - Exactly one wait of each round is the leader: the last to arrive.
//! - All waits of a round end at one instant: the last arrival holds the claims of all others at the same
//!   time before it wins any. So a wait that timed out, was dropped, or lost to another event of its choice is
//!   in no round; its arrival is withdrawn.
//! - A wait in a choice counts as arrived as long as the choice waits.
//!
//! An arrival takes O(1), the last one of a round O(n).

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        claim::Claim,
        list,
        offer::{OfferNode, Offers},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
    runtime::reason::{Kind, Name, Reason},
    sys::relax,
};

/// A place where a number of units meet repeatedly.
///
/// ```
/// use weald::sync::{Barrier, Wait};
///
/// let barrier = Barrier::new(3);
/// let leaders = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..3)
///         .map(|_| scope.spawn(|| barrier.wait().wait().is_leader()))
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).filter(|leads| *leads).count()
/// });
/// assert_eq!(leaders, 1);
/// ```
///
/// There is no poisoning: the others wait for a unit that never comes. An idle barrier has 24 bytes.
pub struct Barrier {
    /// With the name as its tag.
    state: SpinLock<BarrierState>,
}

struct BarrierState {
    size: u32,
    /// How many offers are in the list. Some of their waits may have ended.
    arrived: u32,
    waiters: Offers<()>,
}

/// The result of trying to end a round.
enum Tried {
    /// The round is ended; the wakers to wake.
    Done(Vec<Waker>),
    /// Some waits that were counted had ended.
    Short,
    /// Another thread holds a claim.
    Busy,
}

impl Barrier {
    /// A barrier for `size` units. Zero means the same as one.
    ///
    /// # Panics
    /// If there are more than 2^32 - 1.
    pub fn new(size: usize) -> Barrier {
        Barrier::with_name(Name::NONE, size)
    }

    /// The same, with a name for reports of what units wait for.
    ///
    /// # Panics
    /// As [`Barrier::new`].
    pub fn named(name: &str, size: usize) -> Barrier {
        Barrier::with_name(Name::new(name), size)
    }

    fn with_name(name: Name, size: usize) -> Barrier {
        let size = u32::try_from(size).expect("fewer than 2^32 units meet at a barrier");
        let state = SpinLock::new(BarrierState {
            size,
            arrived: 0,
            waiters: Offers::new(),
        });
        state.set_tag(name.number());
        Barrier { state }
    }

    /// Waits until all have arrived: `.wait().await`, or `.wait().wait()` with the stack. An event. Cancel-safe: a wait
    /// that is dropped before the last arrival withdraws its own; after that, dropping it makes no difference.
    #[track_caller]
    #[inline]
    pub fn wait(&self) -> Waiting<Arrive<'_>> {
        Waiting::here(Arrive {
            barrier: self,
            node: OfferNode::with_slot(()),
        })
    }
}

impl BarrierState {
    /// Whether one more arrival may complete the round.
    #[inline]
    fn is_nearly_complete(&self) -> bool {
        self.arrived + 1 >= self.size
    }

    /// Ends the round if all others have arrived.
    #[inline]
    fn try_complete(&mut self) -> Tried {
        let mut gone = 0;
        let Some(all) = self.waiters.hold_all(&mut gone) else {
            self.arrived -= gone;
            return Tried::Busy;
        };
        self.arrived -= gone;
        if self.arrived + 1 < self.size {
            return Tried::Short;
        }
        self.arrived = 0;
        Tried::Done(all.win())
    }

    /// Waits for a moment, because another thread holds a claim. `own`: the claim of the caller.
    fn wait_for_claim(&mut self, own: Option<&Claim>, round: &mut u32) {
        if *round == ROUNDS {
            // Perhaps this thread holds it: two arrivals of one choice have one claim. They count as one.
            self.arrived -= self.waiters.remove_doubles(own);
        }
        relax(round);
    }
}

/// After how many rounds of waiting for a claim to look for doubles.
const ROUNDS: u32 = 8;

/// The event of [`Barrier::wait`].
pub struct Arrive<'a> {
    barrier: &'a Barrier,
    node: OfferNode<()>,
}

impl<'a> Arrive<'a> {
    #[inline]
    fn node(self: Pin<&mut Self>) -> (&'a Barrier, Pin<&mut OfferNode<()>>) {
        list::project(self, |this| (this.barrier, &mut this.node))
    }
}

const LEADER: BarrierWaitResult = BarrierWaitResult(true);

impl Branch for Arrive<'_> {
    type Output = BarrierWaitResult;

    #[inline]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.barrier.state.lock();
        let mut round = 0;
        while state.is_nearly_complete() {
            match state.try_complete() {
                Tried::Done(wakers) => {
                    drop(state);
                    crate::queue::wake::wake_all(wakers);
                    return Poll::Ready(LEADER);
                }
                Tried::Short => {}
                Tried::Busy => state.wait_for_claim(None, &mut round),
            }
        }
        Poll::Pending
    }

    #[inline]
    fn enrols_at_once(&self) -> bool {
        true
    }

    #[inline]
    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let (barrier, node) = self.node();
        let mut state = barrier.state.lock();
        let mut round = 0;
        loop {
            let Ok(own) = ticket.hold() else {
                return Enrolled::Lost;
            };
            if !state.is_nearly_complete() {
                state.waiters.leave(node, ticket);
                state.arrived += 1;
                return Enrolled::Waits;
            }
            match state.try_complete() {
                Tried::Done(wakers) => {
                    ticket.win(own);
                    drop(state);
                    crate::queue::wake::wake_all(wakers);
                    return Enrolled::Ready(LEADER);
                }
                Tried::Short => {}
                // The holder of a claim may wait for this thread's own claim, which therefore opens for a moment.
                Tried::Busy => {
                    drop(own);
                    state.wait_for_claim(Some(ticket.claim), &mut round);
                }
            }
        }
    }

    #[inline]
    fn collect(self: Pin<&mut Self>, _won: Won) -> Self::Output {
        BarrierWaitResult(false)
    }

    /// The round has ended for all at one instant, even for a wait that is dropped now.
    #[inline]
    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    #[inline]
    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (barrier, node) = self.node();
        if won.is_none() && node.is_bound() {
            let mut state = barrier.state.lock();
            if state.waiters.remove(node) {
                state.arrived -= 1;
            }
        }
    }

    #[inline]
    fn reason(&self) -> Reason {
        let name = Name::of_number(self.barrier.state.tag());
        Reason::new(Kind::Barrier, self.barrier).named(name)
    }
}

/// The result of a wait, as in `std`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether this wait is the leader of its round.
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
