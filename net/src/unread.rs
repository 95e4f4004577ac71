//! How many bytes that were written to a socket its peer has not taken. Asked by a server that measures how fast its
//! client reads: the system reports room for more only when a third of the socket's buffer is free.

#![allow(unsafe_code)]

use std::{ffi::c_int, io, os::fd::AsFd};

use rustix::ioctl::{Getter, Opcode, ioctl};

/// `SIOCOUTQ`, the same on all of Weald's platforms.
const UNREAD: Opcode = 0x5411;

/// Asks the system. The bytes of TCP are those without an acknowledgement.
pub(crate) fn unread(socket: &impl AsFd) -> io::Result<usize> {
    // SAFETY: the request writes one `c_int` and changes nothing else.
    let request = unsafe { Getter::<UNREAD, c_int>::new() };
    // SAFETY: as above.
    let bytes = unsafe { ioctl(socket, request) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}
