//! The handle of a forest: trees by their names, snapshots of several trees, counts.

use std::sync::Arc;

use weald_tree::Tree;

use crate::combine::request::{Action, Answer};
use crate::combine::shared::Shared;
use crate::error::{CommitError, DurableError, NameError, VersionError};
use crate::journal::{Durability, Level};
use crate::read::together;
use crate::state::forest::ForestState;
use crate::state::root::Snapshot;
use crate::state::stats::Stats;
use crate::tree_handle::TreeHandle;
use crate::version::{Committed, Version};

/// A database of trees. A clone is the same forest; any thread may have one.
///
/// ```
/// use pollster::block_on;
/// use weald_forest::{Attributes, Forest};
///
/// let forest = Forest::new();
/// let notes = block_on(forest.create("notes"))?;
///
/// let mut edit = notes.edit();
/// let root = edit.root();
/// edit.append(root, Attributes::new().with("text", "hello"))?;
/// block_on(edit.commit())?;
///
/// assert_eq!(notes.view().tree().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Forest(Arc<Shared>);

impl Forest {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    pub(crate) fn state(&self) -> &ForestState {
        &self.0.forest
    }

    /// Creates a tree of one node.
    ///
    /// # Errors
    /// [`NameError::Taken`], if there is a tree with this name.
    pub fn create(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<TreeHandle, CommitError>> + Send + use<> {
        self.create_from(name, Tree::new())
    }

    /// Creates a tree with these nodes.
    ///
    /// # Errors
    /// [`NameError::Taken`], if there is a tree with this name.
    pub fn create_from(
        &self,
        name: &str,
        content: Tree,
    ) -> impl Future<Output = Result<TreeHandle, CommitError>> + Send + use<> {
        let shared = Arc::clone(&self.0);
        let submission = self
            .0
            .submit(Action::Create(name.into(), Box::new(content), None));
        async move {
            match submission.await {
                Answer::Created(state, garbage) => {
                    drop(garbage); // Outside the right to commit, by the author.
                    state.map(|state| TreeHandle::new(shared, state))
                }
                Answer::Committed(Err(error), _) => Err(error),
                _ => unreachable!("a creation is answered with the tree"),
            }
        }
    }

    /// The tree with this name.
    ///
    /// # Errors
    /// [`NameError::Missing`], if there is none.
    pub fn get(&self, name: &str) -> Result<TreeHandle, NameError> {
        Ok(TreeHandle::new(
            Arc::clone(&self.0),
            self.state().tree(name)?,
        ))
    }

    /// The names of all trees, sorted.
    pub fn list(&self) -> Vec<String> {
        self.state()
            .names()
            .keys()
            .map(ToString::to_string)
            .collect()
    }

    /// Deletes the tree that has this name when the commit is made. Its snapshots stay, and its handles still
    /// show the last version.
    ///
    /// # Errors
    /// [`NameError::Missing`], if there is none.
    pub fn delete(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        self.0.submit_change(Action::Delete(name.into()))
    }

    /// Renames the tree that has this name when the commit is made. Its handles, versions and tags stay.
    ///
    /// # Errors
    /// [`NameError`], if no tree has the old name, or one has the new name.
    pub fn rename(
        &self,
        name: &str,
        new_name: &str,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let rename = Action::Rename(name.into(), new_name.into());
        self.0.submit_change(rename)
    }

    /// Several trees at one moment: each commit over several of them is seen whole or not at all. It does not
    /// wait.
    ///
    /// # Errors
    /// [`CommitError::OtherForest`], if one of the trees belongs to another forest.
    pub fn snapshot<const N: usize>(
        &self,
        trees: [&TreeHandle; N],
    ) -> Result<[Snapshot; N], CommitError> {
        let snapshots = self.snapshot_all(&trees)?;
        Ok(snapshots
            .try_into()
            .unwrap_or_else(|_| unreachable!("there is one for each tree")))
    }

    /// [`snapshot`](Self::snapshot) for any number of trees.
    ///
    /// # Errors
    /// [`CommitError::OtherForest`], if one of the trees belongs to another forest.
    pub fn snapshot_all(&self, trees: &[&TreeHandle]) -> Result<Vec<Snapshot>, CommitError> {
        if let Some(other) = trees
            .iter()
            .find(|tree| !Arc::ptr_eq(&tree.shared, &self.0))
        {
            return Err(CommitError::OtherForest(other.name()));
        }
        let states: Vec<_> = trees.iter().map(|tree| &*tree.state).collect();
        Ok(together::snapshot(&states))
    }

    /// Waits until a version, and so all before it, has reached a level. Whoever raises the journal's mark wakes it.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`DurableError`]: there is no such version, the journal does not reach the level, or it failed.
    pub fn when_durable(
        &self,
        version: Version,
        level: Level,
    ) -> impl Future<Output = Result<(), DurableError>> + Send + use<> {
        let state = self.state();
        let (most, incarnation) = (state.most(), state.incarnation);
        let newest = Version {
            incarnation,
            number: state.stats.newest(),
        };
        let waits = if version.incarnation != incarnation {
            Err(VersionError::OtherIncarnation(version).into())
        } else if version > newest {
            let asked = version;
            Err(VersionError::Future { asked, newest }.into())
        } else if level > most {
            Err(DurableError::Level { most })
        } else {
            let medium = state.medium.as_ref();
            Ok(medium.and_then(|medium| medium.when_reached(version.number, level)))
        };
        async move {
            let durability = match waits? {
                Some(waits) => waits.await,
                None => Durability::Reached,
            };
            match durability {
                Durability::Reached => Ok(()),
                Durability::Unknown => Err(DurableError::Unknown(version)),
            }
        }
    }

    /// What has happened since the forest was opened, and what it holds.
    pub fn stats(&self) -> Stats {
        let trees = self.state().trees();
        let (blobs, blob_bytes) = self.state().blobs.count();
        let mut stats = Stats {
            trees: trees.len() as u64,
            blobs: blobs as u64,
            blob_bytes: blob_bytes as u64,
            ..self.state().stats.read()
        };
        for state in trees {
            let newest = {
                let history = state.history();
                stats.versions += history.kept().len() as u64;
                Arc::clone(history.newest())
            };
            let indexes = newest.indexes.all().iter();
            stats.indexes += indexes.len() as u64;
            stats.index_keys += indexes.map(|index| index.keys.len() as u64).sum::<u64>();
        }
        stats
    }
}

impl std::fmt::Debug for Forest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Forest {:?}", self.list())
    }
}
