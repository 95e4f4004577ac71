//! Undo: the inverse of a commit as an edit, which keeps ids and leaves others' work alone.

use crate::edit::Edit;
use crate::error::VersionError;
use crate::state::root::Snapshot;
use crate::tree_handle::TreeHandle;
use crate::version::Version;

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
    /// # Errors
    /// [`VersionError`]: the version does not exist, or it or the one before is not kept. The first version of a tree
    /// cannot be reverted, which is `NotCreated`.
    pub fn revert(&self, version: Version) -> Result<Edit, VersionError> {
        let after = self.kept_at(version)?;
        let before = self.before(&after, version)?;
        let mut edit = self.edit_from(&after);
        for operation in after.tree().operations_to(before.tree()) {
            let done = edit.replay(&operation);
            done.expect("the version has what these operations name");
        }
        Ok(edit)
    }

    /// The version of the tree before another one.
    pub(crate) fn before(
        &self,
        after: &Snapshot,
        asked: Version,
    ) -> Result<Snapshot, VersionError> {
        let history = self.state.history();
        let first = history.first();
        if after.version() == first {
            return Err(VersionError::NotCreated { asked, first });
        }
        let mut kept = history.kept().rev();
        let is_after = kept.any(|root| root.number() == after.number());
        let before = kept.next().filter(|_| is_after).cloned();
        before.map(Snapshot).ok_or(VersionError::TooOld {
            asked,
            oldest: history.oldest().version(),
        })
    }
}
