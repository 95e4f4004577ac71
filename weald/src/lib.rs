//! Weald: a runtime for programs made of very many small things.
//!
//! This crate is the face: it re-exports what its parts define. Start with [`process`] for units with
//! mailboxes, with [`spawn`] for plain futures, and with [`Runtime::builder`] for settings.
//!
//! The promise: a unit that blocks, computes or crashes never stops another one, and Weald tells which
//! it was.
//!
//! ```
//! use weald::process::{self, Inbox};
//!
//! let answer = weald::block_on(async {
//!     let doubler = process::spawn(async |mut inbox: Inbox<u32>| 2 * inbox.receive().await)?;
//!     doubler.pid().send(21);
//!     Ok::<_, weald::SpawnError>(doubler.await)
//! })?;
//! assert_eq!(answer, Ok(42));
//! # Ok::<(), weald::SpawnError>(())
//! ```

pub use weald_kernel::{
    BuildError, Builder, Elapsed, Interval, JobName, JoinError, JoinHandle, JoinSet, Metrics,
    Panic, Runtime, Scope, ShutdownReport, Sleep, Spawn, SpawnError, TestRuntime, Wait, WaitingJob,
    Waits, available_workers, block_on, blocking, fork, fork::join, interval, now, scope, sleep,
    sleep_until, spawn, spawn_child, spawn_local, timeout, yield_now,
};

/// Processes: pids, mailboxes, receive, exit reasons.
pub mod process {
    pub use weald_process::*;
}

/// Waiting: locks, channels, and events of which one is chosen.
pub mod sync {
    pub use weald_sync::*;
}
