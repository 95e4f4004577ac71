//! Many events of one type: a `Vec` or an array of them.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use super::layer::Layer;
use crate::{
    combinators::pinned::{Both, element, slice},
    event::{Branch, Enrolled, Event, Won, awaitable},
    queue::ticket::Ticket,
    runtime::reason::{Kind, Reason},
};

/// See [`choose`](crate::choose). `C` is a `Vec` or an array.
#[derive(Clone, Copy, Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct Each<C>(C);

/// A branch, and the number that follows the numbers of its base events.
type Slot<B> = Both<B, u32>;

impl<C> Each<C> {
    pub(super) fn new(events: C) -> Each<C> {
        Each(events)
    }
}

/// Opens one event after the other, and numbers their base events.
fn opener<E: Event>() -> impl FnMut(E) -> Slot<E::Branch> {
    let mut end = 0;
    move |event| {
        let branch = event.open();
        end += branch.bases();
        Both::new(branch, end)
    }
}

impl<E: Event> Event for Each<Vec<E>> {
    type Output = E::Output;
    type Branch = Pin<Box<[Slot<E::Branch>]>>;

    fn open(self) -> Self::Branch {
        let slots: Box<[_]> = self.0.into_iter().map(opener()).collect();
        Pin::from(slots)
    }

    fn conclude(outcome: <E::Branch as Branch>::Output) -> E::Output {
        E::conclude(outcome)
    }
}

impl<E: Event, const N: usize> Event for Each<[E; N]> {
    type Output = E::Output;
    type Branch = [Slot<E::Branch>; N];

    fn open(self) -> Self::Branch {
        self.0.map(opener())
    }

    fn conclude(outcome: <E::Branch as Branch>::Output) -> E::Output {
        E::conclude(outcome)
    }
}

impl<B: Branch, const N: usize> Layer for [Slot<B>; N] {
    type Inner = [Slot<B>];
    type Output = B::Output;

    fn inner(&self) -> &[Slot<B>] {
        self
    }

    fn inner_mut(self: Pin<&mut Self>) -> Pin<&mut [Slot<B>]> {
        slice(self)
    }

    fn output(self: Pin<&mut Self>, inner: B::Output) -> B::Output {
        inner
    }
}

/// The branch that has the base event, and the number of that branch's first base event.
fn find<B: Branch>(slots: Pin<&mut [Slot<B>]>, base: u32) -> (Pin<&mut B>, u32) {
    let at = slots.partition_point(|slot| *slot.plain() <= base);
    let (branch, end) = element(slots, at).parts();
    let first = *end - branch.bases();
    (branch, first)
}

impl<B: Branch> Branch for [Slot<B>] {
    type Output = B::Output;

    fn bases(&self) -> u32 {
        self.last().map_or(0, |slot| *slot.plain())
    }

    fn attempt(self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<B::Output> {
        let (branch, first) = find(self, base);
        branch.attempt(base - first, cx)
    }

    fn enrol(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<B::Output> {
        let (branch, first) = find(self, base);
        branch.enrol(base - first, ticket, cx)
    }

    fn again(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<B::Output> {
        let (branch, first) = find(self, base);
        branch.again(base - first, ticket, cx)
    }

    fn is_polled(&self) -> bool {
        self.iter().any(|slot| slot.pinned().is_polled())
    }

    fn collect(self: Pin<&mut Self>, won: Won) -> B::Output {
        let (branch, first) = find(self, won.base());
        branch.collect(won.below(first))
    }

    fn give_back(self: Pin<&mut Self>, won: Won) {
        let (branch, first) = find(self, won.base());
        branch.give_back(won.below(first));
    }

    fn settle(mut self: Pin<&mut Self>, won: Option<u32>) {
        let mut below = 0;
        for at in 0..self.len() {
            let (branch, end) = element(self.as_mut(), at).parts();
            let own = won.filter(|base| (below..*end).contains(base));
            branch.settle(own.map(|base| base - below));
            below = *end;
        }
    }

    fn settles_early(&self) -> bool {
        self.iter().any(|slot| slot.pinned().settles_early())
    }

    fn reason(&self) -> Reason {
        Reason::new(Kind::Select, self)
    }
}

awaitable!([E: Event] Each<Vec<E>>);
awaitable!([E: Event, const N: usize] Each<[E; N]>);
