//! Threads whose stacks are small and whose switches are cheap: straight-line code on Weald's scheduler.
//!
#![doc = include_str!("page.md")]

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
pub use local::{AccessError, Key, LocalKey};
pub use pause::{Prefer, park, park_timeout, sleep, sleep_until, yield_now, yield_to};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use thread::{Thread, ThreadId, current};
pub use weald_kernel::{CancelShield, DEFAULT_STACK, JoinError, SpawnError, StackError};
