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

/// Copies the buffers into `into`. Returns the bytes; none if there are too many.
fn coalesce<'a>(buffers: &[IoSlice<'_>], into: &'a mut [u8; SMALL]) -> Option<&'a [u8]> {
    let mut length = 0;
    for buffer in buffers {
        let place = into.get_mut(length..length + buffer.len())?;
        place.copy_from_slice(buffer);
        length += buffer.len();
    }
    Some(&into[..length])
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
                    several => match coalesce(several, &mut [0; SMALL]) {
                        Some(bytes) => socket.write(bytes),
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
