//! Bytes as C owns them: in memory of `malloc`, with a zero byte behind them.
//!
//! # Safety
//! *Owned*: the memory is the message's own, until it is given to C. Then it belongs to C, which frees it.

#![allow(unsafe_code)]

use std::{ffi::c_void, mem::MaybeUninit, ptr, slice};

use crate::codes::{Failure, WEALD_NO_ROOM, WEALD_NULL, failure};

/// Bytes that a function has returned. They belong to the caller, who frees them with `weald_bytes_free`. Behind them
/// is a zero byte, which does not count.
#[repr(C)]
#[derive(Debug)]
pub struct Bytes {
    /// The first byte; null if these bytes were freed.
    pub data: *mut u8,
    /// How many there are.
    pub length: usize,
}

/// A message.
pub(crate) struct Message(Bytes);

// SAFETY: *owned*.
unsafe impl Send for Message {}
// SAFETY: *owned*; a shared message is only read.
unsafe impl Sync for Message {}

impl Message {
    /// A copy of what C passes: `length` bytes at `data`, which may be null if there are none.
    pub(crate) fn of_c(data: *const c_void, length: usize) -> Result<Message, Failure> {
        Message::of(bytes_of_c(data, length)?)
    }

    /// A copy.
    pub(crate) fn of(bytes: &[u8]) -> Result<Message, Failure> {
        let length = bytes.len();
        let refused = || {
            failure(
                WEALD_NO_ROOM,
                format!("there is no memory for {length} bytes"),
            )
        };
        let size = length.checked_add(1).ok_or_else(refused)?;
        // SAFETY: the size is not zero.
        let data: *mut u8 = unsafe { libc::malloc(size) }.cast();
        if data.is_null() {
            return Err(refused());
        }
        // SAFETY: the memory is new, and has room.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data, length) };
        // SAFETY: as above.
        let end = unsafe { data.add(length) };
        // SAFETY: the last of `size` bytes.
        unsafe { end.write(0) };
        Ok(Message(Bytes { data, length }))
    }

    /// Gives it to C.
    pub(crate) fn give(self, to: &mut MaybeUninit<Bytes>) {
        to.write(self.into_bytes());
    }

    /// The same, for a place that has bytes already.
    pub(crate) fn into_bytes(self) -> Bytes {
        let Bytes { data, length } = self.0;
        std::mem::forget(self);
        Bytes { data, length }
    }

    /// Takes back what was given to C; nothing if it is null.
    pub(crate) fn take_back(from: &mut Bytes) {
        let data = std::mem::replace(&mut from.data, ptr::null_mut());
        let length = std::mem::take(&mut from.length);
        drop(Message(Bytes { data, length }));
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: *owned*; null is nothing.
        unsafe { libc::free(self.0.data.cast()) };
    }
}

/// The bytes that C passes, which live as long as the call.
pub(crate) fn bytes_of_c<'a>(data: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    match (data.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(failure(WEALD_NULL, "the address of the bytes is null")),
        (false, _) if isize::try_from(length).is_ok() => {
            // SAFETY: *valid* (see `face`).
            Ok(unsafe { slice::from_raw_parts(data.cast(), length) })
        }
        _ => Err(failure(WEALD_NO_ROOM, "no memory has so many bytes")),
    }
}
