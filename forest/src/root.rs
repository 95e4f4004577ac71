//! A root: one tree at one moment, with what its commit said; and the two ways to hold one.
//!
//! - A [`Snapshot`] is owned, may be kept and sent, and keeps alive its own version and nothing else.
//! - A [`View`] is borrowed from the tree's slot: it costs less, and a few at a time are meant to be held
//!   for a short while. It stops no writer and no reclamation either: a writer that finds it standing
//!   pays for its counter (see the crate `arc-swap`).
//! - While a commit over several trees is made visible, its trees hold roots with a [`Joint`]: whether
//!   the old or the new one is meant depends on one flag for all of them.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use arc_swap::{ArcSwap, Guard};
use weald_tree::{Bytes, Tree};

use crate::index::Indexes;
use crate::version::{CommitId, Committed, Version};

/// A tree as one commit left it. It never changes.
pub struct Root {
    /// The number of the tree in its forest. The ids do not tell trees apart, for a tree may be created
    /// from a version of another one.
    pub(crate) line: u64,
    pub(crate) tree: Tree,
    pub(crate) commit: Committed,
    pub(crate) bytes: Bytes,
    pub(crate) indexes: Indexes,
    pub(crate) joint: Option<Box<Joint>>,
}

/// What stands in a tree's slot while a commit over several trees is made visible.
pub(crate) struct Joint {
    pub(crate) before: Arc<Root>,
    pub(crate) after: Arc<Root>,
    pub(crate) is_visible: Arc<AtomicBool>,
}

impl Root {
    /// The nodes.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The version that this is.
    pub fn version(&self) -> Version {
        self.commit.version
    }

    /// When it was committed.
    pub fn time(&self) -> SystemTime {
        self.commit.time
    }

    /// The id of the commit that made it.
    pub fn commit_id(&self) -> CommitId {
        self.commit.id
    }

    /// The bytes that the author of the commit gave it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn new(
        line: u64,
        (tree, indexes): (Tree, Indexes),
        commit: Committed,
        bytes: Bytes,
    ) -> Self {
        Self {
            line,
            tree,
            commit,
            bytes,
            indexes,
            joint: None,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.commit.version.number
    }
}

impl Joint {
    fn meant(&self) -> &Arc<Root> {
        // Acquire: pairs with the store in `publish::jointly`; who sees one tree as new finds all new.
        if self.is_visible.load(Ordering::Acquire) {
            &self.after
        } else {
            &self.before
        }
    }
}

/// An owned root: a version that stays as long as this does.
#[derive(Clone)]
pub struct Snapshot(pub(crate) Arc<Root>);

impl Snapshot {
    /// The snapshot in a slot.
    pub(crate) fn of(slot: &ArcSwap<Root>) -> Self {
        let root = slot.load_full();
        match &root.joint {
            None => Self(root),
            Some(joint) => Self(Arc::clone(joint.meant())),
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

/// A borrowed root, for a short while on one thread.
pub struct View(Held);

enum Held {
    Slot(Guard<Arc<Root>>),
    Owned(Arc<Root>),
}

impl View {
    /// The view of what stands in a slot.
    #[inline]
    pub(crate) fn of(slot: &ArcSwap<Root>) -> Self {
        let root = slot.load();
        match &root.joint {
            None => Self(Held::Slot(root)),
            Some(joint) => Self(Held::Owned(Arc::clone(joint.meant()))),
        }
    }

    /// The same as a snapshot.
    pub fn to_snapshot(&self) -> Snapshot {
        match &self.0 {
            Held::Slot(root) => Snapshot(Arc::clone(root)),
            Held::Owned(root) => Snapshot(Arc::clone(root)),
        }
    }
}

impl Deref for View {
    type Target = Root;

    #[inline]
    fn deref(&self) -> &Root {
        match &self.0 {
            Held::Slot(root) => root,
            Held::Owned(root) => root,
        }
    }
}
