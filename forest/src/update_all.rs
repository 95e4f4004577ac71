//! Updates of several trees: one closure, one commit, and write leases as for one tree; see `update.rs`.
//!
//! The write leases are taken in the order of the numbers of the trees, so two updates never wait for each other.

use std::future::Future;
use std::panic::Location;

use crate::combine::write_leases::LIMIT;
use crate::commit::Commit;
use crate::edit::Edit;
use crate::error::CommitError;
use crate::forest::Forest;
use crate::state::root::Snapshot;
use crate::state::tree::TreeRef;
use crate::tree_handle::TreeHandle;
use crate::update::{LEASES, RACES, Terms, UpdateError, WriteLease};
use crate::version::Committed;

impl Forest {
    /// Runs `change` on edits of the newest versions of several trees, all of one moment, and commits them together;
    /// runs it again on newer versions if the commit conflicts. The edits are in the order of `trees`. Returns what the
    /// closure returned last, with the receipt of the commit. Everything else is as in
    /// [`TreeHandle::update_with`](crate::TreeHandle::update_with).
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{EditError, Forest, Terms};
    ///
    /// let forest = Forest::new();
    /// let [ada, alan] = ["ada", "alan"].map(|name| block_on(forest.create(name)).unwrap());
    /// let transfer = forest.update_all(&[&ada, &alan], Terms::new(), |accounts| {
    ///     for (account, balance) in accounts.iter_mut().zip(["70", "30"]) {
    ///         account.put_attribute(account.root(), "balance", balance)?;
    ///     }
    ///     Ok::<_, EditError>(())
    /// });
    /// let ((), receipt) = block_on(transfer)?;
    /// assert_eq!(alan.view().version(), receipt.version);
    /// assert_eq!(ada.view().tree().root().get_str("balance"), Some("70"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UpdateError`]; [`CommitError::NoEdits`], if there are no trees; [`CommitError::TreeTwice`] and
    /// [`CommitError::OtherForest`], which are bugs in the caller.
    #[track_caller]
    pub fn update_all<F, R, E>(
        &self,
        trees: &[&TreeHandle],
        terms: Terms,
        change: F,
    ) -> impl Future<Output = Result<(R, Committed), UpdateError<E>>> + use<F, R, E>
    where
        F: FnMut(&mut [Edit]) -> Result<R, E>,
    {
        let caller = Location::caller();
        let trees = trees.iter().map(|tree| (*tree).clone()).collect();
        race_of_all(self.clone(), (trees, terms), change, caller)
    }
}

async fn race_of_all<F, R, E>(
    forest: Forest,
    (trees, terms): (Vec<TreeHandle>, Terms),
    mut change: F,
    caller: &'static Location<'static>,
) -> Result<(R, Committed), UpdateError<E>>
where
    F: FnMut(&mut [Edit]) -> Result<R, E>,
{
    forest.state().reentrancy.must_be_outside()?;
    if trees.is_empty() {
        return Err(CommitError::NoEdits.into());
    }
    let mut sorted: Vec<_> = trees.iter().collect();
    sorted.sort_by_key(|tree| tree.number());
    if let Some(both) = sorted
        .windows(2)
        .find(|both| TreeRef::is(&both[0].state, &both[1].state))
    {
        return Err(CommitError::TreeTwice(both[0].name()).into());
    }
    let first = match terms.first(&forest.0).await? {
        Some(first) => first,
        None => {
            let both = (&trees[..], &sorted[..]);
            let outcome = race_on_newest((&forest, both), &terms, &mut change, caller).await;
            if !outcome.as_ref().is_err_and(UpdateError::may_be_of_twin) {
                return outcome;
            }
            match terms.first(&forest.0).await? {
                Some(first) => first,
                None => return outcome,
            }
        }
    };
    let bases = trees.iter().map(|tree| tree.before_commit(&first));
    let bases: Option<_> = bases.collect();
    let bases = bases.ok_or(CommitError::IdTaken(first))?;
    attempt_at_all((&forest, &trees), (&terms, None, Some(bases)), &mut change).await
}

async fn race_on_newest<F, R, E>(
    (forest, (trees, sorted)): (&Forest, (&[TreeHandle], &[&TreeHandle])),
    terms: &Terms,
    change: &mut F,
    caller: &'static Location<'static>,
) -> Result<(R, Committed), UpdateError<E>>
where
    F: FnMut(&mut [Edit]) -> Result<R, E>,
{
    for _ in 0..RACES {
        match attempt_at_all((forest, trees), (terms, None, None), change).await {
            Err(UpdateError::Commit(CommitError::Conflict(_))) => {}
            outcome => return outcome,
        }
    }
    for revoked in 0..LEASES {
        let lease_number = forest.state().unique_number();
        let limit = LIMIT * (1 << revoked);
        let mut leases = Vec::new();
        for tree in sorted {
            leases.push(WriteLease::take(tree, (caller, lease_number), limit).await);
        }
        match attempt_at_all((forest, trees), (terms, Some(lease_number), None), change).await {
            Err(UpdateError::Commit(CommitError::Conflict(_))) => {}
            outcome => return outcome,
        }
    }
    Err(UpdateError::Revoked)
}

async fn attempt_at_all<F, R, E>(
    (forest, trees): (&Forest, &[TreeHandle]),
    (terms, lease, bases): (&Terms, Option<u64>, Option<Vec<Snapshot>>),
    change: &mut F,
) -> Result<(R, Committed), UpdateError<E>>
where
    F: FnMut(&mut [Edit]) -> Result<R, E>,
{
    let handles: Vec<_> = trees.iter().collect();
    let bases = match bases {
        Some(bases) => bases,
        None => forest.snapshot_all(&handles)?,
    };
    let both = trees.iter().zip(&bases);
    let mut edits: Vec<_> = both.map(|(tree, base)| tree.edit_from(base)).collect();
    let result = {
        let _mark = forest.state().reentrancy.enter();
        change(&mut edits).map_err(UpdateError::GivenUp)?
    };
    let commit = Commit::of(edits)?;
    let committed = terms.of(commit).under(lease).await?;
    Ok((result, committed))
}
