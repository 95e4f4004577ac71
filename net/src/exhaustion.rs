//! A listener's backoff when the system has no descriptor or no memory left for another connection, and when the
//! listener will never have another one.
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
/// assert!(weald::net::is_exhausted(&io::Error::from_raw_os_error(24)), "too many open files");
/// assert!(!weald::net::is_exhausted(&io::ErrorKind::ConnectionReset.into()));
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

/// Whether `error`, of an accept, means that the listener will never accept again: its descriptor no longer listens, or
/// the runtime in which it was made has shut down. A loop around accept ends here; continuing is allowed and useless.
///
/// ```
/// use std::io;
/// assert!(weald::net::is_final(&io::Error::from_raw_os_error(22)), "the socket was shut down");
/// assert!(!weald::net::is_final(&io::Error::from_raw_os_error(24)), "too many open files");
/// assert!(!weald::net::is_final(&io::Error::other("a client without a PROXY header")));
/// ```
pub fn is_final(error: &io::Error) -> bool {
    match Errno::from_io_error(error) {
        Some(errno) => {
            // Not EOPNOTSUPP, which may be an error of the one connection.
            const ALL: [Errno; 3] = [Errno::BADF, Errno::INVAL, Errno::NOTSOCK];
            ALL.contains(&errno)
        }
        None => weald_kernel::is_runtime_gone(error),
    }
}

/// Whether `error`, of an accept, would come with every attempt if the descriptor cannot accept (that of a datagram
/// socket, for example). On Linux it may also say that the one connection failed.
fn is_unsupported(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::OPNOTSUPP)
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
            Err(error) if is_exhausted(error) || is_final(error) || is_unsupported(error) => {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::path_error::at_path;

    /// Errors of Weald stand in others: in one that names a path, and in those of a listener of one's own.
    #[test]
    fn an_error_that_says_deep_inside_that_the_runtime_is_gone_is_final() {
        let gone = || io::Error::from(weald_kernel::ShutDown);
        let at = |reason| at_path("listening at", Path::new("a.socket"), reason);
        for error in [
            gone(),
            io::Error::other(gone()),
            io::Error::other(io::Error::other(gone())),
            at(gone()),
            io::Error::other(at(io::Error::other(gone()))),
        ] {
            assert!(is_final(&error), "{error:?}");
        }
        let another = io::Error::other(at(io::Error::other("a client without a PROXY header")));
        assert!(!is_final(&another));
    }
}
