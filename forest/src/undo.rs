//! Undo: the inverse of a commit as an edit, which keeps ids and leaves others' work alone.

use std::sync::Arc;

use crate::edit::Edit;
use crate::error::VersionError;
use crate::forest::Forest;
use crate::read::watch::Seen;
use crate::state::root::Beside;
use crate::state::tree::TreeRef;
use crate::tree_handle::TreeHandle;
use crate::version::{Committed, Version};

impl TreeHandle {
    /// An edit that takes back what one commit did to this tree: the commit that made the tree's newest version up to
    /// `version`. Deleted nodes come back with the same ids at the same places, changed attributes have their old
    /// values, and moved nodes are where they were. To revert the commit of a revert is to redo, so this is undo and
    /// redo.
    ///
    /// The edit begins from the version that the commit made, and relies on what it takes back. So its commit is merged
    /// with what others did since, or is a [`Conflict`](crate::Conflict) if they have changed the same nodes or
    /// attributes. It may be [`blind`](Edit::blind). Indexes, tags and names are not touched.
    ///
    /// It takes the time of the difference between the two versions.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Attributes, Forest};
    ///
    /// let outline = block_on(Forest::new().create("outline"))?;
    /// let mut edit = outline.edit();
    /// let item = edit.append(edit.root(), Attributes::new().with("text", "tea"))?;
    /// block_on(edit.commit())?;
    /// let mut edit = outline.edit();
    /// edit.delete(item)?;
    /// let deletion = block_on(edit.commit())?;
    ///
    /// let undone = block_on(outline.revert(deletion.version)?.commit())?;
    /// assert_eq!(outline.view().tree().node(item).unwrap().get_str("text"), Some("tea"));
    /// block_on(outline.revert(undone.version)?.commit())?;
    /// assert!(outline.view().tree().node(item).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// It takes whatever commit was the tree's newest at that version, perhaps another person's. For the commit of a
    /// receipt and no other there is [`revert_commit`](Self::revert_commit); for all trees of a commit,
    /// [`Forest::revert`].
    ///
    /// # Errors
    /// [`VersionError`]: the version does not exist, or it or the one before is not kept. The first version of a tree
    /// cannot be reverted, which is `NotCreated`.
    pub fn revert(&self, version: Version) -> Result<Edit, VersionError> {
        Ok(self.inverse(&self.seen(version)?))
    }

    /// [`revert`](Self::revert) of the commit that has this receipt; `None`, if that commit has not changed this tree.
    ///
    /// # Errors
    /// As [`revert`](Self::revert). If the tree has let go the versions of that time, it is not known whether the
    /// commit changed it, so that is the error [`TooOld`](VersionError::TooOld), and not `None`.
    pub fn revert_commit(&self, receipt: &Committed) -> Result<Option<Edit>, VersionError> {
        let seen = self.seen_by(receipt)?;
        Ok(seen.map(|seen| self.inverse(&seen)))
    }

    fn inverse(&self, seen: &Seen) -> Edit {
        let mut edit = self.edit_from(&seen.after);
        for operation in seen.after.tree().operations_to(seen.before.tree()) {
            let done = edit.replay(&operation);
            done.expect("the version has what these operations name");
        }
        edit
    }

    /// What one commit did to this tree: the tree before and after it. `None`, if it has not changed this tree: it is a
    /// commit to other trees, or found nothing to change.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Commit, Forest};
    ///
    /// let forest = Forest::new();
    /// let [notes, other] = ["notes", "other"].map(|name| block_on(forest.create(name)).unwrap());
    /// let mut edit = notes.edit();
    /// edit.put_attribute(edit.root(), "text", "tea")?;
    /// let receipt = block_on(edit.commit())?;
    /// let seen = notes.seen_by(&receipt)?.unwrap();
    /// assert_eq!(seen.before.tree().root().get("text"), None);
    /// assert_eq!(seen.after.tree().root().get_str("text"), Some("tea"));
    /// assert!(other.seen_by(&receipt)?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`revert_commit`](Self::revert_commit).
    pub fn seen_by(&self, receipt: &Committed) -> Result<Option<Seen>, VersionError> {
        match self.kept_at(receipt.version) {
            Ok(after) if after.commit_id() != receipt.id => Ok(None),
            // It was created later.
            Err(VersionError::NotCreated { .. }) => Ok(None),
            found => {
                let after = found?;
                let before = self.before(&after, receipt.version)?;
                Ok(Some(Seen { before, after }))
            }
        }
    }
}

impl Forest {
    /// Edits that take back what the commit of this receipt did, one for each tree that it changed and that is still
    /// there: [`Commit::of`](crate::Commit::of) makes them one commit. Others' work since stays, as with
    /// [`TreeHandle::revert`]. It looks at each tree.
    ///
    /// There are no edits, if the commit changed nothing or its trees were deleted; then `Commit::of` is `NoEdits`.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Commit, Forest};
    ///
    /// let forest = Forest::new();
    /// let [from, to, other] = ["from", "to", "other"].map(|name| block_on(forest.create(name)).unwrap());
    /// let [mut take, mut give] = [from.edit(), to.edit()];
    /// take.put_attribute(take.root(), "cents", "0")?;
    /// give.put_attribute(give.root(), "cents", "500")?;
    /// let transfer = block_on(Commit::of([take, give])?)?;
    ///
    /// let undo = forest.revert(&transfer)?;
    /// assert_eq!(undo.len(), 2);
    /// if !undo.is_empty() {
    ///     block_on(Commit::of(undo)?)?;
    /// }
    /// assert_eq!(to.view().tree().root().get("cents"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Of the trees that still exist, all are reverted or none: half of a transfer taken back would create money. A
    /// tree that was deleted has no edit and no error; where half would be wrong, look whether there are as many edits
    /// as your commit had trees. To take back what still can be, ask each of the trees in
    /// [`changed_by`](Self::changed_by) for its [`TreeHandle::revert_commit`].
    ///
    /// # Errors
    /// As [`TreeHandle::revert`], for a tree that the commit changed; and as [`changed_by`](Self::changed_by).
    pub fn revert(&self, receipt: &Committed) -> Result<Vec<Edit>, VersionError> {
        let changed = self.changed_by(receipt)?.into_iter();
        let edits = changed.map(|tree| tree.revert_commit(receipt));
        edits.filter_map(Result::transpose).collect()
    }

    /// The trees that the commit of this receipt changed and that are still there. One of them that still keeps the
    /// version of the commit is enough to know them all, however much the others were written since. It is a look at
    /// each tree.
    ///
    /// # Errors
    /// [`VersionError`]: the version does not exist; or `TooOld`, if no remaining tree knows the commit, and one has
    /// let go the versions of that time. After an opening from a checkpoint, a commit before the checkpoint is known
    /// only by each of its trees, so there one tree that has let go those versions is enough for that error.
    pub fn changed_by(&self, receipt: &Committed) -> Result<Vec<TreeHandle>, VersionError> {
        // All of one moment, so that none is missed because it is renamed meanwhile.
        let states = self.state().trees();
        let handles = |states: Vec<TreeRef>| {
            let states = states.into_iter();
            let handles = states.map(|state| TreeHandle::new(Arc::clone(&self.0), state));
            handles.collect::<Vec<_>>()
        };
        let (mut found, mut unknown) = (Vec::new(), None);
        for tree in handles(states.clone()) {
            let root = match tree.kept_at(receipt.version) {
                Ok(root) if root.commit_id() == receipt.id => root,
                // It was created later, or has another commit's version there.
                Ok(_) | Err(VersionError::NotCreated { .. }) => continue,
                Err(error @ VersionError::TooOld { .. }) => {
                    unknown.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            match root.beside().map(|beside| &**beside) {
                None => return Ok(vec![tree]),
                Some(Beside::Trees(numbers)) => {
                    let mut states = states;
                    states.retain(|state| numbers.contains(&state.number));
                    return Ok(handles(states));
                }
                Some(Beside::Unknown) => found.push(tree),
                Some(Beside::Joint(_)) => unreachable!("it is in no history"),
            }
        }
        match unknown {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }
}
