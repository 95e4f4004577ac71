//! The scheduler of Weald: which job runs next, where, and when a worker sleeps.
//!
//! To follow a message, read [`Address::post`] in `mailbox`, then `ready`, `worker`, `run`, and
//! [`Mailbox::poll_receive`] in `mailbox` again. The modules below stand in reading order; each opens
//! with what it is and what always holds.
//!
//! Absent: the kernel knows no pid and no exit reason, and looks into no message. It knows no socket
//! yet; the reactor's place is beside the timer wheel.

#[cfg(not(target_os = "linux"))]
compile_error!("Weald runs on Linux only: it needs membarrier(2) and /proc");

mod sys;

mod body;
mod extras;
mod job;
mod mailbox;
mod post;
mod state;

mod context;
mod gate;
mod injector;
mod ready;
mod ring;
mod run;
mod run_word;
mod search;
mod waker;
mod worker;

mod crew;
mod idle;
mod monitor;
mod report;

mod clock;
mod time;
mod timer;

mod ends;
mod join;
mod join_set;
mod limit;
mod local;
mod scope;
mod spawn;
mod wait;

mod builder;
mod metrics;
mod runtime;
mod shutdown;
mod testing;

mod memory;

#[cfg(all(loom, test))]
mod models;

pub use builder::{BuildError, Builder, available_workers};
pub use join::{JoinError, JoinHandle, Panic};
pub use join_set::JoinSet;
pub use mailbox::{Address, Mailbox, Scan};
pub use metrics::Metrics;
pub use report::JobName;
pub use runtime::Runtime;
pub use scope::{Scope, scope};
pub use shutdown::ShutdownReport;
pub use spawn::{Spawn, SpawnError, spawn, spawn_child, spawn_local};
pub use testing::TestRuntime;
pub use time::{Elapsed, Interval, Sleep, interval, now, sleep, sleep_until, timeout, yield_now};
pub use wait::{Wait, block_on, blocking};
