//! What a stream is made of: a connected socket of the standard library, TCP or Unix.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    net::{self, Shutdown},
    os::{fd::AsFd, unix},
};

/// A connected socket. Only this crate implements it.
pub trait Transport: AsFd + Send + Sync + Unpin + sealed::Sealed + 'static {
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

mod sealed {
    pub trait Sealed {}
}

macro_rules! transport {
    ($socket:ty) => {
        impl sealed::Sealed for $socket {}

        impl Transport for $socket {
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
                    several => socket.write_vectored(several),
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

transport!(net::TcpStream);
transport!(unix::net::UnixStream);
