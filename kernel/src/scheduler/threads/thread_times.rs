//! What the system reports about a thread: how long it ran, and whether it is blocked.

use std::{fs, time::Duration};

/// The times of a thread at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadTimes {
    /// Time spent on a core.
    pub(super) ran: Duration,
    /// Whether the thread waits for anything but a core.
    pub(super) is_blocked: bool,
}

impl ThreadTimes {
    /// The times of the thread with this id. None where `/proc` does not have them, or the thread is gone.
    pub(super) fn of(number: u32) -> Option<ThreadTimes> {
        let thread = format!("/proc/self/task/{number}");
        let times = fs::read_to_string(format!("{thread}/schedstat")).ok()?;
        let ran = times.split_whitespace().next()?.parse().ok()?;
        let stat = fs::read_to_string(format!("{thread}/stat")).ok()?;
        // The state is the first word after the name, which is in parentheses and may contain parentheses.
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        Some(ThreadTimes {
            ran: Duration::from_nanos(ran),
            is_blocked: state != 'R',
        })
    }
}
