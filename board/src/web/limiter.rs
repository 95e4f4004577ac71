//! Limits for each address, or for whatever else is counted: token buckets, one for each address that has used some of
//! its tokens.
//!
//! Invariant: a bucket that is full again makes no difference, so it may be forgotten at any time.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::config::Rate;

/// How many buckets are kept before full ones are looked for.
const MOST: usize = 16_384;
/// How many there are at most. All further addresses share one then.
const BOUND: usize = 1 << 18;
/// For how long full ones are not looked for again.
const REST: Duration = Duration::from_secs(1);

/// The buckets of one kind of requests. Times are those since any fixed moment.
pub(crate) struct Limiter<K> {
    rate: Option<Rate>,
    buckets: Mutex<Buckets<K>>,
}

/// When each bucket would be full again, if nothing more were taken.
struct Buckets<K> {
    full_at: HashMap<K, Duration>,
    /// The bucket of all addresses that have none of their own, because there are too many.
    others: Duration,
    /// How many buckets there may be before full ones are looked for, and when that was done last.
    look_at: usize,
    looked: Duration,
}

impl<K: Eq + Hash> Limiter<K> {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        let buckets = Mutex::new(Buckets {
            full_at: HashMap::new(),
            others: Duration::ZERO,
            look_at: MOST,
            looked: Duration::ZERO,
        });
        Self { rate, buckets }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// How long to wait until there is one.
    pub(crate) fn take(&self, of: K, now: Duration) -> Result<(), Duration> {
        let Some(Rate { burst, every }) = self.rate else {
            return Ok(());
        };
        let mut all = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = all.of(of, now);
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
        let mut all = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full_at) = all.full_at.get_mut(&of) {
            *full_at = full_at.saturating_sub(every);
        }
    }
}

impl<K: Eq + Hash> Buckets<K> {
    /// The bucket of one address. Full buckets are forgotten when there are twice as many as after the last look, and
    /// not twice in a second; so this look costs little, however many addresses come.
    fn of(&mut self, key: K, now: Duration) -> &mut Duration {
        let is_soon = self.looked != Duration::ZERO && now < self.looked + REST;
        if self.full_at.len() >= self.look_at && !is_soon {
            self.looked = now;
            self.full_at.retain(|_, full_at| *full_at > now);
            self.look_at = MOST.max(2 * self.full_at.len()).min(BOUND);
        }
        if self.full_at.len() >= BOUND && !self.full_at.contains_key(&key) {
            return &mut self.others;
        }
        self.full_at.entry(key).or_insert(now)
    }
}

/// The part of an address that is counted: a client with one address of version 6 mostly has the whole network of 64
/// bits.
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
        assert_eq!(limiter.buckets.lock().unwrap().full_at.len(), 1);
    }

    #[test]
    fn however_many_addresses_come_the_memory_has_a_bound() {
        let limiter = limiter();
        let address = |number: usize| IpAddr::V4(u32::try_from(number).unwrap().into());
        for number in 0..BOUND {
            limiter.take(address(number), SECOND).unwrap();
        }
        // All others share one bucket, of three tokens.
        let others = (BOUND..BOUND + 10).map(|number| limiter.take(address(number), SECOND));
        assert_eq!(others.filter(Result::is_ok).count(), 3);
        assert_eq!(limiter.take(address(0), SECOND), Ok(()));
        assert_eq!(limiter.buckets.lock().unwrap().full_at.len(), BOUND);
    }
}
