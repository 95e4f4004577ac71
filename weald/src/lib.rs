//! Weald: a runtime for programs made of very many small things.
//!
//! The promise: a unit that blocks, computes or crashes never stops another one, and Weald names the unit that did. A
//! *unit* is anything that Weald runs: a process, a thread, a job, a callback.
//!
//! ```
//! use weald::process::{self, Inbox};
//!
//! #[weald::main]
//! async fn main() -> Result<(), weald::SpawnError> {
//!     let doubler = process::spawn(async |mut inbox: Inbox<u32>| 2 * inbox.receive().await)?;
//!     doubler.pid().send(21);
//!     assert_eq!(doubler.await, Ok(42));
//!     Ok(())
//! }
//! ```
//!
//! # Where to start
//!
//! | for | see |
//! |---|---|
//! | units with mailboxes, which crash alone; supervisors; closures that run later | [`process`], [`process::callback`] |
//! | plain futures, and what waits for them | [`spawn`], [`JoinSet`], [`scope()`], [`timeout`] |
//! | straight-line code on small stacks, shaped like `std::thread` | [`thread`] |
//! | code that blocks | [`blocking()`] |
//! | computations that fork and join | [`fork`] |
//! | locks, channels, events to choose among | [`sync`] |
//! | sockets, files, signals | [`net`], [`fs`], [`signal`] |
//! | a web server | [`http`] |
//! | trees that keep every version, in memory or on disk | [`forest`], [`forest::disk`] |
//! | tests under many schedules, each repeatable by its seed | [`Seeds`], [`Runtime::test`] |
//! | settings; what the runtime sees | [`Runtime::builder`], [`Runtime::waits`] |
//!
//! # Pages
//!
//! [`user_code`] says where the runtime runs your wakers, destructors and hooks; [`process::from_erlang`] has the names
//! for those who know Erlang or Elixir. [`forest::guide`] has programs on trees; [`forest::commits`] says what
//! commutes, [`forest::from_other_stores`] compares, and [`forest::disk::format`] has the files byte by byte.
//!
//! # Cargo features
//!
//! All are on by default. A program that needs less depends on `weald` with `default-features = false`, and lists
//! what it uses; [`spawn`], [`fork`] and [`sync`] are always there.
//!
//! | feature | module |
//! |---|---|
//! | `macros` | [`main`](macro@main), [`test`](macro@test) |
//! | `process` | [`process`] |
//! | `thread` | [`thread`] |
//! | `net` | [`net`], [`fs`], [`signal`] |
//! | `http` | [`http`], with `net` |
//! | `tree` | [`tree`] |
//! | `forest` | [`forest`], with `tree` |
//! | `disk` | [`forest::disk`], with `forest` |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub use weald_kernel::{
    Address, BuildError, Builder, Describe, Elapsed, HeldBackParts, HeldUpJob, Interval, JobName,
    JoinError, JoinHandle, JoinSet, Kills, LongChannel, LongMailbox, Mailbox, Metrics, Panic,
    Runtime, Scope, Seeds, ShutdownReport, Sleep, Spawn, SpawnError, TestRuntime, UnendedJob,
    UnreadMailbox, Wait, WaitingJob, Waits, WorkKind, available_workers, block_in_place, block_on,
    blocking, catch_panic, current_name, describe_job, fork::join, interval, now, poll_place,
    poll_place_after, scope, sleep, sleep_until, spawn, spawn_child, spawn_local, timeout,
    yield_now,
};

/// Runs an `async fn` as the whole program.
///
/// ```
/// #[weald::main]
/// async fn main() -> Result<(), weald::JoinError> {
///     let answer = weald::spawn(async { 6 * 7 }).await?;
///     assert_eq!(answer, 42);
///     Ok(())
/// }
/// ```
///
/// The function runs as in [`block_on`], with the default runtime. `#[weald::main(workers = 2)]` gives it a runtime of
/// its own, which ends with it. For other settings call [`Runtime::builder`] in a plain `fn main`.
#[cfg(feature = "macros")]
pub use weald_macros::main;

/// Runs an `async fn` as a test.
///
/// ```
/// use std::time::Duration;
///
/// #[weald::test(seed = 7)]
/// async fn an_hour_passes_at_once() {
///     let before = weald::now();
///     weald::sleep(Duration::from_secs(3600)).await;
///     assert_eq!(weald::now() - before, Duration::from_secs(3600));
/// }
/// ```
///
/// | attribute | runs |
/// |---|---|
/// | `#[weald::test]` | in real time, on a runtime of its own with one worker |
/// | `#[weald::test(workers = 4)]` | the same with four workers |
/// | `#[weald::test(seed = 7)]` | on the [test runtime](Runtime::test): virtual time, and an order of jobs that the seed decides |
/// | `#[weald::test(seeds = 300)]` | the same with each seed from 0 to 299, as [`Seeds`] does; a seed that fails is printed |
#[cfg(feature = "macros")]
pub use weald_macros::test;

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "macros.rs"]
pub mod __macros;

// The page of a module is that of the crate that it stands for. Not `pub use weald_process as process`: rustdoc would
// call that a crate, with links to pages that crates have and modules have not.

#[doc(inline)]
pub use weald_kernel::{fork, user_code};

pub mod sync {
    //! Waiting: locks, channels and first-class events, for every kind of unit.
    //!
    #![doc = include_str!("pages/sync.md")]

    pub use weald_sync::*;
}

#[cfg(feature = "process")]
pub mod process {
    //! Processes: an async function with a mailbox and a pid, which crashes alone.
    //!
    #![doc = include_str!("pages/process.md")]

    pub use weald_process::*;
}

#[cfg(feature = "thread")]
pub mod thread {
    //! Threads whose stacks are small and whose switches are cheap: straight-line code on Weald's scheduler.
    //!
    #![doc = include_str!("pages/thread.md")]

    pub use weald_fiber::*;
}

#[cfg(feature = "net")]
pub mod net {
    //! Input and output: sockets, pipes, terminals, host names, files and signals, as futures and events.
    //!
    #![doc = include_str!("pages/net.md")]

    pub use weald_net::*;
}

#[cfg(feature = "net")]
#[doc(inline)]
pub use weald_net::{fs, signal};

#[cfg(feature = "http")]
pub mod http {
    //! An HTTP server for Weald: any tower service on hyper, without another runtime.
    //!
    #![doc = include_str!("pages/http.md")]

    pub use weald_http::*;
}

#[cfg(feature = "tree")]
pub mod tree {
    //! The persistent tree: nodes with attributes and ordered children, in versions that never change.
    //!
    #![doc = include_str!("pages/tree.md")]

    pub use weald_tree::*;
}

#[cfg(feature = "forest")]
pub mod forest;
