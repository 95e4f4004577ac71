//! Processes: an async function with a mailbox and a pid, which crashes alone.
//!
//! A process is a job of the kernel with a mailbox; this crate gives it the names and the rules of
//! Erlang: [`Pid::send`] never waits and is silent to the dead, [`Inbox::receive`] hands out messages
//! in the order in which they came, and the end of a process is a value, [`ExitReason`].
//!
//! [`callback`] has closures that run later, without a mailbox or a stack.
//!
//! Absent: links, monitors, names and supervisors; their place is the job's list of ends.

pub mod callback;
mod exit;
mod inbox;
mod pid;
pub mod receptor;
mod spawn;

pub use exit::ExitReason;
pub use inbox::{Inbox, Receive, ReceiveIf, TimedOut};
pub use pid::{Pid, SendError};
pub use spawn::{Builder, Process, spawn, spawn_local};
