//! What the server does when a connection could not be accepted: decisions, and what is reported.

use std::{io, time::Duration};

use weald_net::{is_exhausted, is_final};

/// After this many failures in a row there is a pause: a listener of one's own may fail for good, and would take all of
/// a worker. They need not follow at once: a server to which nobody else comes may have as many in a day.
const MANY: u32 = 16;
/// How long a [`Remedy::Pause`] is.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// The failures since the last connection that was accepted.
#[derive(Default)]
pub(crate) struct AcceptFailures {
    in_row: u32,
    was_told: bool,
    /// How many more connections are to be accepted without another lack before one is reported again: if each takes
    /// the place of an idle one, one lack follows the other.
    until_told: u32,
}

/// What to do before the listener is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Nothing: only that one connection has failed.
    GoOn,
    Pause,
    /// To close an idle connection, because no descriptor or memory is left.
    MakeRoom,
    /// The listener can no longer accept.
    End,
}

impl AcceptFailures {
    /// A connection was accepted.
    pub(crate) fn accepted(&mut self) {
        (self.in_row, self.was_told) = (0, false);
        self.until_told = self.until_told.saturating_sub(1);
    }

    /// What to do about an error of `accept`.
    pub(crate) fn remedy(&mut self, error: &io::Error) -> Remedy {
        if is_exhausted(error) {
            if std::mem::replace(&mut self.until_told, MANY) == 0 {
                report_exhausted(error);
            }
            return Remedy::MakeRoom;
        }
        if is_final(error) {
            return Remedy::End;
        }
        // An error of the connection itself, or of its network.
        tracing::debug!(%error, "a connection failed before it was accepted");
        self.in_row += 1;
        if self.in_row < MANY {
            return Remedy::GoOn;
        }
        self.in_row = 0;
        if !std::mem::replace(&mut self.was_told, true) {
            report_failing(error);
        }
        Remedy::Pause
    }
}

fn report_exhausted(error: &io::Error) {
    weald_kernel::report_failure(|| {
        format!(
            "no connection can be accepted: {error}; the server closes idle ones, and pauses until descriptors and \
             memory are available again"
        )
    });
}

fn report_failing(error: &io::Error) {
    weald_kernel::report_failure(|| {
        format!(
            "{MANY} connections in a row could not be accepted, and the listener is asked again: {error}; one that has \
             failed for good should return an error that weald_net::is_final knows, such as EBADF"
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_gives_nothing_but_errors_is_asked_with_pauses() {
        let mut failures = AcceptFailures::default();
        let error = io::Error::other("no PROXY header");
        for n in 1..=3 * MANY {
            let remedy = match n % MANY {
                0 => Remedy::Pause,
                _ => Remedy::GoOn,
            };
            assert_eq!(failures.remedy(&error), remedy, "{n}");
        }
        let bad = io::Error::from_raw_os_error(9);
        assert_eq!(failures.remedy(&bad), Remedy::End);
        let full = io::Error::from_raw_os_error(24);
        assert_eq!(failures.remedy(&full), Remedy::MakeRoom);
    }

    #[test]
    fn a_lack_that_goes_on_is_reported_once() {
        let mut failures = AcceptFailures::default();
        let full = io::Error::from_raw_os_error(24);
        for _ in 0..3 * MANY {
            assert_eq!(failures.remedy(&full), Remedy::MakeRoom);
            failures.accepted();
            assert!(failures.until_told > 0, "the next one is not told");
        }
        (1..MANY).for_each(|_| failures.accepted());
        assert_eq!(failures.until_told, 0);
    }
}
