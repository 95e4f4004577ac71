//! Events of different types, as a list: the first one, and the rest. Every static choice is built from it.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    combinators::pinned::Pair,
    event::{Branch, Enrolled, Event, Won, awaitable},
    queue::ticket::Ticket,
    runtime::reason::{Kind, Reason},
};

/// One of two events: the first of a list, or one of the rest. See [`one_of`](crate::one_of).
#[derive(Clone, Copy, Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct Alternative<A, B>(
    /// The first.
    pub A,
    /// The rest.
    pub B,
);

/// Which of two events was chosen, with its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first.
    First(A),
    /// One of the rest.
    Rest(B),
}

/// An output that has the same type whichever event was chosen.
pub trait Same {
    type Value;

    fn value(self) -> Self::Value;
}

impl<T> Same for Either<T, Infallible> {
    type Value = T;

    #[inline(always)]
    fn value(self) -> T {
        let Either::First(value) = self;
        value
    }
}

impl<T, R: Same<Value = T>> Same for Either<T, R> {
    type Value = T;

    #[inline(always)]
    fn value(self) -> T {
        match self {
            Either::First(value) => value,
            Either::Rest(rest) => rest.value(),
        }
    }
}

impl<A: Event, B: Event> Event for Alternative<A, B> {
    type Output = Either<A::Output, B::Output>;
    type Branch = Pair<A::Branch, B::Branch>;

    #[inline]
    fn open(self) -> Self::Branch {
        // From left to right, because guards must run in that order.
        let first = self.0.open();
        Pair::new(first, self.1.open())
    }

    #[inline]
    fn conclude(outcome: <Self::Branch as Branch>::Output) -> Self::Output {
        match outcome {
            Either::First(outcome) => Either::First(A::conclude(outcome)),
            Either::Rest(outcome) => Either::Rest(B::conclude(outcome)),
        }
    }
}

/// The base events of the first come first.
impl<A: Branch, B: Branch> Branch for Pair<A, B> {
    type Output = Either<A::Output, B::Output>;

    #[inline(always)]
    fn bases(&self) -> u32 {
        self.first().bases() + self.rest().bases()
    }

    #[inline(always)]
    fn attempt(self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let below = self.first().bases();
        let (first, rest) = self.parts();
        match base < below {
            true => first.attempt(base, cx).map(Either::First),
            false => rest.attempt(base - below, cx).map(Either::Rest),
        }
    }

    #[inline]
    fn enrol(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let below = self.first().bases();
        let (first, rest) = self.parts();
        match base < below {
            true => first.enrol(base, ticket, cx).map(Either::First),
            false => rest.enrol(base - below, ticket, cx).map(Either::Rest),
        }
    }

    #[inline]
    fn again(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let below = self.first().bases();
        let (first, rest) = self.parts();
        match base < below {
            true => first.again(base, ticket, cx).map(Either::First),
            false => rest.again(base - below, ticket, cx).map(Either::Rest),
        }
    }

    #[inline(always)]
    fn is_polled(&self) -> bool {
        self.first().is_polled() || self.rest().is_polled()
    }

    #[inline]
    fn collect(self: Pin<&mut Self>, won: Won) -> Self::Output {
        let below = self.first().bases();
        let (first, rest) = self.parts();
        match won.base() < below {
            true => Either::First(first.collect(won)),
            false => Either::Rest(rest.collect(won.below(below))),
        }
    }

    fn give_back(self: Pin<&mut Self>, won: Won) {
        let below = self.first().bases();
        let (first, rest) = self.parts();
        match won.base() < below {
            true => first.give_back(won),
            false => rest.give_back(won.below(below)),
        }
    }

    #[inline(always)]
    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let below = self.first().bases();
        let (first, rest) = self.parts();
        first.settle(won.filter(|base| *base < below));
        rest.settle(won.and_then(|base| base.checked_sub(below)));
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        self.first().settles_early() || self.rest().settles_early()
    }

    #[inline(always)]
    fn drops_early(&self) -> bool {
        self.first().drops_early() || self.rest().drops_early()
    }

    fn reason(&self) -> Reason {
        Reason::new(Kind::Select, self)
    }
}

awaitable!([A: Event, B: Event] Alternative<A, B>);
