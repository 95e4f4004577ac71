//! Input and output: sockets, pipes, terminals, host names, files and signals, as futures and events.
//!
#![doc = include_str!("page.md")]

// The crate owns no thread. A socket (`stream`, `accept`, `connect`) attempts every operation first, and waits only
// when the system refuses. Every operation is an event; in a choice only the chosen event consumes bytes or a
// connection. A file or a name has no readiness, so each call is an operation (`kernel/src/api/operation.rs`) on the
// kernel's blocking threads, in a pool for files or in one for names; it may never return: the head of the kernel's
// `blocking_pool` says how the others continue. A pipe, a FIFO or a terminal (`read_end`, `write_end`, `file`) is
// opened by an operation and then goes through the reactor, in whatever mode its descriptor has (`descriptor`).

// Primitives: the socket below a stream, what its peer has not read, and a listener's backoff.
mod exhaustion;
mod transport;
mod unread;

// Operations on sockets of any kind.
mod accept;
mod connect;
mod halves;
mod lines;
mod stream;

// Calls that block: host names and files; and what is opened like a file and has readiness.
mod descriptor;
mod file;
pub mod fs;
mod lookup;
mod opened;
mod path_error;
mod read_end;
mod write_end;

mod pipe;

// The kinds of sockets, and signals, which arrive through one.
pub mod signal;
mod tcp;
mod unix;

// Hosts with several addresses.
mod connector;

pub use connector::{ConnectError, Connector};
pub use exhaustion::{is_exhausted, is_final};
pub use halves::{ReadHalf, WriteHalf};
pub use lines::{LineTooLong, Lines};
pub use lookup::{LookupError, lookup_host};
pub use pipe::{pipe, stderr, stdin, stdout};
pub use read_end::ReadEnd;
pub use stream::Stream;
pub use tcp::{KeepAlive, TcpListener, TcpStream};
pub use transport::Transport;
pub use unix::{UnixListener, UnixStream};
pub use weald_kernel::{NoFreeThread, ShutDown, offload};
pub use write_end::WriteEnd;
