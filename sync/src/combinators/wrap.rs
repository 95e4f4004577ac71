//! A function that is applied after the choice, to what the choice yields.

use std::pin::Pin;

use super::layer::Layer;
use crate::{
    combinators::pinned::Both,
    event::{Branch, Event, awaitable},
};

/// See [`Event::wrap`].
#[derive(Clone, Copy, Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct Wrap<E, F> {
    event: E,
    function: F,
}

/// A value that a branch carries for the conclusion, until its event is chosen.
pub struct Carried<F>(Option<F>);

impl<F> Carried<F> {
    #[inline]
    pub(crate) fn new(load: F) -> Carried<F> {
        Carried(Some(load))
    }
}

impl<E, F> Wrap<E, F> {
    #[inline]
    pub(crate) fn new(event: E, function: F) -> Wrap<E, F> {
        Wrap { event, function }
    }
}

impl<E: Event, U, F: FnOnce(E::Output) -> U> Event for Wrap<E, F> {
    type Output = U;
    type Branch = Both<E::Branch, Carried<F>>;

    #[inline]
    fn open(self) -> Self::Branch {
        Both::new(self.event.open(), Carried::new(self.function))
    }

    #[inline]
    fn conclude((function, outcome): (F, <E::Branch as Branch>::Output)) -> U {
        function(E::conclude(outcome))
    }
}

/// Yields the carried value with the outcome. A function is applied only when the choice is over.
impl<B: Branch, F> Layer for Both<B, Carried<F>> {
    type Inner = B;
    type Output = (F, B::Output);

    #[inline(always)]
    fn inner(&self) -> &B {
        self.pinned()
    }

    #[inline(always)]
    fn inner_mut(self: Pin<&mut Self>) -> Pin<&mut B> {
        self.parts().0
    }

    #[inline(always)]
    fn output(self: Pin<&mut Self>, inner: B::Output) -> Self::Output {
        let load = self.parts().1.0.take();
        (load.expect("an event is chosen once"), inner)
    }
}

awaitable!([E: Event, U, F: FnOnce(E::Output) -> U] Wrap<E, F>);
