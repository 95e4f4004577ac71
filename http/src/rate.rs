//! The least rate at which a client must send a body or read a response, and the meter that measures it.
//!
//! Only the time that the server spends waiting for the client counts. So a service that takes its time, in reading a
//! body or in writing a response, is never the client's fault.

use std::time::{Duration, Instant};

/// The least rate of a client, on average over the time for which the server has waited for it, after a grace period.
///
/// A client may let the server wait for `grace`, and for one second more per `bytes_per_second` bytes that it has sent
/// or read meanwhile. A rate of 0 is no limit.
///
/// ```
/// # use std::time::Duration;
/// # fn example<S: weald::http::Serve>(listener: weald::net::TcpListener, router: S) -> impl Sized {
/// use weald::http::MinRate;
///
/// weald::http::serve(listener, router).min_body_rate(MinRate::new(1_000, Duration::from_secs(20)))
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinRate {
    bytes_per_second: u32,
    grace: Duration,
}

impl MinRate {
    /// This many bytes a second, after `grace`.
    pub const fn new(bytes_per_second: u32, grace: Duration) -> MinRate {
        MinRate {
            bytes_per_second,
            grace,
        }
    }

    /// The default of both directions: 240 bytes a second, after 10 s.
    pub(crate) const DEFAULT: MinRate = MinRate::new(240, Duration::from_secs(10));

    /// How long the server may have waited for a client that has transferred this many bytes.
    fn allowance(self, bytes: u64) -> Duration {
        match self.bytes_per_second {
            0 => Duration::MAX,
            rate => {
                let rate = u64::from(rate);
                let earned = Duration::from_millis((bytes % rate) * 1_000 / rate);
                let earned = earned + Duration::from_secs(bytes / rate);
                self.grace.saturating_add(earned)
            }
        }
    }

    /// The time within which a client that sends or reads nothing is noticed.
    pub(crate) fn first_limit(self) -> Duration {
        self.allowance(0)
    }
}

/// How long the server has waited for a client, and how many bytes came meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    bytes: u64,
    waited: Duration,
    /// When the current wait began, if there is one.
    since: Option<Instant>,
}

impl Meter {
    /// A wait begins, unless one has begun.
    pub(crate) fn begin_wait(&mut self) {
        self.since.get_or_insert_with(weald_kernel::now);
    }

    /// The wait ends, if there is one.
    pub(crate) fn end_wait(&mut self) {
        if let Some(since) = self.since.take() {
            self.waited += weald_kernel::now().saturating_duration_since(since);
        }
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// How much longer the client may let the server wait.
    pub(crate) fn left(&self, rate: MinRate) -> Duration {
        let current = self.since.map_or(Duration::ZERO, |since| {
            weald_kernel::now().saturating_duration_since(since)
        });
        rate.allowance(self.bytes)
            .saturating_sub(self.waited + current)
    }
}

/// The reader of a response. What it has taken is known from what it has not: the system reports room for more only
/// when a third of its buffer is free, which may be a megabyte.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    meter: Meter,
    /// How many bytes it had not taken at the last look, and those written since. None before the first look.
    unread: Option<usize>,
}

impl Reader {
    /// This many bytes were written.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.meter.end_wait();
        self.unread = self.unread.map(|unread| unread.saturating_add(bytes));
    }

    /// A write waits, and this many bytes are unread. Returns whether the client has taken some since the last
    /// look.
    pub(crate) fn waits(&mut self, unread: usize) -> bool {
        let before = self.unread.replace(unread).unwrap_or(unread);
        let taken = before.saturating_sub(unread);
        self.meter.add(taken);
        self.meter.begin_wait();
        taken > 0
    }

    /// How much longer it may let the server wait.
    pub(crate) fn left(&self, rate: MinRate) -> Duration {
        self.meter.left(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: MinRate = MinRate::new(100, Duration::from_secs(5));

    #[test]
    fn each_byte_earns_time_and_each_wait_takes_some() {
        let mut meter = Meter::default();
        assert_eq!(meter.left(RATE), Duration::from_secs(5));
        meter.add(250);
        assert_eq!(meter.left(RATE), Duration::from_millis(7_500));
        meter.waited = Duration::from_secs(7);
        assert_eq!(meter.left(RATE), Duration::from_millis(500));
        meter.waited = Duration::from_secs(8);
        assert_eq!(meter.left(RATE), Duration::ZERO);
    }

    #[test]
    fn no_wait_takes_no_time_and_no_rate_is_no_limit() {
        let mut meter = Meter::default();
        meter.end_wait();
        assert_eq!(meter.waited, Duration::ZERO);
        meter.waited = Duration::from_secs(1 << 40);
        let none = MinRate::new(0, Duration::ZERO);
        assert!(meter.left(none) > Duration::from_secs(1 << 40));
        meter.bytes = u64::MAX;
        assert!(meter.left(MinRate::new(1, Duration::ZERO)) > Duration::ZERO);
    }

    /// On a runtime with virtual time: a client that sends a byte each 29 s is found after the grace.
    #[test]
    fn a_trickle_earns_too_little() {
        let runtime = weald_kernel::Runtime::test(1);
        runtime.block_on(async {
            let mut meter = Meter::default();
            meter.begin_wait();
            weald_kernel::sleep(Duration::from_secs(4)).await;
            meter.end_wait();
            // Not the client's fault.
            weald_kernel::sleep(Duration::from_secs(100)).await;
            meter.add(1);
            meter.begin_wait();
            let left = meter.left(RATE);
            assert_eq!(left, Duration::from_millis(1_010));
            weald_kernel::sleep(left).await;
            assert_eq!(meter.left(RATE), Duration::ZERO);
        });
    }
}
