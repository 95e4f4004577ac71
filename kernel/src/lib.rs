//! The scheduler of Weald: which job runs next, where, and when a worker sleeps.
//!
//! To follow a message, read [`Address::post`] in `mailbox`, then `ready`, `worker`, `run`, and
//! [`Mailbox::poll_receive`] in `mailbox` again. The modules below stand in reading order; each opens
//! with what it is and what always holds.
//!
//! Absent: the kernel knows no pid and no exit reason, and looks into no message. Of a socket it knows
//! the descriptor and its readiness.

#[cfg(not(target_os = "linux"))]
compile_error!("Weald runs on Linux only: it needs membarrier(2) and /proc");

// std or loom.
mod sys;

// The job: where it is, what it is made of, what it receives.
mod state;

mod job;

mod runnable;

mod body;
mod extras;

mod post;

mod mailbox;

// From a wake to a run.
mod waker;

mod ready;

mod context;

mod gate;

mod worker;

mod inside;
mod run_word;

mod search;

mod run;

// The queues.
mod injector;
mod ring;

// Stacks that are left standing.
mod stack;

mod strand;

mod fiber;

mod aside;

// Sleep, blocking, stand-ins.
mod idle;

mod crew;

mod monitor;

mod priority;
mod relieved;

mod report;

// Time.
mod clock;

mod timer;

mod time;

// Descriptors of the system.
mod reactor;

// Closures that run later.
pub mod callback;

// What users spawn and join.
mod spawn;

mod limit;
mod local;

mod join;

mod ends;
mod join_set;
mod scope;

mod wait;

mod parking;

// Halves of one computation.
pub mod fork;

mod hooks;

// The whole.
mod builder;

mod shared;

mod runtime;

mod metrics;

mod waits;

mod shutdown;
mod testing;

mod memory;

#[cfg(all(loom, test))]
mod models;

pub use builder::{BuildError, Builder, available_workers};
pub use fiber::{DEFAULT_STACK, with_fiber_word};
pub use join::{JoinError, JoinHandle, Panic};
pub use join_set::JoinSet;
pub use mailbox::{Address, Mailbox, SelectiveReceive};
pub use metrics::Metrics;
pub use parking::{Park, Unparker, park};
pub use reactor::{
    operation::{IoWait, Operation, Ready},
    slot::Interest,
    source::{Done, IoSource},
};
pub use report::JobName;
pub use runtime::Runtime;
pub use scope::{Scope, scope};
pub use search::prefer_stealing;
pub use shutdown::ShutdownReport;
pub use spawn::{Spawn, SpawnError, spawn, spawn_child, spawn_local};
pub use stack::StackError;
pub use testing::TestRuntime;
pub use time::{Elapsed, Interval, Sleep, interval, now, sleep, sleep_until, timeout, yield_now};
pub use wait::{block_on, blocking, cancel_point, is_in_job, wait_to_the_end, yield_with_stack};
pub use waits::{WaitingJob, Waits};
pub use weald_sync::Wait;
