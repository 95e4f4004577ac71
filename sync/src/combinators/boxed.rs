//! Boxed events, whose type shows only their output.

use std::{fmt, marker::PhantomData, pin::Pin};

use super::layer::Layer;
use crate::{
    combinators::pinned::Both,
    event::{Branch, Event, awaitable},
};

/// See [`Event::boxed`].
#[must_use = "an event does nothing unless it is synced"]
pub struct Boxed<'a, T>(Box<dyn Hidden<'a, T>>);

/// The conclusion, to run after the choice.
type Later<'a, T> = Box<dyn FnOnce() -> T + 'a>;

/// An event in the place where its branch will be stored.
pub trait Hidden<'a, T>: Branch<Output = Later<'a, T>> + Send + 'a {
    /// Called once, before the branch is used, and before it is pinned.
    fn open(&mut self);
}

/// The event, until it is opened.
struct Unopened<'a, E> {
    event: Option<E>,
    /// The box of the output lives as long as the box of the event.
    lives: PhantomData<&'a ()>,
}

/// The place for an event and then its branch.
type EventSlot<'a, E> = Both<Option<<E as Event>::Branch>, Unopened<'a, E>>;

const OPENED: &str = "a boxed event is opened before it is used";

impl<'a, T> Boxed<'a, T> {
    pub(crate) fn new<E>(event: E) -> Boxed<'a, T>
    where
        E: Event<Output = T, Branch: Send> + Send + 'a,
    {
        let unopened = Unopened {
            event: Some(event),
            lives: PhantomData,
        };
        Boxed(Box::new(EventSlot::new(None, unopened)))
    }
}

impl<'a, T: 'a> Event for Boxed<'a, T> {
    type Output = T;
    type Branch = Pin<Box<dyn Hidden<'a, T>>>;

    fn open(self) -> Self::Branch {
        let mut hidden = self.0;
        hidden.open();
        Pin::from(hidden)
    }

    fn conclude(outcome: Later<'a, T>) -> T {
        outcome()
    }
}

impl<'a, T, E> Hidden<'a, T> for EventSlot<'a, E>
where
    E: Event<Output = T, Branch: Send> + Send + 'a,
{
    fn open(&mut self) {
        let (branch, event) = self.parts_mut();
        *branch = event.event.take().map(E::open);
    }
}

impl<'a, E: Event + 'a> Layer for Both<Option<E::Branch>, Unopened<'a, E>> {
    type Inner = E::Branch;
    type Output = Later<'a, E::Output>;

    fn inner(&self) -> &E::Branch {
        self.pinned().as_ref().expect(OPENED)
    }

    fn inner_mut(self: Pin<&mut Self>) -> Pin<&mut E::Branch> {
        self.parts().0.as_pin_mut().expect(OPENED)
    }

    fn output(self: Pin<&mut Self>, inner: <E::Branch as Branch>::Output) -> Self::Output {
        Box::new(move || E::conclude(inner))
    }
}

awaitable!(['a, T: 'a] Boxed<'a, T>);

impl<T> fmt::Debug for Boxed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Boxed")
    }
}
