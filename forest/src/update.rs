//! `update`: runs a closure on the newest version until its commit succeeds.
//!
//! 1. The closure edits the newest version, on its caller's thread, and the edit is committed.
//! 2. A conflict is a lost race: step 1 is repeated, twice at most.
//! 3. After [`RACES`] lost races the update takes the tree's write lease, in the order of the requests (see
//!    `combine/write_leases.rs`): then nobody else commits to the tree, and the next commit cannot conflict.
//! 4. After ten milliseconds the lease is revoked if others wait. If the commit then conflicts, the update asks for
//!    the lease again, behind those that wait, and may hold it twice as long. So a closure that was only preempted
//!    succeeds, and one that computes for more than a second gives up after [`LEASES`].
//!
//! A closure that panics has edited a private version, so it leaves no trace; a lease that the update held is
//! released while the stack unwinds.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::combine::request::{Answer, LeaseRequest, Request, SubmitUnawaited};
use crate::combine::shared::Shared;
use crate::combine::submission::Submission;
use crate::combine::write_leases::LIMIT;
use crate::commit::Commit;
use crate::edit::Edit;
use crate::error::CommitError;
use crate::journal::Level;
use crate::state::root::Snapshot;
use crate::tree_handle::TreeHandle;
use crate::version::{CommitId, Committed};

/// Races that an update loses before it takes the write lease.
pub(crate) const RACES: usize = 3;

/// Leases of an update that are revoked before it gives up: the last one is for 1.28 seconds.
pub(crate) const LEASES: u32 = 8;

/// Why an update failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError<E> {
    /// The closure returned an error.
    #[error("the closure of an update gave up: {0}")]
    GivenUp(E),
    /// The commit was refused, for another reason than a conflict.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The closure ran longer than its lease while others waited, and then lost another race; and did so
    /// again with longer leases, up to more than a second.
    #[error("{REVOKED}")]
    Revoked,
}

/// The sentence of [`UpdateError::Revoked`].
pub(crate) const REVOKED: &str = "an update ran for more than a second while others waited, and lost its leases and its \
    races; compute outside of `update`, and change the tree inside";

impl<E> UpdateError<E> {
    /// Whether the update may have failed because its twin, a run of the same request, has committed since it began:
    /// the closure has seen that commit, or has lost to it.
    pub(crate) fn may_be_of_twin(&self) -> bool {
        matches!(
            self,
            Self::GivenUp(_) | Self::Commit(CommitError::IdTaken(_))
        )
    }
}

impl TreeHandle {
    /// Runs `change` on an edit of the newest version, and commits it; runs it again on a newer version if the
    /// commit conflicts. Returns what the closure returned last, with the receipt of the commit.
    ///
    /// The closure may run several times, and should only read and change the tree. It may not commit to the
    /// forest: such a commit is refused with [`CommitError::Reentrant`] (see
    /// [`Builder::running`](crate::Builder::running) for runtimes whose units share threads). If it returns an
    /// error or panics, it leaves no trace.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{EditError, Forest};
    ///
    /// let counter = block_on(Forest::new().create("counter"))?;
    /// let count = counter.update(|edit| {
    ///     let root = edit.root();
    ///     let count = edit.attribute(root, "count")?.map_or(0, |bytes| bytes[0]) + 1;
    ///     edit.put_attribute(root, "count", [count])?;
    ///     Ok::<_, EditError>(count)
    /// });
    /// assert_eq!(block_on(count)?.0, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// If the future is dropped before its first poll, or while it waits for a write lease, nothing has changed. If it
    /// is dropped while its commit waits, the commit is withdrawn, unless the thread that serves requests has taken it
    /// up; see [`Committing`](crate::Committing).
    ///
    /// # Errors
    /// [`UpdateError`].
    #[track_caller]
    pub fn update<F, R, E>(
        &self,
        mut change: F,
    ) -> impl Future<Output = Result<(R, Committed), UpdateError<E>>> + use<F, R, E>
    where
        F: FnMut(&mut Edit) -> Result<R, E>,
    {
        let (caller, handle) = (Location::caller(), self.clone());
        async move {
            handle.shared.forest.reentrancy.must_be_outside()?;
            race_on_newest((&handle, &Terms::new()), &mut change, caller).await
        }
    }

    /// Like [`update`](Self::update), with an id, bytes or a level for the commit.
    ///
    /// With an id the update can be repeated after a lost answer, even while the first one still runs: if a commit with
    /// this id was made before or is made meanwhile, the closure runs once more, on the version before that commit. If
    /// it then asks for the same, the receipt is that of the first commit, the value is that of then, and nothing is
    /// changed. Otherwise, or if that version is no longer kept, the error is [`CommitError::IdTaken`], with the first
    /// receipt.
    ///
    /// The future is `Send` only if the error of the closure is, which it keeps while it looks for that commit.
    ///
    /// # Errors
    /// [`UpdateError`].
    #[track_caller]
    pub fn update_with<F, R, E>(
        &self,
        terms: Terms,
        change: F,
    ) -> impl Future<Output = Result<(R, Committed), UpdateError<E>>> + use<F, R, E>
    where
        F: FnMut(&mut Edit) -> Result<R, E>,
    {
        let caller = Location::caller();
        race((self.clone(), terms), change, caller)
    }
}

/// What a commit has besides its edit. See [`TreeHandle::update_with`].
///
/// ```
/// use weald::block_on;
/// use weald::forest::{CommitId, EditError, Forest, Terms};
///
/// let notes = block_on(Forest::new().create("notes"))?;
/// let terms = Terms::new().id(CommitId(7)).bytes(b"by Ada");
/// let change = notes.update_with(terms, |edit| edit.put_attribute(edit.root(), "k", "v"));
/// let ((), receipt) = block_on(change)?;
/// assert_eq!((receipt.id, notes.view().bytes()), (CommitId(7), &b"by Ada"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "terms are passed to an update"]
pub struct Terms {
    id: Option<CommitId>,
    bytes: Vec<u8>,
    level: Option<Level>,
}

impl Terms {
    /// No id, no bytes, and the level of the forest.
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`Commit::id`].
    pub fn id(mut self, id: CommitId) -> Self {
        self.id = Some(id);
        self
    }

    /// See [`Commit::bytes`].
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes = bytes.to_vec();
        self
    }

    /// See [`Commit::level`].
    pub fn level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// The receipt of the commit that has the id already.
    pub(crate) async fn first(
        &self,
        shared: &Arc<Shared>,
    ) -> Result<Option<Committed>, CommitError> {
        let Some(id) = self.id else {
            return Ok(None);
        };
        match Submission::new(Arc::clone(shared), Request::Look(id)).await {
            Answer::Committed(first, _) => first.map(Some),
            _ => Ok(None),
        }
    }

    pub(crate) fn of(&self, mut commit: Commit) -> Commit {
        if let Some(id) = self.id {
            commit = commit.id(id);
        }
        if let Some(level) = self.level {
            commit = commit.level(level);
        }
        match self.bytes.is_empty() {
            true => commit,
            false => commit.bytes(&self.bytes),
        }
    }
}

async fn race<F, R, E>(
    (handle, terms): (TreeHandle, Terms),
    mut change: F,
    caller: &'static Location<'static>,
) -> Result<(R, Committed), UpdateError<E>>
where
    F: FnMut(&mut Edit) -> Result<R, E>,
{
    handle.shared.forest.reentrancy.must_be_outside()?;
    let first = match terms.first(&handle.shared).await? {
        Some(first) => first,
        None => {
            let outcome = race_on_newest((&handle, &terms), &mut change, caller).await;
            if !outcome.as_ref().is_err_and(UpdateError::may_be_of_twin) {
                return outcome;
            }
            match terms.first(&handle.shared).await? {
                Some(first) => first,
                None => return outcome,
            }
        }
    };
    let base = handle
        .before_commit(&first)
        .ok_or(CommitError::IdTaken(first))?;
    attempt((&handle, &terms), &mut change, (Some(&base), None)).await
}

async fn race_on_newest<F, R, E>(
    (handle, terms): (&TreeHandle, &Terms),
    change: &mut F,
    caller: &'static Location<'static>,
) -> Result<(R, Committed), UpdateError<E>>
where
    F: FnMut(&mut Edit) -> Result<R, E>,
{
    for _ in 0..RACES {
        match attempt((handle, terms), change, (None, None)).await {
            Err(UpdateError::Commit(CommitError::Conflict(_))) => {}
            outcome => return outcome,
        }
    }
    for revoked in 0..LEASES {
        let lease_number = handle.shared.forest.unique_number();
        let limit = LIMIT * (1 << revoked);
        let _lease = WriteLease::take(handle, (caller, lease_number), limit).await;
        match attempt((handle, terms), change, (None, Some(lease_number))).await {
            Err(UpdateError::Commit(CommitError::Conflict(_))) => {}
            outcome => return outcome,
        }
    }
    Err(UpdateError::Revoked)
}

async fn attempt<F, R, E>(
    (handle, terms): (&TreeHandle, &Terms),
    change: &mut F,
    (base, lease): (Option<&Snapshot>, Option<u64>),
) -> Result<(R, Committed), UpdateError<E>>
where
    F: FnMut(&mut Edit) -> Result<R, E>,
{
    let mut edit = base.map_or_else(|| handle.edit(), |base| handle.edit_from(base));
    let result = {
        let _mark = handle.shared.forest.reentrancy.enter();
        change(&mut edit).map_err(UpdateError::GivenUp)?
    };
    let committed = terms.of(edit.commit()).under(lease).await?;
    Ok((result, committed))
}

/// The write lease of a tree, or a request for it; released when it is dropped.
pub(crate) struct WriteLease(LeaseRequest, Arc<Shared>);

impl WriteLease {
    pub(crate) async fn take(
        handle: &TreeHandle,
        (caller, lease_number): (&'static Location<'static>, u64),
        limit: Duration,
    ) -> Self {
        let shared = Arc::clone(&handle.shared);
        let request = LeaseRequest {
            state: handle.state.clone(),
            lease_number,
            caller,
            limit,
            is_begun: None,
        };
        let lease = Self(request.clone(), Arc::clone(&shared));
        Submission::new(shared, Request::TakeLease(request)).await;
        lease
    }
}

impl Drop for WriteLease {
    fn drop(&mut self) {
        self.1
            .submit_unawaited(Request::ReleaseLease(self.0.clone()));
    }
}
