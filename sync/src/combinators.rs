//! The combinators: events built from other events, and from functions.
//!
//! | combinator | the event |
//! |---|---|
//! | [`never()`] | is never ready; the same as a choice of none |
//! | `None` | is the same; `Some(event)` is the event: a guard for an arm of a choice |
//! | [`always()`] | is ready at once |
//! | [`Event::wrap`](crate::Event::wrap) | applies a function after the choice |
//! | [`guard()`] | is what a function returns at each sync, before anything is tried |
//! | [`with_nack`] | the same; the function gets an event that is ready when another one was chosen |
//! | [`choose()`] | is ready when any of several events is; exactly one is chosen |
//! | [`one_of`] | the same for outputs of different types; [`select!`](crate::select!) is built from it |
//! | [`of_future`], [`of_source`] | the end of a future |
//! | [`Event::boxed`](crate::Event::boxed) | of any kind, for lists |
//!
//! A choice costs no job, no thread and no allocation: its branches are stored in the future that waits.
//! Only [`with_nack`], a `Vec` and a box allocate.
//!
//! From J. H. Reppy, CML: A higher-order concurrent language, PLDI 1991. Weald differs in three points: an
//! event that owns a value, as a send does, is synced once; nacks are also enabled when the sync is given up,
//! by a panic, a cancel or a kill; the choice among ready events is random, without priorities.

// What several of them need.
mod layer;
pub(crate) mod pinned;

// Built from none or one.
mod always;
pub(crate) mod boxed;
mod guard;
mod nack;
mod never;
mod optional;
pub(crate) mod wrap;

// Built from several.
mod choose;
mod each;
mod list;

// Built from a future.
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
