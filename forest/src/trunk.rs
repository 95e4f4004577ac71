//! A named tree of the forest: its newest version, its older ones, and how to change it.

use std::sync::Arc;
use std::time::SystemTime;

use weald_tree::NodeId;

use crate::edit::Edit;
use crate::error::{CommitError, VersionError};
use crate::forest::Shared;
use crate::index::Index;
use crate::line::Line;
use crate::past::Tagged;
use crate::request::What;
use crate::root::{Snapshot, View};
use crate::version::{Committed, Version};

/// A tree of a forest. A clone is the same tree; any thread may have one.
#[derive(Clone)]
pub struct Trunk {
    pub(crate) shared: Arc<Shared>,
    pub(crate) line: Arc<Line>,
}

impl Trunk {
    pub(crate) fn new(shared: Arc<Shared>, line: Arc<Line>) -> Self {
        Self { shared, line }
    }

    /// Its name of this moment; that of a deleted tree is its last.
    pub fn name(&self) -> String {
        self.line.name().to_string()
    }

    /// The number that it keeps, whatever its name is.
    pub fn number(&self) -> u64 {
        self.line.number
    }

    /// Whether it was deleted. Then it can be read as it was last, and not be changed.
    pub fn is_deleted(&self) -> bool {
        self.line.is_deleted()
    }

    /// The newest version, to keep. It waits for nobody, nobody waits for it, and it keeps nothing alive
    /// but its own version.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.line.slot)
    }

    /// The newest version, to look at for a short while: cheaper than a [`snapshot`](Self::snapshot).
    #[inline]
    pub fn view(&self) -> View {
        View::of(&self.line.slot)
    }

    /// An edit that begins from the newest version.
    pub fn edit(&self) -> Edit {
        let (shared, line) = (Arc::clone(&self.shared), Arc::clone(&self.line));
        Edit::new(shared, line, self.snapshot())
    }

    /// An edit that begins from this version; its commit is brought to the newest one, or is a conflict.
    ///
    /// # Panics
    /// If it is a version of another tree, be it one from which this tree was created.
    pub fn edit_from(&self, base: &Snapshot) -> Edit {
        let is_of_this_tree = base.line == self.line.number
            && base.version().incarnation == self.shared.incarnation
            && base.tree.shares_ids_with(&self.view().tree);
        assert!(
            is_of_this_tree,
            "an edit of a tree begins from a version of that tree"
        );
        Edit::new(
            Arc::clone(&self.shared),
            Arc::clone(&self.line),
            base.clone(),
        )
    }

    /// What the tree was in a version of the forest. Of the forest's versions each is one of the tree too:
    /// the newest that was made up to then.
    ///
    /// # Errors
    /// [`VersionError`], if it is not kept, was not made, or is from before the tree.
    #[expect(
        clippy::unused_async,
        reason = "older versions will be rebuilt from the journal"
    )]
    pub async fn at(&self, version: Version) -> Result<Snapshot, VersionError> {
        self.kept_at(version)
    }

    /// The same, if the version is kept in memory.
    ///
    /// # Errors
    /// [`VersionError`], if it is not kept, was not made, or is from before the tree.
    pub fn kept_at(&self, asked: Version) -> Result<Snapshot, VersionError> {
        let incarnation = self.shared.incarnation;
        if asked.incarnation != incarnation {
            return Err(VersionError::OtherIncarnation(asked));
        }
        let newest = self.shared.stats.newest();
        if asked.number > newest {
            let newest = Version {
                incarnation,
                number: newest,
            };
            return Err(VersionError::Future { asked, newest });
        }
        self.line.past().at(asked).cloned().map(Snapshot)
    }

    /// What the tree was at a time: the newest version that was committed up to then.
    ///
    /// # Errors
    /// [`VersionError::BeforeTime`], if none is kept that is as old.
    #[expect(
        clippy::unused_async,
        reason = "older versions will be rebuilt from the journal"
    )]
    pub async fn at_time(&self, time: SystemTime) -> Result<Snapshot, VersionError> {
        self.line.past().at_time(time).cloned().map(Snapshot)
    }

    /// The versions that are kept without a gap, the oldest first.
    pub fn versions(&self) -> Vec<Snapshot> {
        self.line.past().kept().cloned().map(Snapshot).collect()
    }

    /// The versions that are kept in which a node came, changed, moved or went, the newest first. The
    /// oldest is among them only if it is the first of the tree: of any other nobody knows any more what
    /// it changed. It costs a look-up in each version that is kept.
    pub fn history(&self, node: NodeId) -> Vec<Snapshot> {
        let (versions, is_whole) = {
            let past = self.line.past();
            let versions: Vec<_> = past.kept().cloned().map(Snapshot).collect();
            (versions, past.gone() == 0)
        };
        let mut changed: Vec<_> = versions
            .windows(2)
            .filter(|pair| pair[0].tree.differs_at(&pair[1].tree, node))
            .map(|pair| pair[1].clone())
            .collect();
        changed.reverse();
        let first = versions.into_iter().next();
        changed.extend(first.filter(|first| is_whole && first.tree.node(node).is_some()));
        changed
    }

    /// Makes a version that has the nodes of an older one again, with their ids. Nothing is lost: the
    /// versions between stay. Edits that began before are brought to it like to any other version.
    ///
    /// # Errors
    /// [`VersionError`], if the version is not kept; those of a commit.
    pub fn restore(
        &self,
        version: Version,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let (trunk, root) = (self.clone(), self.kept_at(version));
        async move {
            let root = root?;
            trunk.ask(|line| What::Restore(line, root.0)).await
        }
    }

    /// Gives a version a tag, under which it is kept until the tag is taken away: [`at`](Self::at) goes on
    /// finding it. A tag that is there already moves.
    ///
    /// # Errors
    /// [`VersionError`], if the version is not kept; those of a commit.
    pub fn tag(
        &self,
        tag: &str,
        version: Version,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let (trunk, root) = (self.clone(), self.kept_at(version));
        let tag = tag.into();
        async move {
            let root = root?;
            let tagged = Tagged {
                given: version,
                root: root.0,
            };
            trunk.ask(|line| What::Tag(line, tag, tagged)).await
        }
    }

    /// Takes a tag away, if it is there.
    ///
    /// # Errors
    /// Those of a commit.
    pub fn untag(
        &self,
        tag: &str,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let (trunk, tag) = (self.clone(), tag.into());
        async move { trunk.ask(|line| What::Untag(line, tag)).await }
    }

    /// The version that has this tag.
    pub fn tagged(&self, tag: &str) -> Option<Snapshot> {
        let past = self.line.past();
        let tagged = past.tags.get(tag);
        tagged.map(|tagged| Snapshot(Arc::clone(&tagged.root)))
    }

    /// All tags and their versions, sorted by tag.
    pub fn tags(&self) -> Vec<(String, Version)> {
        let past = self.line.past();
        let tags = past.tags.iter();
        tags.map(|(tag, tagged)| (tag.to_string(), tagged.root.version()))
            .collect()
    }

    /// Gives an attribute an index, in all versions from now on; nothing happens if it has one. The index
    /// is built by the caller, beside other writers, and costs a look at every node.
    ///
    /// # Errors
    /// Those of a commit.
    pub fn add_index(
        &self,
        attribute: &str,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let (trunk, attribute) = (self.clone(), attribute.to_owned());
        async move {
            let base = trunk.snapshot();
            let index = Index::of(&attribute, base.tree());
            trunk.ask(|line| What::AddIndex(line, base.0, index)).await
        }
    }

    /// Takes the index of an attribute away, if it has one, from all versions from now on.
    ///
    /// # Errors
    /// Those of a commit.
    pub fn drop_index(
        &self,
        attribute: &str,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let (trunk, attribute) = (self.clone(), attribute.into());
        async move { trunk.ask(|line| What::DropIndex(line, attribute)).await }
    }

    /// Erases all bytes that were ever put with [`put_erasable`](Edit::put_erasable) under an attribute
    /// of a node: every version, snapshot and export then reads `Erased`. So it does in a deleted tree.
    ///
    /// # Errors
    /// [`CommitError::NothingToErase`], if none are stored and there is no journal, which may have more than
    /// the versions in memory; those of a commit, but for `Deleted`.
    pub fn erase(
        &self,
        node: NodeId,
        name: &str,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let (trunk, name) = (self.clone(), name.into());
        async move { trunk.ask(|line| What::Erase(line, node, name)).await }
    }

    pub(crate) async fn ask(
        self,
        what: impl FnOnce(Arc<Line>) -> What,
    ) -> Result<Committed, CommitError> {
        self.shared.ask_for_commit(what(self.line)).await
    }
}

impl std::fmt::Debug for Trunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Trunk {{ name: {:?}, {:?} }}",
            self.name(),
            self.view().tree()
        )
    }
}
