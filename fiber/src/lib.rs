//! Threads whose stacks are small and whose switches are cheap: straight-line code on Weald's scheduler.
//!
//! The shape is that of `std::thread`: [`spawn`], [`Builder`], [`JoinHandle`], [`scope`], [`park`],
//! [`yield_now`], [`sleep`], [`current`]. What differs:
//!
//! - A thread waits with [`wait()`](weald_kernel::Wait::wait): on a lock, a channel, a timer, a process, any
//!   future; others run meanwhile. A blocking system call does not stop other work either, as everywhere in Weald,
//!   with one exception: threads that have already waited are pinned to their OS thread, so those pinned to the
//!   caller's OS thread wait until the call returns.
//! - A thread can be cancelled: its next wait, or the one it is in, unwinds its stack. See
//!   [`JoinHandle::cancel`].
//! - While a guard of a `std` lock is held across a wait, a thread that wants the lock blocks its whole OS thread.
//!   The locks of [`weald_sync`] do not have this problem.
//!
//! A thread that has not started may run on any OS thread. Once it has waited it is pinned to its OS thread, so
//! values that are not `Send` may live across waits. [`Builder::spawn_migrating`] gives that up.
//!
//! ```
//! use weald_fiber as thread;
//! # let runtime = weald_kernel::Runtime::builder().workers(2).build().unwrap();
//! # runtime.block_on(async {
//! let answer = thread::spawn(|| 6 * 7);
//! assert_eq!(answer.join().expect("it does not panic"), 42);
//! # });
//! ```
//!
//! Sources: MassiveThreads (Nakashima and Taura, 2014) for threads that cost as little as calls, and for the
//! preferences of a yield; `std::thread` for the rest.

// What a thread is: its identity, its locals, its exit.
mod exit;
mod local;
mod thread;

// What a thread or its owner does: it pauses, it is joined.
mod handle;
mod pause;

// Starting a thread.
mod builder;

// Threads that borrow.
mod scope;

pub use builder::{Builder, spawn};
pub use exit::exit;
pub use handle::JoinHandle;
pub use local::{AccessError, LocalKey};
pub use pause::{Prefer, park, park_timeout, sleep, sleep_until, yield_now, yield_to};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use thread::{Thread, ThreadId, current};
pub use weald_kernel::{DEFAULT_STACK, JoinError, SpawnError, StackError};
