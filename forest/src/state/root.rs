//! A root: one tree at one moment, with the data of its commit; and the two ways to hold one.
//!
//! - A [`Snapshot`] may be kept and sent, and keeps alive its own version and nothing else.
//! - A [`View`] is the same for a moment.
//! - Either is taken from the tree's slot. To replace the slot costs a writer the same, however many have
//!   read it.
//! - While a commit over several trees is published, the slots of its trees hold roots with a [`Joint`]: one
//!   flag for all of them decides whether the old or the new root is meant.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use weald_memory::{Shared, Slot};
use weald_tree::{Bytes, Tree};

use crate::content::index::Indexes;
use crate::version::{CommitId, Committed, Version};

/// A root that several hold.
pub(crate) type RootRef = Shared<Root>;

/// A tree as one commit left it. It never changes.
pub struct Root {
    /// The number of the tree in its forest. Node ids do not distinguish trees, because a tree may be
    /// created from a version of another one.
    pub(crate) tree_number: u64,
    pub(crate) tree: Tree,
    /// The id of its commit in two words: as one number it would be aligned to sixteen bytes, and eight would be lost.
    id: [u64; 2],
    version: Version,
    time: SystemTime,
    /// The steps of all commits of the tree up to this one, as edits count them. The difference between two versions
    /// takes at most the difference of their steps.
    pub(crate) steps: u64,
    more: Option<Box<Extensions>>,
}

/// What few versions have. Many versions are kept, so this takes a pointer in those that do not have it.
struct Extensions {
    bytes: Bytes,
    indexes: Indexes,
    /// What there is to say if it is one of several; `None`, if its commit has changed this tree alone.
    beside: Option<Arc<Beside>>,
}

static NO_INDEXES: Indexes = Indexes::NONE;

/// What is beside a version. The versions that a commit made share this.
pub(crate) enum Beside {
    /// The commit has changed the trees of these numbers.
    Trees(Vec<u64>),
    /// The version was read from a checkpoint, which does not say which trees the commit has changed.
    Unknown,
    /// This root is only in a slot, for a moment.
    Joint(Joint),
}

/// What a tree's slot holds while a commit over several trees is published.
pub(crate) struct Joint {
    pub(crate) before: RootRef,
    pub(crate) after: RootRef,
    pub(crate) is_visible: Arc<AtomicBool>,
}

impl Root {
    /// The nodes. The value of an erasable attribute is a reference here; [`Forest::value`](crate::Forest::value) reads
    /// its bytes.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The version of the forest that created this root.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The time of its commit.
    pub fn time(&self) -> SystemTime {
        self.time
    }

    /// The id of its commit.
    pub fn commit_id(&self) -> CommitId {
        self.commit().id
    }

    /// The bytes that the author of the commit attached to it.
    pub fn bytes(&self) -> &[u8] {
        self.more.as_ref().map_or(&[], |more| &more.bytes)
    }

    #[inline]
    pub(crate) fn all_indexes(&self) -> &Indexes {
        match &self.more {
            None => &NO_INDEXES,
            Some(more) => &more.indexes,
        }
    }

    #[inline]
    pub(crate) fn beside(&self) -> Option<&Arc<Beside>> {
        self.more.as_ref()?.beside.as_ref()
    }

    // Inlined, so that it is made where it stays: it is too large to be moved without a call.
    #[inline(always)]
    pub(crate) fn new(
        tree_number: u64,
        (tree, indexes, steps): (Tree, Indexes, u64),
        (commit, bytes): (Committed, Bytes),
        beside: Option<Arc<Beside>>,
    ) -> Self {
        let is_usual = bytes.is_empty() && indexes.is_empty() && beside.is_none();
        let more = || {
            Box::new(Extensions {
                bytes,
                indexes,
                beside,
            })
        };
        let id = commit.id.0;
        #[expect(clippy::cast_possible_truncation, reason = "half of it each")]
        Self {
            tree_number,
            tree,
            id: [id as u64, (id >> 64) as u64],
            version: commit.version,
            time: commit.time,
            steps,
            more: (!is_usual).then(more),
        }
    }

    /// The same root with another thing to say of those beside it.
    pub(crate) fn with_beside(&self, beside: Beside) -> Self {
        let content = (self.tree.clone(), self.all_indexes().clone(), self.steps);
        let bytes = self.more.as_ref().map(|more| more.bytes.clone());
        let bytes = bytes.unwrap_or_else(|| Bytes::new(&[]));
        let beside = Some(Arc::new(beside));
        Self::new(self.tree_number, content, (self.commit(), bytes), beside)
    }

    /// The receipt of its commit.
    pub(crate) fn commit(&self) -> Committed {
        let [low, high] = self.id.map(u128::from);
        Committed {
            id: CommitId(low | high << 64),
            version: self.version,
            time: self.time,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.version.number
    }
}

impl Joint {
    fn meant(&self) -> &RootRef {
        // Acquire: pairs with the store in `Publisher::publish_jointly`; a reader that finds one tree new
        // finds all of them new.
        if self.is_visible.load(Ordering::Acquire) {
            &self.after
        } else {
            &self.before
        }
    }
}

/// An owned root: the version lives as long as the snapshot.
#[derive(Clone)]
pub struct Snapshot(pub(crate) RootRef);

impl Snapshot {
    /// The snapshot of what a slot holds.
    #[inline]
    pub(crate) fn of(slot: &Slot<Root>) -> Self {
        let root = slot.load();
        match root.beside().map(|beside| &**beside) {
            Some(Beside::Joint(joint)) => Self(joint.meant().clone()),
            _ => Self(root),
        }
    }
}

impl Deref for Snapshot {
    type Target = Root;

    fn deref(&self) -> &Root {
        &self.0
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Snapshot {{ version: {}, {:?} }}",
            self.version(),
            self.tree
        )
    }
}

/// A root for a moment: [`to_snapshot`](View::to_snapshot) makes one to keep.
///
/// It costs what a snapshot costs, and holds up neither a writer nor the end of older versions. A function that takes
/// `&Root` takes a reference to a view as well as to a snapshot.
///
/// ```
/// use weald::forest::{Forest, Root};
///
/// fn count(root: &Root) -> u64 {
///     root.tree().len()
/// }
///
/// let notes = weald::block_on(Forest::new().create("notes"))?;
/// assert_eq!(count(&notes.view()), count(&notes.snapshot()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct View(Snapshot);

impl View {
    /// The view of what a slot holds.
    #[inline]
    pub(crate) fn of(slot: &Slot<Root>) -> Self {
        Self(Snapshot::of(slot))
    }

    /// The same as a snapshot.
    pub fn to_snapshot(&self) -> Snapshot {
        self.0.clone()
    }
}

impl Deref for View {
    type Target = Root;

    #[inline]
    fn deref(&self) -> &Root {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_has_the_receipt_of_its_commit() {
        let commit = Committed {
            id: CommitId((7 << 64) + 5),
            version: Version {
                incarnation: 3,
                number: 7,
            },
            time: SystemTime::UNIX_EPOCH,
        };
        let content = (Tree::new(), Indexes::default(), 0);
        let root = Root::new(1, content, (commit, Bytes::new(&[])), None);
        assert_eq!((root.commit(), root.commit_id()), (commit, commit.id));
    }

    /// Each version has such a block, and each tree.
    #[test]
    fn a_block_with_a_root_takes_144_bytes() {
        assert_eq!(RootRef::BYTES, 144);
    }
}
