//! What threads and workers keep under keys.
//!
//! References and cells in the signatures stand for pointers that C passes; see `threads`. What a worker keeps is what
//! its OS thread keeps, under keys of the system.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    ptr,
};

use libc::pthread_key_t;
use weald_kernel::is_in_job;

use crate::{
    guard::{guard, guard_value},
    keys::{self, Destructor},
    runtime,
    thread::{self, Thread},
};

#[unsafe(no_mangle)]
extern "C" fn myth_key_create(key: Option<&Cell<c_int>>, destructor: Option<Destructor>) -> c_int {
    guard(|| {
        let key = key.ok_or(libc::EINVAL)?;
        key.set(keys::create(destructor)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_key_delete(key: c_int) -> c_int {
    guard(|| keys::delete(key))
}

#[unsafe(no_mangle)]
extern "C" fn myth_setspecific(key: c_int, value: *const c_void) -> c_int {
    guard(|| {
        // A thread of a runtime that ends keeps values, too: its destructors run.
        if !is_in_job() {
            runtime::ensure()?;
        }
        current().keys.set(key, value.cast_mut())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_getspecific(key: c_int) -> *mut c_void {
    let get = || current().keys.get(key);
    guard_value(get, ptr::null_mut())
}

/// The calling thread, for a call that does not switch.
fn current<'a>() -> &'a Thread {
    // SAFETY: the calling thread has not ended.
    unsafe { &*thread::current() }
}

type SystemDestructor = unsafe extern "C" fn(*mut c_void);

#[unsafe(no_mangle)]
extern "C" fn myth_wls_key_create(
    key: Option<&mut pthread_key_t>,
    destructor: Option<SystemDestructor>,
) -> c_int {
    let Some(key) = key else { return libc::EINVAL };
    // SAFETY: the program's promise to `myth_wls_key_create`.
    unsafe { libc::pthread_key_create(key, destructor) }
}

#[unsafe(no_mangle)]
extern "C" fn myth_wls_key_delete(key: pthread_key_t) -> c_int {
    // SAFETY: the system knows which keys there are.
    unsafe { libc::pthread_key_delete(key) }
}

#[unsafe(no_mangle)]
extern "C" fn myth_wls_setspecific(key: pthread_key_t, value: *const c_void) -> c_int {
    // SAFETY: as above.
    unsafe { libc::pthread_setspecific(key, value) }
}

#[unsafe(no_mangle)]
extern "C" fn myth_wls_getspecific(key: pthread_key_t) -> *mut c_void {
    // SAFETY: as above.
    unsafe { libc::pthread_getspecific(key) }
}
