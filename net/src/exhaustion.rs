//! A listener's backoff when the system has no descriptor or no memory left for another connection.
//!
//! The caller that accepts gets the error at once. The next wait pauses before it asks the system again, and
//! each pause is longer than the last, up to a bound. So a loop that continues after an error does not spin.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::io::Errno;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether `error` means that the system or this program has run out of descriptors or memory. Such an error
/// goes away once others release theirs.
///
/// ```
/// use std::io;
/// assert!(weald_net::is_exhausted(&io::Error::from_raw_os_error(24)), "too many open files");
/// assert!(!weald_net::is_exhausted(&io::ErrorKind::ConnectionReset.into()));
/// ```
pub fn is_exhausted(error: &io::Error) -> bool {
    let known = Errno::from_io_error(error);
    // `NOSPC`: epoll may watch no further descriptor.
    const ALL: [Errno; 5] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::NOSPC,
    ];
    known.is_some_and(|errno| ALL.contains(&errno))
}

/// The exponential backoff of one listener.
#[derive(Default)]
pub(crate) struct Backoff {
    current: Mutex<Option<Pause>>,
}

#[derive(Clone, Copy)]
struct Pause {
    until: Instant,
    length: Duration,
}

impl Backoff {
    fn lock(&self) -> MutexGuard<'_, Option<Pause>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the current pause ends, if there is one.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.lock().map(|pause| pause.until)
    }

    /// Records the result of an attempt to accept.
    pub(crate) fn note<T>(&self, accepted: &io::Result<T>) {
        let mut current = self.lock();
        *current = match accepted {
            Err(error) if is_exhausted(error) => {
                let longer = |pause: Pause| (2 * pause.length).min(LONGEST_PAUSE);
                let length = current.map_or(FIRST_PAUSE, longer);
                let until = weald_kernel::now() + length;
                Some(Pause { until, length })
            }
            // Only that one connection failed.
            Err(_) => *current,
            Ok(_) => None,
        };
    }
}
