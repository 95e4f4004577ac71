//! Operating system signals, as events.
//!
//! The signal handler writes a byte to a socket pair that the reactor watches. Signals that arrive before the
//! first of them was received count as one.

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

/// Receives signals of one kind that arrive after it was created.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use weald::signal;
/// use weald::sync::select;
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
    bytes: Stream<UnixStream>,
    buffer: [u8; 64],
}

/// SIGINT, which Ctrl-C sends. After the first call the signal no longer ends the program by itself, for as
/// long as the program runs.
///
/// # Errors
/// Errors from the operating system.
#[doc(alias = "ctrl_c")]
pub fn interrupt() -> io::Result<Signals> {
    Signals::of(SIGINT)
}

/// SIGTERM, the request to terminate. The signal no longer ends the program by itself; see [`interrupt`].
///
/// # Errors
/// Errors from the operating system.
pub fn terminate() -> io::Result<Signals> {
    Signals::of(SIGTERM)
}

/// SIGHUP: the terminal is gone, or the settings should be reloaded. The signal no longer ends the program by
/// itself; see [`interrupt`].
///
/// # Errors
/// Errors from the operating system.
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

    /// Waits until a signal has arrived since the last call. Cancel-safe; in a choice the signal is consumed
    /// only if this event is chosen.
    ///
    /// # Errors
    /// Fails if the runtime in which the receiver was created has shut down.
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
