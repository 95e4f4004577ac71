//! Input and output: sockets, pipes, terminals, host names, files and signals, as futures and events.
//!
//! A socket waits on the reactor of the runtime in which it was created. It works everywhere: in processes,
//! plain jobs and callbacks (`.await`), in code that waits with its stack (`.wait()`), and on threads outside
//! any runtime. Every socket operation can be an event in a choice ([`select!`](weald_sync::select)) and can
//! be given a deadline (`within`). The system reports no readiness for files and names, so those calls run on
//! threads that may block, and no worker waits for them. Pipes, terminals and standard input are read through the
//! reactor, and stay in the mode in which the program got them.
//!
//! Streams implement the traits of `futures-io`; the crate `weald-http` provides those of hyper.
//!
//! Absent: the crate implements no protocol above the transport, and owns no thread.

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
pub use weald_kernel::{NoTurn, ShutDown, offload};
pub use write_end::WriteEnd;
