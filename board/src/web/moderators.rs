//! Moderators: the passphrase that they sign in with, and which sessions are signed in.
//!
//! - A session is a secret of 128 bits, which the browser has as a cookie of its own: no script and no other site reads
//!   it or sends it. The board has a hash of it, in memory only; so a restart signs everybody out.
//! - Each session ends after half a day, or when its moderator signs out.
//! - A program brings the secret as its key. Cookies do not count for programs, nor keys for pages.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::{Hashed, hash};

use super::config::Rate;
use super::guesses::Guesses;
use super::visitor::random;

/// How long a session lasts, at most.
pub(crate) const LASTS: Duration = Duration::from_secs(12 * 3_600);
/// How many sessions there may be.
const MOST: usize = 1_000;
/// The moderators of a board. Times are those since any fixed moment.
pub(crate) struct Moderators {
    pub(crate) passphrase: Option<Hashed>,
    pub(crate) tries: Guesses<()>,
    sessions: Mutex<HashMap<[u8; 16], Session>>,
}

struct Session {
    moderator: String,
    until: Duration,
}

impl Moderators {
    pub(crate) fn new(passphrase: Option<Hashed>, tries: Option<Rate>) -> Self {
        Self {
            passphrase,
            sessions: Mutex::default(),
            tries: Guesses::new(tries),
        }
    }

    /// Whether anybody can be a moderator here.
    pub(crate) fn are_there(&self) -> bool {
        self.passphrase.is_some()
    }

    /// Begins a session. Returns its secret.
    pub(crate) fn begin(&self, moderator: String, now: Duration) -> String {
        let secret = random();
        let mut all = self.lock();
        all.retain(|_, session| now < session.until);
        if all.len() >= MOST {
            // The one that ends first.
            let first = all.iter().min_by_key(|(_, session)| session.until);
            let first = first.map(|(key, _)| *key);
            first.map(|key| all.remove(&key));
        }
        let until = now + LASTS;
        all.insert(key(&secret), Session { moderator, until });
        secret
    }

    /// The moderator of a session that has not ended.
    pub(crate) fn find(&self, secret: &str, now: Duration) -> Option<String> {
        let all = self.lock();
        let session = all.get(&key(secret))?;
        (now < session.until).then(|| session.moderator.clone())
    }

    /// Ends a session.
    pub(crate) fn end(&self, secret: &str) {
        self.lock().remove(&key(secret));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(secret: &str) -> [u8; 16] {
    hash("session", &[secret.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_with_its_time_or_before() {
        let moderators = Moderators::new(None, None);
        let now = Duration::from_secs(100);
        let [one, other] = ["Ada", "Alan"].map(|name| moderators.begin(name.to_owned(), now));
        assert_eq!(moderators.find(&one, now).as_deref(), Some("Ada"));
        assert_eq!(moderators.find(&one, now + LASTS), None);
        moderators.end(&one);
        assert_eq!(moderators.find(&one, now), None);
        assert_eq!(moderators.find(&other, now).as_deref(), Some("Alan"));
        assert_eq!(moderators.find("", now), None);
    }

    #[test]
    fn there_is_a_bound_of_sessions() {
        let moderators = Moderators::new(None, None);
        let begin = |second| moderators.begin("Ada".to_owned(), Duration::from_secs(second));
        let first = begin(1);
        let all: Vec<_> = (2..).map(begin).take(MOST).collect();
        assert_eq!(moderators.find(&first, Duration::from_secs(5)), None);
        assert!(moderators.find(&all[0], Duration::from_secs(5)).is_some());
    }
}
