//! Yields: all options, and the commonest one in one frame.

#![allow(unsafe_code)]

use std::ffi::c_int;

use weald_fiber::{Prefer, yield_to};
use weald_kernel::at_once::yield_at_once;

use crate::{
    guard::guard_value,
    saved::{Saved, across},
};

#[unsafe(no_mangle)]
extern "C" fn myth_yield() {
    yield_preferring(Prefer::Fair);
}

#[unsafe(no_mangle)]
extern "C" fn myth_sched_yield() -> c_int {
    yield_preferring(Prefer::Fair);
    0
}

#[unsafe(no_mangle)]
extern "C" fn myth_yield_ex(option: c_int) {
    yield_preferring(match option {
        1 => Prefer::LocalOnly,
        2 => Prefer::Local,
        3 => Prefer::StealOnly,
        4 => Prefer::Steal,
        _ => Prefer::Fair,
    });
}

fn yield_preferring(prefer: Prefer) {
    let is_local = matches!(prefer, Prefer::Fair | Prefer::Local | Prefer::LocalOnly);
    let act = || {
        // The commonest yield is asked for first: it finds out by itself that it is one.
        if !is_local || !yield_in_frame() {
            across(|| yield_to(prefer));
        }
    };
    guard_value(act, ());
}

/// The commonest yield, with all that it saves, in one frame. False if this is another one.
#[inline(never)]
fn yield_in_frame() -> bool {
    let saved = Saved::take_in_frame();
    // SAFETY: this frame is not inlined, and what follows reads thread-locals in a frame of its own.
    unsafe { yield_at_once(|| saved.restore_in_frame()) }
}
