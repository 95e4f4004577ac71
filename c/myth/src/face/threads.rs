//! Threads: created, joined, detached, ended, cancelled; sleeps.
//!
//! # Safety
//! *Valid*: a pointer that C passes is null or valid for its type, as `myth.h` says of each. References and cells in
//! the signatures stand for such pointers.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ffi::{c_int, c_long, c_uint, c_void},
    ptr,
};

use libc::timespec;
use weald_kernel::{is_in_job, worker_index};

use crate::{
    clock,
    guard::{guard, guard_value},
    machine::Function,
    runtime,
    settings::ThreadAttributes,
    thread::{self, Start, Thread, TimeLimit},
    wait,
};

/// `id` of a thread that is nobody's.
const NOBODY: *const Thread = ptr::null();

#[unsafe(no_mangle)]
extern "C" fn myth_create(function: Option<Function>, argument: *mut c_void) -> *const Thread {
    let id = Cell::new(NOBODY);
    let failed = guard(|| create(&id, None, function, argument));
    match failed {
        0 => id.get(),
        _ => NOBODY,
    }
}

#[unsafe(no_mangle)]
extern "C" fn myth_create_ex(
    id: Option<&Cell<*const Thread>>,
    attributes: Option<&ThreadAttributes>,
    function: Option<Function>,
    argument: *mut c_void,
) -> c_int {
    let own = Cell::new(NOBODY);
    guard(|| create(id.unwrap_or(&own), attributes, function, argument))
}

fn create(
    id: &Cell<*const Thread>,
    attributes: Option<&ThreadAttributes>,
    function: Option<Function>,
    argument: *mut c_void,
) -> Result<(), c_int> {
    let function = function.ok_or(libc::EINVAL)?;
    let global = runtime::ensure()?;
    let mut start = Start::new(function, argument, global);
    if let Some(attributes) = attributes {
        if attributes.stack_size > 0 {
            start.stack_size = attributes.stack_size;
        }
        start.detached = attributes.detach_state != 0;
        start.child_first = attributes.child_first != 0;
    }
    thread::create(global, start, id)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn myth_join(id: *const Thread, result: Option<&Cell<*mut c_void>>) -> c_int {
    // SAFETY: *valid*.
    guard(|| unsafe { thread::join(id, TimeLimit::ToTheEnd, result) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn myth_tryjoin(id: *const Thread, result: Option<&Cell<*mut c_void>>) -> c_int {
    // SAFETY: *valid*.
    guard(|| unsafe { thread::join(id, TimeLimit::None, result) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn myth_timedjoin(
    id: *const Thread,
    result: Option<&Cell<*mut c_void>>,
    deadline: Option<&timespec>,
) -> c_int {
    guard(|| {
        let deadline = clock::deadline(deadline)?;
        // SAFETY: *valid*.
        unsafe { thread::join(id, TimeLimit::Until(deadline), result) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn myth_detach(id: *const Thread) -> c_int {
    // SAFETY: *valid*.
    guard(|| unsafe { thread::detach(id) })
}

#[unsafe(no_mangle)]
extern "C" fn myth_exit(result: *mut c_void) {
    thread::exit(result);
}

#[unsafe(no_mangle)]
extern "C" fn myth_self() -> *const Thread {
    let current = || match is_in_job() || runtime::ensure().is_ok() {
        true => thread::current(),
        false => NOBODY,
    };
    guard_value(current, NOBODY)
}

#[unsafe(no_mangle)]
extern "C" fn myth_equal(one: *const Thread, other: *const Thread) -> c_int {
    c_int::from(ptr::eq(one, other))
}

#[unsafe(no_mangle)]
extern "C" fn myth_is_myth_worker() -> c_int {
    c_int::from(is_in_job())
}

#[unsafe(no_mangle)]
extern "C" fn myth_get_worker_num() -> c_int {
    let number = || {
        let _refused = runtime::ensure();
        let number = worker_index().and_then(|index| c_int::try_from(index).ok());
        number.unwrap_or(-1)
    };
    guard_value(number, -1)
}

#[unsafe(no_mangle)]
extern "C" fn myth_get_num_workers() -> c_int {
    let workers = || runtime::ensure().map_or(0, |global| global.workers);
    c_int::try_from(guard_value(workers, 0)).unwrap_or(c_int::MAX)
}

#[unsafe(no_mangle)]
extern "C" fn myth_getconcurrency() -> c_int {
    myth_get_num_workers()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn myth_cancel(id: *const Thread) -> c_int {
    // SAFETY: *valid*.
    guard(|| match unsafe { id.as_ref() } {
        Some(thread) => {
            thread.cancel();
            Ok(())
        }
        None => Err(libc::EINVAL),
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_testcancel() {
    // SAFETY: the calling thread has not ended.
    if unsafe { &*thread::current() }.is_cancelled() {
        thread::exit(thread::CANCELED);
    }
}

/// `MYTH_CANCEL_DISABLE`; enabled is zero.
const DISABLE: c_int = 1;

#[unsafe(no_mangle)]
extern "C" fn myth_setcancelstate(state: c_int, before: Option<&Cell<c_int>>) -> c_int {
    guard(|| {
        if !(0..=DISABLE).contains(&state) {
            return Err(libc::EINVAL);
        }
        // SAFETY: the calling thread has not ended.
        let was_disabled = unsafe { &*thread::settled() }.disable_cancel(state == DISABLE);
        if let Some(before) = before {
            before.set(c_int::from(was_disabled));
        }
        Ok(())
    })
}

/// `MYTH_CANCEL_DEFERRED`, the only type.
const DEFERRED: c_int = 0;

#[unsafe(no_mangle)]
extern "C" fn myth_setcanceltype(kind: c_int, before: Option<&Cell<c_int>>) -> c_int {
    if kind != DEFERRED {
        return libc::EINVAL;
    }
    if let Some(before) = before {
        before.set(DEFERRED);
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_nanosleep(time: Option<&timespec>, left: Option<&Cell<timespec>>) -> c_int {
    guard(|| {
        let time = clock::duration(time.ok_or(libc::EINVAL)?)?;
        wait::sleep(time);
        if let Some(left) = left {
            left.set(timespec {
                tv_sec: 0,
                tv_nsec: 0,
            });
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_usleep(microseconds: c_uint) -> c_int {
    let time = std::time::Duration::from_micros(microseconds.into());
    guard(|| {
        wait::sleep(time);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_sleep(seconds: c_uint) -> c_uint {
    let time = std::time::Duration::from_secs(seconds.into());
    guard_value(
        || {
            wait::sleep(time);
            0
        },
        seconds,
    )
}

/// Where the first of equally distant things is; null: there is none.
#[derive(Clone, Copy)]
struct Strided {
    first: *mut c_void,
    stride: usize,
}

impl Strided {
    /// The address of the one with this number.
    fn at(self, number: c_long) -> *mut c_void {
        let number = usize::try_from(number).unwrap_or(0);
        match self.first.is_null() {
            true => self.first,
            false => self
                .first
                .wrapping_byte_add(number.wrapping_mul(self.stride)),
        }
    }
}

/// Threads from one number to another, as `myth_create_join_various_ex` is given them.
#[derive(Clone, Copy)]
struct Many {
    ids: Strided,
    attributes: Strided,
    functions: Strided,
    arguments: Strided,
    results: Strided,
    from: c_long,
    to: c_long,
    failed: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn myth_create_join_various_ex(
    ids: *mut c_void,
    attributes: *mut c_void,
    functions: *mut c_void,
    arguments: *mut c_void,
    results: *mut c_void,
    id_stride: usize,
    attribute_stride: usize,
    function_stride: usize,
    argument_stride: usize,
    result_stride: usize,
    threads: c_long,
) -> c_int {
    let strided = |first, stride| Strided { first, stride };
    let many = Many {
        ids: strided(ids, id_stride),
        attributes: strided(attributes, attribute_stride),
        functions: strided(functions, function_stride),
        arguments: strided(arguments, argument_stride),
        results: strided(results, result_stride),
        from: 0,
        to: threads,
        failed: 0,
    };
    if functions.is_null() || threads < 0 {
        return libc::EINVAL;
    }
    // SAFETY: *valid*.
    unsafe { create_all(many) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn myth_create_join_many_ex(
    ids: *mut c_void,
    attributes: *mut c_void,
    function: Option<Function>,
    arguments: *mut c_void,
    results: *mut c_void,
    id_stride: usize,
    attribute_stride: usize,
    argument_stride: usize,
    result_stride: usize,
    threads: c_long,
) -> c_int {
    let Some(mut function) = function else {
        return libc::EINVAL;
    };
    // SAFETY: *valid*; all threads have ended when this returns.
    unsafe {
        myth_create_join_various_ex(
            ids,
            attributes,
            (&raw mut function).cast(),
            arguments,
            results,
            id_stride,
            attribute_stride,
            0,
            argument_stride,
            result_stride,
            threads,
        )
    }
}

/// Creates and joins all of them: the first half in a thread, the second one in the caller, down to single ones. So the
/// creations are shared, too, and at most as many threads are created as there are calls.
///
/// # Safety
/// *Valid*.
unsafe fn create_all(many: Many) -> c_int {
    let (from, to) = (many.from, many.to);
    if to - from <= 1 {
        // SAFETY: *valid*.
        let run = || unsafe { run_one(many) };
        return if from < to { run() } else { 0 };
    }
    let middle = from + (to - from) / 2;
    let (mut first, second) = (
        Many { to: middle, ..many },
        Many {
            from: middle,
            ..many
        },
    );
    let id = Cell::new(NOBODY);
    let attributes = many.attributes.at(from).cast_const();
    // SAFETY: *valid*.
    let mut attributes = unsafe { attributes.cast::<ThreadAttributes>().as_ref() }.copied();
    if let Some(attributes) = &mut attributes {
        // It is joined below, and uses this frame until then.
        attributes.detach_state = 0;
    }
    let argument: *mut Many = &raw mut first;
    let attributes = attributes.as_ref();
    let mut failed = guard(|| create(&id, attributes, Some(create_half), argument.cast()));
    // SAFETY: *valid*.
    let second_failed = unsafe { create_all(second) };
    if failed == 0 {
        // SAFETY: it was created just now.
        failed = unsafe { myth_join(id.get(), None) };
        failed = if failed == 0 { first.failed } else { failed };
    }
    if failed == 0 { second_failed } else { failed }
}

unsafe extern "C-unwind" fn create_half(many: *mut c_void) -> *mut c_void {
    let many = many.cast::<Many>();
    // SAFETY: the creator waits for the end of this thread.
    let copy = unsafe { *many };
    // SAFETY: *valid*.
    let failed = unsafe { create_all(copy) };
    // SAFETY: as above.
    unsafe { (*many).failed = failed };
    ptr::null_mut()
}

/// # Safety
/// *Valid*.
unsafe fn run_one(many: Many) -> c_int {
    let number = many.from;
    let id = many.ids.at(number).cast::<*const Thread>();
    if !id.is_null() {
        // SAFETY: *valid*.
        unsafe { *id = myth_self() };
    }
    // SAFETY: *valid*.
    let Some(function) = (unsafe { *many.functions.at(number).cast::<Option<Function>>() }) else {
        return libc::EINVAL;
    };
    // SAFETY: *valid*.
    let value = unsafe { function(many.arguments.at(number)) };
    let result = many.results.at(number).cast::<*mut c_void>();
    if !result.is_null() {
        // SAFETY: *valid*.
        unsafe { *result = value };
    }
    0
}
