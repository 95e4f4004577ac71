//! What a listener does when the system has no descriptor or memory left for one more connection.
//!
//! Whoever accepts is told at once, and the next wait lasts for a while before it asks again, longer each
//! time. So a loop that goes on after an error does not spin.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::io::Errno;

/// The first pause, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Whether `error` says that the system, or this program, has no descriptor or memory left: what may come
/// back when others give theirs up.
///
/// ```
/// use std::io;
/// assert!(weald_net::is_exhausted(&io::Error::from_raw_os_error(24)), "too many open files");
/// assert!(!weald_net::is_exhausted(&io::ErrorKind::ConnectionReset.into()));
/// ```
pub fn is_exhausted(error: &io::Error) -> bool {
    let known = Errno::from_io_error(error);
    // No space: for one more watched descriptor.
    const ALL: [Errno; 5] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::NOSPC,
    ];
    known.is_some_and(|errno| ALL.contains(&errno))
}

/// The pauses of one listener.
#[derive(Default)]
pub(crate) struct Pauses {
    present: Mutex<Option<Pause>>,
}

#[derive(Clone, Copy)]
struct Pause {
    until: Instant,
    /// How long it is.
    length: Duration,
}

impl Pauses {
    fn lock(&self) -> MutexGuard<'_, Option<Pause>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the present pause ends; none: there is none.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.lock().map(|pause| pause.until)
    }

    /// Takes note of what came of an attempt to accept.
    pub(crate) fn note<T>(&self, accepted: &io::Result<T>) {
        let mut present = self.lock();
        *present = match accepted {
            Err(error) if is_exhausted(error) => {
                let longer = |pause: Pause| (2 * pause.length).min(PAUSES.1);
                let length = present.map_or(PAUSES.0, longer);
                let until = weald_kernel::now() + length;
                Some(Pause { until, length })
            }
            // That connection failed, which says nothing of the next one.
            Err(_) => *present,
            Ok(_) => None,
        };
    }
}
