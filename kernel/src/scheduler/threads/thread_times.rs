//! What the system reports about a thread: how long it ran, and whether it is blocked. A fuzz target reads it, too.

use std::{
    fs::File,
    io::{Cursor, Read, Write},
    str,
    time::Duration,
};

/// The longest name of a file that is read here.
const NAME: usize = 64;
/// More than is read of a file: the name of a thread has at most 15 bytes.
const CONTENT: usize = 512;

/// The times of a thread at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadTimes {
    /// Time spent on a core.
    pub(super) ran: Duration,
    /// Whether the thread waits for anything but a core.
    pub(super) is_blocked: bool,
}

impl ThreadTimes {
    /// The times of the thread with this id. None where `/proc` does not have them, or the thread is gone. Allocates
    /// nothing.
    pub(super) fn of(number: u32) -> Option<ThreadTimes> {
        let mut content = [0; CONTENT];
        let ran = parse_ran(read_of(number, "schedstat", &mut content)?)?;
        let is_blocked = parse_is_blocked(read_of(number, "stat", &mut content)?)?;
        Some(ThreadTimes { ran, is_blocked })
    }
}

/// The time on a core, from a `schedstat`.
pub(super) fn parse_ran(schedstat: &[u8]) -> Option<Duration> {
    let ran = str::from_utf8(schedstat).ok()?.split_whitespace().next()?;
    ran.parse().ok().map(Duration::from_nanos)
}

/// Whether the thread waits for anything but a core, from a `stat`.
pub(super) fn parse_is_blocked(stat: &[u8]) -> Option<bool> {
    // The state is the first word after the name, which is in parentheses and may contain parentheses. A name need not
    // be text.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let state = stat[name_end + 1..].trim_ascii_start().first()?;
    Some(*state != b'R')
}

/// The beginning of a file about the thread with this id.
fn read_of<'a>(number: u32, file: &str, content: &'a mut [u8; CONTENT]) -> Option<&'a [u8]> {
    let mut name = Cursor::new([0; NAME]);
    write!(name, "/proc/self/task/{number}/{file}").ok()?;
    let length = usize::try_from(name.position()).ok()?;
    let name = str::from_utf8(&name.get_ref()[..length]).ok()?;
    // The system gives such a file as a whole.
    let length = File::open(name).ok()?.read(content).ok()?;
    Some(&content[..length])
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn own() -> u32 {
        u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap()
    }

    #[test]
    fn a_thread_that_waits_is_blocked_and_one_that_runs_is_not() {
        // The time of a running thread lags.
        while ThreadTimes::of(own()).unwrap().ran.is_zero() {}
        assert!(!ThreadTimes::of(own()).unwrap().is_blocked);
        let (number_to, number) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let waits = std::thread::Builder::new().name("(a) R) ".to_owned());
        let waits = waits.spawn(move || {
            number_to.send(own()).unwrap();
            _ = ended.recv();
        });
        let number = number.recv().unwrap();
        while !ThreadTimes::of(number).unwrap().is_blocked {}
        drop(end);
        waits.unwrap().join().unwrap();
        assert!(ThreadTimes::of(u32::MAX).is_none());
    }
}
