//! Signals of the system, as events.
//!
//! The handler writes a byte into a pipe that the reactor watches; signals that come before the first was
//! taken are one.

use std::{
    io::{self, Read},
    os::unix::net::UnixStream,
};

use signal_hook::{
    SigId,
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level,
};
use weald_kernel::{Done, Interest};
use weald_sync::{Branch, Waiting};

use crate::stream::Stream;

/// One kind of signal, from its making on.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use weald_net::signal;
/// use weald_sync::select;
///
/// let (mut interrupt, mut terminate) = (signal::interrupt()?, signal::terminate()?);
/// select! {
///     _ = interrupt.came() => println!("interrupted"),
///     _ = terminate.came() => println!("asked to end"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Signals {
    handler: SigId,
    bytes: crate::UnixStream,
    buffer: [u8; 64],
}

/// SIGINT: what Ctrl-C sends. From the first call on, for as long as the program runs, it does not end
/// the program by itself.
///
/// # Errors
/// Those of the system.
pub fn interrupt() -> io::Result<Signals> {
    Signals::of(SIGINT)
}

/// SIGTERM: the request to end. It then does not end the program by itself; see [`interrupt`].
///
/// # Errors
/// Those of the system.
pub fn terminate() -> io::Result<Signals> {
    Signals::of(SIGTERM)
}

/// SIGHUP: the terminal is gone, or settings should be read anew. See [`interrupt`].
///
/// # Errors
/// Those of the system.
pub fn hangup() -> io::Result<Signals> {
    Signals::of(SIGHUP)
}

impl Signals {
    fn of(signal: i32) -> io::Result<Signals> {
        let (bytes, handler_end) = UnixStream::pair()?;
        let bytes = Stream::from_std(bytes)?;
        let handler = low_level::pipe::register(signal, handler_end)?;
        Ok(Signals {
            handler,
            bytes,
            buffer: [0; 64],
        })
    }

    /// Waits until one has come since the last time. Cancel-safe; in a choice the signal is not taken unless
    /// it was chosen.
    ///
    /// # Errors
    /// If the runtime in which it was made has shut down.
    pub fn came(&mut self) -> Waiting<impl Branch<Output = io::Result<()>> + use<'_>> {
        let buffer = &mut self.buffer;
        self.bytes
            .source
            .operate(Interest::Read, move |mut pipe: &UnixStream| {
                pipe.read(buffer).map(|_signals| Done::Maybe(()))
            })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        low_level::unregister(self.handler);
    }
}
