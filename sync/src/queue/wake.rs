//! Waking: the one place where wakers, which are user code, are called.
//!
//! A waker that panics affects nothing else: the other wakers of the same round are woken, the tool's state
//! stays whole, and the code that released the tool continues. The runtime, if there is one, reports the panic.
//!
//! A waker that blocks holds up the code that released the tool, whose unit the runtime then names. Of the wakers that
//! one operation wakes, the runtime's own come first.

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

/// Wakes those wakers whose wake runs no user code, and leaves the others in the vector. Called with what returns one
/// waker after the other.
type WakeOwn = fn(&mut dyn FnMut() -> Option<Waker>, &mut Vec<Waker>);

static WAKE_OWN: OnceLock<WakeOwn> = OnceLock::new();

/// The payloads of wakers that panic go to `on_panic` from now on, and `wake_own` wakes those of the runtime, unless
/// others do already.
pub(crate) fn tell_of_wakers(on_panic: OnPanic, wake_own: WakeOwn) {
    let _first = (ON_PANIC.set(on_panic), WAKE_OWN.set(wake_own));
}

/// Wakes. The caller holds no lock and no claim.
#[inline]
pub(crate) fn wake(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        panicked(payload);
    }
}

#[cold]
fn panicked(payload: Box<dyn Any + Send>) {
    // Dropping it may panic as well.
    ON_PANIC
        .get()
        .map_or(mem::forget::<Box<dyn Any + Send>> as OnPanic, |on_panic| {
            *on_panic
        })(payload);
}

/// Wakes each of them. The caller holds no lock and no claim.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    let mut foreign = Vec::new();
    wake_own(wakers, &mut foreign);
    foreign.into_iter().for_each(wake);
}

/// Wakes those that are the runtime's own, and leaves the others in `foreign`; without a runtime all are its own. The
/// caller holds no lock and no claim.
pub(crate) fn wake_own(wakers: impl IntoIterator<Item = Waker>, foreign: &mut Vec<Waker>) {
    let mut wakers = wakers.into_iter();
    match WAKE_OWN.get() {
        Some(wake_own) => wake_own(&mut || wakers.next(), foreign),
        None => wakers.for_each(wake),
    }
}

/// Wakes those that the runtime knows as its own, and leaves the others in `foreign`: all of them, without a runtime.
/// The caller holds no lock and no claim.
pub(crate) fn wake_known(wakers: Vec<Waker>, foreign: &mut Vec<Waker>) {
    let mut wakers = wakers.into_iter();
    match WAKE_OWN.get() {
        Some(wake_own) => wake_own(&mut || wakers.next(), foreign),
        None => foreign.extend(wakers),
    }
}
