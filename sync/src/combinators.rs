//! The combinators: events made of other events, and of functions.
//!
//! | combinator | the event |
//! |---|---|
//! | [`never()`] | is never ready; the same as a choice of none |
//! | [`always`] | is ready at once |
//! | [`Event::wrap`](crate::Event::wrap) | applies a function after the choice |
//! | [`guard`] | is what a function returns at each sync, before anything is tried |
//! | [`with_nack`] | the same; the function gets an event that tells that another one was chosen |
//! | [`choose`] | any one of several, of which exactly one is chosen |
//! | [`one_of`] | the same for outputs of different types; [`select!`](crate::select) is made of it |
//! | [`of_future`], [`of_source`] | the end of a future |
//! | [`Event::boxed`](crate::Event::boxed) | of any kind, for lists |
//!
//! A choice costs no job, no thread and no allocation: its branches lie in the future that waits. Only
//! [`with_nack`], a `Vec` and a box allocate.
//!
//! From J. H. Reppy, CML: A higher-order concurrent language, PLDI 1991. We differ in that an event that owns
//! a value, as a send does, is synced once; that nacks are enabled also when the sync is given up: by a
//! panic, a cancel or a kill; and that the choice among ready events is random, without priorities.

// One event around another.
mod layer;

// None and one.
mod never;

mod always;

mod wrap;

mod guard;

mod nack;

mod boxed;

// Several.
mod list;

mod choose;

mod each;

// Futures.
mod polled;

pub use always::{Always, always};
pub use boxed::Boxed;
pub use choose::{Alternatives, Choose, choose, one_of};
pub use guard::{Guard, guard};
pub use list::{Alternative, Either};
pub use nack::{Nack, WithNack, with_nack};
pub use never::{Never, never};
pub use polled::{Kept, Polled, Source, of_future, of_source};
pub(crate) use wrap::Carried;
pub use wrap::Wrap;

/// Lets events of a type be awaited: `event.await` is `event.sync().await`.
macro_rules! awaitable {
    ([$($generics:tt)*] $event:ty) => {
        impl<$($generics)*> IntoFuture for $event
        where
            $event: crate::event::Event,
        {
            type Output = <$event as crate::event::Event>::Output;
            type IntoFuture = crate::event::Syncing<$event>;

            fn into_future(self) -> Self::IntoFuture {
                crate::event::Event::sync(self)
            }
        }
    };
}
pub(crate) use awaitable;
