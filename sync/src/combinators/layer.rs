//! A layer: a branch around one other branch, which passes on every step and adds to some.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Won},
    queue::ticket::Ticket,
    runtime::reason::Reason,
};

/// What a layer adds to its inner branch.
pub trait Layer {
    type Inner: Branch + ?Sized;
    type Output;

    fn inner(&self) -> &Self::Inner;

    fn inner_mut(self: Pin<&mut Self>) -> Pin<&mut Self::Inner>;

    /// Computes the output from that of the inner branch. No user code may run here.
    fn output(self: Pin<&mut Self>, inner: <Self::Inner as Branch>::Output) -> Self::Output;

    /// The inner branch has settled; `chosen` says whether it was chosen.
    fn settled(self: Pin<&mut Self>, _chosen: bool) {}

    /// Whether [`settled`](Layer::settled) has anything to do.
    fn adds_to_settling(&self) -> bool {
        false
    }
}

impl<L: Layer> Branch for L {
    type Output = L::Output;

    #[inline(always)]
    fn bases(&self) -> u32 {
        self.inner().bases()
    }

    #[inline(always)]
    fn attempt(mut self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<L::Output> {
        let inner = self.as_mut().inner_mut().attempt(base, cx);
        inner.map(|output| self.output(output))
    }

    #[inline]
    fn enrol(
        mut self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<L::Output> {
        let inner = self.as_mut().inner_mut().enrol(base, ticket, cx);
        inner.map(|output| self.output(output))
    }

    #[inline]
    fn again(
        mut self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<L::Output> {
        let inner = self.as_mut().inner_mut().again(base, ticket, cx);
        inner.map(|output| self.output(output))
    }

    #[inline(always)]
    fn is_polled(&self) -> bool {
        self.inner().is_polled()
    }

    #[inline]
    fn collect(mut self: Pin<&mut Self>, won: Won) -> L::Output {
        let inner = self.as_mut().inner_mut().collect(won);
        self.output(inner)
    }

    fn give_back(self: Pin<&mut Self>, won: Won) {
        self.inner_mut().give_back(won);
    }

    #[inline]
    fn settle(mut self: Pin<&mut Self>, won: Option<u32>) {
        self.as_mut().inner_mut().settle(won);
        self.settled(won.is_some());
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        self.adds_to_settling() || self.inner().settles_early()
    }

    fn reason(&self) -> Reason {
        self.inner().reason()
    }
}

/// A branch that is pinned on its own. Only in a box, not by reference: a wait owns its branch.
impl<B: Branch + ?Sized> Layer for Pin<Box<B>> {
    type Inner = B;
    type Output = B::Output;

    fn inner(&self) -> &B {
        self
    }

    fn inner_mut(self: Pin<&mut Self>) -> Pin<&mut B> {
        self.as_deref_mut()
    }

    fn output(self: Pin<&mut Self>, inner: B::Output) -> B::Output {
        inner
    }
}
