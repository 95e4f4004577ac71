//! Calls of functions that the program passes, and of what they are called with.
//!
//! # Safety
//! *Promised*: the program promises by its call that the function may be called with the context, on any OS thread.

#![allow(unsafe_code)]

use std::{ffi::c_void, mem, process, sync::Arc};

use weald::WorkKind;

use crate::{
    codes::{Failure, WEALD_NULL, failure},
    current::Current,
    saved,
};

/// A function that is not null, or what is passed to or returned by one.
#[derive(Clone, Copy)]
pub(crate) struct Sent<T>(pub(crate) T);

// SAFETY: *promised*.
unsafe impl<T> Send for Sent<T> {}
// SAFETY: *promised*.
unsafe impl<T> Sync for Sent<T> {}

impl<T> Sent<T> {
    /// The value. (A closure that names the field would capture the field alone, which is not `Send`.)
    pub(crate) fn get(self) -> T {
        self.0
    }
}

/// A function and what it is called with.
pub(crate) type Task<R> = Sent<(unsafe extern "C-unwind" fn(*mut c_void) -> R, *mut c_void)>;

/// A function that was passed, with its context.
pub(crate) fn task<R>(
    function: Option<unsafe extern "C-unwind" fn(*mut c_void) -> R>,
    context: *mut c_void,
) -> Result<Task<R>, Failure> {
    let function = function.ok_or_else(no_function)?;
    Ok(Sent((function, context)))
}

pub(crate) fn no_function() -> Failure {
    failure(WEALD_NULL, "the function is null")
}

/// Runs it, as a process or without one.
pub(crate) fn run<R>(task: Task<R>, current: Option<Arc<Current>>) -> R {
    let (function, context) = task.get();
    // SAFETY: *promised*.
    entering(current, || unsafe { function(context) })
}

/// Runs code that calls functions of the program. An exception that leaves them ends the program.
pub(crate) fn entering<R>(current: Option<Arc<Current>>, code: impl FnOnce() -> R) -> R {
    saved::begin(current, || {
        let alarm = ForeignException;
        let result = code();
        mem::forget(alarm);
        result
    })
}

/// Dropped only if an exception leaves a function of the program: panics are caught at each call of the library.
struct ForeignException;

impl Drop for ForeignException {
    fn drop(&mut self) {
        eprintln!("weald: an exception has left a function that the library had called; aborting");
        process::abort();
    }
}

/// What units with this function do, for the monitor: all are spawned at one place of this library.
pub(crate) fn kind<R>(task: Task<R>) -> WorkKind {
    let kind = WorkKind::new();
    // The kernel expects numbers that differ in all bits.
    let address = task.get().0 as usize as u64;
    kind.set(address.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32));
    kind
}
