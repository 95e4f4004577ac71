//! Replays what was recorded, in place: a working version that keeps no list of what was done to it.

use crate::apply::Origin;
use crate::error::EditError;
use crate::operation::Operation;
use crate::tree::Tree;

/// A version that is advanced by recorded operations. It costs as much as the operations, and nothing for the
/// versions between that nobody takes.
///
/// ```
/// use weald::tree::{Attributes, Replay, Tree};
///
/// let old = Tree::new();
/// let mut edit = old.edit();
/// edit.append(edit.tree().root().id(), Attributes::new())?;
/// let (new, script) = edit.finish();
///
/// let mut replay = Replay::from(old);
/// for operation in script.operations() {
///     replay.apply(operation)?;
/// }
/// assert!(replay.version().records().eq(new.records()));
/// # Ok::<(), weald::tree::EditError>(())
/// ```
pub struct Replay(Tree);

impl Replay {
    /// Applies an operation that was carried out on an equal version, under the parent and the key that it holds.
    ///
    /// # Errors
    /// Those of [`Edit::replay`](crate::Edit::replay). The version is as it was then.
    pub fn apply(&mut self, operation: &Operation) -> Result<(), EditError> {
        self.0.apply(operation, Origin::Record).map(drop)
    }

    /// The version as it is now. Parts that it shares with this one are copied when that advances.
    pub fn version(&self) -> Tree {
        self.0.clone()
    }

    /// The last version.
    pub fn finish(self) -> Tree {
        self.0
    }
}

impl From<Tree> for Replay {
    fn from(tree: Tree) -> Self {
        Self(tree)
    }
}
