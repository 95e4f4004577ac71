//! The forest: trees by their names, and what they share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

use weald_tree::{Bytes, Tree};

use crate::asking::Asking;
use crate::builder::Builder;
use crate::clock::Clock;
use crate::combiner::Combiner;
use crate::desk::Desk;
use crate::erasable::Blobs;
use crate::error::{CommitError, NameError};
use crate::inside::{Insiders, Running};
use crate::line::Line;
use crate::request::{Answer, Request, What, Work};
use crate::root::Snapshot;
use crate::stats::{Counts, Stats};
use crate::together;
use crate::trunk::Trunk;
use crate::version::{CommitId, Committed};

/// A database of trees. A clone is the same forest; any thread may have one.
///
/// ```
/// use weald_forest::{Attributes, Forest, Wait};
///
/// let forest = Forest::new();
/// let notes = forest.create("notes").wait()?;
///
/// let mut edit = notes.edit();
/// let root = edit.root();
/// edit.append(root, Attributes::new().with("text", "hello"))?;
/// edit.commit().wait()?;
///
/// assert_eq!(notes.view().tree().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Forest(Arc<Shared>);

/// What all handles of a forest share.
pub(crate) struct Shared {
    /// Only the combiner writes.
    names: RwLock<BTreeMap<Arc<str>, Arc<Line>>>,
    pub(crate) desk: Desk,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stats: Counts,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) insiders: Insiders,
    pub(crate) incarnation: u64,
    /// The upper half of the ids that the forest gives to commits.
    seed: u64,
    tickets: AtomicU64,
}

impl Forest {
    /// A forest in memory, with the default settings.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// The settings of a forest.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    /// All trees, as they are now.
    pub(crate) fn lines(&self) -> Vec<Arc<Line>> {
        self.0.names().values().cloned().collect()
    }

    pub(crate) fn new_with(combiner: Combiner, clock: Arc<dyn Clock>, running: Running) -> Self {
        let since = clock.now().duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = since.unwrap_or_default().as_nanos();
        Self(Arc::new(Shared {
            names: RwLock::default(),
            desk: Desk::new(combiner),
            clock,
            stats: Counts::default(),
            blobs: Arc::default(),
            insiders: Insiders::new(running),
            incarnation: u64::try_from(nanoseconds).unwrap_or(u64::MAX),
            seed: RandomState::new().hash_one(nanoseconds),
            tickets: AtomicU64::new(1),
        }))
    }

    /// Creates a tree of one node.
    ///
    /// # Errors
    /// [`NameError::Taken`], if there is a tree of this name.
    pub fn create(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Trunk, CommitError>> + Send + use<> {
        self.create_from(name, Tree::new())
    }

    /// Creates a tree with these nodes.
    ///
    /// # Errors
    /// [`NameError::Taken`], if there is a tree of this name.
    pub fn create_from(
        &self,
        name: &str,
        content: Tree,
    ) -> impl Future<Output = Result<Trunk, CommitError>> + Send + use<> {
        let shared = Arc::clone(&self.0);
        let asking = self.0.ask_for(What::Create(name.into(), Box::new(content)));
        async move {
            match asking.await {
                Answer::Created(line) => line.map(|line| Trunk::new(shared, line)),
                Answer::Committed(Err(error)) => Err(error),
                _ => unreachable!("who asks to create is told what was created"),
            }
        }
    }

    /// The tree of this name.
    ///
    /// # Errors
    /// [`NameError::Missing`], if there is none.
    pub fn get(&self, name: &str) -> Result<Trunk, NameError> {
        Ok(Trunk::new(Arc::clone(&self.0), self.0.line(name)?))
    }

    /// The names of all trees, sorted.
    pub fn list(&self) -> Vec<String> {
        self.0.names().keys().map(ToString::to_string).collect()
    }

    /// Deletes the tree that has this name when it happens. Snapshots of it stay, and its handles go on
    /// showing the last version.
    ///
    /// # Errors
    /// [`NameError::Missing`], if there is none of this name.
    pub fn delete(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        self.0.ask_for_commit(What::Delete(name.into()))
    }

    /// Gives the tree that has this name when it happens another one. Its handles, versions and tags stay.
    ///
    /// # Errors
    /// [`NameError`], if there is no tree of the old name, or one of the new name.
    pub fn rename(
        &self,
        name: &str,
        new_name: &str,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let what = What::Rename(name.into(), new_name.into());
        self.0.ask_for_commit(what)
    }

    /// What several trees were at one moment: of each commit over several of them, all or nothing. It
    /// waits for nobody.
    ///
    /// # Errors
    /// [`CommitError::OtherForest`], if one of the trees belongs to another forest.
    pub fn snapshot<const N: usize>(
        &self,
        trees: [&Trunk; N],
    ) -> Result<[Snapshot; N], CommitError> {
        let snapshots = self.snapshot_all(&trees)?;
        Ok(snapshots
            .try_into()
            .unwrap_or_else(|_| unreachable!("there is one for each tree")))
    }

    /// The same for any number of trees.
    ///
    /// # Errors
    /// [`CommitError::OtherForest`], if one of the trees belongs to another forest.
    pub fn snapshot_all(&self, trees: &[&Trunk]) -> Result<Vec<Snapshot>, CommitError> {
        if let Some(other) = trees
            .iter()
            .find(|tree| !Arc::ptr_eq(&tree.shared, &self.0))
        {
            return Err(CommitError::OtherForest(other.name()));
        }
        let lines: Vec<_> = trees.iter().map(|tree| &*tree.line).collect();
        Ok(together::snapshot(&lines))
    }

    /// What happened since the forest was opened.
    pub fn stats(&self) -> Stats {
        let lines = self.lines();
        let (blobs, blob_bytes) = self.0.blobs.count();
        let mut stats = Stats {
            trees: lines.len() as u64,
            blobs: blobs as u64,
            blob_bytes: blob_bytes as u64,
            ..self.0.stats.read()
        };
        for line in lines {
            let newest = {
                let past = line.past();
                stats.versions += past.kept().len() as u64;
                Arc::clone(past.newest())
            };
            let indexes = newest.indexes.all().iter();
            stats.indexes += indexes.len() as u64;
            stats.index_keys += indexes.map(|index| index.keys.len() as u64).sum::<u64>();
        }
        stats
    }
}

impl Default for Forest {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Forest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Forest {:?}", self.list())
    }
}

impl Shared {
    pub(crate) fn names(&self) -> RwLockReadGuard<'_, BTreeMap<Arc<str>, Arc<Line>>> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn names_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Arc<str>, Arc<Line>>> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree that has this name now.
    ///
    /// # Errors
    /// [`NameError::Missing`], if there is none.
    pub(crate) fn line(&self, name: &str) -> Result<Arc<Line>, NameError> {
        let line = self.names().get(name).cloned();
        line.ok_or_else(|| NameError::Missing(name.to_owned()))
    }

    /// The id of the commit of this number, if its author gave none.
    pub(crate) fn nth_id(&self, number: u64) -> CommitId {
        CommitId(u128::from(self.seed) << 64 | u128::from(number))
    }

    /// A number that no other turn has.
    pub(crate) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks for a change that makes no tree, and waits for what became of it.
    pub(crate) fn ask_for_commit(
        self: &Arc<Self>,
        what: What,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let asking = self.ask_for(what);
        async move {
            match asking.await {
                Answer::Committed(outcome) => outcome,
                _ => unreachable!("who asks for a change is told whether it was made"),
            }
        }
    }

    /// Asks for a change that is no edit.
    pub(crate) fn ask_for(self: &Arc<Self>, what: What) -> Asking {
        let work = Work {
            what,
            id: None,
            bytes: Bytes::new(&[]),
            turn: None,
        };
        Asking::new(Arc::clone(self), Request::Commit(work))
    }
}
