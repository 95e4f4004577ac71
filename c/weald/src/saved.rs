//! What belongs to a unit, and is kept with its OS thread while it runs: `errno`, the exceptions of C++ that are being
//! handled, and the process that runs.
//!
//! A unit switches only inside a call of this library, so the calls that may switch save them before, and restore them
//! after. Code that begins has an `errno` of zero and no exceptions. The kernel knows nothing of it. Units of this
//! library stay with their OS threads, once they have waited.
//!
//! The state of exceptions is that of the Itanium ABI: the list of caught exceptions and the number of those in flight
//! (`__cxa_get_globals`). Without the C++ runtime in the program its function is a weak symbol, which is null.
//! `c/myth/src/saved.rs` has the same for threads that migrate.

#![allow(unsafe_code)]

use std::{
    arch::asm,
    cell::Cell,
    ffi::{c_int, c_void},
    mem,
    sync::Arc,
};

use crate::current::Current;

/// The state of exceptions: a pointer and a number.
type Exceptions = [usize; 2];

thread_local! {
    static CURRENT: Cell<Option<Arc<Current>>> = const { Cell::new(None) };
}

/// What a unit has; given back to its OS thread when it is dropped.
struct Saved {
    errno: c_int,
    exceptions: Exceptions,
    current: Option<Arc<Current>>,
}

impl Saved {
    fn take() -> Saved {
        let errno = errno();
        // SAFETY: the address is valid for the OS thread.
        let errno = unsafe { *errno };
        let exceptions = exceptions().map_or([0; 2], |exceptions| {
            // SAFETY: as above; nobody else uses it during this call.
            unsafe { exceptions.read() }
        });
        let current = CURRENT.try_with(Cell::take).ok().flatten();
        Saved {
            errno,
            exceptions,
            current,
        }
    }

    fn give(&mut self) {
        // SAFETY: as in `take`.
        unsafe { *errno() = self.errno };
        if let Some(exceptions) = exceptions() {
            // SAFETY: as in `take`.
            unsafe { exceptions.write(self.exceptions) };
        }
        let current = self.current.take();
        let _ended = CURRENT.try_with(|place| place.set(current));
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        self.give();
    }
}

/// Runs `act`, which may switch, or call functions of the program.
pub(crate) fn across<R>(act: impl FnOnce() -> R) -> R {
    let _saved = Saved::take();
    act()
}

/// Runs code of the program that begins here, as a process or without one.
pub(crate) fn begin<R>(current: Option<Arc<Current>>, act: impl FnOnce() -> R) -> R {
    let _before = Saved::take();
    let mut begun = Saved {
        errno: 0,
        exceptions: [0; 2],
        current,
    };
    begun.give();
    // Dropped, it would be given once more.
    mem::forget(begun);
    act()
}

/// The process that runs.
pub(crate) fn current() -> Option<Arc<Current>> {
    let copy = |place: &Cell<Option<Arc<Current>>>| {
        let current = place.take();
        place.set(current.clone());
        current
    };
    CURRENT.try_with(copy).ok().flatten()
}

/// Runs a call of the library, which leaves `errno` as it is.
pub(crate) fn keeping_errno<R>(act: impl FnOnce() -> R) -> R {
    // SAFETY: as in `take`.
    let before = unsafe { *errno() };
    let result = act();
    // SAFETY: as above.
    unsafe { *errno() = before };
    result
}

// Not inlined: a unit that waits for the first time may resume on another OS thread.
#[inline(never)]
fn errno() -> *mut c_int {
    // SAFETY: it takes nothing, and returns an address that is valid for the OS thread.
    unsafe { libc::__errno_location() }
}

/// The address of the OS thread's state of exceptions. None if the program has no C++ runtime.
fn exceptions() -> Option<*mut Exceptions> {
    let address: *const c_void;
    #[cfg(target_arch = "aarch64")]
    // SAFETY: loads the address of a weak symbol, which is null where it is not defined.
    unsafe {
        asm!(
            ".weak __cxa_get_globals",
            "adrp {0}, :got:__cxa_get_globals",
            "ldr {0}, [{0}, :got_lo12:__cxa_get_globals]",
            out(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            ".weak __cxa_get_globals",
            "mov {}, qword ptr [rip + __cxa_get_globals@GOTPCREL]",
            out(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    if address.is_null() {
        return None;
    }
    // SAFETY: the function of that name has this type.
    let function = unsafe { mem::transmute::<*const c_void, GetGlobals>(address) };
    // SAFETY: it takes nothing, and returns the address for the calling OS thread.
    Some(unsafe { function() })
}

type GetGlobals = unsafe extern "C" fn() -> *mut Exceptions;
