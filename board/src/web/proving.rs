//! Whether somebody may write under a name, and the changes of protected names.

use std::hash::Hash;

use crate::model::{BoardError, By, NameKey, Requester};

use super::ask::Ask;
use super::guesses::{Guesses, Try};
use super::problem::Problem;

impl Ask {
    /// A try at a passphrase of something.
    ///
    /// # Errors
    /// 429.
    pub(crate) fn may_try<'a, K: Eq + Hash + Copy>(
        &'a self,
        of: &'a Guesses<K>,
        key: K,
    ) -> Result<Try<'a, K>, Problem> {
        let by_address = (&self.app.proofs.by_address, self.client.network());
        let taken = of.take(key, by_address, self.app.age());
        taken.map_err(Problem::too_many_tries)
    }

    /// Whether `requester` may write under a name. Returns the requester, who has proven the name if it is protected.
    ///
    /// # Errors
    /// 403, tied to the field of the passphrase; 422, if there is a passphrase for a name that has none; 429.
    pub(crate) async fn under_name(
        &self,
        requester: Requester,
        name: &str,
        passphrase: &str,
    ) -> Result<Requester, Problem> {
        match self.app.boards.protected(name) {
            None if passphrase.is_empty() => Ok(requester),
            None => Err(BoardError::NoName.into()),
            Some(key) => {
                self.prove(requester, key, passphrase).await?;
                Ok(Requester {
                    is_proven: true,
                    ..requester
                })
            }
        }
    }

    async fn prove(
        &self,
        requester: Requester,
        key: NameKey,
        passphrase: &str,
    ) -> Result<(), Problem> {
        let proofs = &self.app.proofs;
        if passphrase.is_empty() {
            return match proofs.believes(requester.owner, key, self.app.age()) {
                true => Ok(()),
                false => Err(BoardError::NameProtected.into()),
            };
        }
        let attempt = self.may_try(&proofs.by_name, key)?;
        attempt.settle(self.app.boards.prove(key, passphrase).await)?;
        proofs.remember(requester.owner, key, self.app.age());
        Ok(())
    }

    /// Protects a name. If it is protected with this passphrase already, nothing is done: the form may come twice.
    ///
    /// # Errors
    /// Those of [`Boards::protect`](crate::model::Boards::protect); 429.
    pub(crate) async fn protect(
        &self,
        requester: Requester,
        name: &str,
        passphrase: &str,
    ) -> Result<(), Problem> {
        let boards = &self.app.boards;
        match (boards.protect(name, passphrase).await, NameKey::of(name)) {
            (Err(BoardError::NameTaken), Some(key)) => {
                let attempt = self.may_try(&self.app.proofs.by_name, key)?;
                let proven = attempt.settle(boards.prove(key, passphrase).await);
                proven.map_err(|error| match error {
                    BoardError::WrongPassphrase => BoardError::NameTaken,
                    error => error,
                })?;
            }
            (protected, _) => protected?,
        }
        if let Some(key) = NameKey::of(name) {
            let now = self.app.age();
            self.app.proofs.remember(requester.owner, key, now);
        }
        Ok(())
    }

    /// Frees a protected name, as a moderator can.
    ///
    /// # Errors
    /// Those of [`Boards::free_name`](crate::model::Boards::free_name).
    pub(crate) async fn free_name(&self, name: &str, by: By<'_>) -> Result<(), Problem> {
        let freed = self.app.boards.free_name(name, by).await;
        freed.map_err(|error| match error {
            // There is no passphrase beside which this could be told.
            BoardError::NoName => Problem::no_name(),
            error => error.into(),
        })?;
        if let Some(key) = NameKey::of(name) {
            self.app.proofs.forget(key);
        }
        Ok(())
    }

    /// Gives a name another passphrase, or gives it up.
    ///
    /// # Errors
    /// Those of [`Boards::change_passphrase`](crate::model::Boards::change_passphrase); 429.
    pub(crate) async fn change_name(
        &self,
        name: &str,
        passphrase: &str,
        new: Option<&str>,
    ) -> Result<(), Problem> {
        let key = NameKey::of(name).ok_or(BoardError::NoName)?;
        let attempt = self.may_try(&self.app.proofs.by_name, key)?;
        let boards = &self.app.boards;
        let outcome = match new {
            Some(new) => match boards.change_passphrase(name, passphrase, new).await {
                // The form came twice, if it is the new one already. If that is wrong too, it is a second guess, which
                // counts like the first. It was looked at, so there is nothing to refuse any more.
                Err(BoardError::WrongPassphrase) => {
                    let proven = boards.prove(key, new).await;
                    if matches!(proven, Err(BoardError::WrongPassphrase)) {
                        let _ = self.may_try(&self.app.proofs.by_name, key);
                    }
                    proven
                }
                changed => changed,
            },
            None => boards.release(name, passphrase).await,
        };
        attempt.settle(outcome)?;
        self.app.proofs.forget(key);
        Ok(())
    }
}
