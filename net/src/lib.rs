//! What comes from outside the program: sockets, names, files and signals, as futures and events.
//!
//! Sockets wait for the reactor of the runtime in which they were made, and work from everywhere: in
//! processes, plain jobs and callbacks (`.await`), in code that waits with its stack (`.wait()`), and on
//! threads of no runtime. Every operation is one of several events in a choice
//! ([`select!`](weald_sync::select)), and may be limited (`within`). Files and names, for which the
//! system has no readiness, are asked for by threads that stand in for the workers.
//!
//! Streams have the traits of `futures-io`; the crate `weald-http` has those of hyper.
//!
//! Absent: the crate knows no protocol above the transport, and has no thread.

// Sockets.
mod transport;

mod stream;

mod halves;

mod connect;

mod accept;

mod exhaustion;

mod tcp;

mod unix;

// What the system has no readiness for.
mod offload;

mod lookup;

pub mod fs;

// Signals.
pub mod signal;

pub use exhaustion::is_exhausted;
pub use halves::{ReadHalf, WriteHalf};
pub use lookup::{LookupError, lookup_host};
pub use offload::{ShutDown, offload};
pub use stream::Stream;
pub use tcp::{KeepAlive, TcpListener, TcpStream};
pub use transport::Transport;
pub use unix::{UnixListener, UnixStream};
