//! The handle of a forest: trees by their names, snapshots of several trees, counts.

use std::sync::Arc;

use weald_tree::{NodeId, Tree};

use crate::combine::request::{Action, Answer};
use crate::combine::shared::Shared;
use crate::content::references::references_of_tree;
use crate::error::{CommitError, DurableError, MAX_NAME, NameError};
use crate::journal::{Durability, Level};
use crate::read::together;
use crate::requested::Requested;
use crate::state::forest::ForestState;
use crate::state::root::Snapshot;
use crate::state::stats::Stats;
use crate::tree_handle::TreeHandle;
use crate::version::{Committed, Version};

/// A database of trees. A clone is the same forest; any thread may have one.
///
/// ```
/// use weald::block_on;
/// use weald::forest::{Attributes, Forest};
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
pub struct Forest(pub(crate) Arc<Shared>);

impl Forest {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    pub(crate) fn state(&self) -> &ForestState {
        &self.0.forest
    }

    /// Creates a tree of one node.
    ///
    /// A name has 1 to 1024 bytes of UTF-8, none of them a control character, and is compared byte by byte.
    ///
    /// # Errors
    /// [`NameError::Taken`], if there is a tree with this name; [`NameError::Invalid`], if the text is no
    /// name.
    pub fn create(&self, name: &str) -> Requested<TreeHandle> {
        self.create_from(name, Tree::new())
    }

    /// Creates a tree with these nodes. A tree that is created from a version of another one is a tree of its own:
    /// nodes of both have the same numbers, but an edit of one refuses an [id](NodeId) that the other gave out.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_from(&self, name: &str, content: Tree) -> Requested<TreeHandle> {
        let name = valid(name);
        let blobs = Arc::clone(&self.state().blobs);
        let make = move || {
            let content = blobs.tree_held(content);
            let references = match blobs.were_used() {
                true => references_of_tree(&content),
                false => Vec::new(),
            };
            let content = Box::new((content, references));
            Ok(Action::Create(name?, content, None))
        };
        Requested::with(&self.0, make, |shared, answer| match answer {
            Answer::Created(state, garbage) => {
                drop(garbage); // Outside the right to commit, by the author.
                state.map(|state| TreeHandle::new(Arc::clone(shared), state))
            }
            Answer::Committed(Err(error), _) => Err(error),
            _ => unreachable!("a creation is answered with the tree"),
        })
    }

    /// The tree with this name, which is created with one node if there is none. If the future is dropped after its
    /// first poll, the tree may have been created.
    ///
    /// # Errors
    /// As [`create`](Self::create), except `Taken`.
    pub fn get_or_create(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<TreeHandle, CommitError>> + Send + use<> {
        let (forest, name) = (self.clone(), name.to_owned());
        async move {
            loop {
                if let Ok(tree) = forest.get(&name) {
                    return Ok(tree);
                }
                match forest.create(&name).await {
                    // Somebody else was faster; it may be gone again.
                    Err(CommitError::Name(NameError::Taken(_))) => {}
                    outcome => return outcome,
                }
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
            .names_from("")
            .map(|name| name.to_string())
            .collect()
    }

    /// The names of all trees that begin with a prefix, sorted. It costs the look-up of one and the list of these.
    pub fn list_prefix(&self, prefix: &str) -> Vec<String> {
        let names = self.state().names();
        let names = names.names_from(prefix).map(|name| name.to_string());
        names.take_while(|name| name.starts_with(prefix)).collect()
    }

    /// Deletes the tree that has this name when the commit is made. Its snapshots stay, and its handles still
    /// show the last version.
    ///
    /// # Errors
    /// [`NameError::Missing`], if there is none.
    pub fn delete(&self, name: &str) -> Requested<Committed> {
        let name = name.into();
        Requested::new(&self.0, || Ok(Action::Delete(name)))
    }

    /// Erases, as [`TreeHandle::erase`](crate::TreeHandle::erase) does, in the tree of a
    /// [number](crate::TreeHandle::number). The tree need not be there any more: a tree that was deleted in an earlier
    /// opening has no handle, but the history of the journal still shows it. The forest as of a past moment tells the
    /// number.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Forest, MemoryJournal};
    ///
    /// let journal = MemoryJournal::new();
    /// let forest = Forest::builder().journal(journal.clone()).build();
    /// let people = block_on(forest.create("people"))?;
    /// let mut edit = people.edit();
    /// let root = edit.root();
    /// edit.put_erasable(root, "name", b"Ada")?;
    /// block_on(edit.commit())?;
    /// let number = people.number();
    /// block_on(forest.delete("people"))?;
    /// drop((people, forest));
    ///
    /// let forest = block_on(Forest::builder().journal(journal).recover())?;
    /// block_on(forest.erase_in(number, root, "name"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`TreeHandle::erase`](crate::TreeHandle::erase); [`CommitError::NothingToErase`] also if no commit has
    /// this number yet.
    pub fn erase_in(&self, tree: u64, node: NodeId, name: &str) -> Requested<Committed> {
        let place = (tree, node, name.into());
        let forest = Arc::clone(&self.0);
        Requested::new(&self.0, move || {
            // No tree has such a number yet.
            if tree == 0 || tree > forest.forest.stats.newest() {
                let (_, node, name) = place;
                let name = String::from(name);
                return Err(CommitError::NothingToErase { node, name });
            }
            if Tree::new().numbered(tree).is_foreign(place.1) {
                return Err(CommitError::OtherTree(place.1));
            }
            let names = forest.forest.names();
            let state = names.trees().find(|state| state.number == tree);
            let state = state.cloned();
            drop(names);
            Action::erase(state, place)
        })
    }

    /// Renames the tree that has this name when the commit is made. Its handles, versions and tags stay.
    ///
    /// # Errors
    /// [`NameError`], if no tree has the old name, another tree has the new name, or the new name is
    /// invalid.
    pub fn rename(&self, name: &str, new_name: &str) -> Requested<Committed> {
        let (name, new_name) = (name.into(), valid(new_name));
        Requested::new(&self.0, || Ok(Action::Rename(name, new_name?)))
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
        Ok(together::snapshot(self.state(), &states))
    }

    /// Waits until a version, and so all before it, has reached a level: buffered, or durable. The thread that raises
    /// the journal's mark wakes it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`DurableError`]: there is no such version, the journal does not reach the level, or it failed.
    pub fn when_durable(
        &self,
        version: Version,
        level: Level,
    ) -> impl Future<Output = Result<(), DurableError>> + Send + use<> {
        let state = self.state();
        let most = state.most();
        let waits = if let Err(error) = state.must_exist(version) {
            Err(error.into())
        } else if level > most {
            Err(DurableError::Level { most })
        } else {
            let journal = state.journal.as_ref();
            Ok(journal.and_then(|journal| journal.when_reached(version.number, level)))
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

    /// Whether a version, and so all before it, has reached a level. It does not wait.
    ///
    /// A version that was read and is not durable is lost to this forest if the journal fails: the forest then falls
    /// back to the newest durable version, and `at` and watches say so ([`VersionError::Lost`], [`WatchEnd::Unknown`]).
    /// A [`Snapshot`] stays as it is.
    ///
    /// [`VersionError::Lost`]: crate::VersionError::Lost
    /// [`WatchEnd::Unknown`]: crate::WatchEnd::Unknown
    pub fn has_reached(&self, version: Version, level: Level) -> bool {
        let state = self.state();
        if state.must_exist(version).is_err() || level > state.most() {
            return false;
        }
        let journal = state.journal.as_ref();
        journal.is_none_or(|journal| journal.when_reached(version.number, level).is_none())
    }

    /// What has happened since the forest was opened, and what it holds.
    pub fn stats(&self) -> Stats {
        let trees = self.state().trees();
        let (blobs, blob_bytes) = self.state().blobs.count();
        let mut stats = Stats {
            trees: trees.len() as u64,
            blobs: blobs as u64,
            blob_bytes: blob_bytes as u64,
            unreadable_blobs: self.state().blobs.unreadable() as u64,
            ..self.state().stats.read()
        };
        for state in trees {
            let newest = {
                let history = state.history();
                stats.versions += history.kept().len() as u64;
                history.newest().clone()
            };
            let indexes = newest.all_indexes().all().iter();
            stats.indexes += indexes.len() as u64;
            stats.index_keys += indexes.map(|index| index.keys.len() as u64).sum::<u64>();
        }
        stats
    }
}

/// Checks the name of a tree.
fn valid(name: &str) -> Result<Arc<str>, NameError> {
    if name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) {
        return Err(NameError::Invalid(name.chars().take(40).collect()));
    }
    Ok(name.into())
}

impl std::fmt::Debug for Forest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Forest {:?}", self.list())
    }
}
