//! Threads of Weald: straight-line code on small stacks.

#![allow(unsafe_code)]

use std::{
    ffi::c_void,
    mem::MaybeUninit,
    sync::{Mutex, PoisonError},
};

use weald::thread::{self, JoinHandle};
use weald_kernel::{AsUnit, Unit};

use super::{
    general::{TaskFunction, ThreadFunction},
    processes::{SpawnOptions, on_end, waits_for_itself},
    runtime::spawn_in,
};
use crate::{
    arguments::{optional_text, options},
    call::{Sent, kind, run, task},
    codes::{Code, Failure, WEALD_ARGUMENT, WEALD_BUSY, failure, not_spawned},
    guard::{cancelled, check_cancel, give, guard, needed},
    handles::{self, Object},
    saved::across,
    waits::wait_at_most,
};

/// A thread of Weald. Any thread and any unit may cancel it or join it, one at a time. It runs on its own if it was
/// detached or released.
pub type ThreadHandle = u64;

type Joinable = JoinHandle<Sent<*mut c_void>>;

struct ThreadObject {
    /// None while it is joined.
    handle: Mutex<Option<Joinable>>,
    unit: Option<Unit>,
}

impl Object for ThreadObject {
    fn name() -> &'static str {
        "thread"
    }
}

/// What a joiner has taken; put back when it is dropped.
struct Taken<'a> {
    thread: &'a ThreadObject,
    handle: Option<Joinable>,
}

impl ThreadObject {
    fn take(&self) -> Result<Taken<'_>, Failure> {
        let mut place = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = place.take();
        if handle.is_none() {
            return Err(failure(WEALD_BUSY, "another call joins the thread"));
        }
        Ok(Taken {
            thread: self,
            handle,
        })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let place = self.thread.handle.lock();
        *place.unwrap_or_else(PoisonError::into_inner) = self.handle.take();
    }
}

/// Starts a thread, which calls `function` with `context`. `options` may be null; they have no flags for threads.
#[unsafe(no_mangle)]
pub extern "C" fn weald_thread_spawn(
    options: *const SpawnOptions,
    function: ThreadFunction,
    context: *mut c_void,
    thread: Option<&mut MaybeUninit<ThreadHandle>>,
) -> Code {
    guard(|| {
        let options = self::options(options)?;
        let task = task(function, context)?;
        let thread = needed(thread)?;
        if options.flags != 0 {
            return Err(failure(
                WEALD_ARGUMENT,
                "there is no such flag for a thread",
            ));
        }
        let mut builder = thread::Builder::new().kind(kind(task));
        if options.stack_size > 0 {
            builder = builder.stack_size(options.stack_size);
        }
        if let Some(name) = optional_text(options.name)? {
            builder = builder.name(name.to_owned());
        }
        let code = move || {
            let result = Sent(run(task, None));
            weald_kernel::cancel_point();
            result
        };
        let spawned = spawn_in(options.runtime, move || builder.spawn(code))?;
        let handle = spawned.map_err(not_spawned)?;
        let unit = handle.as_unit();
        let handle = Mutex::new(Some(handle));
        thread.write(handles::add(ThreadObject { handle, unit })?);
        Ok(())
    })
}

/// Waits until a thread has ended, and releases its handle. `result`, which may be null, gets what its function
/// returned. WEALD_CANCELLED if the thread was cancelled, and then the handle is released, too; or if the caller was,
/// and then it is not: weald_check_cancel tells. WEALD_BUSY if another call joins the thread,
/// WEALD_DEADLOCK if the thread would join itself.
#[unsafe(no_mangle)]
pub extern "C" fn weald_thread_join(
    thread: ThreadHandle,
    limit_ns: i64,
    result: Option<&mut MaybeUninit<*mut c_void>>,
) -> Code {
    guard(|| {
        check_cancel();
        let object = handles::get::<ThreadObject>(thread)?;
        if object.unit.is_some() && Unit::current() == object.unit {
            return Err(waits_for_itself());
        }
        let mut taken = object.take()?;
        let Some(handle) = &mut taken.handle else {
            unreachable!("a joiner has the handle");
        };
        let ended = wait_at_most(handle, limit_ns)?;
        // It has no result any longer, so it is not put back for the next joiner.
        drop(taken.handle.take());
        // Another call may have released it meanwhile.
        let _released = handles::take::<ThreadObject>(thread);
        give(result, ended.map_err(|_| cancelled())?.get());
        Ok(())
    })
}

/// Lets a thread run on its own, and releases its handle.
#[unsafe(no_mangle)]
pub extern "C" fn weald_thread_detach(thread: ThreadHandle) -> Code {
    guard(|| handles::take::<ThreadObject>(thread).map(drop))
}

/// Cancels a thread, as weald_process_cancel cancels a process. Does nothing if it has ended.
#[unsafe(no_mangle)]
pub extern "C" fn weald_thread_cancel(thread: ThreadHandle) -> Code {
    guard(|| {
        let thread = handles::get::<ThreadObject>(thread)?;
        if let Some(unit) = &thread.unit {
            across(|| unit.kill());
        }
        Ok(())
    })
}

/// Calls `function` with `context`, as a callback, once the thread has ended; soon, if it has ended already.
#[unsafe(no_mangle)]
pub extern "C" fn weald_thread_on_end(
    thread: ThreadHandle,
    function: TaskFunction,
    context: *mut c_void,
) -> Code {
    guard(|| {
        let task = task(function, context)?;
        let thread = handles::get::<ThreadObject>(thread)?;
        on_end(thread.unit.clone(), task);
        Ok(())
    })
}
