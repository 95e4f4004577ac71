//! Limits per address, or whatever else is counted: token buckets, one for each that has used some of its tokens.
//!
//! Invariant: a bucket that is full again is as good as none, so it may be forgotten at any time.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::config::Rate;

/// How many buckets are kept before full ones are looked for.
const MOST: usize = 16_384;

/// The buckets of one kind of requests. Times are those since any fixed moment.
pub(crate) struct Limiter<K> {
    rate: Option<Rate>,
    /// When each would have a full bucket again, if it asked for nothing more.
    full_at: Mutex<HashMap<K, Duration>>,
}

impl<K: Eq + Hash> Limiter<K> {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        let full_at = Mutex::new(HashMap::new());
        Self { rate, full_at }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// How long to wait until there is one.
    pub(crate) fn take(&self, of: K, now: Duration) -> Result<(), Duration> {
        let Some(Rate { burst, every }) = self.rate else {
            return Ok(());
        };
        let mut all = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.retain(|_, full_at| *full_at > now);
        }
        let full_at = all.entry(of).or_insert(now);
        let next = (*full_at).max(now) + every;
        let latest = now + every * burst;
        if next > latest {
            return Err(next - latest);
        }
        *full_at = next;
        Ok(())
    }

    /// Gives back a token that was taken.
    pub(crate) fn give_back(&self, of: K) {
        let Some(Rate { every, .. }) = self.rate else {
            return;
        };
        let mut all = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full_at) = all.get_mut(&of) {
            *full_at = full_at.saturating_sub(every);
        }
    }
}

/// What is counted of an address: whoever has one address of version 6 mostly has the whole network of 64 bits.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(bits))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limiter() -> Limiter<IpAddr> {
        Limiter::new(Some(Rate {
            burst: 3,
            every: 2 * SECOND,
        }))
    }

    #[test]
    fn a_burst_passes_and_then_one_in_each_interval() {
        let (limiter, address) = (limiter(), "192.0.2.1".parse().unwrap());
        let now = 100 * SECOND;
        for _ in 0..3 {
            assert_eq!(limiter.take(address, now), Ok(()));
        }
        assert_eq!(limiter.take(address, now), Err(2 * SECOND));
        assert_eq!(limiter.take(address, now + SECOND), Err(SECOND));
        assert_eq!(limiter.take(address, now + 2 * SECOND), Ok(()));
        assert_eq!(limiter.take(address, now + 2 * SECOND), Err(2 * SECOND));
        assert_eq!(limiter.take("192.0.2.2".parse().unwrap(), now), Ok(()));
        limiter.give_back(address);
        assert_eq!(limiter.take(address, now + 2 * SECOND), Ok(()));
    }

    #[test]
    fn a_network_of_version_6_has_one_bucket() {
        let of = |address: &str| network(address.parse().unwrap());
        let home = of("2001:db8::1");
        for host in ["2001:db8::2", "2001:db8:0:0:ffff::3"] {
            assert_eq!(of(host), home);
        }
        assert_ne!(of("2001:db8:0:1::1"), home);
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.2"), of("192.0.2.1"));
    }

    #[test]
    fn addresses_that_were_quiet_are_forgotten() {
        let limiter = limiter();
        for number in 0..u32::try_from(MOST).unwrap() {
            limiter.take(IpAddr::V4(number.into()), SECOND).unwrap();
        }
        limiter
            .take("192.0.2.1".parse().unwrap(), 10 * SECOND)
            .unwrap();
        assert_eq!(limiter.full_at.lock().unwrap().len(), 1);
    }
}
