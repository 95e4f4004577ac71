//! Callbacks: functions that are called later, without a stack until then. And waits for descriptors.

#![allow(unsafe_code)]

use std::{
    ffi::{c_int, c_void},
    io,
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
};

use weald::process::callback::{self, Handle, Owner, When};
use weald_kernel::{Interest, IoSource};

use super::{
    general::{TaskFunction, WEALD_AT_ONCE},
    processes::positive,
};
use crate::{
    call::{run, task},
    codes::{Code, Failure, WEALD_ARGUMENT, WEALD_SYSTEM, failed, failure},
    guard::{give, guard},
    handles::{self, Object},
    waits::{timed_out, wait_at_most},
};

/// A callback: a function that is called later, by a worker. Any thread and any unit may cancel it. It belongs to the
/// unit that started it, and is dropped without a call when that unit ends; outside of units to the runtime. A callback
/// may wait, but others do not run on its worker meanwhile until some milliseconds have passed; let it send a message
/// instead.
pub type CallbackHandle = u64;

struct CallbackObject(Handle);

impl Object for CallbackObject {
    fn name() -> &'static str {
        "callback"
    }
}

/// Gives the program a handle, if it wants one.
fn started(handle: Handle, to: Option<&mut MaybeUninit<CallbackHandle>>) -> Result<(), Failure> {
    match to {
        Some(to) => to.write(handles::add(CallbackObject(handle))?),
        None => {
            handle.detach();
            return Ok(());
        }
    };
    Ok(())
}

/// Calls `function` with `context` soon, behind the callbacks that are ready. `callback` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn weald_callback_start(
    function: TaskFunction,
    context: *mut c_void,
    callback: Option<&mut MaybeUninit<CallbackHandle>>,
) -> Code {
    guard(|| {
        let task = task(function, context)?;
        let handle = callback::once(Owner::current(), When::Ready, move || run(task, None));
        started(handle, callback)
    })
}

/// Calls `function` with `context` once a duration has passed. `callback` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn weald_callback_after(
    duration_ns: i64,
    function: TaskFunction,
    context: *mut c_void,
    callback: Option<&mut MaybeUninit<CallbackHandle>>,
) -> Code {
    guard(|| {
        let task = task(function, context)?;
        let handle = callback::after(positive(duration_ns)?, move || run(task, None));
        started(handle, callback)
    })
}

/// Calls `function` with `context` once in each period, until it is cancelled. `callback` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn weald_callback_every(
    period_ns: i64,
    function: TaskFunction,
    context: *mut c_void,
    callback: Option<&mut MaybeUninit<CallbackHandle>>,
) -> Code {
    guard(|| {
        let task = task(function, context)?;
        let period = positive(period_ns)?;
        if period.is_zero() {
            return Err(failure(WEALD_ARGUMENT, "the period is zero"));
        }
        started(callback::every(period, move || run(task, None)), callback)
    })
}

/// Cancels a callback. `prevented`, which may be null, gets 1 if that has prevented a call, and 0 if the last call has
/// begun. The handle is not released.
#[unsafe(no_mangle)]
pub extern "C" fn weald_callback_cancel(
    callback: CallbackHandle,
    prevented: Option<&mut MaybeUninit<i32>>,
) -> Code {
    guard(|| {
        let callback = handles::get::<CallbackObject>(callback)?;
        give(prevented, i32::from(callback.0.cancel()));
        Ok(())
    })
}

/// Waits until a read of a descriptor would not wait: there is data, the other end is closed, or there is an error. For
/// sockets, pipes, terminals and whatever else epoll takes. The descriptor stays the caller's, and must stay open
/// meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn weald_wait_readable(descriptor: c_int, limit_ns: i64) -> Code {
    guard(|| wait_ready(descriptor, Interest::Read, limit_ns))
}

/// Waits until a write to a descriptor would not wait; as weald_wait_readable.
#[unsafe(no_mangle)]
pub extern "C" fn weald_wait_writable(descriptor: c_int, limit_ns: i64) -> Code {
    guard(|| wait_ready(descriptor, Interest::Write, limit_ns))
}

fn wait_ready(descriptor: c_int, interest: Interest, limit_ns: i64) -> Result<(), Failure> {
    let is_ready = || match interest {
        Interest::Read => poll(descriptor, libc::POLLIN | libc::POLLRDHUP),
        Interest::Write => poll(descriptor, libc::POLLOUT),
    };
    if is_ready()? {
        return Ok(());
    }
    if limit_ns == WEALD_AT_ONCE {
        return Err(timed_out());
    }
    let refused = |error: io::Error| failed(WEALD_SYSTEM, &error);
    // A copy, because the system watches a descriptor for one waiter only.
    // SAFETY: it is open, as `poll` has seen.
    let copy: OwnedFd = unsafe { BorrowedFd::borrow_raw(descriptor) }
        .try_clone_to_owned()
        .map_err(refused)?;
    let source = IoSource::new(copy).map_err(refused)?;
    let ready = async {
        loop {
            // Asks the system itself, between the look at its notes and their change. Who took the note back after
            // an answer of our own would take back data that came since, which nobody reports again.
            source.ready(interest).await.map_err(refused)?;
            if is_ready()? {
                return Ok(());
            }
        }
    };
    wait_at_most(ready, limit_ns)?
}

/// Whether one of the events is there, or an error. A negative number, or one that is not open, is a failure.
fn poll(descriptor: c_int, events: libc::c_short) -> Result<bool, Failure> {
    let mut one = libc::pollfd {
        fd: descriptor,
        events,
        revents: 0,
    };
    // SAFETY: there is one.
    let found = unsafe { libc::poll(&raw mut one, 1, 0) };
    if descriptor < 0 || one.revents & libc::POLLNVAL != 0 {
        let sentence = format!("no descriptor {descriptor} is open");
        return Err(failure(WEALD_ARGUMENT, sentence));
    }
    Ok(found > 0)
}
