//! The thread that starts the runtime, usually the program's first, becomes a thread of Weald: as every thread it then
//! waits without an OS thread, and resumes on any worker.
//!
//! Its stack is the one that the system gave it, and goes with it:
//!
//! ```text
//!   before   OS thread M:  [ main ]
//!   enter    OS thread M:  [ idle ] on a stack of its own        worker:  fiber [ carry ] ──► [ main ]
//!   leave    OS thread M:  [ idle ] ──► [ main ]                 worker:  fiber [ carry ], which ends
//! ```
//!
//! The kernel knows a fiber with a small stack, whose code has switched to another stack; when it suspends the fiber,
//! it saves a stack pointer that is in the stack of `main`. If the program ends without a call of `myth_fini`, `main`
//! returns on a worker's OS thread, and `exit` ends the others.
//!
//! Not under AddressSanitizer, which knows the bounds of each thread's stack: there `main` stays an OS thread, which
//! parks when it waits. So does every other OS thread of the program that calls this library.
//!
//! # Safety
//! - *One place*: the code of `main` is suspended at one place, which one thread resumes: the fiber after `enter`, the
//!   OS thread after `leave`. The flag and the spawn hand it over.
//! - *One caller*: `enter` runs once for each runtime, and `leave` on the thread that `enter` has made.

#![allow(unsafe_code)]

use std::{
    alloc::{Layout, alloc, dealloc},
    arch::asm,
    cell::Cell,
    ffi::c_void,
    ptr,
    sync::atomic::{
        AtomicBool, AtomicPtr,
        Ordering::{Acquire, Release},
    },
    thread,
};

use weald_kernel::{Spawn, is_in_job, with_fiber_word};

use crate::{
    bind,
    machine::{self, Place},
    runtime::{self, Global},
    saved::across,
    thread::Thread,
};

/// The stack of the OS thread while its own one is with the fiber.
const IDLE_STACK: Layout = match Layout::from_size_align(256 << 10, 64) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};
/// The stack of the fiber, of which little is used.
const CARRY_STACK: usize = 32 << 10;

struct MainThread {
    /// Where its code is suspended.
    code: Cell<Place>,
    /// Where the fiber waits for it.
    fiber: Cell<Place>,
    idle_stack: *mut u8,
    os_thread: thread::Thread,
    /// Whether the OS thread has its code again.
    is_back: AtomicBool,
    /// What programs know of it.
    thread: Thread,
}

/// The one of the running runtime; null: there is none.
static MAIN: AtomicPtr<MainThread> = AtomicPtr::new(ptr::null_mut());

fn current() -> Option<&'static MainThread> {
    // SAFETY: freed only by `leave`, after which nobody asks for this one.
    unsafe { MAIN.load(Acquire).as_ref() }
}

/// Makes a thread of Weald of the caller. Returns on a worker, unless something speaks against it.
pub(crate) fn enter(_: &'static Global) {
    if is_in_job() || has_address_sanitizer() {
        return;
    }
    // SAFETY: the layout is not empty.
    let idle_stack = unsafe { alloc(IDLE_STACK) };
    if idle_stack.is_null() {
        return;
    }
    let main = Box::into_raw(Box::new(MainThread {
        code: Cell::new(Place::NONE),
        fiber: Cell::new(Place::NONE),
        idle_stack,
        os_thread: thread::current(),
        is_back: AtomicBool::new(false),
        thread: Thread::of_main(),
    }));
    MAIN.store(main, Release);
    // SAFETY: the stack ends there.
    let top = unsafe { idle_stack.add(IDLE_STACK.size()) };
    // SAFETY: nothing runs on it, and it has room.
    let begin = unsafe { machine::begin(top.cast(), idle) };
    // SAFETY: it was just made.
    let left = unsafe { &*main }.code.as_ptr();
    // SAFETY: *one place*.
    across(|| unsafe { machine::switch(left, begin) });
    // SAFETY: *one caller*: the OS thread alone is here if the fiber could not be spawned.
    if unsafe { &*main }.is_back.load(Acquire) {
        forget();
    }
}

/// Gives the caller its OS thread back. False if the caller is another thread.
pub(crate) fn leave() -> bool {
    let Some(main) = current() else {
        return !is_in_job();
    };
    if !ptr::eq(crate::thread::current(), &raw const main.thread) {
        return false;
    }
    // SAFETY: *one place*; the fiber waits in `carry`.
    across(|| unsafe { machine::switch(main.code.as_ptr(), main.fiber.get()) });
    forget();
    true
}

/// Frees what belongs to it. Called by the OS thread, on its own stack.
fn forget() {
    let main = MAIN.swap(ptr::null_mut(), Acquire);
    // SAFETY: `enter` made it; nobody else uses it any longer.
    let main = unsafe { Box::from_raw(main) };
    // SAFETY: nothing runs on the stack any longer.
    unsafe { dealloc(main.idle_stack, IDLE_STACK) };
}

/// What the OS thread does while its code is with the fiber.
extern "C" fn idle() -> ! {
    let main = current().expect("`enter` has set it");
    let carry = || carry(current().expect("`leave` unsets it later"));
    let spawned = runtime::get().block_on(async {
        // SAFETY: `carry` keeps nothing that depends on the OS thread.
        unsafe {
            Spawn::new()
                .name("main")
                .spawn_migrating_fiber(CARRY_STACK, carry)
        }
    });
    match spawned {
        Ok(fiber) => fiber.detach(),
        Err(_refused) => main.is_back.store(true, Release),
    }
    // Pairs with the release in `carry`.
    while !main.is_back.load(Acquire) {
        thread::park();
    }
    let mut nowhere = Place::NONE;
    // SAFETY: *one place*; nothing on this stack needs a destructor.
    unsafe { machine::switch(&raw mut nowhere, main.code.get()) };
    unreachable!("nobody resumes a stack that was left for good")
}

/// What the fiber does: it runs the code of `main`, until that calls `leave`.
fn carry(main: &'static MainThread) {
    let os_thread = main.os_thread.clone();
    let thread: *const Thread = &raw const main.thread;
    with_fiber_word(|word| word.set(thread.cast()));
    bind::bind_here(&runtime::get().cores);
    // SAFETY: *one place*.
    unsafe { machine::switch(main.fiber.as_ptr(), main.code.get()) };
    // The last access.
    main.is_back.store(true, Release);
    os_thread.unpark();
}

/// Whether the program was built with AddressSanitizer.
fn has_address_sanitizer() -> bool {
    let address: *const c_void;
    #[cfg(target_arch = "aarch64")]
    // SAFETY: loads the address of a weak symbol, which is null where it is not defined.
    unsafe {
        asm!(
            ".weak __asan_init",
            "adrp {0}, :got:__asan_init",
            "ldr {0}, [{0}, :got_lo12:__asan_init]",
            out(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            ".weak __asan_init",
            "mov {}, qword ptr [rip + __asan_init@GOTPCREL]",
            out(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    !address.is_null()
}
