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

#![allow(unsafe_code)]

mod description;

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    claim::{Claim, Held, Lost},
    hooks::hooks,
    reason::Reason,
    unit,
};
pub use description::{Event, Syncing};

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

/// The future of every wait. Cancel-safe: dropping it takes its offers back, and passes on what a partner
/// has already left for it.
///
/// # Safety
/// *Pinned*: the branch and the claim are not moved after the first poll. *Settled*: from then on, before
/// they are dropped, the claim is won and all offers are retracted.
#[must_use = "a wait does nothing unless it is awaited, or synced"]
pub struct Waiting<B: Branch> {
    /// Made by the first poll that does not end the wait.
    claim: Option<Claim>,
    stage: Stage,
    branch: B,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Fresh,
    Waits,
    Ended,
}

/// The parts of a pinned wait.
struct Parts<'a, B> {
    claim: &'a mut Option<Claim>,
    stage: &'a mut Stage,
    branch: Pin<&'a mut B>,
}

impl<B: Branch> Waiting<B> {
    /// A wait for an opened event.
    #[inline(always)]
    pub fn new(branch: B) -> Waiting<B> {
        Waiting {
            claim: None,
            stage: Stage::Fresh,
            branch,
        }
    }

    #[inline(always)]
    fn parts(self: Pin<&mut Self>) -> Parts<'_, B> {
        // SAFETY: *pinned*: the branch is pinned again below, the claim is moved by nobody.
        let this = unsafe { self.get_unchecked_mut() };
        Parts {
            claim: &mut this.claim,
            stage: &mut this.stage,
            // SAFETY: *pinned*.
            branch: unsafe { Pin::new_unchecked(&mut this.branch) },
        }
    }
}

/// An event that was not polled yet may still become part of another one.
impl<B: Branch> Event for Waiting<B> {
    type Output = B::Output;
    type Branch = B;

    fn open(self) -> B {
        // A wait that was polled is pinned, and cannot be passed here.
        debug_assert!(self.stage == Stage::Fresh, "the wait has not begun");
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the branch is moved out of a value that is not used or dropped any more; the rest of it
        // owns nothing yet.
        unsafe { std::ptr::read(&raw const this.branch) }
    }

    #[inline(always)]
    fn conclude(outcome: B::Output) -> B::Output {
        outcome
    }
}

impl<B: Branch> Future for Waiting<B> {
    type Output = B::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        let mut parts = self.parts();
        if !unit::with(unit::Unit::spend) {
            hooks().give_way(cx.waker());
            return Poll::Pending;
        }
        match *parts.stage {
            Stage::Fresh => parts.begin(cx),
            Stage::Waits => parts.resume(cx),
            Stage::Ended => panic!("a wait was polled after it had ended"),
        }
    }
}

impl<B: Branch> Parts<'_, B> {
    #[inline(always)]
    fn begin(&mut self, cx: &mut Context<'_>) -> Poll<B::Output> {
        match self.attempt(cx) {
            Poll::Ready(output) => Poll::Ready(output),
            Poll::Pending => self.enrol(cx),
        }
    }

    /// Step 1 for all base events, beginning anywhere: so that of `n` each has a chance of at least `1 / n`
    /// in each sync, whatever else is ready, and however the choices are nested.
    #[inline(always)]
    fn attempt(&mut self, cx: &mut Context<'_>) -> Poll<B::Output> {
        let bases = self.branch.bases();
        let first = if bases > 1 { unit::random(bases) } else { 0 };
        for base in rotated(first, bases) {
            if let Poll::Ready(output) = self.branch.as_mut().attempt(base, cx) {
                return Poll::Ready(self.end_with(base, output));
            }
        }
        Poll::Pending
    }

    #[inline(never)]
    fn enrol(&mut self, cx: &mut Context<'_>) -> Poll<B::Output> {
        let mut held = self.claim.insert(Claim::new()).first();
        let former = held.set_waker(cx.waker().clone());
        debug_assert!(former.is_none(), "a new claim has no waker");
        drop(held);
        *self.stage = Stage::Waits;
        for base in 0..self.branch.bases() {
            let entry = Entry {
                claim: made(self.claim),
                number: base,
                is_alone: self.branch.bases() == 1,
            };
            match self.branch.as_mut().enrol(base, &entry, cx) {
                Enrolled::Waits => {}
                Enrolled::Ready(output) => return Poll::Ready(self.end_with(base, output)),
                Enrolled::Lost => break,
            }
        }
        self.pause()
    }

    fn resume(&mut self, cx: &mut Context<'_>) -> Poll<B::Output> {
        if let Some(winner) = made(self.claim).winner() {
            return Poll::Ready(self.finish(winner));
        }
        // The waker first: who wakes the owner from now on wakes this one.
        self.set_waker(cx);
        if self.branch.is_polled() {
            for base in 0..self.branch.bases() {
                let entry = Entry {
                    claim: made(self.claim),
                    number: base,
                    is_alone: self.branch.bases() == 1,
                };
                match self.branch.as_mut().again(base, &entry, cx) {
                    Enrolled::Waits => {}
                    Enrolled::Ready(output) => return Poll::Ready(self.end_with(base, output)),
                    Enrolled::Lost => break,
                }
            }
        }
        self.pause()
    }

    fn set_waker(&mut self, cx: &mut Context<'_>) {
        // Wakers are user code: cloned and dropped while nothing is held.
        let waker = cx.waker().clone();
        let Ok(mut held) = made(self.claim).hold() else {
            return;
        };
        let unused = match held.wakes(&waker) {
            true => Some(waker),
            false => held.set_waker(waker),
        };
        drop(held);
        drop(unused);
    }

    /// The end of a poll that completed nothing itself.
    fn pause(&mut self) -> Poll<B::Output> {
        if let Some(winner) = made(self.claim).winner() {
            return Poll::Ready(self.finish(winner));
        }
        hooks().note(self.branch.reason());
        Poll::Pending
    }

    fn end_with(&mut self, base: u32, output: B::Output) -> B::Output {
        *self.stage = Stage::Ended;
        self.branch.as_mut().settle(Some(base));
        output
    }

    fn finish(&mut self, winner: u32) -> B::Output {
        *self.stage = Stage::Ended;
        // All other offers first: what is collected may be copied by the user's code, which may panic.
        self.branch.as_mut().settle(Some(winner));
        self.branch.as_mut().collect(Won(winner))
    }
}

/// The claim of a wait that has begun.
fn made(claim: &Option<Claim>) -> &Claim {
    claim.as_ref().expect("a wait that waits has a claim")
}

/// The numbers below `count`, beginning with `first`: so that a base that is always ready starves nobody.
fn rotated(first: u32, count: u32) -> impl Iterator<Item = u32> {
    (first..count).chain(0..first)
}

/// The number that wins a claim whose wait was dropped.
const NOBODY: u32 = u32::MAX / 2;

impl<B: Branch> Drop for Waiting<B> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.stage != Stage::Ended {
            // SAFETY: *pinned*: a value that is being dropped is not moved any more.
            let parts = unsafe { Pin::new_unchecked(self) }.parts();
            parts.end();
        }
    }
}

impl<B: Branch> Parts<'_, B> {
    #[cold]
    fn end(mut self) {
        // If nothing was enrolled, an opened event may still have something to take back.
        if *self.stage == Stage::Waits {
            // From here on no partner wins the claim.
            if let Ok(held) = made(self.claim).hold() {
                held.win_own(NOBODY);
            }
            if let Some(winner) = made(self.claim).winner().filter(|w| *w != NOBODY) {
                self.branch.as_mut().give_back(Won(winner));
            }
        }
        *self.stage = Stage::Ended;
        self.branch.as_mut().settle(None);
    }
}
