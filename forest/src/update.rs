//! `update`: runs a closure on the newest version until its commit goes through.
//!
//! 1. The closure edits the newest version, on its caller's thread, and the edit is committed.
//! 2. A conflict is a lost race: back to 1, twice.
//! 3. After [`RACES`] lost races it takes the tree's turn, in the order of asking (see `turn.rs`): then
//!    nobody else commits to the tree, and the next commit cannot be a conflict.
//! 4. After ten milliseconds the turn is taken away if others wait. If the commit is a conflict then, the
//!    update asks for the turn again, behind those who wait, and may have it twice as long. So a closure
//!    that was only kept off its processor goes through, and one that computes for a second and more gives
//!    up after [`TURNS`].
//!
//! A closure that panics has edited a private version, so there is no trace of it; a turn that it had is
//! left while the stack unwinds.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::asking::Asking;
use crate::edit::Edit;
use crate::error::CommitError;
use crate::forest::Shared;
use crate::request::{Bid, Request};
use crate::trunk::Trunk;
use crate::turn::LIMIT;
use crate::version::Committed;

/// Races that an update loses before it takes the turn.
const RACES: usize = 3;

/// Turns that are taken away from an update before it gives up: the last one is for 1.28 seconds.
const TURNS: u32 = 8;

/// Why an update did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError<E> {
    /// The closure gave up.
    #[error("the closure of an update gave up: {0}")]
    GivenUp(E),
    /// The commit was refused, not for a conflict.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The closure ran longer than its turn while others waited, and then lost another race; and so again
    /// with longer turns, up to more than a second.
    #[error(
        "an update ran for more than a second while others waited, and lost its turns and its races; \
         compute outside of `update`, and change the tree inside"
    )]
    Revoked,
}

impl Trunk {
    /// Runs `change` on an edit of the newest version, and commits it; again on a newer one if that was a
    /// conflict. What the closure returns last is returned, with the receipt.
    ///
    /// The closure may run several times, and should only read and change the tree. It may not commit to
    /// the forest itself: that is refused with [`CommitError::Reentrant`] (see
    /// [`Builder::running`](crate::Builder::running) for runtimes whose units share threads). An error that it returns, or its panic, leaves no trace.
    ///
    /// ```
    /// use weald_forest::{EditError, Forest, Wait};
    ///
    /// let counter = Forest::new().create("counter").wait()?;
    /// let count = counter.update(|edit| {
    ///     let root = edit.root();
    ///     let count = edit.attribute(root, "count")?.map_or(0, |bytes| bytes[0]) + 1;
    ///     edit.put_attribute(root, "count", [count])?;
    ///     Ok::<_, EditError>(count)
    /// });
    /// assert_eq!(count.wait()?.0, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Dropped while it waits for its turn, or before, nothing has happened.
    ///
    /// # Errors
    /// [`UpdateError`].
    #[track_caller]
    pub fn update<F, R, E>(
        &self,
        change: F,
    ) -> impl Future<Output = Result<(R, Committed), UpdateError<E>>> + use<F, R, E>
    where
        F: FnMut(&mut Edit) -> Result<R, E>,
    {
        let caller = Location::caller();
        race(self.clone(), change, caller)
    }
}

async fn race<F, R, E>(
    trunk: Trunk,
    mut change: F,
    caller: &'static Location<'static>,
) -> Result<(R, Committed), UpdateError<E>>
where
    F: FnMut(&mut Edit) -> Result<R, E>,
{
    trunk.shared.insiders.must_be_outside()?;
    for _ in 0..RACES {
        match attempt(&trunk, &mut change, None).await {
            Err(UpdateError::Commit(CommitError::Conflict(_))) => {}
            outcome => return outcome,
        }
    }
    for taken_away in 0..TURNS {
        let turn = Turn::take(&trunk, caller, LIMIT * (1 << taken_away)).await;
        match attempt(&trunk, &mut change, Some(turn.0.ticket)).await {
            Err(UpdateError::Commit(CommitError::Conflict(_))) => {}
            outcome => return outcome,
        }
    }
    Err(UpdateError::Revoked)
}

async fn attempt<F, R, E>(
    trunk: &Trunk,
    change: &mut F,
    turn: Option<u64>,
) -> Result<(R, Committed), UpdateError<E>>
where
    F: FnMut(&mut Edit) -> Result<R, E>,
{
    let mut edit = trunk.edit();
    let result = {
        let _inside = trunk.shared.insiders.enter();
        change(&mut edit).map_err(UpdateError::GivenUp)?
    };
    let committed = edit.commit().under(turn).await?;
    Ok((result, committed))
}

/// The turn of a tree, or the wish for it; left when it is dropped.
struct Turn(Bid, Arc<Shared>);

impl Turn {
    async fn take(trunk: &Trunk, caller: &'static Location<'static>, limit: Duration) -> Self {
        let shared = Arc::clone(&trunk.shared);
        let bid = Bid {
            line: Arc::clone(&trunk.line),
            ticket: shared.ticket(),
            caller,
            limit,
        };
        let turn = Self(bid.clone(), Arc::clone(&shared));
        Asking::new(shared, Request::TakeTurn(bid)).await;
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.1
            .ask_without_waiting(Request::LeaveTurn(self.0.clone()));
    }
}
