//! The future of every wait: it takes the steps that `event` lists.

#![allow(unsafe_code)]

mod alone;

use std::{
    future::Future,
    mem::{ManuallyDrop, MaybeUninit},
    panic::Location,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::branch::{Branch, Enrolled, Won};
use crate::{
    queue::{
        claim::{Claim, Held},
        ticket::Ticket,
    },
    runtime::{hooks::hooks, unit},
};

/// The future of every wait: `.await` it in async code, and elsewhere end it with `.wait()`. Only then is there a
/// guard, a message or whatever is waited for. Cancel-safe: dropping it takes its offers back, and passes on what a
/// partner has already left.
///
/// # Safety
/// *Pinned*: the branch and the claim are not moved after the first poll. *Settled*: from then on, before
/// they are dropped, the claim is won and all offers are retracted. *Created*: there is a claim exactly in the stage
/// `Waits`, unless the branch keeps the waker (`alone`).
#[must_use = "a wait does nothing unless it is awaited, or synced"]
pub struct Waiting<B: Branch> {
    /// Created by the first poll that does not end the wait, and dropped by the end of the wait. A wait that is ready
    /// at once has none, and neither writes one nor asks for it when it is dropped.
    claim: MaybeUninit<Claim>,
    stage: Stage,
    /// The line of the wait, if the call that created it knows it.
    site: Option<&'static Location<'static>>,
    /// Dropped with the wait, unless that has nothing to do.
    branch: ManuallyDrop<B>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Fresh,
    /// It has a claim, and may have left offers; or it has left its waker.
    Waits,
    /// By an event that was ready before any was enrolled.
    EndedEarly,
    Ended,
}

/// The parts of a pinned wait.
struct Parts<'a, B> {
    claim: &'a mut MaybeUninit<Claim>,
    stage: &'a mut Stage,
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
    pub fn here(branch: B) -> Waiting<B> {
        Waiting::at(branch, Some(Location::caller()))
    }

    /// As [`new`](Waiting::new), at this line, if it is known.
    #[inline(always)]
    pub(crate) fn at(branch: B, site: Option<&'static Location<'static>>) -> Waiting<B> {
        Waiting {
            claim: MaybeUninit::uninit(),
            stage: Stage::Fresh,
            site,
            branch: ManuallyDrop::new(branch),
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
    fn parts(self: Pin<&mut Self>) -> Parts<'_, B> {
        // SAFETY: *pinned*: the branch is pinned again below, and nothing moves the claim.
        let this = unsafe { self.get_unchecked_mut() };
        Parts {
            claim: &mut this.claim,
            stage: &mut this.stage,
            // SAFETY: *pinned*.
            branch: unsafe { Pin::new_unchecked(&mut *this.branch) },
        }
    }

    #[inline(always)]
    fn branch(self: Pin<&mut Self>) -> Pin<&mut B> {
        self.parts().branch
    }

    /// The branch of a wait that was not polled yet.
    #[inline]
    pub(super) fn into_branch(self) -> B {
        // A wait that was polled is pinned, and cannot be passed here.
        debug_assert!(self.stage == Stage::Fresh, "the wait was already polled");
        let this = ManuallyDrop::new(self);
        // SAFETY: the branch is moved out of a value that is neither used nor dropped any longer; its other
        // fields own nothing yet.
        unsafe { std::ptr::read(&raw const *this.branch) }
    }
}

impl<B: Branch> Future for Waiting<B> {
    type Output = B::Output;

    // Inlined as far as the first event that is attempted, if it is ready: an uncontended lock, a channel with a value,
    // or a choice among some that have values. In a function of its own a choice would save its registers, and hand
    // its output over in memory.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        let attempts = self.stage == Stage::Fresh || self.waits_alone();
        if !attempts {
            return self.resume(cx);
        }
        if !unit::with(unit::Unit::spend) {
            return give_way(cx);
        }
        if self.branch.bases() == 1 && self.branch.enrols_at_once() {
            return self.enrol(cx);
        }
        match self.as_mut().attempt(cx) {
            Poll::Ready(output) => Poll::Ready(output),
            Poll::Pending => self.enrol(cx),
        }
    }
}

#[cold]
fn give_way<T>(cx: &mut Context<'_>) -> Poll<T> {
    hooks().give_way(cx.waker());
    Poll::Pending
}

/// Step 1 of a wait, and the step to the next.
impl<B: Branch> Waiting<B> {
    /// Step 1 for all base events, beginning at a random one: each of `n` has a chance of at least `1 / n` in
    /// each sync, whatever else is ready, and however the choices are nested.
    #[inline(always)]
    pub(super) fn attempt(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        let bases = self.branch.bases();
        if bases == 0 {
            return Poll::Pending;
        }
        let first = if bases > 1 { unit::random(bases) } else { 0 };
        // The first one apart from the loop over the others, which a choice under load seldom begins.
        match self.as_mut().attempt_one(first, cx) {
            Poll::Pending if bases > 1 => self.attempt_others(first, cx),
            attempted => attempted,
        }
    }

    #[inline(never)]
    fn attempt_others(
        mut self: Pin<&mut Self>,
        first: u32,
        cx: &mut Context<'_>,
    ) -> Poll<B::Output> {
        let bases = self.branch.bases();
        for base in (first + 1..bases).chain(0..first) {
            if let Poll::Ready(output) = self.as_mut().attempt_one(base, cx) {
                return Poll::Ready(output);
            }
        }
        Poll::Pending
    }

    /// Attempts one base event, which ends the wait if it is ready. No offer was left.
    #[inline(always)]
    fn attempt_one(self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<B::Output> {
        let Parts {
            stage, mut branch, ..
        } = self.parts();
        let output = std::task::ready!(branch.as_mut().attempt(base, cx));
        *stage = Stage::EndedEarly;
        if branch.settles_early() {
            branch.settle(Some(base));
        }
        Poll::Ready(output)
    }

    /// Step 2: no event was ready.
    #[inline(never)]
    fn enrol(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        if self.branch.keeps_waker() {
            return self.wait_alone(cx);
        }
        let waker = cx.waker().clone();
        let parts = self.as_mut().parts();
        let claim = parts.claim.write(Claim::new(waker));
        *parts.stage = Stage::Waits;
        // SAFETY: *exclusive*: the claim is new.
        let claim = unsafe { claim.first() };
        match enrol_each(parts.branch, claim, cx) {
            Some((base, output)) => {
                self.end(base);
                Poll::Ready(output)
            }
            None => self.pause(cx.waker()),
        }
    }
}

/// The steps of a wait that has a claim.
impl<B: Branch> Waiting<B> {
    /// The claim of a wait in the stage `Waits`.
    #[inline(always)]
    fn claim(&self) -> &Claim {
        debug_assert!(self.stage == Stage::Waits, "the wait has a claim");
        // SAFETY: *created*: callers are in that stage.
        unsafe { self.claim.assume_init_ref() }
    }

    /// A further poll.
    #[inline(never)]
    fn resume(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        assert!(
            self.stage == Stage::Waits,
            "a wait was polled after it had ended"
        );
        if !unit::with(unit::Unit::spend) {
            return give_way(cx);
        }
        match self.claim().winner() {
            Some(winner) => Poll::Ready(self.finish(winner)),
            None => self.look_again(cx),
        }
    }

    /// A further poll of a wait that no partner has ended.
    #[inline(never)]
    fn look_again(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        // The waker first: from now on a partner wakes this one.
        self.set_waker(cx);
        if self.branch.is_polled() {
            let bases = self.branch.bases();
            for base in 0..bases {
                let mut parts = self.as_mut().parts();
                // SAFETY: *created*: the stage is `Waits`.
                let claim = unsafe { parts.claim.assume_init_ref() };
                let ticket = Ticket::new(claim, (base, bases), None);
                let again = parts.branch.as_mut().again(base, &ticket, cx);
                drop(ticket);
                match again {
                    Enrolled::Waits => {}
                    Enrolled::Ready(output) => {
                        self.end(base);
                        return Poll::Ready(output);
                    }
                    Enrolled::Lost => break,
                }
            }
        }
        self.pause(cx.waker())
    }

    #[inline]
    fn set_waker(&self, cx: &mut Context<'_>) {
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
    #[inline(always)]
    fn pause(self: Pin<&mut Self>, waker: &Waker) -> Poll<B::Output> {
        if let Some(winner) = self.claim().winner() {
            return Poll::Ready(self.finish_late(winner));
        }
        let reason = self.branch.reason().at(self.site);
        hooks().note(reason, waker);
        Poll::Pending
    }

    /// A partner was first, while this poll went on.
    #[cold]
    #[inline(never)]
    fn finish_late(self: Pin<&mut Self>, winner: u32) -> B::Output {
        self.finish(winner)
    }

    /// A partner has won the claim.
    #[inline(always)]
    fn finish(mut self: Pin<&mut Self>, winner: u32) -> B::Output {
        // First, because user code may copy what is collected, and may panic.
        self.as_mut().end(winner);
        // SAFETY: *routed*: the claim is won, and the owner itself wins it only where it ends the wait at once.
        let won = unsafe { Won::new(winner) };
        self.branch().collect(won)
    }

    /// Takes the other offers back, and drops the claim, which is won.
    #[inline(always)]
    fn end(self: Pin<&mut Self>, won: u32) {
        let parts = self.parts();
        // First: what a wait has left is taken back once, even if that panics.
        *parts.stage = Stage::Ended;
        parts.branch.settle(Some(won));
        // SAFETY: *created*; the stage says that it is gone.
        unsafe { parts.claim.assume_init_drop() };
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

/// The number that wins a claim whose wait was dropped.
const NOBODY: u32 = u32::MAX / 2;

impl<B: Branch> Drop for Waiting<B> {
    #[inline(always)]
    fn drop(&mut self) {
        // Nothing was enrolled, so nothing refers to the branch that is forgotten.
        if self.stage == Stage::EndedEarly && !self.branch.drops_early() {
            return;
        }
        let this = BranchDropped(self);
        if matches!(this.0.stage, Stage::Fresh | Stage::Waits) {
            // SAFETY: *pinned*: a value that is being dropped is not moved any longer.
            unsafe { Pin::new_unchecked(&mut *this.0) }.end_dropped();
        }
    }
}

/// A wait whose branch is dropped with this, even if what comes before panics.
struct BranchDropped<'a, B: Branch>(&'a mut Waiting<B>);

impl<B: Branch> Drop for BranchDropped<'_, B> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: called once, by the drop of the wait, which uses the branch no more.
        unsafe { ManuallyDrop::drop(&mut self.0.branch) };
    }
}

/// A wait that is dropped before its end.
impl<B: Branch> Waiting<B> {
    #[inline(never)]
    fn end_dropped(mut self: Pin<&mut Self>) {
        let parts = self.as_mut().parts();
        let stage = std::mem::replace(parts.stage, Stage::Ended);
        if stage == Stage::Fresh || parts.branch.keeps_waker() {
            // Even if nothing was enrolled, an opened event may have something to take back, such as the waker.
            return parts.branch.settle(None);
        }
        // Dropped last, even if what others left panics when it is given back.
        let claim = ClaimDropped(parts.claim);
        let mut branch = parts.branch;
        if let Some(won) = claim.end() {
            branch.as_mut().give_back(won);
        }
        branch.settle(None);
    }
}

/// The claim of a wait that is being dropped.
struct ClaimDropped<'a>(&'a mut MaybeUninit<Claim>);

impl ClaimDropped<'_> {
    /// From here on no partner wins the claim. Returns what one that was first has won.
    fn end(&self) -> Option<Won> {
        // SAFETY: *created*: the wait was in the stage `Waits`, and the claim is dropped with `self`.
        let claim = unsafe { self.0.assume_init_ref() };
        if let Ok(held) = claim.hold() {
            held.win_own(NOBODY);
        }
        let winner = claim.winner().filter(|winner| *winner != NOBODY)?;
        // SAFETY: *routed*: a partner was first, and the caller gives it to the wait's branch.
        Some(unsafe { Won::new(winner) })
    }
}

impl Drop for ClaimDropped<'_> {
    fn drop(&mut self) {
        // SAFETY: *created*, as in `end`; the stage says that it is gone.
        unsafe { self.0.assume_init_drop() };
    }
}
