//! Processes: an async function with a mailbox and a pid, which crashes alone.
//!
//! A process is a job of the kernel with a mailbox; this crate gives it the names and the rules of
//! Erlang: [`Pid::send`] never waits, and drops a message to a dead process silently; [`Inbox::receive`] returns
//! messages in the order in which they arrived; and the end of a process is a value, [`ExitReason`].
//!
//! [`callback`] has closures that run later, without a mailbox or a stack.
//!
//! Absent: links, monitors, names and supervisors. Their place is the list of the job's exit hooks.

// A process's address and its end.
mod exit;
mod pid;

// Receiving.
mod inbox;

// Starting a process.
mod spawn;

// Closures that run later.
pub mod callback;

// Threads made of callbacks, behind one process.
pub mod receptor;

pub use exit::{Crash, ExitReason};
pub use inbox::{Inbox, Receive, ReceiveIf, TimedOut};
pub use pid::{Pid, SendError};
pub use spawn::{Builder, Process, spawn, spawn_local};
