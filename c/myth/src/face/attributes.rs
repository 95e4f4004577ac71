//! The attributes with which threads, mutexes and so on are made.
//!
//! References and cells in the signatures stand for pointers that C passes; see `threads`.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
};

use crate::{guard::guard, runtime, settings::ThreadAttributes};

type Attributes<'a> = Option<&'a Cell<ThreadAttributes>>;

/// Reads a field.
fn get<T>(
    attributes: Attributes<'_>,
    place: Option<&Cell<T>>,
    field: impl FnOnce(ThreadAttributes) -> T,
) -> c_int {
    match (attributes, place) {
        (Some(attributes), Some(place)) => {
            place.set(field(attributes.get()));
            0
        }
        _ => libc::EINVAL,
    }
}

/// Changes a field.
fn set(attributes: Attributes<'_>, change: impl FnOnce(&mut ThreadAttributes)) -> c_int {
    let Some(attributes) = attributes else {
        return libc::EINVAL;
    };
    let mut changed = attributes.get();
    change(&mut changed);
    attributes.set(changed);
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_init(attributes: Attributes<'_>) -> c_int {
    guard(|| {
        let attributes = attributes.ok_or(libc::EINVAL)?;
        let mut new = ThreadAttributes::new();
        if let Some(global) = runtime::running() {
            new.stack_size = global.stack_size;
            new.child_first = c_int::from(global.child_first);
        }
        attributes.set(new);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_getdetachstate(
    attributes: Attributes<'_>,
    state: Option<&Cell<c_int>>,
) -> c_int {
    get(attributes, state, |attributes| attributes.detach_state)
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_setdetachstate(attributes: Attributes<'_>, state: c_int) -> c_int {
    match state {
        0 | 1 => set(attributes, |attributes| attributes.detach_state = state),
        _ => libc::EINVAL,
    }
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_getguardsize(
    attributes: Attributes<'_>,
    size: Option<&Cell<usize>>,
) -> c_int {
    get(attributes, size, |attributes| attributes.guard_size)
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_setguardsize(attributes: Attributes<'_>, size: usize) -> c_int {
    set(attributes, |attributes| attributes.guard_size = size)
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_getstacksize(
    attributes: Attributes<'_>,
    size: Option<&Cell<usize>>,
) -> c_int {
    get(attributes, size, |attributes| attributes.stack_size)
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_setstacksize(attributes: Attributes<'_>, size: usize) -> c_int {
    set(attributes, |attributes| attributes.stack_size = size)
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_getstack(
    attributes: Attributes<'_>,
    address: Option<&Cell<*mut c_void>>,
    size: Option<&Cell<usize>>,
) -> c_int {
    match get(attributes, address, |attributes| attributes.stack_address) {
        0 => get(attributes, size, |attributes| attributes.stack_size),
        failed => failed,
    }
}

#[unsafe(no_mangle)]
extern "C" fn myth_thread_attr_setstack(
    attributes: Attributes<'_>,
    address: *mut c_void,
    size: usize,
) -> c_int {
    set(attributes, |attributes| {
        attributes.stack_address = address;
        attributes.stack_size = size;
    })
}

/// Attributes that are a number: the type of a mutex, the kind of a lock for readers and writers.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(super) struct Number(pub(super) c_int);

/// Attributes without any content.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Nothing(*mut c_void);

fn set_number(attributes: Option<&Cell<Number>>, number: c_int) -> c_int {
    let Some(attributes) = attributes else {
        return libc::EINVAL;
    };
    attributes.set(Number(number));
    0
}

fn get_number(attributes: Option<&Number>, place: Option<&Cell<c_int>>) -> c_int {
    match (attributes, place) {
        (Some(attributes), Some(place)) => {
            place.set(attributes.0);
            0
        }
        _ => libc::EINVAL,
    }
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutexattr_init(attributes: Option<&Cell<Number>>) -> c_int {
    set_number(attributes, 0)
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutexattr_destroy(_: Option<&Cell<Number>>) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutexattr_gettype(
    attributes: Option<&Number>,
    kind: Option<&Cell<c_int>>,
) -> c_int {
    get_number(attributes, kind)
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutexattr_settype(attributes: Option<&Cell<Number>>, kind: c_int) -> c_int {
    match kind {
        0..=2 => set_number(attributes, kind),
        _ => libc::EINVAL,
    }
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlockattr_init(attributes: Option<&Cell<Number>>) -> c_int {
    set_number(attributes, 0)
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlockattr_destroy(_: Option<&Cell<Number>>) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlockattr_getkind(
    attributes: Option<&Number>,
    kind: Option<&Cell<c_int>>,
) -> c_int {
    get_number(attributes, kind)
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlockattr_setkind(attributes: Option<&Cell<Number>>, kind: c_int) -> c_int {
    match kind {
        0..=2 => set_number(attributes, kind),
        _ => libc::EINVAL,
    }
}

fn set_nothing(attributes: Option<&Cell<Nothing>>) -> c_int {
    let Some(attributes) = attributes else {
        return libc::EINVAL;
    };
    attributes.set(Nothing(std::ptr::null_mut()));
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_condattr_init(attributes: Option<&Cell<Nothing>>) -> c_int {
    set_nothing(attributes)
}

#[unsafe(no_mangle)]
extern "C" fn myth_condattr_destroy(_: Option<&Cell<Nothing>>) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_barrierattr_init(attributes: Option<&Cell<Nothing>>) -> c_int {
    set_nothing(attributes)
}

#[unsafe(no_mangle)]
extern "C" fn myth_barrierattr_destroy(_: Option<&Cell<Nothing>>) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_join_counterattr_init(attributes: Option<&Cell<Nothing>>) -> c_int {
    set_nothing(attributes)
}

#[unsafe(no_mangle)]
extern "C" fn myth_join_counterattr_destroy(_: Option<&Cell<Nothing>>) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_felockattr_init(attributes: Option<&Cell<Nothing>>) -> c_int {
    set_nothing(attributes)
}

#[unsafe(no_mangle)]
extern "C" fn myth_felockattr_destroy(_: Option<&Cell<Nothing>>) -> c_int {
    0
}
