//! The beginning and the end of the runtime, and the settings with which it starts.
//!
//! References and cells in the signatures stand for pointers that C passes; see `threads`.

#![allow(unsafe_code)]

use std::{cell::Cell, ffi::c_int};

use crate::{
    guard::{guard, guard_value},
    runtime,
    saved::across,
    settings::{self, GlobalAttributes},
};

#[unsafe(no_mangle)]
extern "C" fn myth_init() -> c_int {
    guard(|| runtime::ensure().map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn myth_init_ex(attributes: Option<&GlobalAttributes>) -> c_int {
    guard(|| runtime::start(attributes.copied()).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn myth_fini() {
    guard_value(|| across(runtime::end), ());
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_init(attributes: Option<&Cell<GlobalAttributes>>) -> c_int {
    guard(|| {
        let attributes = attributes.ok_or(libc::EINVAL)?;
        attributes.set(GlobalAttributes::new());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_destroy(_: Option<&Cell<GlobalAttributes>>) -> c_int {
    0
}

/// Reads `attributes`, or the settings of the next runtime.
fn get<T>(
    attributes: Option<&Cell<GlobalAttributes>>,
    place: Option<&Cell<T>>,
    field: impl FnOnce(&GlobalAttributes) -> T,
) -> c_int {
    guard(|| {
        let place = place.ok_or(libc::EINVAL)?;
        place.set(match attributes {
            Some(attributes) => field(&attributes.get()),
            None => settings::with_next(|next| field(next)),
        });
        Ok(())
    })
}

/// Changes `attributes`, or the settings of the next runtime.
fn set(
    attributes: Option<&Cell<GlobalAttributes>>,
    change: impl FnOnce(&mut GlobalAttributes),
) -> c_int {
    guard(|| {
        match attributes {
            Some(attributes) => {
                let mut changed = attributes.get();
                change(&mut changed);
                attributes.set(changed);
            }
            None => settings::with_next(change),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_get_stacksize(
    attributes: Option<&Cell<GlobalAttributes>>,
    size: Option<&Cell<usize>>,
) -> c_int {
    get(attributes, size, |attributes| attributes.stack_size)
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_set_stacksize(
    attributes: Option<&Cell<GlobalAttributes>>,
    size: usize,
) -> c_int {
    set(attributes, |attributes| attributes.stack_size = size)
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_get_guardsize(
    attributes: Option<&Cell<GlobalAttributes>>,
    size: Option<&Cell<usize>>,
) -> c_int {
    get(attributes, size, |attributes| attributes.guard_size)
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_set_guardsize(
    attributes: Option<&Cell<GlobalAttributes>>,
    size: usize,
) -> c_int {
    set(attributes, |attributes| attributes.guard_size = size)
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_get_n_workers(
    attributes: Option<&Cell<GlobalAttributes>>,
    workers: Option<&Cell<usize>>,
) -> c_int {
    get(attributes, workers, |attributes| {
        settings::worker_count(attributes.workers)
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_set_n_workers(
    attributes: Option<&Cell<GlobalAttributes>>,
    workers: usize,
) -> c_int {
    // Too many are refused when the runtime starts.
    let workers = c_int::try_from(workers).unwrap_or(c_int::MAX);
    set(attributes, |attributes| attributes.workers = workers)
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_get_bind_workers(
    attributes: Option<&Cell<GlobalAttributes>>,
    bind: Option<&Cell<c_int>>,
) -> c_int {
    get(attributes, bind, |attributes| attributes.bind_workers)
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_set_bind_workers(
    attributes: Option<&Cell<GlobalAttributes>>,
    bind: c_int,
) -> c_int {
    set(attributes, |attributes| attributes.bind_workers = bind)
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_get_child_first(
    attributes: Option<&Cell<GlobalAttributes>>,
    child_first: Option<&Cell<c_int>>,
) -> c_int {
    get(attributes, child_first, |attributes| attributes.child_first)
}

#[unsafe(no_mangle)]
extern "C" fn myth_globalattr_set_child_first(
    attributes: Option<&Cell<GlobalAttributes>>,
    child_first: c_int,
) -> c_int {
    set(attributes, |attributes| {
        attributes.child_first = child_first
    })
}
