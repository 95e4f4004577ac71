//! The lowest address of the stack that the system gave the calling thread.
//!
//! Each thread asks once, because asking takes a few system calls, on a program's first thread some fifty
//! microseconds.

#![allow(unsafe_code)]

use std::{cell::Cell, mem, ptr};

thread_local! {
    /// The lowest address; zero until it is asked for.
    static LOWEST: Cell<usize> = const { Cell::new(0) };
}

/// The lowest address of the thread's own stack. `here` is an address in it; if the system does not report the
/// lowest one, the result is just below `here`.
pub(crate) fn lowest(here: usize) -> usize {
    let known = LOWEST.get();
    if known != 0 {
        return known;
    }
    let asked = ask().filter(|lowest| *lowest < here);
    let lowest = asked.unwrap_or(here.saturating_sub(crate::stack::SMALLEST));
    LOWEST.set(lowest);
    lowest
}

fn ask() -> Option<usize> {
    // SAFETY: the attributes are plain memory, which the call below fills in.
    let mut attributes: libc::pthread_attr_t = unsafe { mem::zeroed() };
    // SAFETY: has no preconditions.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: the thread is running, and the attributes are valid.
    if unsafe { libc::pthread_getattr_np(this, &raw mut attributes) } != 0 {
        return None;
    }
    let (mut lowest, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the attributes were filled in.
    let result = unsafe {
        libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size)
    };
    // SAFETY: as above; the attributes are not used again.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    (result == 0).then(|| lowest.addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_own_stack_has_the_size_that_was_asked_for() {
        let size = 256 << 10;
        let room = std::thread::Builder::new().stack_size(size).spawn(|| {
            let here = 0_u8;
            let here = (&raw const here).addr();
            here - lowest(here)
        });
        let room = room.expect("a thread").join().expect("no panic");
        // Musl rounds it up, together with what the thread has of thread-local data.
        let most = size + (16 << 10);
        assert!((size / 2..=most).contains(&room), "{room}");
    }
}
