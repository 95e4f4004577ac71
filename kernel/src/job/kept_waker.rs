//! Kept wakers: a foreign waker that waits in a timer, a descriptor's slot or a job, with the job that left it there.
//!
//! A foreign waker is user code. When it blocks or panics after it was fired, the report names the job that registered
//! it, because the runtime knows of no other job that has to do with it. A waker that was registered outside of jobs
//! has no such name.
//!
//! Invariants: a kept waker is the only user of its box. It is itself a waker, so the code that stores it need not know
//! of this file. It never wakes a job of the kernel directly, so a kept waker is foreign too.

#![allow(unsafe_code)]

use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::{job::JobRef, report::LateName};

// A static, not a constant: its address distinguishes kept wakers from others.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

struct KeptWaker {
    waker: Waker,
    registrar: JobRef,
}

/// `waker`, which the job `registrar` has registered.
pub(crate) fn keep(waker: Waker, registrar: JobRef) -> Waker {
    // SAFETY: the functions below keep the contract of `RawWaker`.
    unsafe { Waker::from_raw(raw(KeptWaker { waker, registrar })) }
}

/// The job that registered this waker, if it is a kept one.
pub(crate) fn registrar(waker: &Waker) -> Option<LateName> {
    if !std::ptr::eq(waker.vtable(), &VTABLE) {
        return None;
    }
    // SAFETY: only `raw` makes a waker with this table, and the box lives as long as the waker.
    let kept = unsafe { borrow(waker.data()) };
    Some(LateName::of(kept.registrar.header()))
}

fn raw(kept: KeptWaker) -> RawWaker {
    RawWaker::new(Box::into_raw(Box::new(kept)).cast_const().cast(), &VTABLE)
}

/// # Safety
/// `data` is that of a kept waker, which is not consumed while the result is used.
unsafe fn borrow<'a>(data: *const ()) -> &'a KeptWaker {
    // SAFETY: `raw` made `data` of a box; the caller keeps it.
    unsafe { &*data.cast::<KeptWaker>() }
}

/// # Safety
/// `data` is that of a kept waker, which is consumed by the call.
unsafe fn take(data: *const ()) -> KeptWaker {
    // SAFETY: `raw` made `data` of a box, and the caller is its only user.
    *unsafe { Box::from_raw(data.cast_mut().cast::<KeptWaker>()) }
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker that is being cloned keeps the box.
    let kept = unsafe { borrow(data) };
    raw(KeptWaker {
        waker: kept.waker.clone(),
        registrar: kept.registrar.clone(),
    })
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the waker is consumed.
    unsafe { take(data) }.waker.wake();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker keeps the box.
    unsafe { borrow(data) }.waker.wake_by_ref();
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the waker is consumed.
    drop(unsafe { take(data) });
}
