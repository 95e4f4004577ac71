//! Names and passphrases: which visitors have lately proven that a name is theirs, and how often a passphrase may be
//! wrong.
//!
//! A browser, or a program with a key, that has given the right passphrase is not asked again for half a day. That is
//! remembered in memory only.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::{NameKey, Owner};

use super::config::Rate;
use super::guesses::Guesses;
use super::limiter::Limiter;

/// For how long a name that was proven is believed.
const REMEMBERED: Duration = Duration::from_secs(12 * 3_600);
/// How many proofs are remembered.
const MOST: usize = 16_384;
/// Proofs and tries. Times are those since any fixed moment.
pub(crate) struct Proofs {
    until: Mutex<HashMap<(Owner, NameKey), Duration>>,
    pub(crate) by_address: Limiter<IpAddr>,
    pub(crate) by_name: Guesses<NameKey>,
}

impl Proofs {
    pub(crate) fn new(tries: Option<Rate>) -> Self {
        Self {
            until: Mutex::default(),
            by_address: Limiter::new(tries),
            by_name: Guesses::new(tries),
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
