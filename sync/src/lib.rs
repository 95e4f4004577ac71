//! Waiting: locks, channels and first-class events, for every shape of work.
//!
//! Each tool is written once, as a future: it is awaited in a job or under any other executor, and
//! [`Wait::wait`] waits for it with the stack, in a job or on a plain thread. Each wait is an [`Event`]
//! too, in the sense of Concurrent ML: it can be one of several in a choice.
//!
//! To follow a wait, read `event`, then `claim`, `offer`, and one tool, `channel` say. The modules below
//! stand in reading order.
//!
//! Absent: the crate knows no scheduler. A runtime installs its [`hooks`]; without one a thread parks.

// std or loom.
mod sys;

// What a tool is made of.
mod lock;

mod list;

mod claim;

mod offer;

mod wake;

mod serve;

mod event;

mod latch;

// What a runtime adds.
pub mod unit;

pub mod reason;

pub mod hooks;

mod park;

mod alarm;

// Time.
mod time;

// Events made of events.
mod pinned;

mod combinators;

mod select;

// The tools.
mod mutex;

pub mod holders;

pub mod channel;

pub mod semaphore;

pub mod rwlock;

pub mod condvar;

pub mod barrier;

pub mod oneshot;

pub mod ivar;

pub mod mvar;

pub mod wait_group;

pub mod once;

pub mod exchanger;

pub mod cml;

#[cfg(all(loom, test))]
mod models;

pub use barrier::{Barrier, BarrierWaitResult};
pub use combinators::{
    Alternative, Alternatives, Always, Boxed, Choose, Either, Guard, Kept, Nack, Never, Polled,
    Source, WithNack, Wrap, always, choose, guard, never, of_future, of_source, one_of, with_nack,
};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use event::{Branch, Event, Syncing, Waiting};
pub use exchanger::Exchanger;
pub use ivar::IVar;
pub use mutex::{Lock, Mutex, MutexGuard};
pub use mvar::MVar;
pub use once::{Once, OnceLock};
pub use park::Wait;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{Permit, Semaphore};
pub use time::{After, At, Limited, Timed, TimedOut, after, at};
pub use wait_group::{Member, WaitGroup};
