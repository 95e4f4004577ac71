//! How often a passphrase may be wrong: by one address, and by all together about one thing.
//!
//! - All addresses together may be wrong only so often. But the guesses of others keep nobody out: an address that was
//!   not wrong about this within the last hour may always try.
//! - Memory is bounded. While more addresses have been wrong within an hour than can be remembered, an address that was
//!   not wrong waits like the others.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::BoardError;

use super::config::Rate;
use super::limiter::Limiter;

/// For how long it is remembered that an address was wrong.
const REMEMBERED: Duration = Duration::from_secs(3_600);
/// How many are remembered.
const MOST: usize = 1 << 16;
/// By how much more all addresses together may be wrong than one.
const ALL_TOGETHER: u32 = 5;

/// The guesses about things of one kind. Times are those since any fixed moment.
pub(crate) struct Guesses<K> {
    all_together: Limiter<K>,
    wrong: Mutex<HashMap<(IpAddr, K), Duration>>,
}

/// A try: dropped, it counts as wrong.
pub(crate) struct Try<'a, K: Eq + Hash> {
    by_address: &'a Limiter<IpAddr>,
    address: IpAddr,
    guesses: &'a Guesses<K>,
    key: K,
    /// Whether it took a token of those for all together.
    has_token: bool,
    was_wrong: bool,
}

impl<K: Eq + Hash + Copy> Guesses<K> {
    pub(crate) fn new(tries: Option<Rate>) -> Self {
        let all_together = tries.map(|rate| Rate {
            burst: rate.burst.saturating_mul(ALL_TOGETHER),
            every: rate.every / ALL_TOGETHER,
        });
        Self {
            all_together: Limiter::new(all_together),
            wrong: Mutex::default(),
        }
    }

    /// A try of an address, which has a limit of its own.
    ///
    /// # Errors
    /// How long to wait.
    pub(crate) fn take<'a>(
        &'a self,
        key: K,
        (by_address, address): (&'a Limiter<IpAddr>, IpAddr),
        now: Duration,
    ) -> Result<Try<'a, K>, Duration> {
        by_address.take(address, now)?;
        let token = self.all_together.take(key, now);
        let was_wrong = self.was_wrong(key, address, now);
        if let Err(wait) = token
            && was_wrong
        {
            by_address.give_back(address);
            return Err(wait);
        }
        self.note(key, address, now);
        Ok(Try {
            by_address,
            address,
            guesses: self,
            key,
            has_token: token.is_ok(),
            was_wrong,
        })
    }

    /// Whether an address was wrong lately, or too many were to know.
    fn was_wrong(&self, key: K, address: IpAddr, now: Duration) -> bool {
        let mut all = self.lock();
        if all.len() >= MOST {
            all.retain(|_, until| now < *until);
        }
        let until = all.get(&(neighbourhood(address), key));
        until.is_some_and(|until| now < *until) || all.len() >= MOST
    }

    fn note(&self, key: K, address: IpAddr, now: Duration) {
        let mut all = self.lock();
        if all.len() < MOST {
            all.insert((neighbourhood(address), key), now + REMEMBERED);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(IpAddr, K), Duration>> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Copy> Try<'_, K> {
    /// Gives it back, if the passphrase was right or was not looked at.
    pub(crate) fn settle<T>(self, outcome: Result<T, BoardError>) -> Result<T, BoardError> {
        let is_right = outcome.is_ok();
        let is_unseen = matches!(outcome, Err(BoardError::Crowded | BoardError::Storage(_)));
        if is_right || is_unseen {
            self.by_address.give_back(self.address);
            if self.has_token {
                self.guesses.all_together.give_back(self.key);
            }
        }
        if is_right || (is_unseen && !self.was_wrong) {
            let of = (neighbourhood(self.address), self.key);
            self.guesses.lock().remove(&of);
        }
        outcome
    }
}

/// What counts as one address here: nobody gets a try for each of the 65,536 networks that come with one connection.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => {
            let bits = u128::from(address) >> 80 << 80;
            IpAddr::V6(Ipv6Addr::from(bits))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<Rate> = Some(Rate {
        burst: 2,
        every: Duration::from_secs(60),
    });
    const NOW: Duration = Duration::from_secs(1_000);
    const WRONG: Result<(), BoardError> = Err(BoardError::WrongPassphrase);

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    /// What somebody with a passphrase gets: whether it was looked at.
    fn guess(
        (guesses, limiter): (&Guesses<u8>, &Limiter<IpAddr>),
        address: IpAddr,
        outcome: Result<(), BoardError>,
    ) -> bool {
        let attempt = guesses.take(7, (limiter, address), NOW);
        attempt.is_ok_and(|attempt| {
            let _ = attempt.settle(outcome);
            true
        })
    }

    #[test]
    fn guesses_of_others_keep_nobody_out_who_was_not_wrong() {
        let (guesses, limiter) = (Guesses::new(RATE), Limiter::new(RATE));
        let both = (&guesses, &limiter);
        for number in 0..5 {
            assert!(guess(both, address(number), WRONG));
            assert!(guess(both, address(number), WRONG));
            assert!(!guess(both, address(number), WRONG), "its own limit");
        }
        // All together have used up theirs: one more guess of a new address, and no second one.
        assert!(guess(both, address(100), WRONG));
        assert!(!guess(both, address(100), WRONG));
        // A client that is right can come again and again.
        for _ in 0..5 {
            assert!(guess(both, address(200), Ok(())));
        }
        // What was not looked at changes nothing.
        for _ in 0..5 {
            assert!(guess(both, address(201), Err(BoardError::Crowded)));
        }
        assert!(!guess(both, address(100), Err(BoardError::Crowded)));
    }

    #[test]
    fn a_connection_of_version_6_has_one_free_try() {
        let (guesses, limiter) = (Guesses::new(RATE), Limiter::new(None));
        let both = (&guesses, &limiter);
        for number in 0..10 {
            assert!(guess(both, address(number), WRONG));
        }
        assert!(guess(both, "2001:db8:1:1::".parse().unwrap(), WRONG));
        assert!(!guess(both, "2001:db8:1:2::".parse().unwrap(), WRONG));
        assert!(guess(both, "2001:db8:2:1::".parse().unwrap(), WRONG));
    }

    #[test]
    fn memory_is_bounded() {
        let (guesses, limiter) = (Guesses::new(RATE), Limiter::new(None));
        let both = (&guesses, &limiter);
        for number in 0..u32::try_from(MOST).unwrap() + 10 {
            guess(both, address(number), WRONG);
        }
        assert_eq!(guesses.lock().len(), MOST);
        assert!(!guess(both, address(u32::MAX), Ok(())));
        let later = NOW + 2 * REMEMBERED;
        assert!(
            guesses
                .take(7, (&limiter, address(u32::MAX)), later)
                .is_ok()
        );
        assert_eq!(guesses.lock().len(), 1);
    }
}
