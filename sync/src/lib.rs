//! Waiting: locks, channels and first-class events, for every kind of unit.
//!
#![doc = include_str!("page.md")]

// To follow a wait, read `event`, then `queue::claim`, `queue::offer`, and one tool, for example `tools::channel`: of a
// value, `tools/channel` (`Sender::send`), `event/waiting` (`poll`; `enrol` if the attempt fails), `tools/channel/send`
// (`attempt`, which ends most sends), `tools/channel/state` (`deliver`: to a receiver that waits), or `queue/offer`
// (`meet`: a sender that enrols meets a receiver), `queue/claim` (`win`), and, in the next poll of the receiver's wait,
// `tools/channel/receive` (`collect`). The node of a receive is written only when it enrols (`queue/late`). A thread
// without a runtime parks (`runtime/parker`).
//
// A module imports only from its own group in the list below, or an earlier one.

// The atomics and cells: those of std, or those of loom.
mod sys;

// A note that its writer changes without waiting for readers.
mod seqlock;

// Wait queues: waiters in a list under a spin lock. Whatever ends a wait wins its claim.
mod queue {
    pub(crate) mod claim;
    pub(crate) mod late;
    pub(crate) mod list;
    pub(crate) mod offer;
    pub(crate) mod serve;
    pub(crate) mod spin_lock;
    pub(crate) mod ticket;
    pub(crate) mod wake;
}

// The interface to a runtime: what it installs, what it reads, and the defaults of a plain thread.
mod runtime {
    pub(crate) mod alarm;
    pub mod backlog;
    mod foreign_alarms;
    pub mod holders;
    pub mod hooks;
    pub(crate) mod parker;
    pub mod reason;
    mod sites;
    pub mod unit;
    pub(crate) mod user_sites;
    pub(crate) mod wait;
}

// Events, the one future that performs them, and the combinators that build events from events.
mod combinators;
mod event;
mod latch;
mod select;
mod time;

// The tools: each is a state under a spin lock, and an event for each of its waits.
mod tools {
    pub mod barrier;
    pub mod channel;
    pub mod condvar;
    pub mod exchanger;
    pub(crate) mod full_empty;
    pub mod ivar;
    pub(crate) mod mutex;
    pub mod mvar;
    pub mod once;
    pub mod oneshot;
    pub mod rwlock;
    pub mod semaphore;
    pub(crate) mod uncond;
    pub mod wait_group;
}

// What Concurrent ML builds from events and channels.
pub mod cml;

#[cfg(all(loom, test))]
mod models;

pub use combinators::{
    Alternative, Alternatives, Always, Boxed, Choose, Either, Guard, Kept, Nack, Never, Polled,
    Source, WithNack, Wrap, always, choose, guard, never, of_future, of_source, one_of, with_nack,
};
pub use event::{Branch, Event, Syncing, Waiting};
pub use runtime::{backlog, holders, hooks, reason, unit, wait::Wait};
#[doc(hidden)]
pub use select::__Arm;
pub use seqlock::Seqlock;
pub use time::{After, At, Limited, Timed, TimedOut, after, at};
pub use tools::{
    barrier::{self, Barrier, BarrierWaitResult},
    channel,
    condvar::{self, Condvar, WaitTimeoutResult},
    exchanger::{self, Exchanger},
    full_empty::{FullEmptyGuard, FullEmptyLock, Mark},
    ivar::{self, IVar},
    mutex::{Lock, Mutex, MutexGuard},
    mvar::{self, MVar},
    once::{self, Once, OnceLock},
    oneshot,
    rwlock::{self, RwLock, RwLockReadGuard, RwLockWriteGuard},
    semaphore::{self, Permit, Semaphore},
    uncond::{Signalled, Uncond},
    wait_group::{self, Member, WaitGroup},
};
