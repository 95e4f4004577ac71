//! Weald: a runtime for programs made of very many small things.
//!
//! This crate is the face: it re-exports what the other crates define. Start with [`process`] for units with
//! mailboxes, with [`spawn`] for plain futures, and with [`Runtime::builder`] for settings.
//!
//! The promise: a unit that blocks, computes or crashes never stops another one, and Weald names the unit that did.
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
    BuildError, Builder, Elapsed, HeldUpJob, Interval, JobName, JoinError, JoinHandle, JoinSet,
    Kills, LongChannel, LongMailbox, Metrics, Panic, Runtime, Scope, Seeds, ShutdownReport, Sleep,
    Spawn, SpawnError, TestRuntime, UnendedJob, UnreadMailbox, Wait, WaitingJob, Waits,
    available_workers, block_in_place, block_on, blocking, catch_panic, current_name, fork,
    fork::join, interval, now, scope, sleep, sleep_until, spawn, spawn_child, spawn_local, timeout,
    yield_now,
};

/// The database: named trees that keep their versions. See also [`tree`].
///
/// ```
/// use weald::forest::{Attributes, Forest};
///
/// weald::block_on(async {
///     let notes = Forest::new().create("notes").await?;
///     let mut edit = notes.edit();
///     edit.append(edit.root(), Attributes::new().with("text", "hello"))?;
///     edit.commit().await?;
///     assert_eq!(notes.view().tree().len(), 2);
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// To wait in straight-line code use [`Wait`]: the worker runs other jobs meanwhile.
pub mod forest;

/// The persistent tree itself: nodes that keep their ids through every version.
pub mod tree {
    pub use weald_tree::*;
}

/// Threads: straight-line code on small stacks, shaped like `std::thread`.
pub mod thread {
    pub use weald_fiber::*;
}

/// Processes: pids, mailboxes, receive, exit reasons.
pub mod process {
    pub use weald_process::*;
}

/// Sockets, host names, pipes, and standard input and output.
pub mod net {
    pub use weald_net::{
        ConnectError, Connector, KeepAlive, LineTooLong, Lines, LookupError, NoTurn, ReadEnd,
        ReadHalf, ShutDown, Stream, TcpListener, TcpStream, Transport, UnixListener, UnixStream,
        WriteEnd, WriteHalf, is_exhausted, is_final, lookup_host, offload, pipe, stderr, stdin,
        stdout,
    };
}

pub use weald_net::{fs, signal};

/// HTTP: `serve` for any tower service, such as an axum router, and hyper's runtime traits.
pub mod http {
    pub use weald_http::*;
}

/// Waiting: locks, channels, and events to choose among.
pub mod sync {
    pub use weald_sync::*;
}
