//! Three steps that no language has: a call that a later jump can end, that jump, and a switch to another stack.
//!
//! `myth_exit` ends a thread from anywhere in its code: it jumps to where the thread's function was called, as a long
//! jump inside one stack. The switch is for one thread of the program only, its first: [`crate::main_thread`] makes a
//! thread of Weald of it. All other threads are switched by the kernel.
//!
//! The three share one layout: the registers that a function must preserve are on the stack, and the saved stack
//! pointer is the address of the lowest.

#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as instructions;
#[cfg(target_arch = "x86_64")]
use x86_64 as instructions;

use std::ffi::c_void;

/// A thread's function.
pub(crate) type Function = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// A place on a stack to which control can return; null: none.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Place(*mut c_void);

impl Place {
    pub(crate) const NONE: Place = Place(std::ptr::null_mut());
}

unsafe extern "C-unwind" {
    fn weald_myth_call(function: Function, argument: *mut c_void, left: *mut Place) -> *mut c_void;
}

unsafe extern "C" {
    fn weald_myth_leave(to: Place, value: *mut c_void) -> !;
    fn weald_myth_switch(left: *mut Place, to: Place);
}

/// Calls `function(argument)`. Until it returns, [`leave`] with the place in `left` ends the call.
///
/// # Safety
/// `function` may be called with `argument`; `left` may be written.
pub(crate) unsafe fn call(
    function: Function,
    argument: *mut c_void,
    left: *mut Place,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { weald_myth_call(function, argument, left) }
}

/// Ends the call that has written `to`, as if its function had returned `value`. No destructor runs.
///
/// # Safety
/// That call has not ended, and the caller runs on its stack. No frame between needs its destructor.
pub(crate) unsafe fn leave(to: Place, value: *mut c_void) -> ! {
    // SAFETY: the caller's promise.
    unsafe { weald_myth_leave(to, value) }
}

/// Suspends the running stack, writes its place to `left`, and resumes `to`. Returns when `left` is resumed.
///
/// # Safety
/// `to` was written by a switch, or made by [`begin`], and is resumed once. `left` may be written.
#[inline(never)]
pub(crate) unsafe fn switch(left: *mut Place, to: Place) {
    // SAFETY: the caller's promise.
    unsafe { weald_myth_switch(left, to) }
}

/// A place on an empty stack: resuming it calls `first`.
///
/// # Safety
/// Nothing runs on the stack that ends at `top`, a multiple of 16, and it has room for `first`.
pub(crate) unsafe fn begin(top: *mut c_void, first: extern "C" fn() -> !) -> Place {
    // SAFETY: the caller's promise.
    Place(unsafe { instructions::begin(top.cast(), first) }.cast())
}
