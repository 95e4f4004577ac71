//! Waiting for forked work: for a stolen half, and for the parts of a scope.
//!
//! The caller may hold a lock of `std`, so it holds its OS thread while the forked work computes, and runs nothing but
//! parts of that work ([`hold_in`](wait::hold_in)). Once that work itself waits, it may wait for any job that is pinned
//! to this thread. So from then on the caller's stack is suspended as soon as such a job is runnable.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
};

use crate::{
    fork::fork_deque::ForkDeque,
    report,
    report::payload::{self, Payload},
    scheduler::services::ForkWait,
    scheduler::{
        stackful::wait::{self, Awaited},
        workers::shared,
    },
};

/// Waits for forked work until `future` is ready. A cancel of the caller is passed on through `cancel`; the unwinding
/// that the caller then owes is returned beside the output.
pub(super) fn wait_for<F: Future>(
    fork_deque: &ForkDeque,
    mut future: Pin<&mut F>,
    awaited: &dyn Awaited,
    cancel: &dyn Fn(),
) -> (F::Output, Option<Payload>) {
    // Not the context's: a foreign thread that waits in a join has none.
    let Some(shared) = shared::find(fork_deque.shared().id()) else {
        report::impossible("a runtime ended while a thread forked in it");
    };
    let mut owed = None;
    loop {
        let _waiting = ForkWait::begin(fork_deque);
        let waited = catch_unwind(AssertUnwindSafe(|| {
            let held = wait::hold_in(&shared, future.as_mut(), awaited);
            held.unwrap_or_else(|| wait::block_on_in(&shared, future.as_mut()))
        }));
        match waited {
            Ok(output) => return (output, owed),
            Err(payload) => {
                // A cancel unwinds only one wait, so the next wait lasts to its end.
                cancel();
                owed = Some(payload);
            }
        }
    }
}

/// The unwinding that the caller owes gives way to another panic.
pub(super) fn give_way(owed: Option<Payload>) {
    let Some(payload) = owed else { return };
    if payload::is_cancel(&payload) {
        wait::deliver_cancel_again();
    }
    payload::discard(payload);
}
