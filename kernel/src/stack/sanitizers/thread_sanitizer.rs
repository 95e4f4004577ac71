//! Annotations of our stacks for ThreadSanitizer, in builds with `--cfg weald_thread_sanitizer`.
//!
//! ThreadSanitizer calls each stack a *fiber*, with a clock and a call stack of its own, and must be told of a switch
//! right before it (sanitizer/tsan_interface.h, "Fiber switching API"). Both functions here are inlined into the frame
//! that switches: a frame that begins as one fiber and ends as another corrupts the call stacks.
//!
//! A stack's fiber begins when the stack is first resumed and ends when it is left for good. A switch orders what both
//! fibers do before and after it, which is true: both run on one thread.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ffi::{c_uint, c_void},
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::stack::{
    PAGE, Stack,
    sanitizers::{Leaving, Onto},
};

unsafe extern "C" {
    fn __tsan_get_current_fiber() -> *mut c_void;
    fn __tsan_create_fiber(flags: c_uint) -> *mut c_void;
    fn __tsan_destroy_fiber(fiber: *mut c_void);
    fn __tsan_switch_to_fiber(fiber: *mut c_void, flags: c_uint);
}

/// The switch orders what comes before it and after it.
const ORDERS: c_uint = 0;

thread_local! {
    /// The fiber of the thread's own stack; null before the first switch, which comes from that stack.
    static OWN: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
    /// Where the fiber of the running stack is kept; none on the thread's own.
    static HERE: Cell<Option<NonNull<AtomicPtr<c_void>>>> = const { Cell::new(None) };
    /// The fiber that the switch in progress ends; null if it ends none.
    static ENDED: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
}

/// Called right before a switch, last.
#[inline(always)]
pub(super) fn before_switch(onto: Onto<'_>, leaving: Leaving) {
    let fiber = next(onto, leaving);
    // SAFETY: the fiber of the stack that is resumed next, on which no other thread runs.
    unsafe { __tsan_switch_to_fiber(fiber, ORDERS) };
}

/// Called right after a switch, first.
#[inline(always)]
pub(super) fn after_switch() {
    end(ENDED.replace(ptr::null_mut()));
}

/// The fiber of the stack that is resumed next.
#[inline(never)]
fn next(onto: Onto<'_>, leaving: Leaving) -> *mut c_void {
    if OWN.get().is_null() {
        // SAFETY: it takes nothing and changes nothing.
        OWN.set(unsafe { __tsan_get_current_fiber() });
    }
    let left = HERE.get();
    if let (Leaving::ForGood, Some(left)) = (leaving, left) {
        // SAFETY: a slot is never unmapped.
        let left = unsafe { left.as_ref() };
        ENDED.set(left.swap(ptr::null_mut(), Ordering::Relaxed));
    }
    match onto {
        Onto::Ours(stack) => of(stack),
        Onto::ThreadStack => {
            HERE.set(None);
            OWN.get()
        }
    }
}

/// The fiber of `stack`. It is kept in the lowest word above the guard, which frames reach only right before an
/// overflow: a table with a lock would order the switches of all threads, and so hide races.
fn of(stack: &Stack) -> *mut c_void {
    // SAFETY: the page above the guard belongs to the slot, which is never unmapped.
    let place = unsafe { stack.limit().add(PAGE) }.cast::<AtomicPtr<c_void>>();
    HERE.set(Some(place));
    // SAFETY: as above; a new slot is all zero, which is a null pointer.
    let fiber = unsafe { place.as_ref() };
    // Relaxed: a thread that may switch to the stack has seen what its last user did.
    if fiber.load(Ordering::Relaxed).is_null() {
        // SAFETY: it takes no pointer.
        fiber.store(unsafe { __tsan_create_fiber(0) }, Ordering::Relaxed);
    }
    fiber.load(Ordering::Relaxed)
}

#[inline(never)]
fn end(fiber: *mut c_void) {
    if !fiber.is_null() {
        // SAFETY: its stack was just left for good, and `next` forgot the fiber.
        unsafe { __tsan_destroy_fiber(fiber) };
    }
}
