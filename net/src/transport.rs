//! The socket below a stream: a connected socket of the standard library, TCP or Unix.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    net::{self, Shutdown},
    os::{fd::AsFd, unix},
};

/// A connected socket. Only this crate implements it.
pub trait Transport: AsFd + Send + Sync + Unpin + sealed::Sealed + 'static {
    #[doc(hidden)]
    const SHORT_READ: ShortRead;
    #[doc(hidden)]
    fn read_some(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
    #[doc(hidden)]
    fn write_some(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize>;
    #[doc(hidden)]
    fn shut_down(&self, how: Shutdown) -> io::Result<()>;
    #[doc(hidden)]
    fn take_socket_error(&self) -> io::Result<Option<io::Error>>;
    #[doc(hidden)]
    fn make_nonblocking(&self) -> io::Result<()>;
}

/// What a read means that returns fewer bytes than there was room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortRead {
    /// The system's buffer is empty, or a further report has reached the reactor.
    Drained,
    /// More may be available: a read stops at the end of a record, and where descriptors were passed.
    MaybeMore,
}

mod sealed {
    pub trait Sealed {}
}

/// The most bytes that are copied into one buffer. Up to this size `write(2)` with a copy is cheaper than
/// `writev(2)`.
const SMALL: usize = 512;

/// Several small buffers copied into one.
struct Coalesced {
    bytes: [u8; SMALL],
    length: usize,
}

impl Coalesced {
    /// None if the buffers are too large.
    fn of(buffers: &[IoSlice<'_>]) -> Option<Coalesced> {
        let length = buffers.iter().map(|buffer| buffer.len()).sum();
        if length > SMALL {
            return None;
        }
        let mut bytes = [0; SMALL];
        let mut at = 0;
        for buffer in buffers {
            bytes[at..at + buffer.len()].copy_from_slice(buffer);
            at += buffer.len();
        }
        Some(Coalesced { bytes, length })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

macro_rules! transport {
    ($socket:ty, $short_read:expr) => {
        impl sealed::Sealed for $socket {}

        impl Transport for $socket {
            const SHORT_READ: ShortRead = $short_read;

            fn read_some(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                let mut socket = self;
                match buffers {
                    [one] => socket.read(one),
                    several => socket.read_vectored(several),
                }
            }

            fn write_some(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
                let mut socket = self;
                match buffers {
                    [one] => socket.write(one),
                    several => match Coalesced::of(several) {
                        Some(coalesced) => socket.write(coalesced.bytes()),
                        None => socket.write_vectored(several),
                    },
                }
            }

            fn shut_down(&self, how: Shutdown) -> io::Result<()> {
                self.shutdown(how)
            }

            fn take_socket_error(&self) -> io::Result<Option<io::Error>> {
                self.take_error()
            }

            fn make_nonblocking(&self) -> io::Result<()> {
                self.set_nonblocking(true)
            }
        }
    };
}

transport!(net::TcpStream, ShortRead::Drained);
transport!(unix::net::UnixStream, ShortRead::MaybeMore);
