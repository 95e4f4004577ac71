//! Waiting: with a unit's stack, or with the OS thread where no unit runs.

use std::time::Duration;

use weald::{Wait, timeout};

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

/// Waits until the limit. An event that is ready at once wins over a limit of zero.
pub(crate) fn wait_at_most<F: IntoFuture>(future: F, limit_ns: i64) -> Result<F::Output, Failure> {
    match duration(limit_ns) {
        None => Ok(wait(future)),
        Some(limit) => {
            let limited = wait(timeout(limit, future.into_future()));
            limited.map_err(|_elapsed| timed_out())
        }
    }
}

pub(crate) fn timed_out() -> Failure {
    failure(WEALD_TIMED_OUT, "the time limit passed")
}
