//! What belongs to an OS thread, and that a C or C++ program expects to keep over a switch: `errno`, and the exceptions
//! that are being handled.
//!
//! A thread of this library switches only inside of a call of this library, so the calls that may switch save both
//! before, and restore them after, on whichever OS thread the caller resumes. The kernel knows nothing of it. A new
//! thread begins without either.
//!
//! The state of exceptions is that of the Itanium ABI: the list of caught exceptions and the number of those in flight
//! (`__cxa_get_globals`). Without the C++ runtime in the program its function is a weak symbol, which is null.
//!
//! Each OS thread asks for the two addresses once, and keeps them: they are its own as long as it lives.

#![allow(unsafe_code)]

use std::{
    arch::asm,
    cell::Cell,
    ffi::{c_int, c_void},
    mem, ptr,
};

use weald_kernel::about_to_wait;

/// The state of exceptions: a pointer and a number.
type Exceptions = [usize; 2];

/// What one thread had.
pub(crate) struct Saved {
    errno: c_int,
    exceptions: Exceptions,
}

impl Saved {
    const NOTHING: Saved = Saved {
        errno: 0,
        exceptions: [0; 2],
    };

    /// What the OS thread has, which from now on belongs to the calling thread.
    // In a frame of its own, as `restore`: the addresses belong to the OS thread, and must not be kept over a switch.
    #[inline(never)]
    pub(crate) fn take() -> Saved {
        Saved::take_in_frame()
    }

    /// As [`take`](Saved::take), for a frame that is not inlined and uses no address of the OS thread afterwards.
    #[inline(always)]
    pub(crate) fn take_in_frame() -> Saved {
        read(PLACES.with(Places::get))
    }

    /// Gives it to the OS thread.
    #[inline(never)]
    pub(crate) fn restore(&self) {
        self.restore_in_frame();
    }

    /// As [`restore`](Saved::restore), for a frame that is not inlined, and lasts over no switch.
    #[inline(always)]
    pub(crate) fn restore_in_frame(&self) {
        write(PLACES.with(Places::get), self);
    }
}

/// The addresses of what the OS thread has.
type Addresses = (*mut c_int, *mut Exceptions);

/// Those of the OS thread on which the caller runs now.
// In a frame of its own, as `Saved::take`.
#[inline(never)]
fn places() -> Addresses {
    PLACES.with(Places::get)
}

/// Of the OS thread on which the caller runs.
#[inline(always)]
fn read((errno, exceptions): Addresses) -> Saved {
    // SAFETY: it is valid for the OS thread, and nobody else uses it during this call.
    let errno = unsafe { errno.read() };
    // SAFETY: as above.
    let exceptions = unsafe { exceptions.read() };
    Saved { errno, exceptions }
}

/// As [`read`].
#[inline(always)]
fn write((errno, exceptions): Addresses, saved: &Saved) {
    // SAFETY: as in `read`.
    unsafe { errno.write(saved.errno) };
    // SAFETY: as in `read`.
    unsafe { exceptions.write(saved.exceptions) };
}

/// Where an OS thread has what is saved.
struct Places {
    /// Null before it was asked for.
    errno: Cell<*mut c_int>,
    exceptions: Cell<*mut Exceptions>,
    /// In place of the state of exceptions, if the program has no C++ runtime.
    none: Cell<Exceptions>,
}

thread_local! {
    static PLACES: Places = const {
        Places {
            errno: Cell::new(ptr::null_mut()),
            exceptions: Cell::new(ptr::null_mut()),
            none: Cell::new([0; 2]),
        }
    };
}

impl Places {
    #[inline(always)]
    fn get(&self) -> Addresses {
        if self.errno.get().is_null() {
            self.ask();
        }
        (self.errno.get(), self.exceptions.get())
    }

    #[cold]
    #[inline(never)]
    fn ask(&self) {
        self.exceptions
            .set(exceptions().unwrap_or(self.none.as_ptr()));
        // SAFETY: it takes nothing, and returns an address that is valid for the OS thread.
        self.errno.set(unsafe { libc::__errno_location() });
    }
}

/// Runs `act`, which may wait, and restores what the calling thread had. A thread that is no job yet becomes one.
pub(crate) fn across<R>(act: impl FnOnce() -> R) -> R {
    about_to_wait();
    around(act)
}

/// Runs `act`, which may run another thread but does not wait, and restores what the calling thread had.
pub(crate) fn around<R>(act: impl FnOnce() -> R) -> R {
    let saved = Saved::take();
    let result = act();
    saved.restore();
    result
}

/// A thread begins on this OS thread.
pub(crate) fn begin() {
    Saved::NOTHING.restore();
}

/// As [`around`], for `act` that begins another thread and returns on the same OS thread: the other one begins with
/// nothing.
pub(crate) fn around_a_begin<R>(act: impl FnOnce() -> R) -> R {
    let places = places();
    let saved = read(places);
    write(places, &Saved::NOTHING);
    let result = act();
    write(places, &saved);
    result
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
