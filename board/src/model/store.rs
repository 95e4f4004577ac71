//! The forest of the boards, in memory or on disk; and past forests, which only a disk has.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;

use weald::forest::disk::{DiskForest, Moment, ReadOnlyForest};
use weald::forest::{Forest, Journal, NameError, Node, Snapshot, TreeHandle, Value, VersionError};

use super::error::BoardError;
use super::replays::Replays;

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
    Past(ReadOnlyForest),
}

impl Source {
    /// The value of an attribute, which may be erasable.
    pub(crate) fn value<'a>(&self, node: Node<'a>, name: &str) -> Option<Value<'a>> {
        match self {
            Self::Now(store) => store.trees().value(node, name),
            Self::Past(forest) => forest.value(node, name),
        }
    }
}

/// The tree of a board at a moment: from memory if that keeps it, otherwise from the disk.
pub(crate) async fn tree_at(
    (store, replays): (&Store, &Replays),
    tree: &TreeHandle,
    moment: Moment,
) -> Result<(Snapshot, Source), BoardError> {
    let kept = match moment {
        Moment::Version(version) => tree.kept_at(version),
        Moment::Time(time) => tree.at_time(time).await,
    };
    let forest = match (kept, store) {
        (Ok(snapshot), _) => return Ok((snapshot, Source::Now(store.clone()))),
        (Err(error @ VersionError::Future { .. }), _) | (Err(error), Store::Memory(_)) => {
            return Err(BoardError::NoVersion(error.to_string()));
        }
        (Err(_), Store::Disk(forest)) => forest,
    };
    let past = replays.at(forest, moment).await?;
    let tree = past.get(&tree.name()).map_err(|error| match error {
        NameError::Missing(_) => BoardError::NoVersion("the board is younger".to_owned()),
        error => BoardError::NoVersion(error.to_string()),
    })?;
    Ok((tree.snapshot(), Source::Past(past)))
}
