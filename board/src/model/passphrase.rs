//! Passphrases: only a hash (argon2id, as a PHC string) is kept, and a passphrase is compared with it.
//!
//! Both functions compute for tens of milliseconds and need 19 MiB, so that guessing is expensive. They run on a thread
//! that serves no job (`weald::blocking`), and few at once ([`Turns`]).

use std::fmt;
use std::str::FromStr;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};

use weald::sync::Semaphore;

use super::draft::{Field, Invalid};
use super::error::BoardError;

/// The fewest characters of a passphrase.
pub const MIN_PASSPHRASE: usize = 10;
/// The most bytes of one.
pub const MAX_PASSPHRASE: usize = 200;

/// The hash of a passphrase, with its salt and what it cost.
#[derive(Clone, PartialEq, Eq)]
pub struct Hashed(String);

/// Why a text is no hash of a passphrase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash of a passphrase begins with $argon2id$, and this is none: {0}")]
pub struct NotAHash(String);

impl Hashed {
    /// Hashes a passphrase with a salt of its own. It computes for long: call it within `weald::blocking`.
    ///
    /// ```
    /// use weald_board::model::Hashed;
    ///
    /// let hash = Hashed::of("correct horse battery");
    /// assert!(hash.fits("correct horse battery"));
    /// assert!(!hash.fits("correct horse"));
    /// assert_eq!(hash.as_str().parse(), Ok(hash));
    /// ```
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub fn of(passphrase: &str) -> Self {
        let hash = Argon2::default().hash_password(passphrase.as_bytes());
        Self(
            hash.expect("the salt is random, and the costs are the crate's own")
                .to_string(),
        )
    }

    /// Whether it is the hash of this passphrase. It computes for long: call it within `weald::blocking`.
    pub fn fits(&self, passphrase: &str) -> bool {
        let hash = PasswordHash::new(&self.0);
        hash.is_ok_and(|hash| {
            Argon2::default()
                .verify_password(passphrase.as_bytes(), &hash)
                .is_ok()
        })
    }

    /// As it is kept: a PHC string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Hashed {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let hash = PasswordHash::new(text).map_err(|error| NotAHash(error.to_string()))?;
        let is_whole = hash.hash.is_some() && hash.salt.is_some();
        match hash.algorithm.as_str() {
            "argon2id" if is_whole => Ok(Self(text.to_owned())),
            "argon2id" => Err(NotAHash("its salt or its end is missing".to_owned())),
            other => Err(NotAHash(format!("it is one of {other}"))),
        }
    }
}

impl fmt::Debug for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hashed")
    }
}

/// Whether a new passphrase is long enough, and not too long to be hashed.
///
/// # Errors
/// [`Invalid`], about the field.
pub fn check_passphrase(passphrase: &str) -> Result<(), Invalid> {
    let mut invalid = Invalid::default();
    if passphrase.chars().count() < MIN_PASSPHRASE {
        let sentence = format!("A passphrase has at least {MIN_PASSPHRASE} characters.");
        invalid.note(Field::Passphrase, sentence);
    } else if passphrase.len() > MAX_PASSPHRASE {
        let sentence = format!("A passphrase has at most {MAX_PASSPHRASE} bytes.");
        invalid.note(Field::Passphrase, sentence);
    }
    match invalid.0.is_empty() {
        true => Ok(()),
        false => Err(invalid),
    }
}

/// How many passphrases are hashed at once, and how many more may wait for that.
const AT_ONCE: u32 = 2;
const WAITING: u32 = 30;

/// Turns to hash a passphrase, so that a flood of them takes neither all memory nor all processors.
pub(crate) struct Turns {
    waiting: Semaphore,
    hashing: Semaphore,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Semaphore::named("wait for a passphrase", AT_ONCE + WAITING),
            hashing: Semaphore::named("hash a passphrase", AT_ONCE),
        }
    }

    /// Computes on a thread that serves no job.
    async fn run<R: Send>(&self, compute: impl FnOnce() -> R + Send) -> Result<R, BoardError> {
        let _place = self
            .waiting
            .try_acquire()
            .map_err(|_| BoardError::Crowded)?;
        let _turn = self
            .hashing
            .acquire()
            .await
            .map_err(|_| BoardError::Crowded)?;
        Ok(weald::blocking(compute))
    }

    /// Hashes a passphrase.
    ///
    /// # Errors
    /// [`BoardError::Crowded`], if too many wait for that.
    pub(crate) async fn hash(&self, passphrase: &str) -> Result<Hashed, BoardError> {
        self.run(|| Hashed::of(passphrase)).await
    }

    /// Whether it is the hash of this passphrase. One that is too long to be hashed fits none.
    ///
    /// # Errors
    /// As [`hash`](Self::hash).
    pub(crate) async fn fits(&self, hash: &Hashed, passphrase: &str) -> Result<bool, BoardError> {
        if passphrase.len() > MAX_PASSPHRASE {
            return Ok(false);
        }
        self.run(|| hash.fits(passphrase)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_hashes_of_argon2id_are_read() {
        let hash = Hashed::of("correct horse battery");
        let other = Hashed::of("correct horse battery");
        assert_ne!(hash, other, "each has a salt of its own");
        let text = hash.as_str();
        assert_eq!(format!("{hash:?}"), "Hashed");
        for wrong in [
            "",
            "correct horse battery",
            &text.replace("argon2id", "argon2i"),
            text.rsplit_once('$').unwrap().0,
            "$argon2id$v=19$m=19456,t=2,p=1",
        ] {
            assert!(wrong.parse::<Hashed>().is_err(), "{wrong}");
        }
    }
}
