//! The forest of the boards, in memory or on disk; and forests as they were at an earlier moment, which only the disk
//! has.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;

use weald::forest::disk::{DiskForest, ReadOnlyForest};
use weald::forest::{Forest, Journal, Node, TreeHandle, Value};

/// The wait for a failure of the journal.
pub(crate) type Failure = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The methods that both kinds of forest have.
type Trees = <Forest as Deref>::Target;

/// The forest that the boards are in. A clone is the same forest.
#[derive(Clone, Debug)]
pub enum Store {
    /// It ends with the program.
    Memory(Forest),
    /// It survives the loss of power.
    Disk(DiskForest),
}

impl Store {
    pub(crate) fn trees(&self) -> &Trees {
        match self {
            Self::Memory(forest) => forest,
            Self::Disk(forest) => forest,
        }
    }

    /// Waits until the journal has failed; `None`, if there is none.
    pub(crate) fn when_failed(&self) -> Option<Failure> {
        match self {
            Self::Memory(_) => None,
            Self::Disk(forest) => Some(forest.journal().when_failed()),
        }
    }
}

/// The forest that has the bytes of a version.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Now(Store),
    /// With the tree of the board there.
    Past(ReadOnlyForest, TreeHandle),
}

impl Source {
    /// The value of an attribute, which may be erasable.
    pub(crate) fn value<'a>(&self, node: Node<'a>, name: &str) -> Option<Value<'a>> {
        match self {
            Self::Now(store) => store.trees().value(node, name),
            Self::Past(forest, _) => forest.value(node, name),
        }
    }

    /// Reads ahead what [`value`](Self::value) will read of several nodes.
    pub(crate) fn prefetch(&self, nodes: &[Node<'_>], name: &str) {
        match self {
            Self::Now(store) => store.trees().prefetch(nodes, name),
            Self::Past(forest, _) => forest.prefetch(nodes, name),
        }
    }
}
