//! The future of every wait: it takes the steps that `event` lists.

#![allow(unsafe_code)]

use std::{
    future::Future,
    mem::{ManuallyDrop, MaybeUninit},
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};

use super::branch::{Branch, Enrolled, Won};
use crate::{
    queue::{
        claim::{Claim, Held},
        ticket::Ticket,
    },
    runtime::{hooks::hooks, unit},
};

/// The future of every wait: `.await` it in async code, and elsewhere end it with `.wait()`. Only then is there a guard, a
/// message or whatever is waited for. Cancel-safe: dropping it takes its offers back, and passes on what a partner
/// has already left.
///
/// # Safety
/// *Pinned*: the branch and the claim are not moved after the first poll. *Settled*: from then on, before
/// they are dropped, the claim is won and all offers are retracted. *Created*: there is a claim exactly in the stages
/// `Waits` and `Ended`.
#[must_use = "a wait does nothing unless it is awaited, or synced"]
pub struct Waiting<B: Branch> {
    /// Created by the first poll that does not end the wait, and dropped by `end_slowly`. A wait that is ready at once has
    /// none, and neither writes one nor asks for it when it is dropped.
    claim: MaybeUninit<Claim>,
    stage: Stage,
    /// The line of the wait, if the call that created it knows it.
    site: Option<&'static Location<'static>>,
    branch: B,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Fresh,
    /// It has a claim, and may have left offers.
    Waits,
    /// It has ended, and has its claim until it is dropped.
    Ended,
    /// It has ended without a claim.
    EndedAtOnce,
}

/// The parts of a pinned wait.
pub(super) struct Parts<'a, B> {
    claim: &'a mut MaybeUninit<Claim>,
    stage: &'a mut Stage,
    site: Option<&'static Location<'static>>,
    branch: Pin<&'a mut B>,
}

impl<B: Branch> Waiting<B> {
    /// A wait for an opened event.
    #[inline(always)]
    pub fn new(branch: B) -> Waiting<B> {
        Waiting::at(branch, None)
    }

    /// As [`new`](Waiting::new), at the caller's line, which reports name.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn here(branch: B) -> Waiting<B> {
        Waiting::at(branch, Some(Location::caller()))
    }

    /// As [`new`](Waiting::new), at this line, if it is known.
    #[inline(always)]
    pub(crate) fn at(branch: B, site: Option<&'static Location<'static>>) -> Waiting<B> {
        Waiting {
            claim: MaybeUninit::uninit(),
            stage: Stage::Fresh,
            site,
            branch,
        }
    }

    /// The same wait without a line: its caller is not the user's code.
    pub(crate) fn without_site(self) -> Waiting<B> {
        Waiting::at(self.into_branch(), None)
    }

    /// The line of the wait, if it is known.
    pub(crate) fn site(&self) -> Option<&'static Location<'static>> {
        self.site
    }

    #[inline(always)]
    pub(super) fn parts(self: Pin<&mut Self>) -> Parts<'_, B> {
        // SAFETY: *pinned*: the branch is pinned again below, and nothing moves the claim.
        let this = unsafe { self.get_unchecked_mut() };
        Parts {
            claim: &mut this.claim,
            stage: &mut this.stage,
            site: this.site,
            // SAFETY: *pinned*.
            branch: unsafe { Pin::new_unchecked(&mut this.branch) },
        }
    }
}

impl<B: Branch> Waiting<B> {
    /// The branch of a wait that was not polled yet.
    pub(super) fn into_branch(self) -> B {
        // A wait that was polled is pinned, and cannot be passed here.
        debug_assert!(self.stage == Stage::Fresh, "the wait was already polled");
        let this = ManuallyDrop::new(self);
        // SAFETY: the branch is moved out of a value that is neither used nor dropped any longer; its other
        // fields own nothing yet.
        unsafe { std::ptr::read(&raw const this.branch) }
    }
}

impl<B: Branch> Future for Waiting<B> {
    type Output = B::Output;

    // Inlined as far as one event that is ready at once: an uncontended lock, a channel with a value. That part builds
    // no `Parts`, whose address others would take.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        if self.stage != Stage::Fresh || self.branch.bases() != 1 || !unit::with(unit::Unit::spend)
        {
            return self.poll_on(cx);
        }
        match self.as_mut().branch().attempt(0, cx) {
            Poll::Ready(output) => {
                self.as_mut().end_at_once();
                Poll::Ready(output)
            }
            Poll::Pending => self.enrol_first(cx),
        }
    }
}

impl<B: Branch> Waiting<B> {
    #[inline(always)]
    fn branch(self: Pin<&mut Self>) -> Pin<&mut B> {
        // SAFETY: *pinned*.
        unsafe { self.map_unchecked_mut(|this| &mut this.branch) }
    }

    /// Ends a wait of one event, which has left no offer.
    #[inline(always)]
    fn end_at_once(mut self: Pin<&mut Self>) {
        // SAFETY: *pinned*: the stage is plain data.
        unsafe { self.as_mut().get_unchecked_mut() }.stage = Stage::EndedAtOnce;
        self.branch().settle(Some(0));
    }

    #[inline(never)]
    fn enrol_first(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        self.parts().enrol(cx)
    }

    #[inline(never)]
    fn poll_on(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        self.parts().poll_on(cx)
    }

    /// The end of a wait that was not ready at once: takes its offers back and drops its claim.
    #[inline(never)]
    fn end_slowly(self: Pin<&mut Self>) {
        let mut wait = ClaimDropped(self);
        if wait.0.stage != Stage::Ended {
            wait.0.as_mut().parts().end();
        }
    }
}

impl<B: Branch> Parts<'_, B> {
    /// A poll in general: of several events, of a wait that has begun, or with a used-up budget.
    fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<B::Output> {
        if !unit::with(unit::Unit::spend) {
            hooks().give_way(cx.waker());
            return Poll::Pending;
        }
        match *self.stage {
            Stage::Fresh => match self.attempt(cx) {
                Poll::Ready(output) => Poll::Ready(output),
                Poll::Pending => self.enrol(cx),
            },
            Stage::Waits => self.resume(cx),
            Stage::Ended | Stage::EndedAtOnce => panic!("a wait was polled after it had ended"),
        }
    }

    /// Step 1 for all base events, beginning at a random one: each of `n` has a chance of at least `1 / n` in
    /// each sync, whatever else is ready, and however the choices are nested.
    pub(super) fn attempt(&mut self, cx: &mut Context<'_>) -> Poll<B::Output> {
        let bases = self.branch.bases();
        let first = if bases > 1 { unit::random(bases) } else { 0 };
        for base in rotated(first, bases) {
            if let Poll::Ready(output) = self.branch.as_mut().attempt(base, cx) {
                *self.stage = Stage::EndedAtOnce;
                self.branch.as_mut().settle(Some(base));
                return Poll::Ready(output);
            }
        }
        Poll::Pending
    }

    fn enrol(&mut self, cx: &mut Context<'_>) -> Poll<B::Output> {
        let waker = cx.waker().clone();
        let claim = self.claim.write(Claim::new());
        // SAFETY: *exclusive*: the claim is new.
        let (claim, mut held) = unsafe { claim.first() };
        *self.stage = Stage::Waits;
        let former = held.set_waker(waker);
        debug_assert!(former.is_none(), "a new claim has no waker");
        let ready = enrol_each(self.branch.as_mut(), (claim, held), cx);
        match ready {
            Some((base, output)) => Poll::Ready(self.end_with(base, output)),
            None => self.pause(),
        }
    }

    /// The claim of a wait in the stage `Waits`.
    #[inline(always)]
    fn claim(&self) -> &Claim {
        debug_assert!(*self.stage == Stage::Waits, "the wait has a claim");
        // SAFETY: *created*: callers are in that stage.
        unsafe { self.claim.assume_init_ref() }
    }

    fn resume(&mut self, cx: &mut Context<'_>) -> Poll<B::Output> {
        if let Some(winner) = self.claim().winner() {
            return Poll::Ready(self.finish(winner));
        }
        // The waker first: from now on a partner wakes this one.
        self.set_waker(cx);
        if self.branch.is_polled() {
            for base in 0..self.branch.bases() {
                let bases = self.branch.bases();
                // SAFETY: *created*: the stage is `Waits`.
                let claim = unsafe { self.claim.assume_init_ref() };
                let ticket = Ticket::new(claim, (base, bases), None);
                let again = self.branch.as_mut().again(base, &ticket, cx);
                drop(ticket);
                match again {
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
        let Ok(mut held) = self.claim().hold() else {
            return;
        };
        let unused = match held.wakes(&waker) {
            true => Some(waker),
            false => held.set_waker(waker),
        };
        drop(held);
        drop(unused);
    }

    /// The end of a poll that completed nothing on its own.
    fn pause(&mut self) -> Poll<B::Output> {
        if let Some(winner) = self.claim().winner() {
            return Poll::Ready(self.finish(winner));
        }
        hooks().note(self.branch.reason().at(self.site));
        Poll::Pending
    }

    #[inline(always)]
    fn end_with(&mut self, base: u32, output: B::Output) -> B::Output {
        *self.stage = Stage::Ended;
        self.branch.as_mut().settle(Some(base));
        output
    }

    fn finish(&mut self, winner: u32) -> B::Output {
        *self.stage = Stage::Ended;
        // All other offers first: user code may copy what is collected, and may panic.
        self.branch.as_mut().settle(Some(winner));
        // SAFETY: *routed*: the claim is won, and the owner itself wins it only where it ends the wait at once.
        let won = unsafe { Won::new(winner) };
        self.branch.as_mut().collect(won)
    }
}

/// Enrols each base event under a new claim, until one of them ends the wait; returns that one, with its output, unless
/// a partner ends it.
#[inline(always)]
fn enrol_each<B: Branch>(
    mut branch: Pin<&mut B>,
    (claim, held): (&Claim, Held<'_>),
    cx: &mut Context<'_>,
) -> Option<(u32, B::Output)> {
    let bases = branch.bases();
    // The first base event gets the claim as it was created: held, so that it need not be opened and held again.
    let mut first = Some(held);
    for base in 0..bases {
        let ticket = Ticket::new(claim, (base, bases), first.take());
        match branch.as_mut().enrol(base, &ticket, cx) {
            Enrolled::Waits => {}
            Enrolled::Ready(output) => return Some((base, output)),
            Enrolled::Lost => return None,
        }
    }
    None
}

/// The numbers below `count`, beginning with `first`, so that a base event that is always ready starves no
/// other.
#[inline(always)]
fn rotated(first: u32, count: u32) -> impl Iterator<Item = u32> {
    (first..count).chain(0..first)
}

/// The number that wins a claim whose wait was dropped.
const NOBODY: u32 = u32::MAX / 2;

impl<B: Branch> Drop for Waiting<B> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.stage != Stage::EndedAtOnce {
            // SAFETY: *pinned*: a value that is being dropped is not moved any longer.
            unsafe { Pin::new_unchecked(self) }.end_slowly();
        }
    }
}

/// A wait that is being dropped. Drops its claim last, even if what others left for it panics when it is given back.
struct ClaimDropped<'a, B: Branch>(Pin<&'a mut Waiting<B>>);

impl<B: Branch> Drop for ClaimDropped<'_, B> {
    fn drop(&mut self) {
        // SAFETY: *pinned*: the claim is dropped in its place.
        let wait = unsafe { self.0.as_mut().get_unchecked_mut() };
        if wait.stage == Stage::Ended {
            wait.stage = Stage::EndedAtOnce;
            // SAFETY: *created*; the stage says that it is gone.
            unsafe { wait.claim.assume_init_drop() };
        }
    }
}

impl<B: Branch> Parts<'_, B> {
    fn end(mut self) {
        if *self.stage == Stage::Waits {
            self.end_wait();
        } else {
            *self.stage = Stage::EndedAtOnce;
        }
        // Even if nothing was enrolled, an opened event may have something to take back.
        self.branch.as_mut().settle(None);
    }

    fn end_wait(&mut self) {
        // From here on no partner wins the claim.
        if let Ok(held) = self.claim().hold() {
            held.win_own(NOBODY);
        }
        let winner = self.claim().winner().filter(|winner| *winner != NOBODY);
        *self.stage = Stage::Ended;
        if let Some(winner) = winner {
            // SAFETY: *routed*: a partner was first.
            let won = unsafe { Won::new(winner) };
            self.branch.as_mut().give_back(won);
        }
    }
}
