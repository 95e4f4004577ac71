//! Threads whose stacks are small and whose switches are cheap: straight-line code on Weald's scheduler.
//!
//! The shape is that of `std::thread`: [`spawn`], [`Builder`], [`JoinHandle`], [`scope`], [`park`],
//! [`yield_now`], [`sleep`], [`current`]. What differs:
//!
//! - A thread waits with [`wait()`](weald_kernel::Wait::wait): on a lock, a channel, a timer, a process, any
//!   future; others go on meanwhile. A system call that blocks stops nobody either, as everywhere in Weald; but
//!   a thread that has waited once shares its OS thread with others, which then wait for that call.
//! - A thread can be cancelled: its next wait, or the one it is in, unwinds its stack. See
//!   [`JoinHandle::cancel`].
//! - A guard of a `std` lock that is held over a wait blocks the whole OS thread of whoever wants that lock;
//!   the locks of [`weald_sync`] do not.
//!
//! A thread that has not started may be taken by any OS thread. Once it has waited it stays on its own, so what
//! is not `Send` may live across waits. [`Builder::spawn_migrating`] gives that up.
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
//! Source: MassiveThreads (Nakashima and Taura, 2014) for threads that cost as little as calls, and for the
//! preferences of a yield; `std::thread` for the rest.

mod builder;
mod handle;

mod scope;

mod thread;

mod local;

mod exit;
mod pause;

pub use builder::{Builder, spawn};
pub use exit::exit;
pub use handle::JoinHandle;
pub use local::{AccessError, LocalKey};
pub use pause::{Prefer, park, park_timeout, sleep, sleep_until, yield_now, yield_to};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use thread::{Thread, ThreadId, current};
pub use weald_kernel::{DEFAULT_STACK, JoinError, SpawnError, StackError};
