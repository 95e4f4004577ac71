//! The stack on which a thread's signal handlers run.
//!
//! The handler of a stack overflow cannot run on the stack that overflowed. The standard library gives its threads a
//! signal stack, but only if nobody else handled faults when the program began: not under a sanitizer, and not in a
//! program whose `main` is written in another language. So each thread of the pool makes sure that it has one.

#![allow(unsafe_code)]

use std::{mem, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Room for the registers of a large processor, which are more than 10 KiB, and for the handlers of a sanitizer. Pages
/// that no handler touches cost nothing.
const SIZE: usize = 64 << 10;

/// The signal stack that a thread was given here. Dropping it, on the same thread, takes it back.
pub(crate) struct SignalStack {
    memory: *mut libc::c_void,
}

impl SignalStack {
    /// Gives the calling thread a signal stack, unless it has one or the system has no memory: then an overflow ends
    /// the program without a message, as it does everywhere else.
    pub(crate) fn provide() -> Option<SignalStack> {
        if !is_missing() {
            return None;
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the address is chosen by the system, so nothing else is there.
        let memory =
            unsafe { mmap_anonymous(ptr::null_mut(), SIZE, protection, MapFlags::PRIVATE) };
        let provided = SignalStack {
            memory: memory.ok()?,
        };
        set(provided.memory, 0);
        Some(provided)
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        set(self.memory, libc::SS_DISABLE);
        // SAFETY: mapped in `provide`. No handler runs on it: it is no longer the signal stack, and only handlers of
        // this thread ran there, which is executing this function.
        let _unmapped = unsafe { munmap(self.memory, SIZE) };
    }
}

/// Whether the calling thread has no signal stack.
fn is_missing() -> bool {
    // SAFETY: all zeroes is a valid value.
    let mut current: libc::stack_t = unsafe { mem::zeroed() };
    // SAFETY: only asks for the current one, and the pointer is valid.
    let answer = unsafe { libc::sigaltstack(ptr::null(), &raw mut current) };
    answer == 0 && current.ss_flags & libc::SS_DISABLE != 0
}

/// Makes `memory` the signal stack of the calling thread, or with `SS_DISABLE` takes away the one it has.
fn set(memory: *mut libc::c_void, flags: i32) {
    let stack = libc::stack_t {
        ss_sp: memory,
        ss_flags: flags,
        ss_size: SIZE,
    };
    // SAFETY: the memory stays mapped while it is the signal stack: `SignalStack` takes it away before it unmaps.
    let _answer = unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_a_signal_stack_is_given_one_and_keeps_it() {
        let test = std::thread::spawn(|| {
            set(ptr::null_mut(), libc::SS_DISABLE);
            let provided = SignalStack::provide();
            assert!(provided.is_some());
            assert!(!is_missing());
            assert!(SignalStack::provide().is_none());
            drop(provided);
            assert!(is_missing());
        });
        test.join().unwrap();
    }
}
