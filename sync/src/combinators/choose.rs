//! The choice: one of several events.

use std::convert::Infallible;

use super::{
    each::Each,
    list::{Alternative, Same},
    never::{Never, never},
};
use crate::event::{Branch, Event, awaitable};

/// The event that is any one of `alternatives`: a tuple of up to twelve events with the same output, an array,
/// or a `Vec`. Exactly one is chosen; the others leave nothing behind. For more than twelve, nest choices: a
/// choice of choices is the same as one choice.
///
/// If several are ready, the one that is tried first is chosen, and each sync starts at a random one. Of `n` base
/// events, however nested, each has a chance of at least `1 / n`, so an event that is always ready starves no
/// other. If none is ready, the partner that comes first decides. Of futures and points in time that are found
/// ready together when the wait is woken, the first in order is chosen.
///
/// ```
/// use std::time::Duration;
/// use weald::sync::{Event, Wait, after, channel, choose};
///
/// let (sender, receiver) = channel::unbounded();
/// sender.try_send(7)?;
/// let seven = choose((
///     receiver.receive().wrap(|received| received.ok()),
///     after(Duration::from_secs(60)).wrap(|()| None),
/// ));
/// assert_eq!(seven.wait(), Some(7));
/// # Ok::<(), channel::TrySendError<i32>>(())
/// ```
#[inline]
pub fn choose<A: Alternatives>(alternatives: A) -> A::Choice {
    alternatives.into_choice()
}

/// The event that is any one of a tuple of up to twelve, whose outputs may differ: nested
/// [`Either`](crate::Either)s say which one was chosen. For more than two, [`select!`](crate::select!) reads
/// better.
///
/// ```
/// use weald::sync::{Either, Wait, always, never, one_of};
///
/// let chosen = one_of((never::<u8>(), always("text"))).wait();
/// assert!(matches!(chosen, Either::Rest(Either::First("text"))));
/// ```
pub fn one_of<A: Tuple>(events: A) -> A::List {
    events.into_list()
}

/// What [`choose`] chooses from.
pub trait Alternatives {
    /// The choice.
    type Choice: Event;

    /// The choice.
    fn into_choice(self) -> Self::Choice;
}

/// Several events in a tuple.
pub trait Tuple {
    type List: Event;

    fn into_list(self) -> Self::List;
}

/// See [`choose`]. `L` is a list of events.
#[derive(Clone, Copy, Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct Choose<L>(L);

impl<L: Event<Output: Same>> Event for Choose<L> {
    type Output = <L::Output as Same>::Value;
    type Branch = L::Branch;

    #[inline]
    fn open(self) -> L::Branch {
        self.0.open()
    }

    #[inline]
    fn conclude(outcome: <L::Branch as Branch>::Output) -> Self::Output {
        L::conclude(outcome).value()
    }
}

awaitable!([L: Event<Output: Same>] Choose<L>);

impl<E: Event> Alternatives for Vec<E> {
    type Choice = Each<Vec<E>>;

    #[inline]
    fn into_choice(self) -> Each<Vec<E>> {
        Each::new(self)
    }
}

impl<E: Event, const N: usize> Alternatives for [E; N] {
    type Choice = Each<[E; N]>;

    #[inline]
    fn into_choice(self) -> Each<[E; N]> {
        Each::new(self)
    }
}

/// The list of some events, as a type or as a value.
macro_rules! list {
    (type) => { Never<Infallible> };
    (type $first:ident $($rest:ident)*) => { Alternative<$first, list!(type $($rest)*)> };
    (value) => { never() };
    (value $first:ident $($rest:ident)*) => { Alternative($first, list!(value $($rest)*)) };
}

macro_rules! tuple {
    ($first:ident $($rest:ident)*) => {
        impl<$first: Event, $($rest: Event),*> Tuple for ($first, $($rest,)*) {
            type List = list!(type $first $($rest)*);

            #[allow(non_snake_case, reason = "a value has the name of its type")]
            #[inline]
            fn into_list(self) -> Self::List {
                let ($first, $($rest,)*) = self;
                list!(value $first $($rest)*)
            }
        }

        impl<$first: Event, $($rest: Event<Output = $first::Output>),*> Alternatives
            for ($first, $($rest,)*)
        {
            type Choice = Choose<list!(type $first $($rest)*)>;

            #[inline]
            fn into_choice(self) -> Self::Choice {
                Choose(self.into_list())
            }
        }
    };
}

tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);
tuple!(A B C D E F G H I);
tuple!(A B C D E F G H I J);
tuple!(A B C D E F G H I J K);
tuple!(A B C D E F G H I J K L);
