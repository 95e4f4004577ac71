//! What a stream is made of: a connected socket of the standard library, TCP or Unix.

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
    fn end(&self, how: Shutdown) -> io::Result<()>;
    #[doc(hidden)]
    fn noted_error(&self) -> io::Result<Option<io::Error>>;
    #[doc(hidden)]
    fn forbid_blocking(&self) -> io::Result<()>;
}

/// What it means that fewer bytes were read than there was room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortRead {
    /// There are no more, or the reactor has been told.
    Last,
    /// More may be there: a read ends with a record, and where descriptors were sent along.
    OfARecord,
}

mod sealed {
    pub trait Sealed {}
}

/// As much as is copied to make one write of several small ones, which costs the system less.
const SMALL: usize = 512;

/// Several small buffers, one after the other.
struct Joined {
    place: [u8; SMALL],
    length: usize,
}

impl Joined {
    /// None if they are too large.
    fn of(buffers: &[IoSlice<'_>]) -> Option<Joined> {
        let length = buffers.iter().map(|buffer| buffer.len()).sum();
        if length > SMALL {
            return None;
        }
        let mut place = [0; SMALL];
        let mut at = 0;
        for buffer in buffers {
            place[at..at + buffer.len()].copy_from_slice(buffer);
            at += buffer.len();
        }
        Some(Joined { place, length })
    }

    fn bytes(&self) -> &[u8] {
        &self.place[..self.length]
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
                    several => match Joined::of(several) {
                        Some(joined) => socket.write(joined.bytes()),
                        None => socket.write_vectored(several),
                    },
                }
            }

            fn end(&self, how: Shutdown) -> io::Result<()> {
                self.shutdown(how)
            }

            fn noted_error(&self) -> io::Result<Option<io::Error>> {
                self.take_error()
            }

            fn forbid_blocking(&self) -> io::Result<()> {
                self.set_nonblocking(true)
            }
        }
    };
}

transport!(net::TcpStream, ShortRead::Last);
transport!(unix::net::UnixStream, ShortRead::OfARecord);
