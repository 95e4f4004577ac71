//! Waiting: with a unit's stack, or with the OS thread where no unit runs.

use std::time::Duration;

use weald::{
    Wait,
    sync::{Event, Waiting},
    timeout,
};
use weald_kernel::CancelShield;

use crate::{
    codes::{Failure, WEALD_TIMED_OUT, failure},
    guard::check_cancel,
    saved::across,
};

/// The duration of a limit in nanoseconds. None: no limit.
pub(crate) fn duration(limit_ns: i64) -> Option<Duration> {
    u64::try_from(limit_ns).ok().map(Duration::from_nanos)
}

/// Waits. In a unit that was cancelled it does not return: it unwinds to the entry of the library.
pub(crate) fn wait<F: IntoFuture>(future: F) -> F::Output {
    check_cancel();
    across(|| future.wait())
}

/// Waits for what `begin` makes of handles that it takes. A caller that was cancelled before keeps them; one that is
/// cancelled later has what it asked for, and hears of the cancel at its next wait.
pub(crate) fn wait_whole<F: IntoFuture>(
    begin: impl FnOnce() -> Result<F, Failure>,
) -> Result<F::Output, Failure> {
    check_cancel();
    let _shield = CancelShield::begin();
    let future = begin()?;
    Ok(across(|| future.wait()))
}

/// Waits until the limit. An event that is ready at once wins over a limit of zero. Only for what may be dropped and
/// done again: of a send that is taken just as the time passes its sender would not hear.
pub(crate) fn wait_at_most<F: IntoFuture>(future: F, limit_ns: i64) -> Result<F::Output, Failure> {
    match duration(limit_ns) {
        None => Ok(wait(future)),
        Some(limit) => {
            let limited = wait(timeout(limit, future.into_future()));
            limited.map_err(|_elapsed| timed_out())
        }
    }
}

/// The same, for an event of which the limit is a part: it happens, or the time passes, and never both.
pub(crate) fn wait_event_at_most<E: Event>(event: E, limit_ns: i64) -> Result<E::Output, Failure> {
    match duration(limit_ns) {
        None => Ok(wait(event.sync())),
        Some(limit) => {
            let limited = wait(Waiting::new(event.open()).within(limit));
            limited.map(E::conclude).map_err(|_| timed_out())
        }
    }
}

pub(crate) fn timed_out() -> Failure {
    failure(WEALD_TIMED_OUT, "the time limit passed")
}
