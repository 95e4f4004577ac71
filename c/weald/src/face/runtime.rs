//! Runtimes: created with options, entered by a function, shut down.

#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_void},
    mem::MaybeUninit,
    ptr, thread as os_thread,
    time::Duration,
};

use weald::{BuildError, Runtime, blocking, thread};
use weald_kernel::{AsUnit, CancelShield, is_in_job, wait_to_the_end};

use super::general::ThreadFunction;
use crate::{
    arguments::{Options, optional_text, options},
    call::{Sent, run, task},
    codes::{
        Code, Failure, WEALD_ARGUMENT, WEALD_NO_ROOM, WEALD_SHUT_DOWN, failed, failure, not_spawned,
    },
    current::is_cancelled,
    guard::{cancelled, check_cancel, give, guard, needed},
    handles::{self, Object},
    saved::{self, across},
    waits,
};

/// A runtime: workers, each on an OS thread, that run units (processes, threads, callbacks). Any OS thread and any unit
/// may use it; a unit must not shut down its own.
pub type RuntimeHandle = u64;

/// How a runtime is made. Set `size` to the size of this struct, and everything else to zero or to what is wanted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RuntimeOptions {
    /// The size of this struct.
    pub size: usize,
    /// How many workers it has; 0: one for each core.
    pub workers: usize,
    /// How many OS threads it may have beyond its workers, for units that block; 0: the default.
    pub spare_threads: usize,
    /// The first part of the names of its OS threads; null: `weald`.
    pub name: *const c_char,
}

// SAFETY: the size comes first, and the others are numbers and a pointer.
unsafe impl Options for RuntimeOptions {
    const DEFAULT: RuntimeOptions = RuntimeOptions {
        size: size_of::<RuntimeOptions>(),
        workers: 0,
        spare_threads: 0,
        name: ptr::null(),
    };
}

/// None once it is shut down.
pub(crate) struct RuntimeObject(Option<Runtime>);

impl RuntimeObject {
    fn runtime(&self) -> Result<&Runtime, Failure> {
        let shut_down = || failure(WEALD_SHUT_DOWN, "the runtime was shut down");
        self.0.as_ref().ok_or_else(shut_down)
    }
}

/// The last user of a runtime that was released may be any unit, even one of its own. The drop of a runtime blocks the
/// OS thread, on which other units wait to run, so an OS thread of its own does it. Without one it is done here.
impl Drop for RuntimeObject {
    fn drop(&mut self) {
        let runtime = self.0.take();
        if runtime.is_some() && is_in_job() {
            let ends = os_thread::Builder::new().name("weald-release".to_owned());
            let _ends = ends.spawn(move || drop(runtime));
        }
    }
}

impl Object for RuntimeObject {
    fn name() -> &'static str {
        "runtime"
    }
}

/// Creates a runtime. Most programs need none: without one, units run on the default runtime, which starts at the first
/// call that needs it and ends with the program.
#[unsafe(no_mangle)]
pub extern "C" fn weald_runtime_create(
    options: *const RuntimeOptions,
    runtime: Option<&mut MaybeUninit<RuntimeHandle>>,
) -> Code {
    guard(|| {
        let options = self::options(options)?;
        let mut builder = Runtime::builder();
        if options.workers > 0 {
            builder = builder.workers(options.workers);
        }
        if options.spare_threads > 0 {
            builder = builder.spare_threads(options.spare_threads);
        }
        if let Some(name) = optional_text(options.name)? {
            builder = builder.name(name);
        }
        let runtime = needed(runtime)?;
        let built = builder.build().map_err(|error| match error {
            BuildError::Workers(_) | BuildError::Name => failed(WEALD_ARGUMENT, &error),
            _ => failed(WEALD_NO_ROOM, &error),
        })?;
        runtime.write(handles::add(RuntimeObject(Some(built)))?);
        Ok(())
    })
}

/// Runs `function` as a thread of a runtime, and waits until it has returned. `result`, which may be null, gets what it
/// returned. In the function, units are spawned on this runtime, unless their options name another one. Zero is the
/// runtime of the caller, or the default one. If the caller is cancelled, so is the function, and the call returns
/// WEALD_CANCELLED when the function has returned.
#[unsafe(no_mangle)]
pub extern "C" fn weald_runtime_run(
    runtime: RuntimeHandle,
    function: ThreadFunction,
    context: *mut c_void,
    result: Option<&mut MaybeUninit<*mut c_void>>,
) -> Code {
    guard(|| {
        let task = task(function, context)?;
        let code = move || {
            let result = Sent(run(task, None));
            weald_kernel::cancel_point();
            result
        };
        // So that nobody shuts it down meanwhile.
        let _used = match runtime {
            0 => None,
            runtime => Some(handles::get::<RuntimeObject>(runtime)?),
        };
        let spawned = spawn_in(runtime, move || thread::Builder::new().spawn(code))?;
        let mut thread = spawned.map_err(not_spawned)?;
        let unit = thread.as_unit();
        let cancel = || {
            if let Some(unit) = &unit {
                unit.kill();
            }
        };
        // Not one moment less: what the function uses may be on the caller's stack.
        let ended = across(|| wait_to_the_end(&mut thread, cancel));
        check_cancel();
        let ended = ended.map_err(|_| cancelled())?;
        give(result, ended.get());
        Ok(())
    })
}

/// Shuts a runtime down: it takes no new units, and lets those that there are end within the limit; then it cancels
/// them, so that their waits end with WEALD_CANCELLED. `unended`, which may be null, gets the number of units that did
/// not end even so. WEALD_BUSY while another call uses the runtime. Afterwards the handle is released. Not for a unit
/// of this runtime, which would wait for its own end until the limit. A caller that is cancelled meanwhile gets
/// WEALD_CANCELLED when the runtime is shut down.
#[unsafe(no_mangle)]
pub extern "C" fn weald_runtime_shutdown(
    runtime: RuntimeHandle,
    limit_ns: i64,
    unended: Option<&mut MaybeUninit<usize>>,
) -> Code {
    guard(|| {
        check_cancel();
        let report = {
            // From here on the runtime is shut down before the caller hears of a cancel.
            let _shield = CancelShield::begin();
            let mut runtime: RuntimeObject = handles::take_alone(runtime)?;
            let limit = waits::duration(limit_ns).unwrap_or(Duration::MAX);
            // It blocks, so another OS thread does it. The runtime may need units that run on this one.
            let shut_down = move || runtime.0.take().map(|runtime| runtime.shutdown(limit));
            across(|| blocking(shut_down))
        };
        give(unended, report.map_or(0, |report| report.not_stopped.len()));
        check_cancel();
        Ok(())
    })
}

/// Returns 1 in a unit, where calls that wait suspend the unit, and 0 elsewhere, where they block the OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn weald_in_unit() -> i32 {
    i32::from(is_in_job())
}

/// WEALD_CANCELLED if the calling unit was cancelled, else WEALD_OK. For units that compute for long, and should end
/// when they were cancelled; every call that waits tells it as well.
#[unsafe(no_mangle)]
pub extern "C" fn weald_check_cancel() -> Code {
    let is_left_behind = || saved::current().is_some_and(|current| current.is_left_behind());
    guard(|| match is_cancelled() || is_left_behind() {
        true => Err(cancelled()),
        false => Ok(()),
    })
}

/// Spawns in a runtime; zero: in that of the caller, or the default one. A caller that is cancelled has spawned
/// nothing, or gets what it spawned: its context is its own, or the unit's.
pub(crate) fn spawn_in<T>(runtime: RuntimeHandle, spawn: impl FnOnce() -> T) -> Result<T, Failure> {
    if runtime == 0 {
        return Ok(spawn());
    }
    let runtime = handles::get::<RuntimeObject>(runtime)?;
    check_cancel();
    // A future that is ready at once never waits; so no cancel comes between the spawn and its handle.
    let runtime = runtime.runtime()?;
    Ok(across(|| runtime.block_on(async { spawn() })))
}
