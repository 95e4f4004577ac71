//! Names and passphrases: which visitors have shown lately that a name is theirs, and how often a passphrase may be wrong.
//!
//! - A browser, or a program with a key, that has given the right passphrase is not asked again for half a day. That is
//!   remembered in memory only.
//! - Each try takes a token, of the address and of what is guessed at; one that was right, or was not looked at, gives both back.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::{BoardError, NameKey, Owner};

use super::config::Rate;
use super::limiter::Limiter;

/// For how long a name that was proven is believed.
const REMEMBERED: Duration = Duration::from_secs(12 * 3_600);
/// How many proofs are remembered.
const MOST: usize = 16_384;
/// How much oftener than one address all together may be wrong about one name, so that nobody locks its owner out soon.
const ALL_TOGETHER: u32 = 5;

/// What was proven, and what was tried. Times are those since any fixed moment.
pub(crate) struct Proofs {
    until: Mutex<HashMap<(Owner, NameKey), Duration>>,
    pub(crate) by_address: Limiter<IpAddr>,
    pub(crate) by_name: Limiter<NameKey>,
}

impl Proofs {
    pub(crate) fn new(tries: Option<Rate>) -> Self {
        let all_together = tries.map(|rate| Rate {
            burst: rate.burst.saturating_mul(ALL_TOGETHER),
            every: rate.every / ALL_TOGETHER,
        });
        Self {
            until: Mutex::default(),
            by_address: Limiter::new(tries),
            by_name: Limiter::new(all_together),
        }
    }

    /// Whether it was proven lately.
    pub(crate) fn believes(&self, owner: Option<Owner>, key: NameKey, now: Duration) -> bool {
        let until = owner.and_then(|owner| self.lock().get(&(owner, key)).copied());
        until.is_some_and(|until| now < until)
    }

    /// Remembers that it was proven now.
    pub(crate) fn remember(&self, owner: Option<Owner>, key: NameKey, now: Duration) {
        let Some(owner) = owner else { return };
        let mut all = self.lock();
        if all.len() >= MOST {
            all.retain(|_, until| now < *until);
        }
        // If all of them are fresh, this one is asked again; nobody can fill the memory.
        if all.len() < MOST {
            all.insert((owner, key), now + REMEMBERED);
        }
    }

    /// Forgets all proofs of a name, because its passphrase is another one.
    pub(crate) fn forget(&self, key: NameKey) {
        self.lock().retain(|(_, other), _| *other != key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Owner, NameKey), Duration>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A try: dropped, it stays taken.
pub(crate) struct Try<'a, K: Eq + Hash> {
    pub(crate) address: (&'a Limiter<IpAddr>, IpAddr),
    pub(crate) what: (&'a Limiter<K>, K),
}

impl<K: Eq + Hash + Copy> Try<'_, K> {
    /// Gives it back, if the passphrase was right or was not looked at.
    pub(crate) fn settle<T>(self, outcome: Result<T, BoardError>) -> Result<T, BoardError> {
        if matches!(
            outcome,
            Ok(_) | Err(BoardError::Crowded | BoardError::Storage(_))
        ) {
            self.address.0.give_back(self.address.1);
            self.what.0.give_back(self.what.1);
        }
        outcome
    }
}
