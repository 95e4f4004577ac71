//! The switch: suspends one stack and resumes another, in a few instructions.
//!
//! Only the stack pointer is saved elsewhere; everything else is on the stack. `x86_64` and `aarch64` have the
//! instructions, and a picture of a suspended stack. One word is passed along.
//!
//! The floating-point control word and the signal mask are not switched: nothing in the kernel changes them.

#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

use std::ptr::NonNull;

use crate::stack::{
    Stack,
    sanitizers::{self, Leaving, Onto},
};

/// The saved stack pointer of a suspended stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedSp(usize);

impl SavedSp {
    /// Nothing is suspended.
    pub(crate) const NONE: SavedSp = SavedSp(0);
}

/// Prepares a new stack: resuming it calls `first` on the stack, below `top`. What is above `top` stays untouched.
///
/// # Safety
/// Nothing runs on the stack, and `top` is an address in it, a multiple of 16.
#[inline(always)]
pub(crate) unsafe fn begin(top: NonNull<u8>, first: extern "C" fn(usize) -> !) -> SavedSp {
    // SAFETY: the caller's promise.
    unsafe { machine::begin(top, first) }
}

/// Suspends the running stack, saves its stack pointer in `left`, and resumes the stack `onto` at `to`, passing
/// `word`. Returns when the suspended stack is resumed.
///
/// # Safety
/// `to` was saved by a switch, or by [`begin`], and has not been resumed since; its stack is alive. The thread that
/// resumes `left` may run what is on this stack. `left` is valid until then.
#[inline(always)]
pub(crate) unsafe fn switch(left: *mut SavedSp, to: SavedSp, onto: Onto<'_>, word: usize) {
    let fake_stack = sanitizers::before_switch(onto, Leaving::Suspended);
    // SAFETY: the caller's promise.
    unsafe { machine::jump(left, to, word) };
    sanitizers::after_switch(fake_stack);
}

/// Leaves the running stack for good: nothing on it ever resumes.
///
/// # Safety
/// As [`switch`]; and no frame of the running stack holds anything that needs its destructor.
#[inline(always)]
pub(crate) unsafe fn leave(to: SavedSp, onto: Onto<'_>) -> ! {
    let mut nowhere = SavedSp::NONE;
    let _nothing = sanitizers::before_switch(onto, Leaving::ForGood);
    // SAFETY: the caller's promise; `nowhere` is on the stack that is left.
    unsafe { machine::jump(&raw mut nowhere, to, 0) };
    unreachable!("a stack that was left for good was resumed")
}

/// The first call on a stack that [`begin`] prepared.
#[inline(always)]
pub(crate) fn arrived() {
    sanitizers::after_switch(std::ptr::null_mut());
}

/// Registers a new stack with tools such as valgrind.
pub(super) fn register(stack: &Stack) {
    sanitizers::register(stack);
}
