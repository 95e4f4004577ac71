//! Callbacks: closures that run later, in one block each, without a stack or a job of their own.
//!
//! A callback that waits for its time is the entry of a timer wheel and its closure, 40 bytes and the
//! closure's, 64 with an owner. When the time has come it goes to the end of its worker's queue of
//! ready callbacks, which a `runner` takes off in order.
//!
//! Rules:
//! - What is ready runs in the order in which it became so, on one worker; several workers each have a
//!   queue of their own.
//! - A callback may wait, block, compute or panic: it is named, and stops no other.
//! - When its owner ends, its closure is dropped at once.
//!
//! This is the plain form; `weald::process::callback` has the loops. After "Hashed and Hierarchical
//! Timing Wheels" (Varghese and Lauck, 1987) for the one block, and Zackernel for the queue.

mod arrivals;
mod cell;
mod fifo;
mod group;
mod phase;
mod runner;
mod start;

use std::time::Instant;

pub(crate) use arrivals::Arrivals;
#[cfg(loom)]
pub(crate) use arrivals::Found;
use cell::{Many, Once};
pub(crate) use fifo::Fifo;
pub(crate) use group::Group;
pub use group::{CallbackPanic, Owner};
pub(crate) use phase::PhaseWord;
#[cfg(loom)]
pub(crate) use phase::Take;
pub(crate) use runner::{Due, bring, runner};
pub use start::{Handle, When};
pub(crate) use start::{admit, close};

/// What follows a round of a callback that runs in rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the closure is dropped.
    Ended,
    /// Another round, behind the callbacks that are ready now.
    Ready,
    /// Another round, not before this instant.
    At(Instant),
}

/// Starts a callback that runs once. O(1); one block of 40 bytes and the closure's, and 24 more if `owner` is
/// not the runtime. If the owner or the runtime has ended, the closure is dropped.
///
/// ```
/// use weald_kernel::callback::{self, Owner, When};
///
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let soon = When::At(weald_kernel::now() + std::time::Duration::from_millis(1));
/// callback::once(Owner::runtime(), soon, move || sender.send("run").unwrap()).detach();
/// assert_eq!(receiver.recv(), Ok("run"));
/// # });
/// ```
#[inline]
pub fn once(owner: Owner, when: When, run: impl FnOnce() + Send + 'static) -> Handle {
    start::start(owner, when, Once(run))
}

/// Starts a callback that runs in rounds until it says [`Next::Ended`], all in the same block. As [`once`].
#[inline]
pub fn rounds(owner: Owner, when: When, run: impl FnMut() -> Next + Send + 'static) -> Handle {
    start::start(owner, when, Many(run))
}
