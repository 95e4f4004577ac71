//! Points in time, as C has them: seconds and nanoseconds by the system's clock (`CLOCK_REALTIME`).

use std::{
    ffi::c_int,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use libc::timespec;

/// The length of time that `time` is.
///
/// # Errors
/// `EINVAL` if it is negative, or has a billion nanoseconds or more.
pub(crate) fn duration(time: &timespec) -> Result<Duration, c_int> {
    let seconds = u64::try_from(time.tv_sec).map_err(|_negative| libc::EINVAL)?;
    match u32::try_from(time.tv_nsec) {
        Ok(nanoseconds @ 0..=999_999_999) => Ok(Duration::new(seconds, nanoseconds)),
        _ => Err(libc::EINVAL),
    }
}

/// When `time` is; now, if that has passed. None: later than the clock can tell.
///
/// # Errors
/// `EINVAL` if there is no time, or its nanoseconds are out of range.
pub(crate) fn deadline(time: Option<&timespec>) -> Result<Option<Instant>, c_int> {
    let time = time.ok_or(libc::EINVAL)?;
    if time.tv_sec < 0 && (0..1_000_000_000).contains(&time.tv_nsec) {
        return Ok(Some(Instant::now()));
    }
    let since_epoch = duration(time)?;
    // A clock before 1970 has every deadline before it.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Ok(Instant::now().checked_add(since_epoch.saturating_sub(now)))
}
