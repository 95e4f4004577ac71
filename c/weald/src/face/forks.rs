//! Forks: functions that may run on several workers at once; and functions that block.

#![allow(unsafe_code)]

use std::ffi::c_void;

use weald::fork::{Grain, join};

use super::general::{RangeFunction, TaskFunction};
use crate::{
    call::{Sent, entering, no_function, run, task},
    codes::{Code, WEALD_ARGUMENT, failure},
    guard::{check_cancel, guard},
    saved::across,
};

/// Calls `first` with `first_context` and `second` with `second_context`, perhaps on two workers at once, and returns
/// when both have returned. Either may fork in its turn. In a forked function weald_process_receive is not allowed.
#[unsafe(no_mangle)]
pub extern "C" fn weald_fork(
    first: TaskFunction,
    first_context: *mut c_void,
    second: TaskFunction,
    second_context: *mut c_void,
) -> Code {
    guard(|| {
        let (first, second) = (task(first, first_context)?, task(second, second_context)?);
        check_cancel();
        across(|| join(move || run(first, None), move || run(second, None)));
        Ok(())
    })
}

/// Calls `function` with `context` for parts of the range from `begin` to before `end`, perhaps on several workers at
/// once, and returns when all parts are done. Each part has at most `grain` items; 0: about a thousandth of the range.
#[unsafe(no_mangle)]
pub extern "C" fn weald_fork_range(
    begin: usize,
    end: usize,
    grain: usize,
    function: RangeFunction,
    context: *mut c_void,
) -> Code {
    guard(|| {
        let function = function.ok_or_else(no_function)?;
        if end < begin {
            return Err(failure(WEALD_ARGUMENT, "the range ends before it begins"));
        }
        check_cancel();
        let grain = match grain {
            0 => (end - begin).div_ceil(1024).max(1),
            grain => grain,
        };
        let parts = (end - begin).div_ceil(grain);
        let call = Sent((function, context));
        let part = |number: usize| {
            let (function, context) = call.get();
            let begin = begin + number * grain;
            let end = end.min(begin.saturating_add(grain));
            // SAFETY: *promised*, see `call`.
            entering(None, || unsafe { function(context, begin, end) });
        };
        across(|| Grain::of(1).for_each(0..parts, part));
        Ok(())
    })
}

/// Calls `function`, which may block, with `context` on an OS thread that serves no units, and returns when it has
/// returned. The caller waits as for anything else. In the function, calls that wait block that OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn weald_blocking(function: TaskFunction, context: *mut c_void) -> Code {
    guard(|| {
        let task = task(function, context)?;
        check_cancel();
        across(|| weald::blocking(move || run(task, None)));
        Ok(())
    })
}
