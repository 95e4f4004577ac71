//! Waking: the one place where wakers, which are user code, are called.
//!
//! A waker that panics affects nothing else: the other wakers of the same round are woken, the tool's state
//! stays whole, and the code that released the tool continues. The runtime, if there is one, reports the panic.

use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
    task::Waker,
};

/// Takes the payload of a waker that panicked.
type OnPanic = fn(Box<dyn Any + Send>);

static ON_PANIC: OnceLock<OnPanic> = OnceLock::new();

/// The payloads of wakers that panic go to `on_panic` from now on, unless they go somewhere already.
pub(crate) fn tell_of_panics(on_panic: OnPanic) {
    let _first = ON_PANIC.set(on_panic);
}

/// Wakes. The caller holds no lock and no claim.
pub(crate) fn wake(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // Dropping it may panic as well.
        ON_PANIC
            .get()
            .map_or(mem::forget::<Box<dyn Any + Send>> as OnPanic, |on_panic| {
                *on_panic
            })(payload);
    }
}

/// Wakes each of them. The caller holds no lock and no claim.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(wake);
}
