//! Threads whose stacks are small and whose switches are cheap: straight-line code on Weald's scheduler.
//!
//! The shape is that of `std::thread`: [`spawn`], [`Builder`], [`JoinHandle`], [`scope()`], [`park`],
//! [`yield_now`], [`sleep`], [`current`]. What differs:
//!
//! - A thread waits with [`wait()`](weald_kernel::Wait::wait): on a lock, a channel, a timer, a process, any
//!   future; others run meanwhile.
//! - A thread can be cancelled: its next wait, or the one it is in, unwinds its stack. See
//!   [`JoinHandle::cancel`].
//!
//! A thread that has not started may run on any OS thread. Once it has waited it is pinned to its OS thread, so
//! values that are not `Send` may live across waits. [`Builder::spawn_migrating`] gives that up.
//!
//! # What can still be held up
//!
//! A blocking call or a long computation stops no process, no callback, and no thread that has not started: the worker
//! goes to another OS thread. But threads that have waited are pinned. While one of them, or any job that runs there,
//! blocks or computes, the others of that OS thread stand still. Reports name it and them,
//! [`Metrics::held_up`](weald_kernel::Metrics::held_up) counts them, and
//! [`Runtime::waits`](weald_kernel::Runtime::waits) lists them. To avoid it:
//!
//! - Call what blocks or computes for long inside [`blocking`](weald_kernel::blocking()): it runs on another OS thread,
//!   may borrow, and the caller waits as for anything else. [`block_in_place`](weald_kernel::block_in_place), for what
//!   is not `Send`, holds up the others.
//! - Let a long computation call [`yield_now`], or fork it: a thread that waits for halves that were stolen holds up
//!   the others only while these compute.
//! - Use the locks of [`weald_sync`]. While a guard of a `std` lock is held across a wait, a thread that wants the lock
//!   blocks its whole OS thread, for good if the holder is pinned to the same one.
//! - A wait in a destructor that runs because of a panic or a cancel holds the OS thread, for at least 10 ms if others
//!   are runnable there. Let such destructors only start what others finish.
//! - Threads from [`Builder::spawn_migrating`] resume on any OS thread, so nothing holds them up.
//!
//! Many threads of one kind (spawned at one place) may block at once. Once one of them has been found blocking, those
//! that have not started begin on spare OS threads, and wait for one if all are in use; the workers serve everybody
//! else. Threads that have waited cannot move: each time that one of them blocks, its worker goes to another OS thread,
//! after some milliseconds in which it served nobody. Those that were started during an earlier burst are pinned to
//! many OS threads. If then more of them block at once than there are [spare
//! threads](weald_kernel::Builder::spare_threads), the workers themselves are blocked, and everybody waits. The same is
//! true of local jobs, and of callbacks that block. To avoid it: call what blocks inside
//! [`blocking`](weald_kernel::blocking()), whose threads are counted apart, or use processes.
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
